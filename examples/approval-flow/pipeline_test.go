package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/suspend"
)

var (
	request = Request{Version: "1.0", Approvers: []string{"ivy", "raj"}, Within: time.Hour}
	asked   = []string{"build", "plan", "ask ivy", "ask raj"}
)

// says is an answer as the page sends it.
func says(who, choice, comment string) fftest.Answer {
	return fftest.Signal(who, suspend.Answer{Choice: choice, Comment: comment}, client.SignalName(choice))
}

type handle = func(context.Context, *handler.Task, Request) (Verdict, error)

// quick is the pipeline with tools that take no time and report to did.
func quick(did func(effect string)) handle {
	return (&Pipeline{&Tools{Did: func(effect string, _ suspend.Token) error {
		did(effect)
		return nil
	}}}).Handle
}

// release runs the pipeline among people, and checks that nothing was done but what is wanted, and that once.
func release(t *testing.T, in Request, effects []string, people ...fftest.Answer) *fftest.Report[Verdict] {
	t.Helper()
	var done []string
	r := fftest.Run(t, Release, fftest.Answered(quick(func(effect string) { done = append(done, effect) }), people...),
		in)
	r.Want(fftest.Want{
		Steps:    effects,
		Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial}, // waiting is no new attempt
	})
	if !slices.Equal(done, effects) {
		t.Errorf("done: %q, want %q", done, effects)
	}
	return r
}

func TestDeploysWhenBothHaveApproved(t *testing.T) {
	r := release(t, request, append(asked, "deploy"), says("raj", approve, "").After(20*time.Minute),
		says("ivy", approve, "at last").After(40*time.Minute))
	r.WantResult(Verdict{Deployed: true, Image: "shop:1.0", By: []string{"raj", "ivy"}})
	r.Want(fftest.Want{
		Least: 40 * time.Minute,
		Most:  41 * time.Minute,
		Frames: map[string][]string{
			"build": {"compile 214 packages", "run 1,902 tests", "push image shop:1.0"},
			"ask":   {"ivy", "raj"},
		},
	})
	plan := r.Payloads("plan")
	if deployed := r.Payloads("deploy"); len(plan) == 0 || len(deployed) == 0 || deployed[0] != "carry out "+
		plan[len(plan)-1] {
		t.Errorf("deployed %q, approved %q", deployed, plan)
	}
	for _, f := range r.Frames {
		if strings.Contains(string(f.Payload), "dev-") {
			t.Errorf("a frame shows a token: %s", f.Payload)
		}
	}
}

// Two clicks on one link are one approval, also when the second one comes under the other's name.
func TestOneApproverTwiceIsNotTwo(t *testing.T) {
	r := release(t, request, asked, says("ivy", approve, ""), says("ivy", approve, "").After(time.Minute),
		fftest.Signal("ivy", nil, client.SignalName(approve),
			client.SignalSource("person", "raj")).After(2*time.Minute))
	r.WantResult(Verdict{Image: "shop:1.0", Reason: "deadline"})
	r.Want(fftest.Want{Least: time.Hour, Most: time.Hour + time.Minute})
}

// A signal of another name approves nothing, from any sender.
func TestOnlyApprovalsApprove(t *testing.T) {
	r := release(t, request, asked, says("ivy", approve, ""), fftest.Signal("raj", nil, client.SignalName("later")))
	r.WantResult(Verdict{Image: "shop:1.0", Reason: "deadline"})
}

func TestOneRefusalEndsIt(t *testing.T) {
	friday := says("raj", refuse, "not on a Friday").After(time.Minute)
	for name, c := range map[string]struct {
		people []fftest.Answer
		want   Verdict
	}{
		"at once": {[]fftest.Answer{friday},
			Verdict{Image: "shop:1.0", By: []string{"raj"}, Reason: "refused", Comment: "not on a Friday"}},
		"after an approval": {[]fftest.Answer{says("ivy", approve, ""), friday},
			Verdict{Image: "shop:1.0", By: []string{"raj"}, Reason: "refused", Comment: "not on a Friday"}},
		"by who approved": {[]fftest.Answer{says("ivy", approve, ""), says("ivy", refuse, "").After(time.Minute)},
			Verdict{Image: "shop:1.0", By: []string{"ivy"}, Reason: "refused"}},
		"without a payload that is ours": {
			[]fftest.Answer{fftest.Signal("ivy", []byte("no"), client.SignalName(refuse))},
			Verdict{Image: "shop:1.0", By: []string{"ivy"}, Reason: "refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			release(t, request, asked, c.people...).WantResult(c.want)
		})
	}
}

func TestDeadline(t *testing.T) {
	for _, people := range [][]fftest.Answer{nil, {says("ivy", approve, "")}} {
		r := release(t, request, asked, people...)
		r.WantResult(Verdict{Image: "shop:1.0", Reason: "deadline"})
		r.Want(fftest.Want{Least: time.Hour, Most: time.Hour + time.Minute})
	}
}

// Who resumes it without approvals has not approved it.
func TestOperatorsResumptionDeploysNothing(t *testing.T) {
	r := release(t, request, asked, says("ivy", approve, ""), fftest.Resume(flowfabric.By("anna")))
	r.WantResult(Verdict{Image: "shop:1.0", By: []string{"anna"}, Reason: "resumed without approvals"})
}

// Approvals that come while the pipeline is still mailing are kept, and the wait does not even suspend.
func TestEarlyApprovalsCount(t *testing.T) {
	var inside context.Context
	p := &Pipeline{&Tools{Did: func(_ string, token suspend.Token) error {
		if !token.IsZero() {
			fftest.Tell(inside, fftest.Signal(token, suspend.Answer{Choice: approve}, client.SignalName(approve)))
		}
		return nil
	}}}
	r := fftest.Run(t, Release, func(ctx context.Context, t *handler.Task, in Request) (Verdict, error) {
		inside = ctx
		return p.Handle(ctx, t, in)
	}, request)
	r.WantResult(Verdict{Deployed: true, Image: "shop:1.0", By: []string{"ivy", "raj"}})
	r.Want(fftest.Want{Most: time.Second})
}

// The worker dies before and after every call to the server, in every way the pipeline can end: the verdict is the
// same, no step is repeated once it is recorded, nobody gets a second link, and every approval counts.
func TestSurvivesCrashes(t *testing.T) {
	soon := request
	soon.Within = time.Minute
	for name, c := range map[string]struct {
		people []fftest.Answer
		// crashes: before and after each claim, batch of frames, step, link, the wait, each answer, and the end
		least int
	}{
		"approved": {[]fftest.Answer{says("ivy", approve, ""), says("raj", approve, "").After(30 * time.Second)}, 36},
		"refused":  {[]fftest.Answer{says("ivy", approve, ""), says("raj", refuse, "no").After(30 * time.Second)}, 32},
		"deadline": {[]fftest.Answer{says("ivy", approve, "")}, 30},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getenv("FLOWFABRIC_SOAK") == "" && name != "approved" {
				t.Skip("the others differ in their end only; FLOWFABRIC_SOAK runs them")
			}
			crashes := fftest.Crashes(t, Release, func(fx *fftest.Effects) handle {
				return fftest.Answered(quick(fx.Did), c.people...)
			}, soon, nil)
			if crashes < c.least {
				t.Errorf("only %d crashes, want at least %d", crashes, c.least)
			}
		})
	}
}
