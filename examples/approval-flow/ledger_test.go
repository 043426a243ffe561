package main

import (
	"testing"

	"github.com/flowfabric/flowfabric-go/suspend"
)

// What is done twice is shown as done twice.
func TestLedgerCounts(t *testing.T) {
	l := newLedger()
	for _, effect := range []string{"build", "ask ivy", "build", "ask ivy", "ask ivy", "deploy"} {
		if err := l.did(effect, suspend.Token{}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := l.String(), "build ran 2×, link to ivy mailed 3×, deploy ran 1×"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
