package option_test

import (
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// What Retention says of outcomes does not depend on the order of a map: an outcome that is none is refused whatever
// stands beside it, and of two options the last one counts, also for skipped and cancelled, which have one number.
func TestRetentionOfOutcomes(t *testing.T) {
	item := func(opts ...flowfabric.WorkOption) (x flowfabric.Start) {
		for i, o := range opts {
			must.No(t, option.Apply(&x, i, o))
		}
		return x
	}
	for range 100 {
		x := item(flowfabric.Retention(time.Hour), flowfabric.Retention(time.Minute, flowfabric.Active))
		if valid.Retentions(x.Policy.Retention) == nil {
			t.Fatalf("the retention of active work is accepted: %+v", x.Policy.Retention)
		}
		x = item(flowfabric.Retention(time.Hour, flowfabric.Cancelled),
			flowfabric.Retention(time.Minute, flowfabric.Skipped))
		y := item(flowfabric.Retention(time.Minute, flowfabric.Skipped),
			flowfabric.Retention(time.Hour, flowfabric.Cancelled))
		if x.Policy.Retention.Cancelled != time.Minute || y.Policy.Retention.Cancelled != time.Hour {
			t.Fatalf("%+v and %+v, want what the last option says", x.Policy.Retention, y.Policy.Retention)
		}
	}
}
