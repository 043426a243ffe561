// Package must ends a test that cannot go on.
package must

import "testing"

// No ends the test if there is an error.
func No(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
