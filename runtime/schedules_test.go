package runtime_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/calendar"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// Workers of several processes tick together, and one of them drains: a limit of runs is met exactly, each instant of
// a flow runs all of its members once, and no work starts before the start of its instant.
func TestWorkersFireSchedulesThatEnd(t *testing.T) {
	w := newEnv(t)
	work := handler.Define[string, string]("scheduled", flowfabric.Retries(0))
	var mu sync.Mutex
	runs := map[string]int{} // by schedule, instant and what was done
	ended := make(chan struct{}, 100)
	do := func(_ context.Context, task *handler.Task, what string) (string, error) {
		mu.Lock()
		runs[fmt.Sprint(task.Tags()["schedule.name"], " ", task.Tags()["schedule.due"], " ", what)]++
		mu.Unlock()
		ended <- struct{}{}
		return what, nil
	}
	c, err := client.Connect(w.ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: w.url,
		Logger: quiet})
	must.No(t, err)
	t.Cleanup(c.Close)
	var workers []*running
	for i := range 3 {
		workers = append(workers,
			w.start(runtime.Config{Worker: fmt.Sprint("w", i), Concurrency: 4}, handler.Bind(work, do)))
	}
	f := flow.New("pair")
	flow.Add(f, "second", work, "second", flow.After(flow.Add(f, "first", work, "first")))
	every := schedule.Every(time.Second, time.Time{})
	_, err = c.SyncSchedules(w.ctx, "tests",
		client.DeclareSchedule("thrice", every, work, "once", client.MaxRuns(3), client.FirstRunNow(),
			client.CatchUp(schedule.CatchUpAll), client.Jitter(300*time.Millisecond)),
		client.DeclareFlowSchedule("flows", every, f, client.MaxRuns(2), client.CatchUp(schedule.CatchUpAll)))
	must.No(t, err)
	for n := range 3 + 2*2 {
		select {
		case <-ended:
		case <-w.ctx.Done():
			t.Fatalf("only %d pieces of work ran: %v", n, runs)
		}
		if n == 2 {
			must.No(t, workers[0].stop())
		}
	}
	for name, want := range map[string]uint64{"thrice": 3, "flows": 2} {
		s, err := admin.New(c).GetSchedule(w.ctx, name)
		if err != nil || s.Fired != want || s.Missed != 0 || s.Ended != "runs" {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if name == "flows" {
			if got, err := c.Flow(s.LastFlow).Wait(w.ctx); err != nil || got.State != flowfabric.FlowCompleted {
				t.Errorf("%+v, %v", got, err)
			}
			continue
		}
		last, err := c.Execution(s.LastID).Get(w.ctx)
		if start := calendar.Start(s.Definition, name, s.LastDue); err != nil || last.StartedAt.Before(start) {
			t.Errorf("it started at %s, before %s, %v", last.StartedAt, start, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(runs) != 7 {
		t.Errorf("%d pieces of work, want 7: %v", len(runs), runs)
	}
	for what, n := range runs {
		if n != 1 {
			t.Errorf("%s ran %d times", what, n)
		}
	}
}
