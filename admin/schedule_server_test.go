package admin_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// calendar is a server whose clock stands still until it is moved, with a client and a maintenance loop.
type calendar struct {
	t      *testing.T
	ctx    context.Context
	server *embedded.Server
	c      *client.Client
	e      *engine.Engine
	loop   *maintain.Loop
	now    time.Time
	fired  chan engine.Fired
}

func newCalendar(t *testing.T) *calendar {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	quiet := slog.New(slog.DiscardHandler)
	k := &calendar{t: t, ctx: ctx, now: time.Date(2026, 5, 1, 6, 59, 30, 0, time.UTC),
		fired: make(chan engine.Fired, 1000)}
	var err error
	if k.server, err = embedded.Start(ctx, embedded.Config{Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.server.Close)
	k.server.SetTime(k.now)
	if k.c, err = client.Connect(ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour,
		URL: k.server.URL(), Partitions: 4, Creator: "tests", Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.c.Close)
	if k.e, err = engine.Open(ctx,
		engine.Config{CallTimeout: time.Hour, URL: k.server.URL(), Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.e.Close)
	k.loop = maintain.New(maintain.Config{Engine: k.e, Owner: "tests", Logger: quiet,
		OnFire: func(_ uint16, _ engine.Firing, answer engine.Fired) { k.fired <- answer }})
	var run sync.WaitGroup
	life, end := context.WithCancel(ctx)
	run.Go(func() { _ = k.loop.Run(life) })
	t.Cleanup(func() { end(); run.Wait() })
	return k
}

// pass moves the clock, and the loop hears of it.
func (k *calendar) pass(d time.Duration) {
	k.now = k.now.Add(d)
	k.server.SetTime(k.now)
	for p := range uint16(4) {
		k.loop.Ring(p)
	}
}

// steps waits for n steps of schedules.
func (k *calendar) steps(n int) (out []engine.FireOutcome) {
	k.t.Helper()
	for range n {
		select {
		case f := <-k.fired:
			out = append(out, f.Outcome)
		case <-k.ctx.Done():
			k.t.Fatalf("only %v was fired", out)
		}
	}
	return out
}

func (k *calendar) get(name string) admin.ScheduleInfo {
	k.t.Helper()
	info, err := admin.New(k.c).GetSchedule(k.ctx, name)
	must.No(k.t, err)
	return info
}

func (k *calendar) no(err error) {
	k.t.Helper()
	must.No(k.t, err)
}

var daily = schedule.Cron("0 9 * * *", "Europe/Berlin") // 07:00 UTC in May

func TestScheduleSubmits(t *testing.T) {
	k := newCalendar(t)
	work := handler.Define[draft, verdict]("write-article", handler.Retry(2, time.Second, time.Minute),
		flowfabric.Deadline(time.Hour), flowfabric.Lane("night"))
	set, err := client.Schedule(k.ctx, k.c, "report", daily, work, draft{Topic: "tides"}, flowfabric.Priority(7),
		flowfabric.Tags(map[string]string{"team.name": "sea"}), flowfabric.Capabilities("gpu"), flowfabric.IfNew())
	k.no(err)
	if want := time.Date(2026, 5, 1, 7, 0, 0, 0, time.UTC); set.Already || !set.Next.Equal(want) {
		t.Fatalf("%+v", set)
	}
	again, err := client.Schedule(k.ctx, k.c, "report", daily, work, draft{Topic: "tides"}, flowfabric.Priority(7),
		flowfabric.Tags(map[string]string{"team.name": "sea"}), flowfabric.Capabilities("gpu"))
	if err != nil || !again.Already || again.Revision != set.Revision {
		t.Errorf("again: %+v, %v", again, err)
	}
	k.pass(time.Minute)
	k.steps(1)
	info := k.get("report")
	if info.Fired != 1 || info.Missed != 0 || !info.LastDue.Equal(set.Next) ||
		!info.Next.Equal(set.Next.Add(24*time.Hour)) || info.By != "tests" || info.Err != nil {
		t.Errorf("%+v", info)
	}
	s, err := k.c.Execution(info.LastID).Get(k.ctx)
	k.no(err)
	if s.Priority != 7 || s.Route.Lane != "night" || s.Route.Kind != "write-article" || s.Creator != "tests" ||
		s.Policy.Retry.MaxRetries != 2 || !s.DeadlineAt.Equal(k.now.Add(time.Hour)) ||
		!slices.Equal(s.Route.Capabilities, []string{"gpu"}) {
		t.Errorf("%+v", s)
	}
	if s.Tags["team.name"] != "sea" || s.Tags["schedule.name"] != "report" ||
		s.Tags["schedule.due"] != "2026-05-01T07:00:00Z" {
		t.Errorf("tags %v", s.Tags)
	}
	if held := claim(k.ctx, t, k.e, info.LastID); string(held.Input) != `{"Topic":"tides"}` {
		t.Errorf("input %s", held.Input)
	}
}

func TestScheduleCatchesUp(t *testing.T) {
	k := newCalendar(t)
	for name, policy := range map[string]schedule.CatchUp{"last": schedule.CatchUpLast, "all": schedule.CatchUpAll,
		"skip": schedule.CatchUpSkip} {
		_, err := client.Schedule(k.ctx, k.c, name, daily, write, draft{Topic: name}, client.CatchUp(policy))
		k.no(err)
	}
	k.pass(3*24*time.Hour + time.Hour) // 4 instants, the last of them an hour ago
	k.steps(1 + 4 + 1)
	for name, want := range map[string][2]uint64{"last": {1, 3}, "all": {4, 0}, "skip": {0, 4}} {
		if info := k.get(name); info.Fired != want[0] || info.Missed != want[1] ||
			info.Missed > 0 && info.LastMissed.Reason != "late" {
			t.Errorf("%s: %d fired, %d missed %+v", name, info.Fired, info.Missed, info.LastMissed)
		}
	}
}

func TestSchedulePauses(t *testing.T) {
	k := newCalendar(t)
	_, err := client.Schedule(k.ctx, k.c, "report", schedule.Every(time.Hour, time.Time{}), write, draft{Topic: "x"},
		client.CatchUp(schedule.CatchUpAll))
	k.no(err)
	k.pass(time.Minute)
	k.steps(1)
	k.no(admin.New(k.c).PauseSchedule(k.ctx, "report", flowfabric.By("anna")))
	k.pass(3 * time.Hour)
	k.no(admin.New(k.c).PauseSchedule(k.ctx, "report"))
	if info := k.get("report"); !info.Paused || info.PausedBy != "anna" || info.Fired != 1 {
		t.Errorf("%+v", info)
	}
	runs := k.get("report").NextRuns(1)
	if len(runs) != 1 || !runs[0].After(k.now) {
		t.Errorf("paused, next %v", runs)
	}
	k.no(admin.New(k.c).ResumeSchedule(k.ctx, "report", flowfabric.By("otto")))
	k.pass(time.Hour)
	k.steps(2) // what was missed, then the next one
	if info := k.get("report"); info.Fired != 2 || info.Reasons["paused"] != 3 || info.Missed != 3 ||
		info.ResumedBy != "otto" {
		t.Errorf("%+v", info)
	}
}

// Whatever is due when a schedule changes is fired if its times stay, and told if they do not.
func TestScheduleChanges(t *testing.T) {
	k := newCalendar(t)
	hourly := schedule.Every(time.Hour, time.Time{})
	first, err := client.Schedule(k.ctx, k.c, "report", hourly, write, draft{Topic: "x"},
		client.CatchUp(schedule.CatchUpAll))
	k.no(err)
	k.no(admin.New(k.c).PauseSchedule(k.ctx, "report")) // so that nothing is fired while it is changed
	k.now = k.now.Add(2 * time.Hour)
	k.server.SetTime(k.now)
	same, err := client.Schedule(k.ctx, k.c, "report", hourly, write, draft{Topic: "y"},
		client.CatchUp(schedule.CatchUpAll))
	if err != nil || !same.Next.Equal(first.Next) || same.Revision <= first.Revision {
		t.Errorf("other input: %+v, %v; before %+v", same, err, first)
	}
	other, err := client.Schedule(k.ctx, k.c, "report", daily, write, draft{Topic: "y"})
	if err != nil || !other.Next.Equal(time.Date(2026, 5, 2, 7, 0, 0, 0, time.UTC)) {
		t.Errorf("other times: %+v, %v", other, err)
	}
	if info := k.get("report"); !info.Paused || info.Missed != 2 || info.LastMissed.Reason != "updated" ||
		!info.LastMissed.From.Equal(first.Next) {
		t.Errorf("%+v", info)
	}
	if _, err = client.Schedule(k.ctx, k.c, "report", hourly, write, draft{Topic: "z"},
		flowfabric.IfRevision(first.Revision)); !errors.Is(err, denied.ScheduleChanged) {
		t.Errorf("an old revision: %v", err)
	}
	if _, err = client.Schedule(k.ctx, k.c, "report", hourly, write, draft{Topic: "z"},
		flowfabric.IfNew()); !errors.Is(err,
		denied.ScheduleChanged) {
		t.Errorf("not new: %v", err)
	}
	if _, err = admin.New(k.c).RemoveSchedule(k.ctx, "report", flowfabric.IfRevision(first.Revision)); !errors.Is(err,
		denied.ScheduleChanged) {
		t.Errorf("remove an old revision: %v", err)
	}
	if removed, err := admin.New(k.c).RemoveSchedule(k.ctx, "report"); err != nil || !removed {
		t.Errorf("removed %v, %v", removed, err)
	}
	if removed, err := admin.New(k.c).RemoveSchedule(k.ctx, "report"); err != nil || removed {
		t.Errorf("removed again %v, %v", removed, err)
	}
	if _, err := admin.New(k.c).GetSchedule(k.ctx, "report"); !errors.Is(err, denied.NoSchedule) ||
		!strings.Contains(err.Error(), `"report"`) {
		t.Errorf("get: %v", err)
	}
	if err := admin.New(k.c).PauseSchedule(k.ctx, "report"); !errors.Is(err, denied.NoSchedule) {
		t.Errorf("pause: %v", err)
	}
}

func TestSchedulesAreListed(t *testing.T) {
	k := newCalendar(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		_, err := client.Schedule(k.ctx, k.c, name, daily, handler.Define[[]byte, []byte]("k"),
			[]byte("input of "+name))
		k.no(err)
	}
	all, err := admin.New(k.c).Schedules(k.ctx)
	k.no(err)
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
		if s.Definition.Spec.String() != "0 9 * * * (Europe/Berlin)" || s.InputBytes != 10 ||
			s.Definition.Item.Namespace != "default" || s.Definition.Item.Digest == "" {
			t.Errorf("%+v", s)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"a", "b", "c", "d", "e"}) {
		t.Errorf("listed %v", names)
	}
	runs := k.get("a").NextRuns(3)
	if len(runs) != 3 || !runs[2].Equal(time.Date(2026, 5, 3, 7, 0, 0, 0, time.UTC)) {
		t.Errorf("next runs %v", runs)
	}
}

func TestSchedulesAreRefusedBeforeAnyCall(t *testing.T) {
	k := newCalendar(t)
	_, by := client.DeclareSchedule("s", daily, handler.Define[[]byte, []byte]("k"), nil).Put(k.ctx, k.c,
		flowfabric.By(strings.Repeat("b", 65)))
	for what, err := range map[string]error{
		"spec":  scheduled(k, "s", schedule.Cron("99 * * * *", "")),
		"empty": scheduled(k, "s", schedule.Spec{}),
		"name":  scheduled(k, "a{b}", daily),
		"long":  scheduled(k, strings.Repeat("n", 65), daily),
		"lane":  scheduled(k, "s", daily, flowfabric.Lane("{}")),
		"tag":   scheduled(k, "s", daily, flowfabric.Tags(map[string]string{"schedule.due": "x"})),
		"by":    by,
		"catch": scheduled(k, "s", daily, client.CatchUp("some")),
	} {
		if !errors.Is(err, flowfabric.ErrInvalidInput) || !strings.HasPrefix(err.Error(), "schedule ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	all, err := admin.New(k.c).Schedules(k.ctx)
	if err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	k.c.Close()
	if err := scheduled(k, "s", daily); !errors.Is(err, client.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if _, err := admin.New(k.c).Schedules(k.ctx); !errors.Is(err, client.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func scheduled(k *calendar, name string, spec schedule.Spec, opts ...client.ScheduleOption) error {
	_, err := client.Schedule(k.ctx, k.c, name, spec, write, draft{Topic: "x"}, opts...)
	return err
}
