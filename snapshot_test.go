package flowfabric_test

import (
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

func TestWorkerOf(t *testing.T) {
	for session, want := range map[string]string{"web-1~0a1b": "web-1", "a~b~c": "a~b", "plain": "plain", "": ""} {
		if got := flowfabric.WorkerOf(session); got != want {
			t.Errorf("%q: %q, want %q", session, got, want)
		}
	}
}
