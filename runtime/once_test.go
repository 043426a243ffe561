package runtime_test

import (
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// An execution that succeeds is settled by one call, and nothing else is said about it, not even at the drain.
func TestSettlesOnce(t *testing.T) {
	w := newEnv(t)
	var mu sync.Mutex
	calls := map[string]int{}
	r := w.start(runtime.Config{OnCall: func(function string, _ time.Duration, _ error) {
		mu.Lock()
		defer mu.Unlock()
		calls[function]++
	}}, greetBinding())
	w.reach(w.submit("ada"), codes.Completed)
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for function, want := range map[string]int{
		"ff_complete_execution": 1, "ff_fail_execution": 0, "ff_release_execution": 0, "ff_delay_execution": 0,
		"ff_cancel_execution": 0,
	} {
		if calls[function] != want {
			t.Errorf("%d calls of %s, want %d", calls[function], function, want)
		}
	}
}
