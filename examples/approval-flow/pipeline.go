package main

import (
	"context"
	"errors"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Request is the input of an execution.
type Request struct {
	Version   string
	Approvers []string      // all of whom must approve; any of whom may refuse
	Within    time.Duration // how long they have
}

// Verdict is its result. A release that is refused is no failure.
type Verdict struct {
	Deployed bool
	Image    string   // what was built
	By       []string // who decided
	Reason   string   // why it was not deployed: refused, deadline, or that an operator ended the wait
	Comment  string   // of who ended it
}

// Release is what producers and workers share.
var Release = handler.Define[Request, Verdict]("release", handler.Retry(3, time.Second, 10*time.Second))

// What the page can answer.
const approve, refuse = "approve", "refuse"

// mailTime is how long the approvers' links may wait for the pipeline to suspend; approvals that come before count.
const mailTime = time.Hour

// Pipeline handles Release. Its tools come from fx.
type Pipeline struct{ tools *Tools }

// NewPipeline is the constructor given to runtime.Provide.
func NewPipeline(tools *Tools) *Pipeline { return &Pipeline{tools: tools} }

// Handle builds, asks, and deploys. It runs from the top after a crash and after the wait; what is recorded in a step
// is not done again.
func (p *Pipeline) Handle(ctx context.Context, t *handler.Task, in Request) (Verdict, error) {
	image, err := handler.Step(ctx, t, "build", func(ctx context.Context) (string, error) {
		return p.tools.Build(ctx, in.Version, frames(t, "build"))
	})
	if err != nil {
		return Verdict{}, err
	}
	// Recorded, so that what is deployed next week is what was approved today.
	plan, err := handler.Step(ctx, t, "plan", func(ctx context.Context) (Plan, error) {
		return p.tools.Plan(ctx, image, frames(t, "plan"))
	})
	if err != nil {
		return Verdict{}, err
	}
	for _, who := range in.Approvers {
		if err := p.ask(ctx, t, who); err != nil {
			return Verdict{}, err
		}
	}
	decision, err := p.decide(ctx, t, in)
	decision.Image = image
	if err != nil || !decision.Deployed {
		return decision, err
	}
	_, err = handler.Step(ctx, t, "deploy", func(ctx context.Context) (bool, error) {
		return true, p.tools.Deploy(ctx, plan, frames(t, "deploy"))
	})
	return decision, err
}

// ask gives each approver a waitpoint of their own, so that nobody can be two of them. The token of a waitpoint is
// the same in every run, and the step sees to it that it is mailed once.
func (p *Pipeline) ask(ctx context.Context, t *handler.Task, who string) error {
	token, err := t.Pending(ctx, who, mailTime)
	if err != nil {
		return err
	}
	_, err = handler.Step(ctx, t, "ask "+who, func(ctx context.Context) (bool, error) {
		if err := p.tools.Mail(ctx, who, token); err != nil {
			return false, err
		}
		return true, t.Frame(ctx, "ask", who) // frames are for everybody: never the token
	})
	return err
}

// decide waits until all have approved, one has refused, or time is up. The first run gets an error from Wait, and
// returning it suspends the execution; a later run gets the answer.
func (p *Pipeline) decide(ctx context.Context, t *handler.Task, in Request) (Verdict, error) {
	answer, err := t.Wait(ctx, "decision",
		suspend.AnyOf(
			suspend.Count(len(in.Approvers), suspend.Waitpoints, in.Approvers...).Named(approve),
			suspend.Count(1, suspend.Waitpoints, in.Approvers...).Named(refuse)),
		suspend.Because(suspend.ReasonApproval), suspend.Within(in.Within), suspend.OnTimeout(suspend.Resume))
	if errors.Is(err, flowfabric.ErrWaitTimeout) {
		return Verdict{Reason: "deadline"}, nil
	}
	if err != nil {
		return Verdict{}, err
	}
	return verdict(answer), nil
}

// verdict reads the answer. The waitpoint tells who answered, because only its token opens it; a typed name proves
// nothing.
func verdict(answer suspend.Result) Verdict {
	if len(answer.Signals) == 0 { // fail closed
		return Verdict{By: []string{answer.By}, Reason: "resumed without approvals", Comment: answer.Reason}
	}
	v := Verdict{Deployed: true}
	for _, s := range answer.Signals {
		if s.Name == refuse {
			said, _ := suspend.Decode[suspend.Answer](s) // with or without a comment, it is a refusal
			return Verdict{By: []string{s.WaitpointKey}, Reason: "refused", Comment: said.Comment}
		}
		v.By = append(v.By, s.WaitpointKey)
	}
	return v
}
