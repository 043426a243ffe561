package admin_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	instants "github.com/flowfabric/flowfabric-go/internal/calendar"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/schedule"
)

var hourly = schedule.Every(time.Hour, time.Time{}) // the clock stands at 06:59:30

func TestScheduleEndsAtItsDate(t *testing.T) {
	k := newCalendar(t)
	end := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	k.no(scheduled(k, "s", hourly, client.Until(end), client.CatchUp(schedule.CatchUpAll)))
	if runs := k.get("s").NextRuns(10); len(runs) != 3 || !runs[2].Equal(end) {
		t.Errorf("next runs %v", runs)
	}
	k.pass(24 * time.Hour)
	k.steps(3) // 07:00, 08:00 and 09:00
	info := k.get("s")
	if info.Fired != 3 || info.Missed != 0 || !info.Next.IsZero() || info.Ended != "until" ||
		len(info.NextRuns(10)) != 0 || !info.LastDue.Equal(end) {
		t.Errorf("%+v, ended by %q, next runs %v", info, info.Ended, info.NextRuns(10))
	}
	if all, err := admin.New(k.c).Schedules(k.ctx); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	set, err := client.Schedule(k.ctx, k.c, "s", hourly, write, draft{Topic: "x"}, client.CatchUp(schedule.CatchUpAll))
	if err != nil || !set.Next.Equal(end.Add(22*time.Hour)) {
		t.Errorf("without an end: %+v, %v", set, err)
	}
	set, err = client.Schedule(k.ctx, k.c, "s", hourly, write, draft{Topic: "x"}, client.Until(end))
	if err != nil || !set.Next.IsZero() {
		t.Errorf("with an end that has passed: %+v, %v", set, err)
	}
}

// An end that comes before what is due gives that up, and tells so.
func TestAnEarlierEndGivesUpWhatIsDue(t *testing.T) {
	k := newCalendar(t)
	k.no(scheduled(k, "s", hourly, client.CatchUp(schedule.CatchUpAll)))
	k.no(admin.New(k.c).PauseSchedule(k.ctx, "s"))
	k.now = k.now.Add(2 * time.Hour)
	k.server.SetTime(k.now)
	k.no(scheduled(k, "s", hourly, client.CatchUp(schedule.CatchUpAll), client.Until(k.now.Add(-2*time.Hour))))
	if info := k.get("s"); info.Missed != 2 || info.Reasons["updated"] != 2 || !info.Next.IsZero() {
		t.Errorf("%+v", info)
	}
}

func TestScheduleEndsAfterItsRuns(t *testing.T) {
	k := newCalendar(t)
	k.no(scheduled(k, "s", hourly, client.MaxRuns(2), client.CatchUp(schedule.CatchUpAll)))
	if runs := k.get("s").NextRuns(10); len(runs) != 2 {
		t.Errorf("next runs %v", runs)
	}
	k.pass(10 * time.Hour)
	k.steps(2)
	info := k.get("s")
	if info.Fired != 2 || info.Missed != 0 || !info.Next.IsZero() || info.Ended != "runs" || info.RunsLeft == nil ||
		*info.RunsLeft != 0 {
		t.Errorf("%+v, ended by %q, %v left", info, info.Ended, info.RunsLeft)
	}
	k.no(scheduled(k, "s", hourly, client.MaxRuns(3), client.CatchUp(schedule.CatchUpAll)))
	if info := k.get("s"); info.Ended != "" || len(info.NextRuns(10)) != 1 {
		t.Errorf("one more: %+v", info)
	}
}

func TestFirstRunNow(t *testing.T) {
	k := newCalendar(t)
	put := func() client.ScheduleSet {
		t.Helper()
		set, err := client.Schedule(k.ctx, k.c, "s", hourly, write, draft{Topic: "x"}, client.FirstRunNow(),
			client.Jitter(10*time.Minute))
		k.no(err)
		return set
	}
	if set := put(); !set.Next.Equal(k.now) {
		t.Errorf("%+v", set)
	}
	want := []time.Time{k.now, k.now.Add(30 * time.Second)}
	info := k.get("s")
	if info.Fired > 0 { // the loop was looking just then
		want = []time.Time{k.now.Add(30 * time.Second), k.now.Add(time.Hour + 30*time.Second)}
	}
	if runs := info.NextRuns(2); !slices.EqualFunc(runs, want, time.Time.Equal) {
		t.Errorf("next runs %v, want %v", runs, want)
	}
	k.pass(0)
	k.steps(1)
	info = k.get("s")
	first, err := k.c.Execution(info.LastID).Get(k.ctx)
	k.no(err)
	if info.Fired != 1 || !info.Next.Equal(k.now.Add(30*time.Second)) || !first.DelayUntil.IsZero() {
		t.Errorf("%+v, it starts at %s", info, first.DelayUntil)
	}
	if set := put(); !set.Already {
		t.Errorf("again: %+v", set)
	}
	k.pass(time.Minute)
	k.steps(1)
	if info := k.get("s"); info.Fired != 2 {
		t.Errorf("%+v", info)
	}
	// A change before the first run keeps it, also one of the times.
	k.no(admin.New(k.c).PauseSchedule(k.ctx, "s"))
	k.no(scheduled(k, "t", hourly, client.FirstRunNow()))
	k.no(scheduled(k, "t", daily, client.FirstRunNow()))
	k.pass(0)
	k.steps(1)
	if info := k.get("t"); info.Fired != 1 || info.Missed != 0 || info.Next.Hour() != 7 {
		t.Errorf("%+v", info)
	}
}

func TestJitterDelaysTheStart(t *testing.T) {
	k := newCalendar(t)
	for i := range 20 {
		k.no(scheduled(k, fmt.Sprint("s", i), hourly, client.Jitter(20*time.Minute), flowfabric.Deadline(time.Hour)))
	}
	k.pass(time.Minute)
	k.steps(20)
	due, starts := time.Date(2026, 5, 1, 7, 0, 0, 0, time.UTC), map[time.Time]bool{}
	for i := range 20 {
		info := k.get(fmt.Sprint("s", i))
		want := instants.Start(info.Definition, info.Name, due)
		s, err := k.c.Execution(info.LastID).Get(k.ctx)
		k.no(err)
		if start := want.Sub(due); start < 0 || start > 20*time.Minute ||
			want.After(k.now) && (!s.DelayUntil.Equal(want) || !s.DeadlineAt.Equal(want.Add(time.Hour))) {
			t.Errorf("%s starts at %s, want %s, deadline %s", info.Name, s.DelayUntil, want, s.DeadlineAt)
		}
		starts[want] = true
	}
	if len(starts) < 18 {
		t.Errorf("only %d different starts", len(starts))
	}
}

func TestScheduleSubmitsAFlow(t *testing.T) {
	k := newCalendar(t)
	f, _ := diamond("report", flowfabric.Tags(map[string]string{"a.b": "c"}))
	set, err := client.ScheduleFlow(k.ctx, k.c, "s", hourly, f, client.CatchUp(schedule.CatchUpAll), client.MaxRuns(2),
		flowfabric.Namespace("blue"))
	k.no(err)
	again, err := client.ScheduleFlow(k.ctx, k.c, "s", hourly, f, client.CatchUp(schedule.CatchUpAll),
		client.MaxRuns(2), flowfabric.Namespace("blue"))
	if err != nil || !again.Already || again.Revision != set.Revision {
		t.Errorf("again: %+v, %v", again, err)
	}
	k.pass(90 * time.Minute)
	if got := k.steps(2); !slices.Equal(got, []engine.FireOutcome{engine.FireCreated, engine.FireCreated}) {
		t.Errorf("%v", got)
	}
	info := k.get("s")
	x := info.Definition.Item
	if info.Fired != 2 || info.Ended != "runs" || !info.LastID.IsZero() || info.LastFlow.IsZero() || x.Nodes != 4 ||
		x.Kind != "report" || x.Namespace != "blue" {
		t.Errorf("%+v", info)
	}
	last := snapshot(k.ctx, t, k.c.Flow(info.LastFlow))
	if last.State != flowfabric.FlowOpen || last.Tags["a.b"] != "c" || last.Tags["schedule.name"] != "s" ||
		last.Tags["schedule.due"] != "2026-05-01T08:00:00Z" || len(last.Nodes) != 4 {
		t.Errorf("%+v", last)
	}
	held := claim(k.ctx, t, k.e, info.LastFlow.Member("a"))
	if string(held.Input) != `{"Topic":"a"}` || held.Tags["schedule.due"] != "2026-05-01T08:00:00Z" {
		t.Errorf("%s, %v", held.Input, held.Tags)
	}
}

// A flow that needs several calls is one flow all the same, and its members wait for their start.
func TestScheduleSubmitsALargeFlowWithJitter(t *testing.T) {
	k := newCalendar(t)
	f := flow.New("large")
	for i := range 250 {
		flow.Add(f, fmt.Sprint("n", i), write, draft{Topic: "x"}, flowfabric.Deadline(time.Hour))
	}
	_, err := client.ScheduleFlow(k.ctx, k.c, "large", hourly, f, client.Jitter(30*time.Minute))
	k.no(err)
	k.pass(time.Minute)
	k.steps(1)
	info := k.get("large")
	record, err := k.e.DescribeFlow(k.ctx, info.LastFlow)
	k.no(err)
	start := instants.Start(info.Definition, "large", info.LastDue)
	member, err := k.c.Execution(info.LastFlow.Member("n249")).Get(k.ctx)
	k.no(err)
	if record.Members != 250 || record.State != flowfabric.FlowOpen || !start.After(k.now) ||
		!member.DelayUntil.Equal(start) || !member.DeadlineAt.Equal(start.Add(time.Hour)) {
		t.Errorf("%+v; member starts at %s, want %s, deadline %s", record, member.DelayUntil, start, member.DeadlineAt)
	}
}

func TestAFlowThatIsRefusedIsMissed(t *testing.T) {
	k := newCalendar(t)
	_, err := client.ScheduleFlow(k.ctx, k.c, "s", hourly, chain(3), client.CatchUp(schedule.CatchUpLast))
	k.no(err)
	k.no(admin.New(k.c).SetLane(k.ctx, "default", admin.LaneChange{State: flowfabric.LaneDraining}))
	k.pass(3 * time.Hour)
	k.steps(2) // what is late, and what is refused
	if info := k.get("s"); info.Fired != 0 || info.Reasons["late"] != 2 || info.Reasons["lane_closed"] != 1 ||
		!info.Next.After(k.now) {
		t.Errorf("%+v", info)
	}
}

func TestFlowsThatCannotRecur(t *testing.T) {
	k := newCalendar(t)
	add := func(opts ...flow.NodeOption) *flow.Flow {
		f := flow.New("f")
		flow.Add(f, "a", write, draft{Topic: strings.Repeat("x", 800_000)}, opts...)
		return f
	}
	for want, f := range map[string]*flow.Flow{
		"Unsealed":         flow.New("f", flow.Unsealed()),
		"no nodes":         flow.New("f"),
		"there is no flow": nil,
		"DelayUntil":       add(flowfabric.DelayUntil(k.now)),
		"DeadlineAt":       add(flowfabric.DeadlineAt(k.now.Add(time.Hour))),
		"as it is stored":  add(),
	} {
		if want == "Unsealed" {
			flow.Add(f, "a", write, draft{Topic: "x"})
		}
		_, err := client.ScheduleFlow(k.ctx, k.c, "s", hourly, f)
		if err == nil || !strings.Contains(err.Error(), want) ||
			!errors.Is(err, flowfabric.ErrInvalidInput) && !errors.Is(err, flowfabric.ErrPayloadTooLarge) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestSyncSchedules(t *testing.T) {
	k := newCalendar(t)
	a := client.DeclareSchedule("a", hourly, write, draft{Topic: "a"})
	b := client.DeclareSchedule("b", hourly, write, draft{Topic: "b"}, client.FirstRunNow())
	f := client.DeclareFlowSchedule("f", daily, chain(2), client.MaxRuns(3))
	sync := func(owner, want string, all ...client.ScheduleDeclaration) {
		t.Helper()
		got, err := k.c.SyncSchedules(k.ctx, owner, all...)
		k.no(err)
		if text := fmt.Sprint(got); text != want {
			t.Errorf("%s, want %s", text, want)
		}
	}
	sync("x", "{[a b f] [] [] []}", a, b, f)
	revision := k.get("a").Revision
	sync("x", "{[] [] [a b f] []}", f, b, a)
	if got := k.get("a"); got.Revision != revision || got.Definition.Owner != "x" {
		t.Errorf("%+v", got)
	}
	k.pass(0)
	k.steps(1) // the first run of b
	sync("x", "{[] [] [a b f] []}", a, b, f)
	k.no(scheduled(k, "free", hourly))
	sync("y", "{[c] [free] [] []}", client.DeclareSchedule("c", hourly, write, draft{}),
		client.DeclareSchedule("free", hourly, write, draft{Topic: "x"}))
	sync("x", "{[] [b] [a] [f]}", a, client.DeclareSchedule("b", hourly, write, draft{Topic: "new"}))
	if info := k.get("b"); info.Fired != 1 || info.UpdatedAt.IsZero() {
		t.Errorf("%+v", info)
	}
	_, err := k.c.SyncSchedules(k.ctx, "x", a, client.DeclareSchedule("new", hourly, write, draft{}),
		client.DeclareSchedule("c", hourly, write, draft{}))
	var other *client.ScheduleOwnerError
	if !errors.As(err, &other) || other.Name != "c" || other.Owner != "y" || other.Other != "x" ||
		k.get("c").Definition.Owner != "y" {
		t.Errorf("of another owner: %v", err)
	}
	if _, err := admin.New(k.c).GetSchedule(k.ctx, "new"); !errors.Is(err, denied.NoSchedule) {
		t.Errorf("something was changed: %v", err)
	}
	k.no(scheduled(k, "a", hourly)) // by hand: it belongs to nobody now
	sync("x", "{[] [] [] [b]}")
	sync("x", "{[] [] [] []}")
	if info := k.get("a"); info.Definition.Owner != "" {
		t.Errorf("%+v", info)
	}
}

func TestDeclarationsAreRefusedBeforeAnyCall(t *testing.T) {
	k := newCalendar(t)
	a := client.DeclareSchedule("a", hourly, write, draft{Topic: "a"})
	for want, all := range map[string][]client.ScheduleDeclaration{
		"twice":           {a, a},
		"IfNew":           {client.DeclareSchedule("a", hourly, write, draft{}, flowfabric.IfNew())},
		"empty":           {a, client.DeclareSchedule("b", schedule.Spec{}, write, draft{})},
		"DeclareSchedule": {{}},
		"schedule name":   {client.DeclareSchedule("{}", hourly, write, draft{})},
	} {
		if _, err := k.c.SyncSchedules(k.ctx, "x", all...); !errors.Is(err, flowfabric.ErrInvalidInput) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := k.c.SyncSchedules(k.ctx, "", a); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Errorf("no owner: %v", err)
	}
	if all, err := admin.New(k.c).Schedules(k.ctx); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	k.c.Close()
	if _, err := k.c.SyncSchedules(k.ctx, "x", a); !errors.Is(err, client.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// Processes that declare the same at the same time end in the same state, each schedule made once and removed once.
func TestProcessesSyncAtTheSameTime(t *testing.T) {
	k := newCalendar(t)
	for round := range 5 {
		var all []client.ScheduleDeclaration
		for i := range 10 {
			all = append(all, client.DeclareSchedule(fmt.Sprintf("s%d", i+round), hourly, write,
				draft{Topic: fmt.Sprint(round / 2)}, client.FirstRunNow()))
		}
		var mu sync.Mutex
		var removed []string
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				out, err := k.c.SyncSchedules(k.ctx, "x", all...)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				removed = append(removed, out.Removed...)
				mu.Unlock()
			})
		}
		group.Wait()
		found, err := admin.New(k.c).Schedules(k.ctx)
		k.no(err)
		if len(found) != 10 || round > 0 && !slices.Equal(removed, []string{fmt.Sprintf("s%d", round-1)}) {
			t.Fatalf("round %d: %d schedules, removed %v", round, len(found), removed)
		}
		for _, s := range found {
			if s.Definition.Owner != "x" || s.Fired+s.Missed > 1 {
				t.Errorf("%+v", s)
			}
		}
	}
}
