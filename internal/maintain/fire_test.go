package maintain_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/calendar"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// timetable is a fake server with schedules in partition 0: its ticks tell how many are due.
type timetable struct {
	*ticker

	mu      sync.Mutex
	records []engine.Schedule
	fires   []engine.Firing
	at      []time.Duration // of the firings
	reads   int
	refuse  func(n int) error // of the nth firing
	block   chan struct{}     // firings wait for it, if not nil
}

func newTimetable(t *testing.T, names ...string) *timetable {
	t.Helper()
	b := &timetable{refuse: func(int) error { return nil }}
	b.ticker = newTicker(1, func(context.Context, uint16, int) (engine.TickReply, error) {
		return engine.TickReply{Owner: true, Next: time.Second, Schedules: len(b.due())}, nil
	})
	for _, name := range names {
		d := schedule.Definition{Spec: schedule.Every(time.Minute, time.Time{}),
			Item: schedule.Item{Start: flowfabric.Start{Namespace: "n", Lane: "l", Kind: "k"}}}
		text, err := calendar.Encode(d)
		must.No(t, err)
		b.records = append(b.records, engine.Schedule{Name: name, Revision: 1, Incarnation: 1, Definition: text,
			Next: d.Spec.Next(time.Now())})
	}
	return b
}

func (b *timetable) due() (out []engine.Schedule) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.records {
		if !s.Next.After(time.Now()) {
			out = append(out, s)
		}
	}
	return out
}

func (b *timetable) Schedules(_ context.Context, _ uint16, q engine.ScheduleQuery) (engine.SchedulePage, error) {
	due := b.due()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads++
	due = due[min(q.Skip, len(due)):]
	return engine.SchedulePage{Now: time.Now(), Schedules: due[:min(100, len(due))], More: len(due) > 100}, nil
}

func (b *timetable) CreateFlow(context.Context, engine.NewFlow) (engine.FlowCreated, error) {
	return engine.FlowCreated{}, flowfabric.ErrInvalidInput
}

func (b *timetable) StageFlow(context.Context, flowfabric.FlowID, *uint64,
	[]engine.FlowMember) (engine.FlowCreated, error) {
	return engine.FlowCreated{}, flowfabric.ErrInvalidInput
}

func (b *timetable) FireSchedule(ctx context.Context, f engine.Firing) (engine.Fired, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fires = append(b.fires, f)
	b.at = append(b.at, time.Since(b.begin))
	if b.block != nil {
		b.mu.Unlock()
		select {
		case <-b.block:
		case <-ctx.Done():
		}
		b.mu.Lock()
	}
	if err := b.refuse(len(b.fires)); err != nil {
		return engine.Fired{}, err
	}
	for i := range b.records {
		if s := &b.records[i]; s.Name == f.Name && s.Next.Equal(f.Seen) {
			s.Next = f.Next
			return engine.Fired{Outcome: engine.FireCreated, Next: f.Next}, nil
		}
	}
	return engine.Fired{Already: true}, nil
}

// fired tells what was fired, in the order of calls.
func (b *timetable) fired() (out []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.fires {
		out = append(out, f.Name)
	}
	return out
}

func TestLoopFiresWhatTicksReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTimetable(t, "a", "b")
		due := b.records[0].Next
		told := 0
		run(t, maintain.Config{Engine: b, OnFire: func(uint16, engine.Firing, engine.Fired) { told++ }}, 90*time.Second,
			nil)
		equal(t, "fired", b.fired(), []string{"a", "b"})
		f := b.fires[0]
		if !f.At.Equal(due) || !f.Seen.Equal(due) || !f.Next.Equal(due.Add(time.Minute)) || f.Revision != 1 ||
			f.Missed.Count != 0 || f.Solo {
			t.Errorf("%+v", f)
		}
		if x := f.Item; x.ID != mint.Join(ids.Scheduled(0, "a", 1, due)) || x.Kind != "k" ||
			x.Tags["schedule.name"] != "a" {
			t.Errorf("%+v", x)
		}
		if told != 2 {
			t.Errorf("%d firings were told", told)
		}
		if n := b.reads; n != 1 {
			t.Errorf("%d reads for one tick that reported something", n)
		}
	})
}

// A tick follows what was fired at once, so that the server is told when the next one is due.
func TestFiringIsFollowedByATick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTimetable(t, "a")
		b.answer = func(context.Context, uint16, int) (engine.TickReply, error) {
			return engine.TickReply{Owner: true, Next: 10 * time.Minute, Schedules: len(b.due())}, nil
		}
		run(t, maintain.Config{Engine: b}, 3*time.Minute, func(l *maintain.Loop) {
			time.Sleep(time.Until(b.records[0].Next))
			l.Ring(0)
		})
		if at := b.of(0); len(at) != 3 || at[2] != at[1] {
			t.Errorf("ticks at %v, want one at the start, one for the ring, one right after the firing", at)
		}
	})
}

func TestFailedFiringsBackOffAndTicksGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTimetable(t, "a")
		var log bytes.Buffer
		b.refuse = func(n int) error {
			switch {
			case n == 2:
				panic("a bug")
			case n <= 20:
				return fmt.Errorf("fire: %w", flowfabric.ErrTransport)
			}
			return nil
		}
		run(t, maintain.Config{Engine: b, Logger: slog.New(slog.NewTextHandler(&log, nil))}, 10*time.Minute, nil)
		if n := len(b.fired()); n < 21 || b.at[20] < 95*time.Second {
			t.Fatalf("%d firings, at %v: twenty that fail take a while", n, b.at)
		}
		if n := len(b.of(0)); n < 590 {
			t.Errorf("only %d ticks in ten minutes", n)
		}
		if strings.Count(log.String(), "schedules could not fire") != 1 ||
			strings.Count(log.String(), "schedules fire again") != 1 {
			t.Errorf("log:\n%s", log.String())
		}
	})
}

func TestSlowFiringHoldsBackNoTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTimetable(t, "a")
		b.block = make(chan struct{})
		run(t, maintain.Config{Engine: b}, 5*time.Minute, nil)
		if n := len(b.fired()); n != 1 {
			t.Errorf("%d firings at once", n)
		}
		if n := len(b.of(0)); n < 290 {
			t.Errorf("only %d ticks in five minutes", n)
		}
	})
}

// What this process cannot read it leaves to others, and fires the rest, however many those are.
func TestUnreadableSchedulesAreLeftToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 250 {
			names = append(names, fmt.Sprintf("newer%d", i))
		}
		b := newTimetable(t, append(names, "mine")...)
		for i := range names {
			b.records[i].Definition = []byte(`{"v":99}`)
		}
		var log bytes.Buffer
		run(t, maintain.Config{Engine: b, Logger: slog.New(slog.NewTextHandler(&log, nil))}, 100*time.Second, nil)
		equal(t, "fired", b.fired(), []string{"mine"})
		if n := strings.Count(log.String(), "left to other processes"); n != 250 {
			t.Errorf("%d complaints about 250 schedules", n)
		}
	})
}

// A schedule that refuses what this process plans holds back no other.
func TestOneBadScheduleHoldsBackNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTimetable(t, "bad", "good")
		b.refuse = func(int) error {
			if b.fires[len(b.fires)-1].Name == "bad" {
				return fmt.Errorf("fire: %w", flowfabric.ErrInvalidInput)
			}
			return nil
		}
		run(t, maintain.Config{Engine: b}, 61*time.Second, nil)
		if fired := strings.Join(b.fired(), " "); !strings.HasPrefix(fired, "bad good") {
			t.Errorf("fired %s", fired)
		}
	})
}
