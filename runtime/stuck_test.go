package runtime

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// stubborn is a worker on a silent store whose handlers run until they are let go, whatever becomes of their contexts.
type stubborn struct {
	*testing.T
	*silent
	*Worker
	log   *lines
	reg   *prometheus.Registry
	letGo chan struct{} // each value lets one handler return
}

// scraped is a silent store that can be asked for gauges.
type scraped struct{ *silent }

func (scraped) DescribePartition(context.Context, uint16) (flowfabric.Partition, error) {
	return flowfabric.Partition{}, nil
}
func (scraped) Queues(context.Context, uint16, string, int) ([]engine.Queue, error) { return nil, nil }

// timeLeft is how long the handlers of a stubborn worker may run; it ends between two looks.
const timeLeft = 10*time.Second + stuckLook/2

func inStubborn(t *testing.T, handlers, slots int, f func(w *stubborn)) {
	synctest.Test(t, func(t *testing.T) {
		w := &stubborn{T: t, silent: newSilent(1, handlers), log: &lines{}, reg: prometheus.NewRegistry(),
			letGo: make(chan struct{}, handlers)}
		for i := range w.work {
			w.work[i].TimeLeft = timeLeft
		}
		w.Worker = w.silent.worker(Config{Instance: "w", LeaseTTL: ttl, Concurrency: slots, Registerer: w.reg,
			ReadyWindow: time.Hour,
			Logger:      slog.New(slog.NewTextHandler(w.log, nil))},
			func(context.Context) error { <-w.letGo; return nil })
		w.Worker.open = func(context.Context, Config) (store, func(), error) {
			return scraped{w.silent}, w.silent.Close, nil
		}
		ctx, stop := context.WithCancel(t.Context())
		var run conc.WaitGroup
		run.Go(func() { _ = w.Worker.Run(ctx) })
		synctest.Wait()
		defer run.Wait()
		defer stop()
		defer close(w.letGo)
		f(w)
	})
}

// stuckMetric is what the metric says of kind k; -1: nothing.
func (w *stubborn) stuckMetric() float64 {
	w.Helper()
	families, err := w.reg.Gather()
	must.No(w, err)
	for _, f := range families {
		if f.GetName() == "flowfabric_stuck_handlers" && f.GetMetric()[0].GetLabel()[0].GetValue() == "k" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1
}

// registered is the last registration: how many handlers were at work, and how many of them stuck.
func (w *stubborn) registered() (inFlight, stuck int) {
	for last := w.called(); last.Instance != ""; last = w.called() {
		inFlight, stuck = last.InFlight, last.Stuck
	}
	return inFlight, stuck
}

const ignores = "ignores the end of its context"

// A handler that ignores its context keeps its slot, which the log, a metric, readiness and the registration tell.
func TestStuckHandlersAreTold(t *testing.T) {
	inStubborn(t, 2, 2, func(w *stubborn) {
		elapse(timeLeft + stuckAfter - time.Second)
		if n := w.log.count("WARN", ignores); n != 0 || w.Ready() != nil || w.stuckMetric() != 0 {
			w.Errorf("four seconds after the timeout: %d warnings, ready: %v, metric %v", n, w.Ready(), w.stuckMetric())
		}
		elapse(3 * time.Second)
		if n := w.log.count("WARN", ignores); n != 2 {
			w.Errorf("%d warnings of two stuck handlers: %s", n, w.log.all.String())
		}
		for _, part := range []string{"kind=k", "execution=0-", "running=16s", flowfabric.ErrAttemptTimeout.Error()} {
			if w.log.count("WARN", part) != 2 {
				w.Errorf("the warnings do not say %q: %s", part, w.log.all.String())
			}
		}
		if err := w.Ready(); !errors.Is(err, errAllStuck) || !strings.Contains(err.Error(), "2 of 2") {
			w.Errorf("ready without a usable slot: %v", err)
		}
		if got := w.stuckMetric(); got != 2 {
			w.Errorf("metric %v, want 2", got)
		}
		if inFlight, stuck := w.registered(); inFlight != 2 || stuck != 2 {
			w.Errorf("registered with %d at work, %d stuck, want 2 and 2", inFlight, stuck)
		}
		elapse(time.Hour)
		if n := w.log.count("WARN", ignores); n < 8 || n > 16 {
			w.Errorf("%d warnings of two handlers in an hour", n)
		}
		w.letGo <- struct{}{}
		elapse(2 * time.Second)
		if n := w.log.count("INFO", "a stuck handler returned"); n != 1 || w.Ready() != nil ||
			w.stuckMetric() != 1 {
			w.Errorf("after one has returned: told %d times, ready: %v, metric %v", n, w.Ready(), w.stuckMetric())
		}
		if inFlight, stuck := w.registered(); inFlight != 1 || stuck != 1 {
			w.Errorf("registered with %d at work, %d stuck, want 1 and 1", inFlight, stuck)
		}
	})
}

// A worker with a slot left is ready.
func TestReadyWhileASlotIsLeft(t *testing.T) {
	inStubborn(t, 2, 3, func(w *stubborn) {
		elapse(timeLeft + stuckAfter + 2*time.Second)
		if err := w.Ready(); err != nil || w.stuckMetric() != 2 {
			w.Errorf("not ready: %v; metric %v", err, w.stuckMetric())
		}
	})
}

// However many are stuck at once, the log is not flooded, and each of them is named.
func TestManyStuckHandlersAreNamedByAndBy(t *testing.T) {
	const many = 3*stuckWarnings - 5
	inStubborn(t, many, many, func(w *stubborn) {
		elapse(timeLeft + stuckAfter - stuckLook)
		for before, looks := 0, 0; before < many; looks++ {
			elapse(stuckLook)
			n := w.log.count("WARN", ignores)
			if n-before > stuckWarnings || looks > 4 {
				w.Fatalf("%d warnings in one look, %d in %d", n-before, n, looks)
			}
			before = n
		}
		named := map[string]bool{}
		for line := range strings.Lines(w.log.all.String()) {
			if _, rest, found := strings.Cut(line, "execution="); found && strings.Contains(line, ignores) {
				named[strings.Fields(rest)[0]] = true
			}
		}
		if len(named) != many {
			w.Errorf("%d of %d are named", len(named), many)
		}
	})
}

// A handler that takes a moment to clean up is not stuck.
func TestCleaningUpIsNotStuck(t *testing.T) {
	inStubborn(t, 1, 1, func(w *stubborn) {
		elapse(timeLeft + stuckAfter - 2*time.Second)
		w.letGo <- struct{}{}
		elapse(time.Minute)
		if n := w.log.count("WARN", ignores); n != 0 || w.Ready() != nil || w.stuckMetric() != 0 {
			w.Errorf("%d warnings, ready: %v, metric %v", n, w.Ready(), w.stuckMetric())
		}
	})
}
