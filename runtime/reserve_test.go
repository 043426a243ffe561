package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// model is a fake of a service that is paid by use: it counts what is in use at the same time, too.
type model struct{ calls, tokens, paying, most atomic.Int64 }

func (m *model) call(n int64) {
	m.calls.Add(1)
	if now := m.paying.Add(n); now > m.most.Load() {
		m.most.Store(now)
	}
	time.Sleep(5 * time.Millisecond)
	m.paying.Add(-n)
	m.tokens.Add(n)
}

// Twenty executions that each need 70 of 100 tokens call the model once, and the others wait outside the slots; each
// new limit lets one more.
func TestReserveAsksBefore(t *testing.T) {
	for name, gate := range map[string]string{"alone": "", "with a limit of a key": "@2.0.0@acme"} {
		t.Run(name, func(t *testing.T) {
			y := newTreasury(t, tokens("b", 100, admission.HardBlock))
			var m model
			y.work(nil, io.Discard, func(ctx context.Context, task *handler.Task, in string) (string, error) {
				return handler.Step(ctx, task, "model", func(ctx context.Context) (string, error) {
					r, err := task.Reserve(ctx, map[string]int64{"tokens": 70})
					if err != nil {
						return "", err
					}
					m.call(70)
					return "done", r.Settle(ctx, map[string]int64{"tokens": 70})
				})
			})
			const all = 20
			for i := range all {
				gates := []string{"b"}
				if gate != "" {
					gates = append(gates, gate)
				}
				y.submit("acme", fmt.Sprint(i), gates...)
			}
			for n := int64(1); n <= 3; n++ {
				testwait.Progress(y.T, "the model is called", func() (bool, any) {
					return m.calls.Load() == n, m.calls.Load()
				})
				testwait.Progress(y.T, "the others wait", func() (bool, any) {
					waiting := 0
					for _, p := range y.engine.Gates(y.ctx) {
						for _, c := range p.Closed {
							if strings.HasPrefix(c.Why, "gate b amount tokens") {
								waiting += c.Waiting
							}
						}
					}
					return waiting == all-int(n), waiting
				})
				testwait.Progress(y.T, "it is settled", func() (bool, any) {
					b := y.budget("b")
					return b.Used["tokens"] == 70*n && b.Reserved["tokens"] == 0, b.Used
				})
				if m.calls.Load() != n {
					t.Fatalf("%d calls", m.calls.Load())
				}
				b := tokens("b", 100+70*n, admission.HardBlock)
				_, _, wake, err := y.engine.PutGate(y.ctx, b, uint64(n))
				if err != nil {
					t.Fatal(err)
				}
				for _, w := range wake {
					if _, err := y.engine.OpenRoutes(y.ctx, w.Partition, []uint64{w.Route}); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// However many handlers run at once, no token is used above a hard limit, and what calls do not use is for others.
func TestReserveNeverPassesALimit(t *testing.T) {
	y := newTreasury(t, tokens("org", 2095, admission.HardBlock),
		admission.Gate{Name: "team", Parent: "org", OnHard: admission.HardBlock})
	var m model
	y.work(nil, io.Discard, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
		for i := range 4 {
			if _, err := handler.Step(ctx, task, fmt.Sprint("call", i), func(ctx context.Context) (string, error) {
				r, err := task.Reserve(ctx, map[string]int64{"tokens": 100})
				if err != nil {
					return "", err
				}
				m.call(10)
				return "", r.Settle(ctx, map[string]int64{"tokens": 10})
			}); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	var ids []flowfabric.ExecutionID
	for i := range 50 {
		ids = append(ids, y.submit("acme", fmt.Sprint(i), "team"))
	}
	for _, id := range ids {
		y.reach(id, "T1")
	}
	for _, name := range []string{"org", "team"} {
		if b := y.budget(name); b.Used["tokens"] != 2000 || b.Reserved["tokens"] != 0 {
			t.Errorf("%s: used %d, reserved %d", name, b.Used["tokens"], b.Reserved["tokens"])
		}
	}
	if m.calls.Load() != 200 || m.tokens.Load() != 2000 || m.most.Load() > 200 {
		t.Errorf("%d calls, %d tokens, %d at once", m.calls.Load(), m.tokens.Load(), m.most.Load())
	}
}

// What a handler does not settle is charged in full when it returns; what it releases is not; and a refusal of a gate
// that rejects is the handler's to decide.
func TestReserveEnds(t *testing.T) {
	y := newTreasury(t, tokens("b", 100, admission.HardReject))
	var log strings.Builder
	y.work(nil, &log, func(ctx context.Context, task *handler.Task, in string) (string, error) {
		r, err := task.Reserve(ctx, map[string]int64{"tokens": 30})
		if err != nil {
			return "", err
		}
		switch in {
		case "forgets":
			return "", nil
		case "fails":
			return "", handler.Permanent(errors.New("no answer"))
		case "releases":
			return "", errors.Join(r.Release(ctx), r.Settle(ctx, map[string]int64{"tokens": 5}))
		}
		if _, err := task.Reserve(ctx, map[string]int64{"tokens": 80}); !errors.Is(err, flowfabric.ErrOverBudget) {
			t.Errorf("a second one: %v", err)
		}
		over, _ := errors.AsType[*handler.OverBudgetError](func() error {
			_, err := task.Reserve(ctx, map[string]int64{"tokens": 80})
			return err
		}())
		if over == nil || over.Gate != "b" || over.Breaches[0].Used != 90 {
			t.Errorf("a second one: %+v", over)
		}
		return "", r.Settle(ctx, nil)
	})
	y.reach(y.submit("acme", "forgets", "b"), "T1")
	y.used("b", 30)
	y.reach(y.submit("acme", "fails", "b"), "T2")
	y.used("b", 60)
	y.reach(y.submit("acme", "releases", "b"), "T1")
	y.used("b", 60)
	y.reach(y.submit("acme", "asks twice", "b"), "T1")
	y.used("b", 60)
	if b := y.budget("b"); b.Reserved["tokens"] != 0 {
		t.Errorf("%d are reserved", b.Reserved["tokens"])
	}
	for outcome, want := range map[string]float64{"made": 4, "refused": 2, "settled": 1, "released": 1,
		"forgotten": 2} {
		if got := y.counted("flowfabric_reservations_total", outcome); got != want {
			t.Errorf("%v reservations %s, want %v", got, outcome, want)
		}
	}
}

// A stream is stopped at the token that would pass a limit, whatever was reserved for it, and what came is counted.
func TestMeterStopsAStream(t *testing.T) {
	for _, action := range []admission.HardAction{admission.HardReject, admission.HardBlock, admission.HardFail} {
		t.Run(string(action), func(t *testing.T) {
			y := newTreasury(t, tokens("b", 100, action))
			var stopped atomic.Int64
			y.work(nil, io.Discard, func(ctx context.Context, task *handler.Task, in string) (string, error) {
				r, err := task.Reserve(ctx, map[string]int64{"tokens": 8})
				if err != nil {
					return "", err
				}
				call, count := r.Meter(ctx)
				n := 0
				for call.Err() == nil && n < 200 {
					n++
					if err := count(call, map[string]int64{"tokens": 1}); err != nil {
						over, ok := errors.AsType[*handler.OverBudgetError](context.Cause(call))
						if !errors.Is(err, flowfabric.ErrOverBudget) || !ok || over.Gate != "b" {
							t.Errorf("%v, cause %v", err, context.Cause(call))
						}
					}
				}
				if ctx.Err() != nil {
					t.Errorf("the handler was stopped, too: %v", context.Cause(ctx))
				}
				stopped.Store(int64(n))
				return "", r.Settle(ctx, nil)
			})
			y.reach(y.submit("acme", "a", "b"), "T1")
			if stopped.Load() != 101 {
				t.Errorf("it stopped at %d", stopped.Load())
			}
			if b := y.budget("b"); b.Used["tokens"] != 101 || b.Reserved["tokens"] != 0 {
				t.Errorf("used %d, reserved %d", b.Used["tokens"], b.Reserved["tokens"])
			}
		})
	}
}

// An estimate begins with what is the most, and becomes what nine of ten of the last calls used.
func TestReserveEstimate(t *testing.T) {
	y := newTreasury(t, tokens("b", 1000, admission.HardReject))
	var reserved atomic.Int64
	y.work(nil, io.Discard, func(ctx context.Context, task *handler.Task, in string) (string, error) {
		r, err := task.ReserveEstimate(ctx, "draft small", map[string]int64{"tokens": 500})
		if err != nil {
			return "", err
		}
		reserved.Store(r.Amounts()["tokens"])
		_, count := r.Meter(ctx)
		n, _ := strconv.ParseInt(in, 10, 64)
		return "", errors.Join(count(ctx, map[string]int64{"tokens": n}), r.Settle(ctx, nil))
	})
	total := int64(0)
	for i := range int64(20) {
		n := 10 + i%10
		y.reach(y.submit("acme", fmt.Sprint(n), "b"), "T1")
		// eight calls tell something; after twenty, eighteen of which used at most 18, it is that
		if got := reserved.Load(); i < 8 && got != 500 || i == 8 && got != 17 || i == 19 && got != 18 {
			t.Errorf("call %d reserved %d", i, got)
		}
		total += n
		y.used("b", total)
	}
	if b := y.budget("b"); b.Reserved["tokens"] != 0 {
		t.Errorf("%d are reserved", b.Reserved["tokens"])
	}
}
