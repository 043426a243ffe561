package model_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// accounts is what reporters were told was counted, by period and dimension.
type accounts struct {
	mu      sync.Mutex
	sum     map[uint64]map[string]int64
	refused int
	again   int
}

func (a *accounts) add(u admission.Usage, r admission.Reported) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case r.Replayed:
		a.again++
		return
	case !r.Applied:
		a.refused++
		return
	}
	if a.sum[r.Period] == nil {
		a.sum[r.Period] = map[string]int64{}
	}
	for dim, n := range u.Amounts {
		a.sum[r.Period][dim] += n
	}
}

// settle compares a period's total with what the gate says of it.
func (a *accounts) settle(t *testing.T, period uint64, used map[string]int64, limits map[string]admission.Limit) {
	t.Helper()
	for dim, l := range limits {
		if used[dim] != a.sum[period][dim] {
			t.Errorf("period %d: %d of %s used, %d accepted", period, used[dim], dim, a.sum[period][dim])
		}
		if used[dim] > l.Hard {
			t.Errorf("period %d: %d of %s used, the limit is %d", period, used[dim], dim, l.Hard)
		}
	}
}

// TestReports has 64 reporters spend from enforcing budgets in three dimensions, 20,000 reports, or 1,000,000 with
// FLOWFABRIC_SOAK. An operator resets them meanwhile, keys are sent twice and by two at once, and holders repeat
// sequences. Of every period the amounts accepted are what was used, and never above a limit by one unit.
func TestReports(t *testing.T) {
	t.Parallel()
	const reporters, resets = 64, 100
	reports := 20_000
	if soak() > 0 {
		reports = 1_000_000
	}
	e, ctx := plainEngine(t, testserver.Redis(t)), t.Context()
	limits := map[string]admission.Limit{"calls": {Hard: 150}, "cost.cents": {Hard: 400, Soft: 300},
		"tokens": {Hard: 500}}
	names := []string{"one", "two"}
	books := map[string]*accounts{}
	for _, name := range names {
		_, _, _, err := e.PutGate(ctx, admission.Gate{Name: name, StrictDimensions: true, Limits: limits}, 0)
		must(t, err)
		books[name] = &accounts{sum: map[uint64]map[string]int64{}}
	}
	var sent atomic.Int64
	var all, owner conc.WaitGroup
	for n := range reporters {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 3))
			id := mint.ID(1)
			for i := 0; sent.Add(1) <= int64(reports); i++ {
				name := names[r.IntN(2)]
				u := admission.Usage{Gate: name,
					Amounts: map[string]int64{"calls": 1, "tokens": int64(r.IntN(6)), "cost.cents": int64(r.IntN(4))}}
				if n%2 == 0 {
					u.Execution, u.Epoch, u.Sequence = id, 5, uint64(i+1)
				} else {
					u.Key = fmt.Sprint(n/4, "-", i) // two reporters share their keys, with amounts of their own
					u.Amounts = map[string]int64{"calls": 1, "tokens": int64(i % 6), "cost.cents": int64(i % 4)}
					u.Gate = names[i%2]
				}
				for range 1 + r.IntN(8)/7 {
					out, err := e.ReportUsage(ctx, u)
					must(t, err)
					books[u.Gate].add(u, out)
				}
			}
		})
	}
	done := make(chan struct{})
	owner.Go(func() {
		for n := 1; n < resets; n++ {
			for sent.Load() < int64(n*reports/resets) {
				select {
				case <-done:
					return
				case <-time.After(time.Millisecond):
				}
			}
			_, _, _, err := e.ResetUsage(ctx, names[n%2], false)
			must(t, err)
		}
	})
	all.Wait()
	close(done)
	owner.Wait()
	for _, name := range names {
		b, err := e.ReadGate(ctx, name, 0, 0, 256)
		must(t, err)
		books[name].settle(t, b.Period, b.Used, limits)
		ended := uint64(0)
		for _, x := range b.Audit {
			if x.What == "period" {
				period, used := periodOf(t, x.Detail)
				books[name].settle(t, period, used, limits)
				ended++
			}
		}
		if ended != b.Period || ended < resets/4 {
			t.Errorf("%d periods in the audit log, %d resets", ended, b.Period)
		}
		if books[name].refused == 0 || books[name].again == 0 {
			t.Errorf("%d refused, %d known again: nothing was proved", books[name].refused, books[name].again)
		}
		t.Logf("%s: %d periods, %d refused, %d known again", name, b.Period, books[name].refused, books[name].again)
	}
}

// periodOf reads the end of a period: "<period> <began> <missed> <dimension>=<amount>,…".
func periodOf(t *testing.T, detail string) (period uint64, used map[string]int64) {
	t.Helper()
	parts := strings.SplitN(detail, " ", 4)
	if _, err := fmt.Sscan(parts[0], &period); err != nil {
		t.Fatal(err)
	}
	used = map[string]int64{}
	for part := range strings.SplitSeq(parts[3], ",") {
		if dim, text, ok := strings.Cut(part, "="); ok {
			var n int64
			if _, err := fmt.Sscan(text, &n); err != nil {
				t.Fatal(err)
			}
			used[dim] = n
		}
	}
	return period, used
}

func plainEngine(t testing.TB, url string) *engine.Engine {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Config{URL: url, Partitions: 1, Logger: slog.New(slog.DiscardHandler),
		CallTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
		panic(err)
	}
}

// TestReportsAndCrashes kills the server while reporters spend. A reporter without an answer sends the same key
// again, so the amounts accepted are what was used: a report that was written before the crash is known again. 1,200
// reports and 4 kills, or 1,000,000 and 100 with FLOWFABRIC_SOAK.
func TestReportsAndCrashes(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t, testserver.ServerRedis, testserver.AOF())
	e, ctx := plainEngine(t, srv.URL()), t.Context()
	reporters, each, kills := 8, 150, 4
	if soak() > 0 {
		reporters, each, kills = 64, 15_625, 100
	}
	hard := int64(reporters * each * 5 / 2) // of three a report
	_, _, _, err := e.PutGate(ctx,
		admission.Gate{Name: "one", Limits: map[string]admission.Limit{"tokens": {Hard: hard}}}, 0)
	must(t, err)
	var accepted, refused, again, answered atomic.Int64
	var all conc.WaitGroup
	for n := range reporters {
		all.Go(func() {
			for i := range each {
				u := admission.Usage{Gate: "one", Key: fmt.Sprint(n, "-", i),
					Amounts: map[string]int64{"tokens": int64(1 + i%5)}}
				out, err := e.ReportUsage(ctx, u)
				for tries := 0; err != nil; tries++ {
					if !errors.Is(err, flowfabric.ErrTransport) || tries > 2000 {
						must(t, err)
					}
					pause(ctx)
					out, err = e.ReportUsage(ctx, u)
				}
				if out.Applied { // the answer of the first time, or this one
					accepted.Add(u.Amounts["tokens"])
				} else {
					refused.Add(1)
				}
				again.Add(int64(bool01(out.Replayed)))
				answered.Add(1)
			}
		})
	}
	for n := range kills {
		for answered.Load() < int64((n+1)*reporters*each/(kills+2)) {
			pause(ctx)
		}
		srv.Kill()
		srv.Restart()
	}
	all.Wait()
	b, err := e.ReadGate(ctx, "one", 0, 0, 0)
	must(t, err)
	if b.Used["tokens"] != accepted.Load() || b.Used["tokens"] > hard || refused.Load() == 0 {
		t.Errorf("%d used, %d accepted, %d refused", b.Used["tokens"], accepted.Load(), refused.Load())
	}
	t.Logf("%d used of %d, %d refused, %d known again", b.Used["tokens"], hard, refused.Load(), again.Load())
}

// pause is for who polls something.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(2 * time.Millisecond):
	}
}
