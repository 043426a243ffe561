package howto_test

import (
	"context"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// Month is the input of the report.
type Month struct{ Name string }

var Report = handler.Define[Month, Article]("report")

// plan may run at every start of every process: it changes nothing while its arguments stay the same.
func plan(ctx context.Context, c *client.Client) error {
	_, err := client.Schedule(ctx, c, "monthly-report", schedule.Cron("0 3 1 * *", "Europe/Berlin"), Report,
		Month{"last"}, client.Overlap(schedule.OverlapSkip), client.CatchUp(schedule.CatchUpLast),
		flowfabric.Lane("batch"))
	return err
}

var Remind = handler.Define[string, Article]("remind")

// remind asks a new customer once now and then daily for two weeks, at most ten times, a little later each day.
func remind(ctx context.Context, c *client.Client, customer string) error {
	_, err := client.Schedule(ctx, c, "remind-"+customer, schedule.Cron("0 9 * * *", "Europe/Berlin"), Remind, customer,
		client.FirstRunNow(), client.Until(time.Now().AddDate(0, 0, 14).Truncate(24*time.Hour)), client.MaxRuns(10),
		client.Jitter(30*time.Minute))
	return err
}

// digest submits a flow every night: two fetches, and a report of both.
func digest(ctx context.Context, c *client.Client) error {
	f := flow.New("digest")
	tides := flow.Add(f, "tides", Fetch, "tides")
	moons := flow.Add(f, "moons", Fetch, "moons")
	flow.Add(f, "report", Report, Month{"last"}, flow.After(tides, moons))
	_, err := client.ScheduleFlow(ctx, c, "nightly-digest", schedule.Cron("0 2 * * *", "Europe/Berlin"), f,
		client.Overlap(schedule.OverlapSkip))
	return err
}

// declare makes these the schedules of the service, and removes those that an earlier version of it declared.
func declare(ctx context.Context, c *client.Client) error {
	_, err := c.SyncSchedules(ctx, "billing",
		client.DeclareSchedule("monthly-report", schedule.Cron("0 3 1 * *", "Europe/Berlin"), Report, Month{"last"}),
		client.DeclareSchedule("refresh", schedule.Every(15*time.Minute, time.Time{}), Fetch, "feeds",
			client.Jitter(time.Minute)))
	return err
}

func TestSchedulesThatEndAndFlows(t *testing.T) {
	ctx, c := start(t, runtime.Config{},
		handler.Bind(Remind, func(_ context.Context, _ *handler.Task, customer string) (Article, error) {
			return Article{}, nil
		}))
	must(t, remind(ctx, c, "anna"))
	must(t, remind(ctx, c, "anna"))
	must(t, digest(ctx, c))
	must(t, declare(ctx, c))
	must(t, declare(ctx, c))
	all, err := admin.New(c).Schedules(ctx)
	must(t, err)
	if len(all) != 4 {
		t.Errorf("%v", all)
	}
	for {
		s, err := admin.New(c).GetSchedule(ctx, "remind-anna")
		must(t, err)
		if s.Fired == 1 {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatal("the first run did not come")
		case <-time.After(10 * time.Millisecond):
		}
	}
	s, err := admin.New(c).GetSchedule(ctx, "nightly-digest")
	must(t, err)
	if s.Definition.Item.Nodes != 3 || s.Definition.Owner != "" {
		t.Errorf("%+v", s)
	}
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
