package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/sourcegraph/conc"
	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// The driver draws a new map of the cluster up to a second after it was told to, and closes the connections that this
// makes superfluous five seconds later, even if the client was closed meanwhile.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"))
}

const (
	// partitions are few, so that each is busy; the three primaries have some of them each.
	partitions = 8
	frames     = 10
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

type job struct{ Index int }

type answer struct{ Index, Frames int }

// streaming takes a durable step and then writes numbered frames for a tenth of a second. It has no retries, so a
// failure of any kind shows.
var streaming = handler.Define[job, answer]("cluster-stream", flowfabric.Retries(0))

// env is a cluster of one test, an engine and a client on it, and plain clients that look past them.
type env struct {
	*testing.T
	ctx    context.Context
	nodes  *testserver.Nodes
	engine *engine.Engine
	client *client.Client
	raw    rueidis.Client // follows the cluster

	workers []*worker

	mu   sync.Mutex
	runs map[flowfabric.ExecutionID]int // how often a handler began
}

func newEnv(t *testing.T, nodes *testserver.Nodes) *env {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	w := &env{T: t, ctx: ctx, nodes: nodes, runs: map[flowfabric.ExecutionID]int{}}
	w.engine = w.open()
	c, err := client.Connect(ctx, client.Config{URL: nodes.URL(), Logger: quiet, SubmitTimeout: time.Hour})
	w.no(err)
	t.Cleanup(c.Close)
	w.client = c
	w.raw, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: addresses(nodes.URL()), DisableCache: true})
	w.no(err)
	t.Cleanup(w.raw.Close)
	return w
}

// open opens an engine on the cluster that lives as long as the test.
func (w *env) open() *engine.Engine {
	w.Helper()
	e, err := engine.Open(w.ctx, engine.Config{URL: w.nodes.URL(), Partitions: partitions, Logger: quiet})
	w.no(err)
	w.Cleanup(e.Close)
	return e
}

func addresses(url string) []string { return strings.Split(strings.TrimPrefix(url, "redis://"), ",") }

func (w *env) no(err error) {
	w.Helper()
	must.No(w, err)
}

// until polls for something that other processes do.
func (w *env) until(what string, done func() bool) {
	w.Helper()
	testwait.Until(w.T, what, done)
}

// slot is the slot that a partition lives in.
func (w *env) slot(partition uint16) int { return w.nodes.SlotOf(keys.Root(partition)) }

// primary is the node that serves a partition.
func (w *env) primary(partition uint16) *testserver.Server {
	return w.nodes.NodeOf(w.slot(partition))
}

// at runs a plain command on one node.
func (w *env) at(s *testserver.Server, args ...string) rueidis.RedisResult {
	w.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.Address()}, DisableCache: true,
		ForceSingleClient: true})
	w.no(err)
	defer c.Close()
	return c.Do(w.ctx, c.B().Arbitrary(args...).Build())
}

// worker is a running worker. stop drains it and fails the test if it did not end well.
type worker struct {
	*runtime.Worker
	stop func()
}

// start runs a worker until the test ends or stops it.
func (w *env) start(name string, ttl time.Duration) *worker {
	w.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	r, err := runtime.New(runtime.Config{URL: w.nodes.URL(), Instance: name, LeaseTTL: ttl, Concurrency: 8,
		Logger: quiet},
		handler.Bind(streaming, w.stream))
	w.no(err)
	var owner conc.WaitGroup
	owner.Go(func() {
		if err := r.Run(ctx); err != nil {
			w.Errorf("worker %s: %v", name, err)
		}
	})
	stop := sync.OnceFunc(func() { cancel(); owner.Wait() })
	w.Cleanup(stop)
	w.until("worker "+name+" is ready", func() bool { return r.Ready() == nil })
	k := &worker{r, stop}
	w.workers = append(w.workers, k)
	return k
}

// quiesce stops all workers, so that nobody writes.
func (w *env) quiesce() {
	for _, k := range w.workers {
		k.stop()
	}
}

func (w *env) stream(ctx context.Context, t *handler.Task, in job) (answer, error) {
	w.mu.Lock()
	w.runs[t.ID()]++
	w.mu.Unlock()
	made, err := handler.Step(ctx, t, "made", func(context.Context) (int, error) {
		<-time.After(50 * time.Millisecond)
		return in.Index, nil
	})
	if err != nil {
		return answer{}, err
	}
	for i := range frames {
		if err := t.Frame(ctx, "token", strconv.Itoa(i)); err != nil {
			return answer{}, err
		}
		select {
		case <-ctx.Done():
			return answer{}, context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return answer{made, frames}, nil
}

// read is ReadExecution that a cluster which is down for a moment does not fail.
func (w *env) read(id flowfabric.ExecutionID) (s engine.Snapshot, err error) {
	w.Helper()
	w.until("an execution can be read", func() bool {
		s, err = w.engine.ReadExecution(w.ctx, id)
		return !errors.Is(err, flowfabric.ErrTransport)
	})
	return s, err
}

// ran is how often a handler began an execution.
func (w *env) ran(id flowfabric.ExecutionID) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runs[id]
}

// subscribers counts who listens to a channel at a node.
func (w *env) subscribers(s *testserver.Server, channel string) int64 {
	w.Helper()
	reply, err := w.at(s, "PUBSUB", "SHARDNUMSUB", channel).ToArray()
	w.no(err)
	n, err := reply[1].AsInt64()
	w.no(err)
	return n
}

// listening waits until every worker's doorbell of every partition rings where the partition lives.
func (w *env) listening(workers ...string) {
	w.Helper()
	for p := range uint16(partitions) {
		node := w.primary(p)
		for _, name := range workers {
			w.until(fmt.Sprintf("%s listens for partition %d", name, p), func() bool {
				return w.subscribers(node, engine.BellChannel(p, name)) == 1
			})
		}
	}
}

// sound holds every partition against the invariants. Nobody may be writing.
func (w *env) sound() {
	w.Helper()
	checker := invariant.NewChecker()
	for p := range uint16(partitions) {
		dump, err := invariant.Read(w.ctx, w.raw, p)
		w.no(err)
		for _, breach := range checker.Violations(dump) {
			w.Errorf("partition %d: %s", p, breach)
		}
	}
}
