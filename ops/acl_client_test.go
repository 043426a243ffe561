package ops_test

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/schedule"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// idle is a kind that nobody serves, chatty one whose handler goes on until it is cancelled.
var (
	idle   = handler.Define[string, string]("idle")
	chatty = handler.Define[string, string]("chatty")
)

// method is what a client can do. producer says whether that is the producer's job; the operator may do everything.
type method struct {
	name     string
	producer bool
	call     func(s *stage, c *client.Client) error
}

// stage makes what methods are called on, as the operator.
type stage struct {
	*testing.T
	ctx context.Context
	o   *client.Client
	n   int
}

func (s *stage) name(what string) string {
	s.n++
	return what + "-" + strings.ToLower(strings.NewReplacer("/", "-").Replace(time.Now().Format("150405.000000000")))
}

func (s *stage) no(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) waiting() *client.Execution[string] {
	s.Helper()
	x, err := client.Submit(s.ctx, s.o, idle, "in")
	s.no(err)
	return x
}

func (s *stage) ended() *client.Execution[string] {
	s.Helper()
	x, err := client.Submit(s.ctx, s.o, job, "delay")
	s.no(err)
	_, err = x.Result(s.ctx)
	s.no(err)
	return x
}

// until polls the state of an execution.
func (s *stage) until(x *client.Execution[string], want flowfabric.PublicState) *client.Execution[string] {
	s.Helper()
	for {
		got, err := x.Get(s.ctx)
		s.no(err)
		if got.State.Public == want {
			return x
		}
		select {
		case <-s.ctx.Done():
			s.Fatalf("%s is %s, never %s", x.ID(), got.State.Public, want)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *stage) suspended() (*client.Execution[string], suspend.Token) {
	s.Helper()
	x, err := client.Submit(s.ctx, s.o, job, "everything")
	s.no(err)
	s.until(x, flowfabric.Suspended)
	points, err := x.Waitpoints(s.ctx)
	s.no(err)
	token, err := admin.New(s.o).ReissueToken(s.ctx, x.ID(), points[0].ID, flowfabric.By("me"))
	s.no(err)
	return x, token
}

func (s *stage) active() *client.Execution[string] {
	s.Helper()
	x, err := client.Submit(s.ctx, s.o, chatty, "in")
	s.no(err)
	return s.until(x, flowfabric.Active)
}

func (s *stage) amounts() string {
	s.Helper()
	name := s.name("b")
	s.no(admin.New(s.o).PutGate(s.ctx,
		admission.Gate{Name: name, Limits: map[string]admission.Limit{"tokens": {Hard: 100}}}))
	return name
}

func (s *stage) slots() string {
	s.Helper()
	name := s.name("q")
	s.no(admin.New(s.o).PutGate(s.ctx, admission.Gate{Name: name, Concurrency: 3}))
	return name
}

func (s *stage) schedule() string {
	s.Helper()
	name := s.name("s")
	_, err := client.Schedule(s.ctx, s.o, name, schedule.Every(time.Hour, time.Time{}), idle, "in")
	s.no(err)
	return name
}

func (s *stage) flow(c *client.Client, opts ...client.FlowOption) (*client.Flow, error) {
	f := flow.New("steps")
	first := flow.Add(f, "first", idle, "in")
	flow.Add(f, "second", idle, "in", flow.After(first))
	return client.SubmitFlow(s.ctx, c, f, opts...)
}

func (s *stage) submitted() *client.Flow {
	s.Helper()
	f, err := s.flow(s.o)
	s.no(err)
	return f
}

// at is somebody else's handle of a flow or an execution.
func at(c *client.Client, f *client.Flow) *client.Flow { return c.Flow(f.ID()) }

func mine(c *client.Client, x *client.Execution[string]) *client.Execution[string] {
	return client.Attach(c, idle, x.ID())
}

func first[T any](seq iter.Seq2[T, error]) error {
	for _, err := range seq {
		return err
	}
	return nil
}

func second[T any](_ T, err error) error { return err }

func third[A, B any](_ A, _ B, err error) error { return err }

// methods are all of a client, a flow and an execution, by what their receiver is called.
var methods = []method{
	{"Submit", true, func(s *stage, c *client.Client) error { return second(client.Submit(s.ctx, c, idle, "in")) }},
	{"Submit gated", true, func(s *stage, c *client.Client) error {
		return second(client.Submit(s.ctx, c, idle, "in", flowfabric.Gates(s.amounts(), s.slots())))
	}},
	{"Submit gated, and run", true, func(s *stage, c *client.Client) error {
		x, err := client.Submit(s.ctx, c, job, "spend", flowfabric.Gates(s.amounts(), s.slots()))
		s.no(err)
		return second(x.Result(s.ctx))
	}},
	{"SubmitMany gated", true, func(s *stage, c *client.Client) error {
		return second(client.SubmitMany(s.ctx, c, idle, []string{"a", "b"}, flowfabric.Gates(s.amounts(), s.slots())))
	}},
	{"SubmitFlow", true, func(s *stage, c *client.Client) error { return second(s.flow(c)) }},
	{"SubmitFlow gated", true, func(s *stage, c *client.Client) error {
		f := flow.New("gated", flowfabric.Gates(s.amounts(), s.slots()))
		flow.Add(f, "first", idle, "in")
		return second(client.SubmitFlow(s.ctx, c, f))
	}},
	{"Schedule gated", false, func(s *stage, c *client.Client) error {
		return second(client.Schedule(s.ctx, c, s.name("s"), schedule.Every(time.Hour, time.Time{}), idle, "in",
			flowfabric.Gates(s.amounts(), s.slots())))
	}},
	{"ScheduleFlow", false, func(s *stage, c *client.Client) error {
		f := flow.New("scheduled")
		flow.Add(f, "first", idle, "in")
		return second(client.ScheduleFlow(s.ctx, c, s.name("s"), schedule.Every(time.Hour, time.Time{}), f))
	}},

	{"Client.Ping", true, func(s *stage, c *client.Client) error { return c.Ping(s.ctx) }},
	{"Client.Link", true, func(_ *stage, c *client.Client) error { return c.Link().Closed() }},
	{"Execution.Get", true, func(s *stage,
		c *client.Client) error {
		return second(c.Execution(s.waiting().ID()).Get(s.ctx))
	}},
	{"Execution.Steps", true, func(s *stage,
		c *client.Client) error {
		return second(c.Execution(s.waiting().ID()).Steps(s.ctx))
	}},
	{"Execution.StepValue", true, func(s *stage, c *client.Client) error {
		_, _, err := c.Execution(s.waiting().ID()).StepValue(s.ctx, "a")
		return err
	}},
	{"Execution.Input", true, func(s *stage, c *client.Client) error {
		return second(c.Execution(s.waiting().ID()).Input(s.ctx))
	}},
	{"Execution.Result", true, func(s *stage, c *client.Client) error {
		return second(c.Execution(s.ended().ID()).Result(s.ctx))
	}},
	{"Execution.ResultNow", true, func(s *stage, c *client.Client) error {
		return second(c.Execution(s.ended().ID()).ResultNow(s.ctx))
	}},
	{"Execution.Frames", true, func(s *stage, c *client.Client) error {
		return second(c.Execution(s.ended().ID()).Frames(s.ctx, 1, stream.Range{}))
	}},
	{"Admin.History", true, func(s *stage, c *client.Client) error {
		return second(admin.New(c).History(s.ctx, s.ended().ID()))
	}},
	{"Client.Publish", true, func(s *stage, c *client.Client) error {
		return second(c.Publish(s.ctx, client.Event{Subject: "order.paid"}))
	}},
	{"Client.PutTrigger", false, func(s *stage, c *client.Client) error {
		return second(c.PutTrigger(s.ctx, client.Trigger{Name: "t", Subject: "order.paid",
			Start: flowfabric.Start{Kind: "k"}}))
	}},
	{"Client.RemoveTrigger", false, func(s *stage, c *client.Client) error {
		return second(c.RemoveTrigger(s.ctx, client.Trigger{Name: "t", Subject: "order.paid"}))
	}},
	{"Execution.Logs", true, func(s *stage, c *client.Client) error {
		for _, err := range c.Execution(s.waiting().ID()).Logs(s.ctx, stream.LogRange{}) {
			return err
		}
		return nil
	}},
	{"Execution.Tail", true, func(s *stage,
		c *client.Client) error {
		return first(c.Execution(s.ended().ID()).Tail(s.ctx))
	}},
	{"Execution.Transcript", true,
		func(s *stage, c *client.Client) error {
			_, err := c.Execution(s.ended().ID()).Transcript(s.ctx)
			return err
		}},
	{"Execution.Summary", true, func(s *stage, c *client.Client) error {
		x, _ := s.suspended()
		return second(c.Execution(x.ID()).Summary(s.ctx))
	}},
	{"Execution.SummaryOf", true, func(s *stage, c *client.Client) error {
		x, _ := s.suspended()
		return second(c.Execution(x.ID()).SummaryOf(s.ctx, 1))
	}},
	{"Client.Signal", true, func(s *stage, c *client.Client) error {
		_, token := s.suspended()
		return second(c.Signal(s.ctx, token, "on"))
	}},
	{"Client.DeliverSignal", true, func(s *stage, c *client.Client) error {
		x, token := s.suspended()
		return second(c.DeliverSignal(s.ctx, x.ID(), token.Waitpoint(), token.Digest(),
			suspend.SentSignal{Name: "go", Payload: []byte(`"on"`)}))
	}},
	{"Execution.Send", true, func(s *stage, c *client.Client) error {
		return second(c.Execution(s.waiting().ID()).Send(s.ctx, "user", "hello"))
	}},
	{"Execution.Stop", true, func(s *stage, c *client.Client) error {
		return second(c.Execution(s.waiting().ID()).Stop(s.ctx, flowfabric.Reason("why")))
	}},
	{"Execution.Messages", true, func(s *stage, c *client.Client) error {
		return second(c.Execution(s.waiting().ID()).Messages(s.ctx, 0))
	}},
	{"Client.ReadQuestion", true, func(s *stage, c *client.Client) error {
		x, token := s.suspended()
		return second(c.ReadQuestion(s.ctx, x.ID(), token.Waitpoint(), token.Digest()))
	}},
	{"Execution.AwaitSuspension", true, func(s *stage, c *client.Client) error {
		x, _ := s.suspended()
		return second(c.Execution(x.ID()).AwaitSuspension(s.ctx))
	}},
	{"Execution.Suspension", true, func(s *stage, c *client.Client) error {
		x, _ := s.suspended()
		return second(c.Execution(x.ID()).Suspension(s.ctx))
	}},
	{"Execution.SignalLog", true, func(s *stage, c *client.Client) error {
		x, _ := s.suspended()
		points, err := c.Execution(x.ID()).Waitpoints(s.ctx)
		if err == nil {
			_, _, err = c.Execution(x.ID()).SignalLog(s.ctx, points[0].ID, 0)
		}
		return err
	}},
	{"Execution.Waitpoints", true, func(s *stage, c *client.Client) error {
		x, _ := s.suspended()
		return second(c.Execution(x.ID()).Waitpoints(s.ctx))
	}},

	{"Execution.Approve", false, func(s *stage, c *client.Client) error {
		x, _ := s.suspended()
		return second(c.Execution(x.ID()).Approve(s.ctx, "go", "on", flowfabric.By("me")))
	}},
	{"Admin.Approvals", false, func(s *stage, c *client.Client) error {
		return second(admin.New(c).Approvals(s.ctx, admin.ApprovalFilter{}, "", 0))
	}},
	{"Admin.Revoke of a session", false, func(s *stage, c *client.Client) error {
		err := admin.New(c).Revoke(s.ctx, s.active().ID(), "nobody~1")
		if errors.Is(err, denied.StaleLease) {
			return nil // it looked who holds it
		}
		return err
	}},
	{"Admin.Check", false, func(s *stage, c *client.Client) error {
		return partitionErrors(admin.New(c).Check(s.ctx, admin.CheckOptions{Partitions: []uint16{0}}))
	}},
	{"Admin.Index", false, func(s *stage, c *client.Client) error { return second(admin.New(c).Index(s.ctx)) }},
	{"Admin.SetIndex", false, func(s *stage, c *client.Client) error {
		return second(admin.New(c).SetIndex(s.ctx, admin.IndexChange{All: new(s.o == c)}))
	}},
	{"Admin.Count", false, func(s *stage, c *client.Client) error {
		_, err := admin.New(c).Count(s.ctx, admin.Filter{})
		if errors.Is(err, flowfabric.ErrState) {
			return nil // there is no index
		}
		return err
	}},
	{"Admin.Repair", false, func(s *stage, c *client.Client) error {
		return partitionErrors(admin.New(c).Repair(s.ctx, admin.CheckOptions{Partitions: []uint16{0}}))
	}},
	{"Admin.Freeze", false, func(s *stage, c *client.Client) error {
		defer func() { s.no(admin.New(s.o).Thaw(s.ctx, 1)) }()
		return admin.New(c).Freeze(s.ctx, 1)
	}},
	{"Admin.Thaw", false, func(s *stage, c *client.Client) error { return admin.New(c).Thaw(s.ctx, 1) }},
	{"Admin.ReissueToken", false, func(s *stage, c *client.Client) error {
		x, token := s.suspended()
		return second(admin.New(c).ReissueToken(s.ctx, x.ID(), token.Waitpoint(), flowfabric.By("me")))
	}},
	{"Admin.Resume", false, func(s *stage, c *client.Client) error {
		x, _ := s.suspended()
		return admin.New(c).Resume(s.ctx, x.ID(), admin.Resume{}, flowfabric.By("me"))
	}},
	{"Execution.Cancel", false, func(s *stage, c *client.Client) error {
		return c.Execution(s.waiting().ID()).Cancel(s.ctx, flowfabric.Reason("why"))
	}},
	{"Execution.Fork", false, func(s *stage, c *client.Client) error {
		return second(c.Execution(s.waiting().ID()).Fork(s.ctx, client.Fork{}))
	}},
	{"Execution.Rewind", false, func(s *stage, c *client.Client) error {
		_, err := c.Execution(s.waiting().ID()).Rewind(s.ctx, client.Rewind{Step: "none"})
		if errors.Is(err, denied.NoStep) {
			return nil
		}
		return err
	}},
	{"Admin.SetPriority", false, func(s *stage, c *client.Client) error {
		return admin.New(c).SetPriority(s.ctx, s.waiting().ID(), 7)
	}},
	{"Admin.SetDelay", false, func(s *stage, c *client.Client) error {
		err := admin.New(c).SetDelay(s.ctx, s.waiting().ID(), time.Hour)
		if errors.Is(err, denied.NotEligible) { // it waits for no time
			return nil
		}
		return err
	}},
	{"Admin.Bulk", false, func(s *stage, c *client.Client) error {
		s.waiting()
		return second(admin.New(c).Bulk(s.ctx, admin.Filter{States: []flowfabric.PublicState{flowfabric.Waiting}},
			admin.BulkAction{Priority: new(5)}, admin.BulkOptions{Limit: 1}))
	}},
	{"Admin.GetLimit", true, func(s *stage, c *client.Client) error {
		return second(admin.New(c).GetLimit(s.ctx, "k", flowfabric.Limit{Concurrency: 1}))
	}},
	{"Admin.Hold", false, func(s *stage, c *client.Client) error {
		return admin.New(c).Hold(s.ctx, s.waiting().ID(), flowfabric.Reason("why"))
	}},
	{"Admin.Unhold", false, func(s *stage, c *client.Client) error {
		x := s.waiting()
		s.no(admin.New(s.o).Hold(s.ctx, x.ID(), flowfabric.Reason("why")))
		return admin.New(c).Unhold(s.ctx, x.ID())
	}},
	{"Admin.Purge", false, func(s *stage, c *client.Client) error {
		return admin.New(c).Purge(s.ctx, s.ended().ID(), 0)
	}},
	{"Admin.Replay", false, func(s *stage, c *client.Client) error {
		return admin.New(c).Replay(s.ctx, s.ended().ID(), admin.Replay{Force: true})
	}},
	{"Admin.Revoke", false, func(s *stage, c *client.Client) error {
		return admin.New(c).Revoke(s.ctx, s.active().ID(), "", flowfabric.Reason("why"))
	}},
	{"Admin.SetTags", false, func(s *stage, c *client.Client) error {
		return admin.New(c).SetTags(s.ctx, s.waiting().ID(), map[string]string{"a.b": "c"}, []string{"d.e"})
	}},
	{"Admin.Why", false, func(s *stage, c *client.Client) error {
		return second(admin.New(c).Why(s.ctx, s.waiting().ID()))
	}},
	{"Admin.List", false, func(s *stage, c *client.Client) error {
		s.waiting()
		return first(admin.New(c).List(s.ctx, admin.Filter{}))
	}},
	{"Admin.ListPage", false, func(s *stage, c *client.Client) error {
		return second(admin.New(c).ListPage(s.ctx, admin.Filter{Tags: map[string]string{"a.b": "c"}}, "", 10))
	}},
	{"Admin.Flows", false, func(s *stage, c *client.Client) error {
		return first(admin.New(c).Flows(s.ctx, admin.FlowQuery{}))
	}},
	{"Admin.FlowsPage", false, func(s *stage, c *client.Client) error {
		return second(admin.New(c).FlowsPage(s.ctx, admin.FlowQuery{}, "", 10))
	}},
	{"Admin.TrailPage", false, func(s *stage, c *client.Client) error {
		return second(admin.New(c).TrailPage(s.ctx, admin.TrailQuery{}, "", 10))
	}},
	{"Admin.Partitions", false, func(s *stage, c *client.Client) error {
		return second(admin.New(c).Partitions(s.ctx))
	}},
	{"Admin.Overview", false, func(s *stage, c *client.Client) error {
		return second(admin.New(c).Overview(s.ctx, ""))
	}},
	{"Admin.Queues", false, func(s *stage, c *client.Client) error { return second(admin.New(c).Queues(s.ctx, "")) }},
	{"Admin.Workers", false, func(s *stage, c *client.Client) error { return second(admin.New(c).Workers(s.ctx)) }},
	{"Admin.MarkWorkerDead", false, func(s *stage, c *client.Client) error {
		_, err := admin.New(c).MarkWorkerDead(s.ctx, "nobody", flowfabric.Reason("why"))
		if errors.Is(err, denied.NoWorker) {
			return nil // it looked for it
		}
		return err
	}},
	{"Admin.Subscribe", false, func(s *stage, c *client.Client) error {
		return second(admin.New(c).Subscribe(s.ctx, admin.SubscribeOptions{}))
	}},
	{"Admin.Lanes", false, func(s *stage, c *client.Client) error { return second(admin.New(c).Lanes(s.ctx, "")) }},
	{"Admin.SetLane", false, func(s *stage, c *client.Client) error {
		return admin.New(c).SetLane(s.ctx, "other",
			admin.LaneChange{State: flowfabric.LaneActive, Retention: everyOutcome(time.Hour),
				Ageing: new(flowfabric.Millis(time.Minute))})
	}},
	{"Admin.SetLane weight", false, func(s *stage, c *client.Client) error {
		return admin.New(c).SetLane(s.ctx, "other", admin.LaneChange{Namespace: "acme", Weight: new(3)})
	}},
	{"Admin.TokenKeys", false, func(s *stage, c *client.Client) error { return second(admin.New(c).TokenKeys(s.ctx)) }},
	{"Admin.RotateTokenKeys", false, func(s *stage, c *client.Client) error {
		return second(admin.New(c).RotateTokenKeys(s.ctx,
			admin.Rotation{Kid: "a", Grace: flowfabric.Millis(time.Hour)}))
	}},

	{"Client.SyncSchedules", false, func(s *stage, c *client.Client) error {
		owner, name := s.name("o"), s.name("s")
		_, err := s.o.SyncSchedules(s.ctx, owner,
			client.DeclareSchedule(s.name("t"), schedule.Every(time.Hour, time.Time{}), idle, "in"))
		s.no(err)
		return second(c.SyncSchedules(s.ctx, owner,
			client.DeclareSchedule(name, schedule.Every(time.Hour, time.Time{}), idle, "in")))
	}},
	{"Admin.GetSchedule", false, func(s *stage, c *client.Client) error {
		return second(admin.New(c).GetSchedule(s.ctx, s.schedule()))
	}},
	{"Admin.Schedules", false, func(s *stage, c *client.Client) error { return second(admin.New(c).Schedules(s.ctx)) }},
	{"Admin.PauseSchedule", false, func(s *stage, c *client.Client) error {
		return admin.New(c).PauseSchedule(s.ctx, s.schedule())
	}},
	{"Admin.ResumeSchedule", false, func(s *stage, c *client.Client) error {
		name := s.schedule()
		s.no(admin.New(s.o).PauseSchedule(s.ctx, name))
		return admin.New(c).ResumeSchedule(s.ctx, name)
	}},
	{"Admin.RemoveSchedule", false, func(s *stage, c *client.Client) error {
		return second(admin.New(c).RemoveSchedule(s.ctx, s.schedule()))
	}},

	{"Admin.PutGate", false, func(s *stage, c *client.Client) error {
		return admin.New(c).PutGate(s.ctx,
			admission.Gate{Name: s.name("b"), Limits: map[string]admission.Limit{"tokens": {Hard: 1}}})
	}},
	{"Admin.PutGate again", false, func(s *stage, c *client.Client) error {
		b := admission.Gate{Name: s.amounts(), Limits: map[string]admission.Limit{"tokens": {Hard: 7}}}
		return admin.New(c).PutGate(s.ctx, b, flowfabric.IfRevision(1))
	}},
	{"Admin.PutGate whatever is there", false, func(s *stage, c *client.Client) error {
		return admin.New(c).PutGate(s.ctx,
			admission.Gate{Name: s.amounts(), Limits: map[string]admission.Limit{"tokens": {Hard: 7}}})
	}},
	{"Admin.GetGate", true, func(s *stage, c *client.Client) error {
		return second(admin.New(c).GetGate(s.ctx, s.amounts()))
	}},
	{"Admin.Gates", false,
		func(s *stage, c *client.Client) error { s.amounts(); return second(admin.New(c).Gates(s.ctx)) }},
	{"Admin.AdjustUsage", false, func(s *stage, c *client.Client) error {
		return second(admin.New(c).AdjustUsage(s.ctx, s.amounts(), map[string]int64{"tokens": 5},
			flowfabric.Reason("why")))
	}},
	{"Admin.RaiseLimits", false, func(s *stage, c *client.Client) error {
		return second(admin.New(c).RaiseLimits(s.ctx, s.amounts(), map[string]int64{"tokens": 5},
			flowfabric.ExecutionID{}, flowfabric.Reason("why")))
	}},
	{"Admin.ResetUsage", false, func(s *stage, c *client.Client) error {
		return third(admin.New(c).ResetUsage(s.ctx, s.amounts(), false))
	}},
	{"Admin.ReportUsage", false, func(s *stage, c *client.Client) error {
		return second(admin.New(c).ReportUsage(s.ctx,
			admission.Usage{Gate: s.amounts(), Key: "k", Amounts: map[string]int64{"tokens": 5}}))
	}},
	{"Admin.RefundUsage", false, func(s *stage, c *client.Client) error {
		u := admission.Usage{Gate: s.amounts(), Execution: s.waiting().ID(), Key: "k",
			Amounts: map[string]int64{"tokens": 5}}
		s.no(second(admin.New(s.o).ReportUsage(s.ctx, u)))
		return second(admin.New(c).RefundUsage(s.ctx, u.Gate, u.Execution))
	}},
	{"Admin.RemoveGate", false, func(s *stage, c *client.Client) error {
		return second(admin.New(c).RemoveGate(s.ctx, s.amounts()))
	}},
	{"Admin.PutGate of slots", false, func(s *stage, c *client.Client) error {
		return admin.New(c).PutGate(s.ctx, admission.Gate{Name: s.name("q"), Concurrency: 3})
	}},
	{"Admin.PutGate of slots again", false, func(s *stage, c *client.Client) error {
		return admin.New(c).PutGate(s.ctx, admission.Gate{Name: s.slots(), Concurrency: 5}, flowfabric.IfRevision(1))
	}},
	{"Admin.GetGate of slots", true, func(s *stage, c *client.Client) error {
		return second(admin.New(c).GetGate(s.ctx, s.slots()))
	}},
	{"Admin.RemoveGate of slots", false, func(s *stage, c *client.Client) error {
		return second(admin.New(c).RemoveGate(s.ctx, s.slots()))
	}},
	{"Admin.AttachGates", false, func(s *stage, c *client.Client) error {
		return admin.New(c).AttachGates(s.ctx, admission.Scope{Namespace: "acme"},
			[]flowfabric.Gate{flowfabric.Gate(s.slots())})
	}},
	{"Admin.DetachGates", false, func(s *stage, c *client.Client) error {
		q := []flowfabric.Gate{flowfabric.Gate(s.slots())}
		s.no(admin.New(s.o).AttachGates(s.ctx, admission.Scope{Namespace: "acme"}, q))
		return admin.New(c).DetachGates(s.ctx, admission.Scope{Namespace: "acme"}, q)
	}},
	{"Admin.Gated", false, func(s *stage, c *client.Client) error { return second(admin.New(c).Gated(s.ctx)) }},

	{"Flow.Describe", true, func(s *stage, c *client.Client) error {
		return second(at(c, s.submitted()).Describe(s.ctx))
	}},
	{"Flow.Snapshot", true, func(s *stage, c *client.Client) error {
		return second(at(c, s.submitted()).Snapshot(s.ctx))
	}},
	{"Flow.Seal", true, func(s *stage, c *client.Client) error { return at(c, s.submitted()).Seal(s.ctx) }},
	{"Flow.Add", true, func(s *stage, c *client.Client) error {
		f := flow.New("open", flow.Unsealed())
		flow.Add(f, "a", job, "ok")
		open, err := client.SubmitFlow(s.ctx, s.o, f)
		s.no(err)
		more := flow.New("open")
		flow.Add(more, "b", job, "ok", flow.After(flow.Existing[string](more, "a")))
		return at(c, open).Add(s.ctx, more)
	}},
	{"Flow.Wait", true, func(s *stage, c *client.Client) error {
		f := s.submitted()
		s.no(second(f.Cancel(s.ctx, flowfabric.CancelAll)))
		return second(at(c, f).Wait(s.ctx))
	}},
	{"Flow.Cancel", false, func(s *stage, c *client.Client) error {
		return second(at(c, s.submitted()).Cancel(s.ctx, flowfabric.CancelAll))
	}},
	{"Admin.ReplayFlow", false, func(s *stage, c *client.Client) error {
		f := flow.New("failing")
		flow.Add(f, "bad", job, "fail")
		submitted, err := client.SubmitFlow(s.ctx, s.o, f)
		s.no(err)
		s.no(second(submitted.Wait(s.ctx)))
		return second(admin.New(c).ReplayFlow(s.ctx, submitted.ID(), admin.FlowReplay{}))
	}},
	{"Admin.SetFlowTags", false, func(s *stage, c *client.Client) error {
		return admin.New(c).SetFlowTags(s.ctx, s.submitted().ID(), map[string]string{"a.b": "c"}, nil)
	}},

	{"Execution.Transcript", true,
		func(s *stage, c *client.Client) error { _, err := mine(c, s.ended()).Transcript(s.ctx); return err }},
}

// uncalled are methods that make no call.
var uncalled = []string{"Client.Close", "Admin.Close", "Admin.Client", "Client.Execution", "Client.Flow",
	"Flow.ID", "Flow.Duplicate", "Flow.Member", "Execution.ID", "Execution.Duplicate", "Execution.Replaced"}

// Every method of a client that is a producer's job works for the user producer, every other one is refused to it,
// and all work for the user operator. A new method is somebody's job, too.
func TestEveryClientMethodIsSomebodysJob(t *testing.T) {
	known := slices.Clone(uncalled)
	for _, m := range methods {
		known = append(known, m.name)
	}
	for receiver, v := range map[string]any{"Client": &client.Client{}, "Admin": &admin.Admin{}, "Flow": &client.Flow{},
		"Execution": &client.Execution[string]{}} {
		for i := range reflect.TypeOf(v).NumMethod() {
			if name := receiver + "." + reflect.TypeOf(v).Method(i).Name; !slices.Contains(known, name) {
				t.Errorf("%s: say in methods whose job it is, and how to call it", name)
			}
		}
	}
	kinds(t, func(t *testing.T, kind testserver.Kind) {
		s := guarded(t, kind)
		ctx, cancel := testwait.Context(t, t.Context())
		defer cancel()
		if _, err := open(t, ctx, "loader", s); err != nil {
			t.Fatal(err)
		}
		keys := "a:" + strings.Repeat("a1", 32)
		for _, b := range []handler.Binding{handler.Bind(job, do),
			handler.Bind(chatty, func(ctx context.Context, _ *handler.Task, _ string) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			})} {
			w, err := runtime.New(runtime.Config{URL: as("worker", s), TokenKeys: keys, LeaseTTL: time.Second,
				Logger: quiet, Registerer: prometheus.NewRegistry()}, b)
			must.No(t, err)
			serve(t, ctx, w)
		}
		clients := map[string]*client.Client{}
		for _, user := range []string{"operator", "producer"} {
			c, err := client.Connect(ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour,
				URL: as(user, s), Logger: quiet, TokenKeys: keys})
			if err != nil {
				t.Fatalf("%s: %v", user, err)
			}
			t.Cleanup(c.Close)
			clients[user] = c
		}
		for _, m := range methods {
			for user, c := range clients {
				err := m.call(&stage{T: t, ctx: ctx, o: clients["operator"]}, c)
				switch {
				case user == "producer" && !m.producer:
					if !errors.Is(err, flowfabric.ErrAuth) {
						t.Errorf("%s is not refused to a %s: %v", m.name, user, err)
					}
				case err != nil:
					t.Errorf("%s: %s: %v", user, m.name, err)
				}
			}
		}
	})
}

// everyOutcome is a retention of d for all outcomes.
func everyOutcome(d time.Duration) map[flowfabric.PublicState]time.Duration {
	return map[flowfabric.PublicState]time.Duration{flowfabric.Completed: d, flowfabric.Failed: d,
		flowfabric.Cancelled: d, flowfabric.Expired: d}
}

// partitionErrors joins what a check could not do.
func partitionErrors(r flowfabric.CheckReport, err error) error {
	for _, p := range r.Partitions {
		err = errors.Join(err, p.Err)
	}
	return err
}
