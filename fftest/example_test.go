package fftest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Draft and Verdict are what producers and workers of the kind write-article exchange.
type (
	Draft   struct{ Topic string }
	Verdict struct{ Text string }
)

// Write is their definition.
var Write = handler.Define[Draft, Verdict]("write-article", handler.Retry(5, time.Second, time.Minute))

// Writer is the handler under test.
type Writer struct {
	Mail func(text string) error
}

// Handle writes, waits a day, and mails.
func (w *Writer) Handle(ctx context.Context, t *handler.Task, in Draft) (Verdict, error) {
	text, err := handler.Step(ctx, t, "draft", func(ctx context.Context) (string, error) {
		return "All about " + in.Topic, t.Frame(ctx, "token", "All about "+in.Topic)
	})
	if err != nil {
		return Verdict{}, err
	}
	if wait := time.Until(t.CreatedAt().Add(24 * time.Hour)); wait > 0 {
		return Verdict{}, handler.Delay(wait)
	}
	_, err = handler.Step(ctx, t, "mail", func(context.Context) (bool, error) { return true, w.Mail(text) })
	return Verdict{text}, err
}

// One input to its end: a delay of a day and two retries take milliseconds.
func ExampleRun() {
	var t *testing.T // of the test function

	failures := 2
	writer := &Writer{Mail: func(string) error {
		if failures--; failures >= 0 {
			return errors.New("mail server busy")
		}
		return nil
	}}
	r := fftest.Run(t, Write, writer.Handle, Draft{"tides"})
	r.WantResult(Verdict{"All about tides"})
	r.Want(fftest.Want{
		Steps:    []string{"draft", "mail"},
		Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial, flowfabric.AttemptRetry, flowfabric.AttemptRetry},
		Least:    24 * time.Hour,
		Most:     24*time.Hour + 5*time.Second,
		Frames:   map[string][]string{"token": {"All about tides"}},
	})
}

// A scenario: the worker dies while the handler is at work.
func ExampleNew() {
	var t *testing.T // of the test function

	synctest.Test(t, func(t *testing.T) {
		writer := &Writer{Mail: func(string) error { time.Sleep(10 * time.Second); return nil }}
		w := fftest.New(t, runtime.Config{LeaseTTL: 5 * time.Second}, handler.Bind(Write, writer.Handle))
		x := fftest.Submit(w, Write, Draft{"tides"})
		time.Sleep(24*time.Hour + 5*time.Second) // now it is mailing
		w.Kill()
		x.Wait().Want(fftest.Want{
			Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial, flowfabric.AttemptReclaim},
		})
	})
}

// The worker dies before and after each of its writes; the article must be the same, the mail must go out, and not
// again once that it went out is recorded.
func ExampleCrashes() {
	var t *testing.T // of the test function

	fftest.Crashes(t, Write, func(fx *fftest.Effects) func(context.Context, *handler.Task, Draft) (Verdict, error) {
		writer := &Writer{Mail: func(string) error { fx.Did("mail"); return nil }}
		return writer.Handle
	}, Draft{"tides"}, nil)
}

// Publish is the definition of a handler that needs somebody's word.
var Publish = handler.Define[Draft, Verdict]("publish-article")

// Editor is its handler.
type Editor struct {
	Ask func(ctx context.Context, token suspend.Token, text string) error
}

// Handle mails a link to whoever decides, waits for up to a month, and obeys.
func (e *Editor) Handle(ctx context.Context, t *handler.Task, in Draft) (Verdict, error) {
	token, err := t.Pending(ctx, "decision", 24*time.Hour)
	if err != nil {
		return Verdict{}, err
	}
	_, err = handler.Step(ctx, t, "ask", func(ctx context.Context) (bool, error) {
		return true, e.Ask(ctx, token, in.Topic)
	})
	if err != nil {
		return Verdict{}, err
	}
	yes, err := handler.Await[bool](ctx, t, "decision", suspend.Within(30*24*time.Hour),
		suspend.OnTimeout(suspend.Resume))
	switch {
	case errors.Is(err, flowfabric.ErrWaitTimeout):
		return Verdict{"nobody cared"}, nil
	case err != nil:
		return Verdict{}, err
	case !yes:
		return Verdict{"rejected"}, nil
	}
	return Verdict{"All about " + in.Topic}, nil
}

// An approval in virtual time: somebody uses the link after two weeks; an operator decides; nobody does.
func ExampleAnswered() {
	var t *testing.T // of the test function

	reader := &Editor{Ask: func(ctx context.Context, token suspend.Token, _ string) error {
		fftest.Tell(ctx, fftest.Signal(token, true).After(14*24*time.Hour))
		return nil
	}}
	r := fftest.Run(t, Publish, reader.Handle, Draft{"tides"})
	r.WantResult(Verdict{"All about tides"})
	r.Want(fftest.Want{Least: 14 * 24 * time.Hour, Most: 14*24*time.Hour + 5*time.Second})

	silent := &Editor{Ask: func(context.Context, suspend.Token, string) error { return nil }}
	r = fftest.Run(t, Publish, fftest.Answered(silent.Handle, fftest.Approve("decision", false, flowfabric.By("anna"))),
		Draft{"tides"})
	r.WantResult(Verdict{"rejected"})
	r.Want(fftest.Want{Waits: []string{"decision: signal"}})

	r = fftest.Run(t, Publish, silent.Handle, Draft{"tides"})
	r.WantResult(Verdict{"nobody cared"})
	r.Want(fftest.Want{Waits: []string{"decision: timeout"}})
}

// The same as a scenario: the worker dies while nobody has decided.
func ExampleExecution_Answer() {
	var t *testing.T // of the test function

	synctest.Test(t, func(t *testing.T) {
		silent := &Editor{Ask: func(context.Context, suspend.Token, string) error { return nil }}
		w := fftest.New(t, runtime.Config{}, handler.Bind(Publish, silent.Handle))
		x := fftest.Submit(w, Publish, Draft{"tides"})
		x.AwaitSuspension()
		w.Kill()
		w.Sleep(48 * time.Hour)
		x.Answer(fftest.Signal("decision", true))
		x.Wait().WantResult(Verdict{"All about tides"})
	})
}

// The examples of approvals are meant to pass.
func TestApprovalExamples(t *testing.T) {
	asked := 0
	reader := &Editor{Ask: func(ctx context.Context, token suspend.Token, _ string) error {
		asked++
		fftest.Tell(ctx, fftest.Signal(token, true).After(14*24*time.Hour))
		return nil
	}}
	r := fftest.Run(t, Publish, reader.Handle, Draft{"tides"})
	r.WantResult(Verdict{"All about tides"})
	r.Want(fftest.Want{Least: 14 * 24 * time.Hour, Most: 14*24*time.Hour + 5*time.Second})
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}

	silent := &Editor{Ask: func(context.Context, suspend.Token, string) error { return nil }}
	r = fftest.Run(t, Publish, fftest.Answered(silent.Handle, fftest.Approve("decision", false, flowfabric.By("anna"))),
		Draft{"tides"})
	r.WantResult(Verdict{"rejected"})
	r.Want(fftest.Want{Waits: []string{"decision: signal"}})

	r = fftest.Run(t, Publish, silent.Handle, Draft{"tides"})
	r.WantResult(Verdict{"nobody cared"})
	r.Want(fftest.Want{
		Waits: []string{"decision: timeout"},
		Least: 30 * 24 * time.Hour,
		Most:  30*24*time.Hour + 2*time.Second,
	})

	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, runtime.Config{}, handler.Bind(Publish, silent.Handle))
		x := fftest.Submit(w, Publish, Draft{"tides"})
		x.AwaitSuspension()
		w.Kill()
		w.Sleep(48 * time.Hour)
		x.Answer(fftest.Signal("decision", true))
		x.Wait().WantResult(Verdict{"All about tides"})
	})
}

// The examples are meant to pass.
func TestExamples(t *testing.T) {
	failures := 2
	writer := &Writer{Mail: func(string) error {
		if failures--; failures >= 0 {
			return errors.New("mail server busy")
		}
		return nil
	}}
	r := fftest.Run(t, Write, writer.Handle, Draft{"tides"})
	r.WantResult(Verdict{"All about tides"})
	r.Want(fftest.Want{
		Steps:    []string{"draft", "mail"},
		Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial, flowfabric.AttemptRetry, flowfabric.AttemptRetry},
		Least:    24 * time.Hour,
		Most:     24*time.Hour + 5*time.Second,
	})

	mails := 0
	n := fftest.Crashes(t, Write,
		func(fx *fftest.Effects) func(context.Context, *handler.Task, Draft) (Verdict, error) {
			return (&Writer{Mail: func(string) error { mails++; fx.Did("mail"); return nil }}).Handle
		}, Draft{"tides"}, func(r *fftest.Report[Verdict]) {
			r.WantResult(Verdict{"All about tides"})
			r.Want(fftest.Want{
				Least: 24 * time.Hour,
				Most:  24*time.Hour + time.Minute, // a crash costs the rest of a lease, not the day
			})
		})
	if mails <= n { // one a run, and more where the crash came between mail and record
		t.Errorf("%d mails in %d disturbed runs", mails, n)
	}
}
