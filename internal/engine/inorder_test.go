package engine

import (
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric-go/suspend"
)

// Questions that were asked together are in the order of their keys, numbers by their size, behind everything else.
func TestInOrder(t *testing.T) {
	var points []suspend.Waitpoint
	for _, key := range []string{"approve 1.10 pay", "b", "approve 1.2 pay", "approve 1.2", "approve 1.1 pay"} {
		w := suspend.Waitpoint{Key: key, Question: &suspend.Question{}}
		if key == "b" {
			w.Question = nil
		}
		points = append(points, w)
	}
	slices.SortFunc(points, inOrder)
	var keys []string
	for _, w := range points {
		keys = append(keys, w.Key)
	}
	want := []string{"b", "approve 1.1 pay", "approve 1.2", "approve 1.2 pay", "approve 1.10 pay"}
	if !slices.Equal(keys, want) {
		t.Errorf("%q", keys)
	}
}
