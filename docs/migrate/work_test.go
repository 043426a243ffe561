package migrate_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// Refresh has an account as its input.
var Refresh = handler.Define[string, int]("account:refresh")

// SubmitRefresh submits a refresh of an account, unless one waits or runs or was submitted less than an hour ago, and
// says whether it did.
func SubmitRefresh(ctx context.Context, c *client.Client, account string) (submitted bool, err error) {
	exec, err := client.Submit(ctx, c, Refresh, account,
		flowfabric.Key{Text: account, WhileActive: true, Window: time.Hour})
	if err != nil {
		return false, err
	}
	return !exec.Duplicate(), nil
}

// Digest is the news of a user of the five minutes that end at Until.
type Digest struct {
	User  string
	Until time.Time
}

var SendDigest = handler.Define[Digest, int]("digest:send")

// Notice is one piece of news.
type Notice struct {
	ID   int64
	Text string
}

// Notices is where news of users are kept until they are sent: a table, a list in Redis.
type Notices interface {
	Add(ctx context.Context, user, text string) error
	All(ctx context.Context, user string) ([]Notice, error)
	Delete(ctx context.Context, user string, news []Notice) error
}

// Digests sends one mail for all news of five minutes.
type Digests struct {
	Notices Notices
	Send    func(ctx context.Context, key, user string, news []Notice) error
}

// Notify keeps the news, and makes sure that they will be collected.
func (d *Digests) Notify(ctx context.Context, c *client.Client, user, text string) error {
	if err := d.Notices.Add(ctx, user, text); err != nil {
		return err
	}
	until := time.Now().UTC().Truncate(5 * time.Minute).Add(5 * time.Minute)
	_, err := client.Submit(ctx, c, SendDigest, Digest{user, until}, flowfabric.DelayUntil(until),
		flowfabric.IdempotencyKey(user+"@"+until.Format(time.RFC3339)))
	return err
}

func (d *Digests) Handle(ctx context.Context, t *handler.Task, in Digest) (int, error) {
	news, err := handler.Step(ctx, t, "collect", func(ctx context.Context) ([]Notice, error) {
		return d.Notices.All(ctx, in.User) // also what came a moment ago, whose own digest then finds nothing left
	})
	if err != nil || len(news) == 0 {
		return 0, err
	}
	_, err = handler.Step(ctx, t, "send", func(ctx context.Context) (bool, error) {
		return true, d.Send(ctx, t.ID().String(), in.User, news)
	})
	if err != nil {
		return 0, err
	}
	return len(news), d.Notices.Delete(ctx, in.User, news) // harmless to repeat
}

// Pools are several workers in one process: each serves a lane with slots of its own.
func Pools(cfg runtime.Config, slots map[string]int,
	bindings ...handler.Binding) (workers []*runtime.Worker, err error) {
	for lane, n := range slots {
		cfg.Worker, cfg.Lanes, cfg.Concurrency = lane, []string{lane}, n
		w, err := runtime.New(cfg, bindings...)
		if err != nil {
			return nil, err
		}
		workers = append(workers, w)
	}
	return workers, nil
}

// RunPools runs them until ctx ends, or until one of them cannot go on.
func RunPools(ctx context.Context, workers []*runtime.Worker) error {
	all := pool.New().WithContext(ctx).WithCancelOnError()
	for _, w := range workers {
		all.Go(w.Run)
	}
	return all.Wait()
}

// LimitMail lets a hundred mails a minute start, and ten be sent at once, over all workers.
func LimitMail(ctx context.Context, c *client.Client) error {
	err := admin.New(c).PutGate(ctx, admission.Gate{Name: "smtp", Rate: 100, Window: flowfabric.Millis(time.Minute),
		Concurrency: 10})
	if err != nil {
		return err
	}
	return admin.New(c).AttachGates(ctx, admission.Scope{Namespace: "default", Lane: "mail"},
		[]flowfabric.Gate{"smtp"})
}

// Nightly is what a schedule submits.
var Nightly = handler.Define[string, int]("report:nightly")

// ScheduleAll is called at every start of every process, producers and workers alike.
func ScheduleAll(ctx context.Context, c *client.Client) error {
	_, err := client.Schedule(ctx, c, "nightly-report", schedule.Cron("0 3 * * *", "Europe/Berlin"), Nightly, "all",
		client.Overlap(schedule.OverlapSkip), flowfabric.Timeout(time.Hour))
	return err
}

func TestSubmitRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		w := fftest.New(t, runtime.Config{},
			handler.Bind(Refresh, func(context.Context, *handler.Task, string) (int, error) { ran++; return ran, nil }))
		for i, want := range []bool{true, false, false, true} {
			submitted, err := SubmitRefresh(t.Context(), w.Client(), "acme")
			if submitted != want || err != nil {
				t.Errorf("call %d: %t, %v", i, submitted, err)
			}
			w.Sleep(25 * time.Minute) // it has ended, and is a duplicate all the same
		}
		if ran != 2 {
			t.Errorf("ran %d times", ran)
		}
	})
}

// board is Notices in memory.
type board struct {
	mu    sync.Mutex
	last  int64
	notes map[string][]Notice
}

func (b *board) Add(_ context.Context, user, text string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	b.notes[user] = append(b.notes[user], Notice{b.last, text})
	return nil
}

func (b *board) All(_ context.Context, user string) ([]Notice, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.notes[user]), nil
}

func (b *board) Delete(_ context.Context, user string, news []Notice) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes[user] = slices.DeleteFunc(b.notes[user], func(n Notice) bool { return slices.Contains(news, n) })
	return nil
}

func TestDigests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		notices := &board{notes: map[string][]Notice{}}
		d := &Digests{Notices: notices, Send: func(_ context.Context, _, user string, news []Notice) error {
			sent = append(sent, fmt.Sprint(user, news))
			return nil
		}}
		w := fftest.New(t, runtime.Config{}, handler.Bind(SendDigest, d.Handle))
		w.Sleep(30 * time.Second)
		for i := range 7 { // one a minute, from 00:00:30: five before 00:05
			if err := d.Notify(t.Context(), w.Client(), "anna", fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
			w.Sleep(time.Minute)
		}
		w.Sleep(10 * time.Minute)
		if want := []string{"anna[{1 0} {2 1} {3 2} {4 3} {5 4}]", "anna[{6 5} {7 6}]"}; !slices.Equal(sent, want) ||
			len(notices.notes["anna"]) != 0 {
			t.Errorf("sent %q, want %q; left %v", sent, want, notices.notes)
		}
	})
}

// A lane has the slots of its pool, however much waits in another.
func TestPools(t *testing.T) {
	ctx, stop := testwait.Context(t, t.Context())
	defer stop()
	cfg := runtime.Config{URL: "embedded://", Namespace: "pools", Logger: slog.New(slog.DiscardHandler),
		Registerer: prometheus.NewRegistry()}
	var mu sync.Mutex
	busy, most := map[string]int{}, map[string]int{}
	hold := handler.Bind(Refresh, func(ctx context.Context, t *handler.Task, _ string) (int, error) {
		mu.Lock()
		busy[t.Lane()]++
		most[t.Lane()] = max(most[t.Lane()], busy[t.Lane()])
		mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		mu.Lock()
		busy[t.Lane()]--
		mu.Unlock()
		return 0, nil
	})
	workers, err := Pools(cfg, map[string]int{"critical": 4, "low": 1}, hold)
	if err != nil {
		t.Fatal(err)
	}
	life, end := context.WithCancel(ctx)
	done := make(chan error, 1)
	var running sync.WaitGroup
	running.Go(func() { done <- RunPools(life, workers) })
	defer running.Wait()
	defer end()
	c, err := client.Connect(ctx, client.Config{URL: cfg.URL, Namespace: cfg.Namespace, Logger: cfg.Logger})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, lane := range []string{"low", "critical"} {
		all, err := client.SubmitMany(ctx, c, Refresh, make([]string, 20), flowfabric.Lane(lane))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range all {
			if _, err := x.Result(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	end()
	if err := <-done; err != nil {
		t.Errorf("the workers ended with %v", err)
	}
	if most["low"] != 1 || most["critical"] < 2 || most["critical"] > 4 {
		t.Errorf("at once: %v", most)
	}
	if _, err := Pools(cfg, map[string]int{"low": 10_001}, hold); !errors.Is(err, flowfabric.ErrConfig) {
		t.Errorf("too many slots: %v", err)
	}
}

func TestLimitMail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts []time.Duration
		began := time.Now()
		mailer := &Mailer{Send: func(context.Context, string, Invoice) (string, error) {
			starts = append(starts, time.Since(began))
			return "m", nil
		}}
		w := fftest.New(t, runtime.Config{Concurrency: 1}, handler.Bind(SendInvoice, mailer.Handle))
		if err := LimitMail(t.Context(), w.Client()); err != nil {
			t.Fatal(err)
		}
		var all []*client.Execution[Receipt]
		for i := range 120 {
			x, err := client.Submit(t.Context(), w.Client(), SendInvoice, Invoice{i, "anna@example.com"})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, x)
		}
		w.Sleep(3 * time.Minute)
		for _, x := range all {
			if s, err := x.Get(t.Context()); err != nil || s.State.Public != flowfabric.Completed {
				t.Fatalf("%s: %v", s.State.Public, err)
			}
		}
		slices.SortFunc(starts, cmp.Compare)
		if starts[99] >= time.Minute || starts[100] < 55*time.Second || starts[100]-starts[0] < 55*time.Second {
			t.Errorf("started at %v", starts[95:105])
		}
	})
}

func TestScheduleAll(t *testing.T) {
	c, err := client.Connect(t.Context(),
		client.Config{URL: "embedded://", Namespace: t.Name(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 { // three processes start
		if err := ScheduleAll(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	x, err := admin.New(c).GetSchedule(t.Context(), "nightly-report") // never changed since it was made
	if err != nil || x.Revision != x.Incarnation || x.Definition.Overlap != schedule.OverlapSkip ||
		x.Definition.Item.Policy.AttemptTimeout != flowfabric.Millis(time.Hour) {
		t.Errorf("%+v, %v", x, err)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	next := x.NextRuns(2)
	if len(next) != 2 {
		t.Fatalf("%v", next)
	}
	for _, at := range next {
		if clock := at.In(berlin).Format("15:04:05"); clock != "03:00:00" || !at.After(time.Now()) {
			t.Errorf("next at %s, %s in Berlin", at, clock)
		}
	}
}
