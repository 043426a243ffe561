package scene

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	durations "github.com/flowfabric/flowfabric-go/internal/spread"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/schedule"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Counts of what is in the store at night.
const (
	Charges   = 500 // of order n: 503 from the card network, since the deploy
	Receipts  = 3   // with a template that is broken, since the deploy
	Declined  = 2   // cards, before the deploy
	Summaries = 12  // wait for the budget
	Slowed    = 20  // minutes ago charges became slow
)

// Order is paid, or its money goes back.
type Order struct {
	Number  int `json:"number"`
	Minutes int `json:"minutes"` // until when somebody may answer
}

// The kinds of work at night.
var (
	Charge    = handler.Define[Order, string]("charge-card", flowfabric.Retries(0))
	Receipt   = handler.Define[Order, string]("send-receipt", flowfabric.Retries(0))
	Refund    = handler.Define[Order, suspend.Answer]("refund", flowfabric.Retries(0))
	Remind    = handler.Define[Order, string]("remind", flowfabric.Retries(0))
	Summarize = handler.Define[Order, string]("summarize", flowfabric.Retries(0))
	Render    = handler.Define[Order, string]("render", flowfabric.Retries(0))
	Import    = handler.Define[string, string]("import-catalog", flowfabric.Retries(0))
)

// Night is a store at 3 am. Version 13 was deployed a moment ago: charges fail, a budget is used up, the tenant acme
// floods a lane, the nightly report did not run, and version 12 has left work behind.
type Night struct {
	Client   *client.Client
	Admin    *admin.Admin
	Deployed time.Time // when version 13 began
	Repaired atomic.Bool

	Import flowfabric.ExecutionID // runs, and logs what is given to Say
	Stuck  flowfabric.ExecutionID // no worker serves its kind
	Urgent flowfabric.ExecutionID // the refund whose question ends first

	lines   chan string
	stop    context.CancelFunc
	working conc.WaitGroup
}

// StartNight fills a store and leaves the workers of version 13 running until Stop.
func StartNight(ctx context.Context, url string) (*Night, error) {
	c, err := client.Connect(ctx, client.Config{URL: url, TokenKeys: Keys, Creator: "shop",
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	n := &Night{Client: c, Admin: admin.New(c), lines: make(chan string)}
	long, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.stop = stop
	for _, f := range []func() error{
		func() error { return n.before(ctx, url) },
		func() error { n.Deployed = time.Now(); return n.run(long, url, "13", "app-13", 16, "default", "mail") },
		func() error { return n.run(long, url, "13", "renderer-13", 2, "render") },
		func() error { return n.after(ctx) }, func() error { return n.tenant(ctx) },
		func() error { return n.budget(ctx) }, func() error { return n.rest(ctx) },
		func() error { return n.times(ctx, url) },
	} {
		if err := f(); err != nil {
			n.Stop()
			return nil, err
		}
	}
	return n, nil
}

// Stop ends the workers and the connection.
func (n *Night) Stop() {
	n.stop()
	n.working.Wait()
	n.Client.Close()
}

// Say makes the import log a line, and put it out.
func (n *Night) Say(ctx context.Context, line string) error {
	select {
	case n.lines <- line:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run starts a worker of a version.
func (n *Night) run(ctx context.Context, url, version, instance string, slots int, lanes ...string) error {
	w, err := runtime.New(runtime.Config{URL: url, AppVersion: version, TokenKeys: Keys, Worker: "app",
		Instance: instance, Lanes: lanes, Namespaces: []string{"acme"}, Concurrency: slots, DrainTimeout: -1,
		Logger: slog.New(slog.DiscardHandler)},
		handler.Bind(Charge, n.charge), handler.Bind(Refund, refund), handler.Bind(Import, n.imports),
		handler.Bind(Receipt, func(_ context.Context, _ *handler.Task, in Order) (string, error) {
			return "", fmt.Errorf("template receipt.html line %d: no field Total", 10+in.Number)
		}),
		handler.Bind(Remind, func(context.Context, *handler.Task, Order) (string, error) {
			return "", handler.Delay(6 * time.Hour)
		}),
		handler.Bind(Summarize, func(context.Context, *handler.Task, Order) (string, error) { return "short", nil }),
		handler.Bind(Render, func(ctx context.Context, _ *handler.Task, _ Order) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}),
		handler.Bind(Report, after(0)))
	if err != nil {
		return err
	}
	n.working.Go(func() { _ = w.Run(ctx) })
	return nil
}

func (n *Night) charge(ctx context.Context, t *handler.Task, in Order) (string, error) {
	return handler.Step(ctx, t, "charge", func(context.Context) (string, error) {
		switch {
		case in.Number < 0:
			return "", fmt.Errorf("order %d: card declined", -in.Number)
		case in.Number > 0 && !n.Repaired.Load():
			return "", fmt.Errorf("order %d: the card network answered 503 after %d ms", in.Number, 2000+in.Number)
		}
		return "paid", nil
	})
}

func refund(ctx context.Context, t *handler.Task, in Order) (suspend.Answer, error) {
	return t.Ask(ctx, "approval", suspend.Question{Title: fmt.Sprintf("Pay back order %d?", in.Number),
		Choices: []suspend.Choice{{Name: "approve", Label: "Approve"}, {Name: "reject", Label: "Reject"}}},
		suspend.Within(time.Duration(in.Minutes)*time.Minute))
}

func (n *Night) imports(ctx context.Context, t *handler.Task, _ string) (string, error) {
	for {
		select {
		case line := <-n.lines:
			t.Logger().Info(line)
			if err := t.Frame(ctx, "line", line+"\n"); err != nil {
				return "", err
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// before is what version 12 did and left behind: three questions, two reminders, two failures, some charges.
func (n *Night) before(ctx context.Context, url string) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	if err := n.run(running, url, "12", "app-12", 8, "default"); err != nil {
		return err
	}
	for i, minutes := range []int{3000, 40, 600} {
		x, err := client.Submit(ctx, n.Client, Refund, Order{700 + i, minutes})
		if err != nil {
			return err
		}
		if minutes == 40 {
			n.Urgent = x.ID()
		}
		if err := n.Until(ctx, x.ID(), flowfabric.Suspended); err != nil {
			return err
		}
	}
	for i := range 2 {
		x, err := client.Submit(ctx, n.Client, Remind, Order{800 + i, 0})
		if err == nil {
			err = n.Until(ctx, x.ID(), flowfabric.Delayed)
		}
		if err != nil {
			return err
		}
	}
	for _, number := range []int{0, 0, -41, -42} {
		x, err := client.Submit(ctx, n.Client, Charge, Order{number, 0})
		if err != nil {
			return err
		}
		if _, err = x.Result(ctx); number < 0 {
			err = failed(err)
		}
		if err != nil {
			return err
		}
	}
	stop()
	n.working.Wait() // it says goodbye
	return nil
}

// failed is nil for the failure of a handler.
func failed(err error) error {
	if _, ended := errors.AsType[*client.OutcomeError](err); ended {
		return nil
	}
	return err
}

// after is what fails since the deploy.
func (n *Night) after(ctx context.Context) error {
	orders := make([]Order, Charges)
	for i := range orders {
		orders[i].Number = 1000 + i
	}
	charges, err := client.SubmitMany(ctx, n.Client, Charge, orders)
	if err != nil {
		return err
	}
	receipts, err := client.SubmitMany(ctx, n.Client, Receipt, orders[:Receipts], flowfabric.Lane("mail"))
	if err != nil {
		return err
	}
	for _, x := range append(charges, receipts...) {
		if _, err := x.Result(ctx); failed(err) != nil {
			return err
		}
	}
	return nil
}

// tenant is one execution of somebody else, and what acme floods its lane with: of the two slots each has one.
func (n *Night) tenant(ctx context.Context) error {
	other, err := client.Submit(ctx, n.Client, Render, Order{}, flowfabric.Lane("render"))
	if err != nil {
		return err
	}
	for {
		x, err := other.Get(ctx)
		if err != nil {
			return err
		}
		if x.State.Public == flowfabric.Active {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	_, err = client.SubmitMany(ctx, n.Client, Render, make([]Order, 60), flowfabric.Lane("render"),
		flowfabric.Namespace("acme"))
	return err
}

// budget is used up, and summaries wait for it.
func (n *Night) budget(ctx context.Context) error {
	err := n.Admin.PutGate(ctx, admission.Gate{Name: "model-tokens", OnHard: admission.HardBlock,
		Reset: flowfabric.Millis(24 * time.Hour), Limits: map[string]admission.Limit{"tokens": {Hard: 1_000_000}}})
	if err != nil {
		return err
	}
	first, err := client.Submit(ctx, n.Client, Summarize, Order{Number: 1})
	if err != nil {
		return err
	}
	if _, err := first.Result(ctx); err != nil {
		return err
	}
	if _, err = n.Admin.ReportUsage(ctx, admission.Usage{Gate: "model-tokens", Key: "night",
		Amounts: map[string]int64{"tokens": 1_000_000}}); err != nil {
		return err
	}
	_, err = client.SubmitMany(ctx, n.Client, Summarize, make([]Order, Summaries), flowfabric.Gates("model-tokens"))
	return err
}

// rest is a schedule that somebody paused, an import that runs, and work that no worker serves.
func (n *Night) rest(ctx context.Context) error {
	_, err := client.Schedule(ctx, n.Client, "nightly-report", schedule.Cron("30 2 * * *", "UTC"), Report, "yesterday")
	if err != nil {
		return err
	}
	if err := n.Admin.PauseSchedule(ctx, "nightly-report", flowfabric.By("otto")); err != nil {
		return err
	}
	stuck, err := client.Submit(ctx, n.Client, Never, "call-17.wav")
	if err != nil {
		return err
	}
	n.Stuck = stuck.ID()
	imports, err := client.Submit(ctx, n.Client, Import, "autumn")
	if err != nil {
		return err
	}
	n.Import = imports.ID()
	return n.Say(ctx, "1 of 40 pages read")
}

// times are what the workers of the last hour measured of charges.
func (n *Night) times(ctx context.Context, url string) error {
	e, err := engine.Open(ctx, engine.Config{URL: url, ClientName: "night"})
	if err != nil {
		return err
	}
	defer e.Close()
	now := time.Now().Unix() / 60
	for i := range 50 {
		ran, minute := 120*time.Millisecond, now-50+int64(i)
		if minute >= now-Slowed {
			ran = 4 * time.Second
		}
		tally := &durations.Tally{Completed: 30}
		for range 30 {
			tally.Ran.Add(ran)
			tally.Waited.Add(10 * time.Millisecond)
		}
		for j, namespace := range []string{"default", engine.AllSpaces} {
			err := e.NoteTimes(ctx, namespace, "night", uint64(2*i+j+1), []engine.Times{
				{Kind: engine.EveryKind, Minute: minute, Tally: tally},
				{Kind: Charge.Kind(), Minute: minute, Tally: tally}})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Until waits until an execution is in a state.
func (n *Night) Until(ctx context.Context, id flowfabric.ExecutionID, state flowfabric.PublicState) error {
	for {
		x, err := n.Client.Execution(id).Get(ctx)
		if err != nil || x.State.Public == state {
			return err
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}
