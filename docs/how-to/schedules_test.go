package howto_test

import (
	"context"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// Month is the input of the report.
type Month struct{ Name string }

var Report = handler.Define[Month, Article]("report")

// plan may run at every start of every process: it changes nothing while its arguments stay the same.
func plan(ctx context.Context, c *client.Client) error {
	_, err := client.Schedule(ctx, c, "monthly-report", schedule.Cron("0 3 1 * *", "Europe/Berlin"), Report, Month{"last"},
		client.Overlap(schedule.OverlapSkip), client.CatchUp(schedule.CatchUpLast), flowfabric.Lane("batch"))
	return err
}

func TestSchedules(t *testing.T) {
	ctx, c := start(t, runtime.Config{})
	must(t, plan(ctx, c))
	must(t, plan(ctx, c))
	planned, err := admin.New(c).GetSchedule(ctx, "monthly-report")
	must(t, err)
	runs := planned.NextRuns(3)
	if len(runs) != 3 || runs[0].UTC().Day() > 1 && runs[0].UTC().Day() < 28 {
		t.Errorf("%v", runs)
	}
}
