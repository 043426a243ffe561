package runtime_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// line is a worker with one slot whose handlers run one by one, as the test says.
type line struct {
	*env
	started chan flowfabric.ExecutionID
	next    chan struct{}
	lanes   chan string
	reg     *prometheus.Registry
}

// lineUp makes what a test says, on both servers, over so many partitions, with work waiting before the worker begins.
func lineUp(t *testing.T, partitions uint16, f func(l *line)) {
	run := func(t *testing.T, url string) {
		ctx, cancel := testwait.Context(t, context.Background())
		t.Cleanup(cancel)
		e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: url, Partitions: partitions,
			Logger: quiet})
		must.No(t, err)
		t.Cleanup(e.Close)
		f(&line{env: &env{T: t, ctx: ctx, url: url, engine: e}, started: make(chan flowfabric.ExecutionID),
			next: make(chan struct{}), lanes: make(chan string, 1000),
			reg: prometheus.NewRegistry()})
	}
	t.Run("embedded", func(t *testing.T) {
		server, err := embedded.Start(t.Context(), embedded.Config{Logger: quiet})
		must.No(t, err)
		t.Cleanup(func() { server.Close() })
		run(t, server.URL())
	})
	t.Run("redis", func(t *testing.T) { run(t, testserver.Redis(t)) })
}

// begin starts the worker, and returns once its first handler runs.
func (l *line) begin(cfg runtime.Config) flowfabric.ExecutionID {
	l.Helper()
	cfg.Concurrency, cfg.Registerer, cfg.DrainTimeout = 1, l.reg, -1
	l.start(cfg, handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
		select {
		case l.started <- task.ID():
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		l.lanes <- task.Lane()
		select {
		case <-l.next:
			return "", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}))
	return l.hear()
}

func (l *line) hear() flowfabric.ExecutionID {
	l.Helper()
	select {
	case id := <-l.started:
		return id
	case <-l.ctx.Done():
		l.Fatal("nothing more starts")
		return flowfabric.ExecutionID{}
	}
}

// starts lets n more handlers run, and returns what they ran.
func (l *line) starts(n int) (ids []flowfabric.ExecutionID) {
	l.Helper()
	for range n {
		l.next <- struct{}{}
		ids = append(ids, l.hear())
	}
	return ids
}

func placed(partition, n int, lane string) func(*engine.NewExecution) {
	return func(x *engine.NewExecution) {
		x.ID, x.Priority, x.Lane = mint.ID(uint16(partition)), n, lane
	}
}

// The lanes of a worker with one slot share it: what is new in a quiet one waits for as many of a busy one as there
// are partitions.
func TestQuietLaneIsNotStarved(t *testing.T) {
	lineUp(t, 4, func(l *line) {
		for i := range 300 {
			l.submit("x", placed(i%4, 9000, "busy"))
		}
		l.begin(runtime.Config{Lanes: []string{"busy", "quiet"}})
		l.starts(9)
		var quiet []flowfabric.ExecutionID
		for i := range 5 {
			quiet = append(quiet, l.submit("x", placed(i%4, 0, "quiet")))
		}
		// Two in one partition, so four claims of each, one to learn of the lane; and some for what was claimed ahead
		// and went back.
		next := l.starts(40)
		for _, id := range quiet {
			if !slices.Contains(next, id) {
				l.Errorf("%s was not among the next 40", id)
			}
		}
	})
}

// Weights of lanes hold for what a worker runs.
func TestLaneWeights(t *testing.T) {
	lineUp(t, 1, func(l *line) {
		for range 40 {
			l.submit("x", placed(0, 0, "busy"))
			l.submit("x", placed(0, 9000, "quiet"))
		}
		l.begin(runtime.Config{Lanes: []string{"busy", "quiet"}, LaneWeights: map[string]int{"busy": 3}})
		l.starts(31)
		got := ""
		for range 32 {
			got += (<-l.lanes)[:1]
		}
		if n := strings.Count(got, "b"); n < 22 || n > 26 { // 24, and what one claim holds more or less
			l.Errorf("%d of 32 by weights 3 and 1: %s", n, got)
		}
	})
}
