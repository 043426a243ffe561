package runtime_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// started remembers which executions a handler began to run.
type started struct {
	mu  sync.Mutex
	ids map[flowfabric.ExecutionID]bool
}

func (s *started) run(_ context.Context, task *handler.Task, _ string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids[task.ID()] = true
	return "", nil
}

func (s *started) has(id flowfabric.ExecutionID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[id]
}

func (s *started) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ids)
}

// A lane is paused while its queues are full and work keeps coming: nothing starts that was not claimed before, the
// worker goes on with other lanes in the same partitions, and what waited runs when the lane is resumed.
func TestPausedLaneUnderLoad(t *testing.T) {
	servers(t, func(w *env) {
		c, err := client.Connect(w.ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: w.url,
			Logger: quiet})
		must.No(w, err)
		defer c.Close()
		into := func(lane string, partition int) func(*engine.NewExecution) {
			return func(x *engine.NewExecution) { x.Lane, x.ID = lane, mint.ID(uint16(partition%4)) }
		}
		seen := &started{ids: map[flowfabric.ExecutionID]bool{}}
		w.start(runtime.Config{Concurrency: 8, Lanes: []string{"default", "open"}}, handler.Bind(greet, seen.run))

		// Load from another goroutine, from before the pause until it is told to stop.
		var load conc.WaitGroup
		enough, submitted := make(chan struct{}), make(chan flowfabric.ExecutionID, 100_000)
		load.Go(func() {
			for i := range cap(submitted) {
				select {
				case <-enough:
					return
				default:
					submitted <- w.submit(strconv.Itoa(i), into("default", i))
				}
			}
		})
		stop := sync.OnceFunc(func() { close(enough); load.Wait(); close(submitted) })
		defer stop()
		w.eventually("the load runs", func() bool { return seen.count() > 50 })

		must.No(w, admin.New(c).SetLane(w.ctx, "default", admin.LaneChange{State: flowfabric.LanePaused},
			flowfabric.By("anna")))
		var waits []flowfabric.ExecutionID // not claimed when the call had returned
		for x, err := range admin.New(c).List(w.ctx,
			admin.Filter{Lane: "default", States: []flowfabric.PublicState{flowfabric.Waiting}}) {
			must.No(w, err)
			waits = append(waits, x.ID)
		}
		before := len(submitted)
		w.eventually("work is accepted", func() bool { return len(submitted) > before+20 })
		stop()
		for i := range 40 { // these bring the worker to claim in every partition
			w.reach(w.submit("open", into("open", i)), codes.Completed)
		}
		w.eventually("what was claimed has ended", func() bool {
			page, err := admin.New(c).ListPage(w.ctx, admin.Filter{States: []flowfabric.PublicState{flowfabric.Active}},
				"", 1)
			return err == nil && len(page.Items) == 0
		})
		queues, err := admin.New(c).Queues(w.ctx, "")
		if err != nil || len(queues) != 2 || queues[0].Lane != "default" || queues[0].State != flowfabric.LanePaused ||
			queues[0].Mixed {
			w.Fatalf("%+v, %v", queues, err)
		}
		late := 0
		var all []flowfabric.ExecutionID
		for id := range submitted {
			all = append(all, id)
			if !seen.has(id) {
				late++
			}
		}
		for _, id := range waits {
			if seen.has(id) {
				w.Errorf("%s started in a paused lane", id)
			}
		}
		if late < 20 || late != queues[0].Waiting {
			w.Errorf("%d have not started, %d wait", late, queues[0].Waiting)
		}

		must.No(w, admin.New(c).SetLane(w.ctx, "default", admin.LaneChange{State: flowfabric.LaneActive}))
		for _, id := range all {
			w.reach(id, codes.Completed)
		}
	})
}
