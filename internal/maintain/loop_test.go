package maintain_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call is one Tick as the fake saw it, at a time since the start of the test.
type call struct {
	Partition uint16
	At        time.Duration
	Release   bool
	Ask       bool
}

// ticker is a fake server: answer decides every reply, n counts the calls of that partition from 1.
type ticker struct {
	count  uint16
	begin  time.Time
	answer func(ctx context.Context, p uint16, n int) (engine.TickReply, error)

	mu          sync.Mutex
	calls       []call
	seen        map[uint16]int
	now, atOnce int
}

func newTicker(count uint16, answer func(ctx context.Context, p uint16, n int) (engine.TickReply, error)) *ticker {
	return &ticker{count: count, begin: time.Now(), answer: answer, seen: map[uint16]int{}}
}

func (f *ticker) Partitions() uint16 { return f.count }

func (f *ticker) Tick(ctx context.Context, p uint16, owner string, release bool) (engine.TickReply, error) {
	return f.tick(ctx, owner, call{p, time.Since(f.begin), release, false})
}

func (f *ticker) AskTick(ctx context.Context, p uint16, owner string) (engine.TickReply, error) {
	return f.tick(ctx, owner, call{p, time.Since(f.begin), false, true})
}

func (f *ticker) tick(ctx context.Context, owner string, c call) (engine.TickReply, error) {
	p, release := c.Partition, c.Release
	f.mu.Lock()
	f.calls = append(f.calls, c)
	if owner != "me" {
		panic("wrong owner " + owner)
	}
	if release {
		f.mu.Unlock()
		return engine.TickReply{}, ctx.Err()
	}
	f.seen[p]++
	n := f.seen[p]
	f.now++
	f.atOnce = max(f.atOnce, f.now)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.now--
		f.mu.Unlock()
	}()
	return f.answer(ctx, p, n)
}

// of returns when a partition was ticked; released which partitions were handed back.
func (f *ticker) of(p uint16) (at []time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c.Partition == p && !c.Release {
			at = append(at, c.At)
		}
	}
	return at
}

// asked returns when a partition's owner was asked for.
func (f *ticker) asked(p uint16) (at []time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c.Partition == p && c.Ask {
			at = append(at, c.At)
		}
	}
	return at
}

func (f *ticker) released() (ids []uint16) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c.Release {
			ids = append(ids, c.Partition)
		}
	}
	slices.Sort(ids)
	return ids
}

// run runs a loop for d of virtual time, rings it as told, and returns after it has ended.
func run(t *testing.T, cfg maintain.Config, d time.Duration, during func(l *maintain.Loop)) {
	t.Helper()
	cfg.Owner = "me"
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	l := maintain.New(cfg)
	// timed: virtual time
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var loop sync.WaitGroup
	loop.Go(func() {
		if err := l.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	if during != nil {
		during(l)
	}
	loop.Wait()
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestOwnerTicksWhenDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		replies := []engine.TickReply{
			{Owner: true, More: true, Next: time.Hour}, // at 0: more is left
			{Owner: true, Next: 3 * time.Second},       // at 0
			{Owner: true, Next: -time.Second},          // at 3 s: never spins
			{Owner: true, Idle: true, Next: 1},         // at 3.005 s: sleeps
		}
		var told []engine.TickReply
		f := newTicker(1, func(_ context.Context, _ uint16, n int) (engine.TickReply, error) {
			return replies[n-1], nil
		})
		run(t, maintain.Config{Engine: f, OnTick: func(_ uint16, r engine.TickReply) { told = append(told, r) }},
			time.Hour, nil)
		equal(t, "ticks", f.of(0), []time.Duration{0, 0, 3 * time.Second, 3005 * time.Millisecond})
		equal(t, "OnTick", told, replies)
		equal(t, "released", f.released(), []uint16{0})
	})
}

func TestRingWakesAnIdleOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTicker(2, func(context.Context, uint16, int) (engine.TickReply, error) {
			return engine.TickReply{Owner: true, Idle: true}, nil
		})
		run(t, maintain.Config{Engine: f}, time.Minute, func(l *maintain.Loop) {
			time.Sleep(10 * time.Second)
			l.Ring(1)
			l.Ring(1)
			l.Ring(99) // not ours
		})
		equal(t, "rung", f.of(1), []time.Duration{0, 10 * time.Second})
		equal(t, "not rung", f.of(0), []time.Duration{0})
	})
}

func TestRingBringsAnEarlierTimerForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTicker(1, func(_ context.Context, _ uint16, n int) (engine.TickReply, error) {
			return engine.TickReply{Owner: true, Next: time.Hour}, nil
		})
		run(t, maintain.Config{Engine: f}, 90*time.Minute, func(l *maintain.Loop) {
			time.Sleep(time.Minute)
			l.Ring(0)
		})
		equal(t, "ticks", f.of(0), []time.Duration{0, time.Minute, 61 * time.Minute})
	})
}

func TestRingDuringATickIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTicker(1, func(context.Context, uint16, int) (engine.TickReply, error) {
			time.Sleep(time.Second)
			return engine.TickReply{Owner: true, Idle: true}, nil
		})
		run(t, maintain.Config{Engine: f}, time.Minute, func(l *maintain.Loop) {
			time.Sleep(time.Second / 2)
			l.Ring(0)
		})
		equal(t, "ticks", f.of(0), []time.Duration{0, time.Second})
	})
}

// A bystander makes no calls of its own, takes over when told, and a hint the server does not honour, repeated
// with every claim, becomes four calls a second at most.
func TestBystander(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTicker(1, func(_ context.Context, _ uint16, n int) (engine.TickReply, error) {
			return engine.TickReply{Owner: n >= 6, Next: time.Hour}, nil
		})
		run(t, maintain.Config{Engine: f}, time.Hour, func(l *maintain.Loop) {
			time.Sleep(10 * time.Minute)
			for range 1000 {
				l.Ring(0)
				time.Sleep(time.Millisecond)
			}
			equal(t, "released before the end", f.released(), nil)
		})
		s := 10 * time.Minute
		equal(t, "ticks", f.of(0)[:6], []time.Duration{0, s, s + 250*time.Millisecond, s + 500*time.Millisecond,
			s + 750*time.Millisecond, s + time.Second})
		equal(t, "released", f.released(), []uint16{0})
	})
}

// Every partition is asked once at the start. After a take-over those of others are asked again, since their owner
// may be the dead one, and what was taken over by asking leads to no further asking.
func TestTakeOverAsksTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTicker(4, func(_ context.Context, p uint16, n int) (engine.TickReply, error) {
			// 0 is ours, 3 is a live process's
			return engine.TickReply{Owner: p == 0 || p < 3 && n > 1, Idle: true}, nil
		})
		run(t, maintain.Config{Engine: f}, time.Hour, func(l *maintain.Loop) {
			time.Sleep(10 * time.Minute)
			l.Ring(1) // overdue
		})
		s := 10 * time.Minute
		equal(t, "rung", f.of(1), []time.Duration{0, s})
		for p, want := range [][]time.Duration{{0}, {0}, {0, s}, {0, s}} {
			equal(t, fmt.Sprintf("asks of partition %d", p), f.asked(uint16(p)), want)
		}
		equal(t, "ours before", f.of(0), []time.Duration{0})
	})
}

// Take-overs in short order share a sweep: it comes when the last one is five seconds old.
func TestSweepsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTicker(8, func(_ context.Context, p uint16, n int) (engine.TickReply, error) {
			// won, lost, won …
			return engine.TickReply{Owner: p < 7 && n > 1 && n%2 == 0, Next: 100 * time.Millisecond}, nil
		})
		run(t, maintain.Config{Engine: f}, 61*time.Second, func(l *maintain.Loop) {
			for range 600 {
				time.Sleep(100 * time.Millisecond)
				l.Ring(0)
				l.Ring(1)
			}
		})
		if n := len(f.asked(7)); n < 2 || n > 14 {
			t.Errorf(
				"the partition of a live process was asked %d times in a minute of take-overs, want once in five seconds",
				n)
		}
	})
}

// After a subscription bells may have been lost: what is ours is ticked, what is not is asked for, and a pause after
// errors ends.
func TestAskAfterReconnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := true
		f := newTicker(3, func(_ context.Context, p uint16, n int) (engine.TickReply, error) {
			if p == 2 && broken {
				return engine.TickReply{}, flowfabric.ErrTransport
			}
			return engine.TickReply{Owner: p == 0, Idle: true}, nil
		})
		var began time.Duration
		run(t, maintain.Config{Engine: f}, time.Hour, func(l *maintain.Loop) {
			l.Ask(0) // before the loop runs: its start asks all
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			broken, began = false, time.Since(f.begin)
			for p := range uint16(4) {
				l.Ask(p)
			}
		})
		equal(t, "ours", f.of(0), []time.Duration{0, began})
		equal(t, "ours is not asked for", f.asked(0), []time.Duration{0})
		equal(t, "another's", f.asked(1), []time.Duration{0, began})
		failing := f.of(2)
		equal(t, "one that failed", failing[len(failing)-1:], []time.Duration{began})
		equal(t, "it still asks", f.asked(2)[len(failing)-1:], []time.Duration{began})
	})
}

func TestOwnershipLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTicker(1, func(_ context.Context, _ uint16, n int) (engine.TickReply, error) {
			return engine.TickReply{Owner: n == 1, More: n > 1, Next: time.Second}, nil
		})
		run(t, maintain.Config{Engine: f}, time.Hour, nil)
		equal(t, "ticks", f.of(0), []time.Duration{0, time.Second})
		equal(t, "released", f.released(), nil)
	})
}

func TestErrorsDelayOnePartitionOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newTicker(2, func(_ context.Context, p uint16, n int) (engine.TickReply, error) {
			switch {
			case p == 1 && n == 1:
				panic("defect")
			case p == 1 && n < 12:
				return engine.TickReply{}, fmt.Errorf("tick: %w", flowfabric.ErrTransport)
			}
			return engine.TickReply{Owner: true, Next: time.Second}, nil
		})
		cfg := maintain.Config{Engine: f, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		run(t, cfg, 5*time.Minute-time.Second/2, func(l *maintain.Loop) {
			time.Sleep(10 * time.Millisecond)
			for range 40 { // a ring must not shorten the pause
				l.Ring(1)
			}
		})
		if n := len(f.of(0)); n != 300 {
			t.Errorf("the healthy partition was ticked %d times, want 300", n)
		}
		bad := f.of(1)
		for i, lower := range []time.Duration{50, 75, 112} { // jitter: half to one and a half of 100, 150, 225 ms …
			if gap := bad[i+1] - bad[i]; gap < lower*time.Millisecond ||
				gap > 3*lower*time.Millisecond+3*time.Millisecond {
				t.Errorf("pause %d is %s", i, gap)
			}
		}
		for i := range bad[1:] {
			if gap := bad[i+1] - bad[i]; gap > 22500*time.Millisecond {
				t.Errorf("pause %d is %s", i, gap)
			}
		}
		if len(bad) < 100 {
			t.Errorf("did not recover: %d ticks", len(bad))
		}
		if text := log.String(); strings.Count(text, "tick failed") != 1 || strings.Count(text, "works again") != 1 {
			t.Errorf("a streak is told once, its end once:\n%s", text)
		}
	})
}

func TestBoundedAndFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var worst time.Duration
		f := newTicker(64, func(_ context.Context, p uint16, n int) (engine.TickReply, error) {
			time.Sleep(time.Millisecond)
			return engine.TickReply{Owner: true, More: p == 0, Next: time.Second}, nil
		})
		run(t, maintain.Config{Engine: f, OnLag: func(_ uint16, lag time.Duration) { worst = max(worst, lag) }},
			10*time.Second, nil)
		if f.atOnce != 2 {
			t.Errorf("%d ticks at once, want 2", f.atOnce)
		}
		for p := range uint16(64) { // a partition that always has more must not starve the others
			if n := len(f.of(p)); n < 9 {
				t.Errorf("partition %d: %d ticks in 10 s", p, n)
			}
		}
		if n := len(f.of(0)); n < 5000 {
			t.Errorf("the busy partition got only %d ticks", n)
		}
		if worst == 0 || worst > 64*time.Millisecond {
			t.Errorf("lag reached %s", worst)
		}
	})
}

func TestPartitionsSubset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTicker(8, func(context.Context, uint16, int) (engine.TickReply, error) {
			return engine.TickReply{Owner: true, Idle: true}, nil
		})
		run(t, maintain.Config{Engine: f, Partitions: []uint16{5, 2, 5}}, time.Second,
			func(l *maintain.Loop) { l.Ring(3) })
		equal(t, "released", f.released(), []uint16{2, 5})
		if len(f.calls) != 4 {
			t.Errorf("calls %v, want one tick and one release for each of two", f.calls)
		}
	})
}

// The end waits for the tick under way, and hands back also what may have become ours by a lost reply.
func TestEndReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTicker(4, func(ctx context.Context, p uint16, n int) (engine.TickReply, error) {
			switch p {
			case 0:
				return engine.TickReply{Owner: true, Idle: true}, nil
			case 1:
				return engine.TickReply{}, nil // someone else's
			case 2:
				return engine.TickReply{}, flowfabric.ErrTransport
			}
			<-ctx.Done()
			return engine.TickReply{}, context.Cause(ctx)
		})
		run(t, maintain.Config{Engine: f}, time.Minute, nil)
		equal(t, "released", f.released(), []uint16{0, 2, 3})
	})
}

// stuck never answers a release before its context ends.
type stuck struct{ *ticker }

func (s stuck) Tick(ctx context.Context, p uint16, owner string, release bool) (engine.TickReply, error) {
	if release {
		<-ctx.Done()
		return engine.TickReply{}, ctx.Err()
	}
	return s.ticker.Tick(ctx, p, owner, release)
}

func TestReleaseIsBounded(t *testing.T) {
	for endBy, want := range map[time.Duration]time.Duration{
		0: 2 * time.Second, 300 * time.Millisecond: 300 * time.Millisecond, time.Hour: 2 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newTicker(64, func(context.Context, uint16, int) (engine.TickReply, error) {
				return engine.TickReply{Owner: true, Idle: true}, nil
			})
			begin := time.Now()
			run(t, maintain.Config{Engine: stuck{f}}, time.Minute, func(l *maintain.Loop) {
				if endBy > 0 {
					l.EndBy(begin.Add(time.Minute + endBy))
				}
			})
			if took := time.Since(begin) - time.Minute; took != want {
				t.Errorf("bounded to %s, the end took %s, want %s", endBy, took, want)
			}
		})
	}
}

// After an outage the pause may be long. A process that hears that a tick is overdue has reached the server: the next
// try comes within a second, but a server that goes on failing is asked no more than once a second.
func TestRingShortensALongPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTicker(1, func(ctx context.Context, _ uint16, _ int) (engine.TickReply, error) {
			return engine.TickReply{}, flowfabric.ErrTransport
		})
		run(t, maintain.Config{Engine: f}, 11*time.Minute, func(l *maintain.Loop) {
			time.Sleep(10 * time.Minute) // pauses have grown to about 15 s
			for range 3000 {
				l.Ring(0)
				time.Sleep(10 * time.Millisecond)
			}
		})
		at := f.of(0)
		rung := slices.DeleteFunc(slices.Clone(at), func(d time.Duration) bool {
			return d < 10*time.Minute || d > 10*time.Minute+30*time.Second
		})
		if len(rung) < 29 || len(rung) > 31 {
			t.Errorf("%d tries in 30 s of rings, want one a second", len(rung))
		}
		if rung[0] > 10*time.Minute+time.Second {
			t.Errorf("the first after %s", rung[0]-10*time.Minute)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	f := newTicker(4, nil)
	for name, cfg := range map[string]maintain.Config{
		"no engine":      {Owner: "me"},
		"no owner":       {Engine: f},
		"long owner":     {Engine: f, Owner: strings.Repeat("x", limits.MaxInstance+1)},
		"brace":          {Engine: f, Owner: "a{b"},
		"partition of 4": {Engine: f, Owner: "me", Partitions: []uint16{0, 4}},
	} {
		if err := maintain.New(cfg).Run(t.Context()); !errors.Is(err, flowfabric.ErrConfig) &&
			!errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(f.calls) != 0 {
		t.Error("a refused configuration made calls")
	}
}
