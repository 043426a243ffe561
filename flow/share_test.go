package flow_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// A share is within its bounds, is in the plan of its child, and belongs to no node of a flow.
func TestShare(t *testing.T) {
	def := handler.Define[int, int]("shared")
	plan := func(amounts map[string]int64) (map[string]int64, error) {
		set := flow.Children("w")
		flow.Child(set, "a", def, 1, flow.Share(amounts))
		flow.Child(set, "b", def, 1)
		q, err := set.Plan(flowplan.Parent{Execution: mint.ID(0), Namespace: "default"}).Request()
		if err != nil {
			return nil, err
		}
		if q.Children[1].Share != nil {
			t.Errorf("a child without a share has %v", q.Children[1].Share)
		}
		return q.Children[0].Share, nil
	}
	for _, good := range []map[string]int64{{"tokens": 1}, {"tokens": 1<<53 - 1, "cents": 5}} {
		if got, err := plan(good); err != nil || !maps.Equal(got, good) {
			t.Errorf("%v: %v, %v", good, got, err)
		}
	}
	many := map[string]int64{}
	for i := range 9 {
		many[fmt.Sprint("d", i)] = 1
	}
	for want, bad := range map[string]map[string]int64{"of 0 dimensions": nil, "of 9 dimensions": many,
		"tokens is 0": {"tokens": 0}, "tokens is 9007199254740992": {"tokens": 1 << 53}, `"No"`: {"No": 1}} {
		if _, err := plan(bad); !errors.Is(err, flowfabric.ErrInvalidInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", bad, err, want)
		}
	}
	f := flow.New("f")
	flow.Add(f, "a", def, 1, flow.Share(map[string]int64{"tokens": 1}))
	if err := f.Err(); !errors.Is(err, flowfabric.ErrInvalidInput) || !strings.Contains(err.Error(), "for children") {
		t.Error(err)
	}
}
