package fftest

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// bubbled reports whether the calling goroutine is in a testing/synctest bubble. In one it waits until all others
// are blocked.
func bubbled() (yes bool) {
	defer func() {
		if caught := recover(); caught != nil {
			yes = !strings.Contains(fmt.Sprint(caught), "not in a bubble")
		}
	}()
	synctest.Wait()
	return true
}

// bubble calls f in a bubble of its own, or in the one it is called in.
func bubble(t testing.TB, f func(t testing.TB)) {
	t.Helper()
	if bubbled() {
		f(t)
		return
	}
	own, ok := t.(*testing.T)
	if !ok {
		t.Fatalf("fftest: a %T has no bubble; call this within synctest.Test", t)
	}
	synctest.Test(own, func(t *testing.T) { f(t) })
}
