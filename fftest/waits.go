package fftest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/timeline"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Wait is one wait of an execution: a suspension, or one that signals had answered before it could begin.
type Wait struct {
	// of handler.Await or Wait; "" from On; of handler.Receive the mailbox, a middle dot and a number
	Name   string
	Reason string        // one of the suspend.Reason constants; "" if signals came before
	Began  time.Time     // virtual
	Lasted time.Duration // virtual; 0 if signals came before
	// Cause is what ended it: one of the suspend.Cause constants.
	Cause suspend.Cause
	// Answer is what the handler was told; nil if it was told nothing, or by a wait without name that another has
	// followed.
	Answer *suspend.Result
}

// waited collects the waits of an execution that has ended: the history knows when, the kept answers know what.
func (x *Execution[Out]) waited(ctx context.Context, s flowfabric.Snapshot, stored map[string]string) ([]Wait, error) {
	last, err := x.env.waits(ctx, x.ID())
	if err != nil || len(last.Suspension) == 0 { // it never waited
		return nil, err
	}
	answers, end, err := x.answers(ctx, stored)
	if err != nil {
		return nil, err
	}
	events, err := x.env.admin.History(ctx, x.ID())
	if err != nil {
		return nil, err
	}
	var waits []Wait
	open := func() *Wait {
		if n := len(waits); n > 0 && waits[n-1].Cause == "" {
			return &waits[n-1]
		}
		return nil
	}
	for _, e := range events {
		switch w := open(); {
		case e.Kind == timeline.EventSuspended:
			waits = append(waits, Wait{Name: e.Reason, Reason: e.Detail, Began: e.At})
		case e.Kind == timeline.EventResumed && w != nil:
			w.Lasted, w.Cause = e.At.Sub(w.Began), suspend.Cause(e.Detail)
			w.Answer = take(&answers, w.Name, e.At)
		case e.Kind == timeline.EventRewound && w != nil:
			w.Lasted, w.Cause = e.At.Sub(w.Began), "rewound"
		}
	}
	if w := open(); w != nil { // it ended in its sleep
		w.Lasted, w.Cause = s.EndedAt.Sub(w.Began), end
	}
	for _, a := range answers {
		waits = append(waits, Wait{Name: a.Name, Began: a.ResumedAt, Cause: a.Cause, Answer: &a})
	}
	rank := x.env.journal.ranks(x.ID()) // several may begin in the same millisecond
	slices.SortStableFunc(waits, func(a, b Wait) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(rank[a.Name], rank[b.Name]))
	})
	return waits, nil
}

// answers are those that are kept, and what ended the last suspension.
func (x *Execution[Out]) answers(ctx context.Context,
	stored map[string]string) (all []suspend.Result, end suspend.Cause, err error) {
	u, err := x.env.client.Execution(x.ID()).Suspension(ctx)
	if err != nil {
		return nil, "", err
	}
	if u.Result != nil {
		all = append(all, *u.Result)
	}
	for name, value := range stored {
		if strings.HasPrefix(name, engine.StepAwait) {
			r, err := engine.DecodeResume([]byte(value))
			if err != nil {
				return nil, "", err
			}
			engine.OpenResult(x.env.client.Link().Engine.Box(), &r)
			all = append(all, r)
		}
	}
	return all, u.Cause, nil
}

// take removes the answer that a wait of this name got at an instant.
func take(all *[]suspend.Result, name string, at time.Time) *suspend.Result {
	i := slices.IndexFunc(*all, func(a suspend.Result) bool { return a.Name == name && a.ResumedAt.Equal(at) })
	if i < 0 {
		return nil
	}
	a := (*all)[i]
	*all = slices.Delete(*all, i, i+1)
	return &a
}

// compareWaits holds the waits of a disturbed run against those of the undisturbed one. Whether a signal came before
// the suspension or after it may change with the time that a crash costs; what it said may not.
func compareWaits[Out any](base, r *Report[Out]) {
	r.t.Helper()
	if told, want := tellings(r.Waits), tellings(base.Waits); !slices.Equal(told, want) {
		got, undisturbed := differList(told, want)
		ways := "waits" // other waits are another finding, other words in them are not
		for _, w := range r.Waits {
			ways += " " + w.Name + ": " + w.came()
		}
		r.errorf(ways, "waits %s; undisturbed %s", got, undisturbed)
	}
}

// mailbox tells whether the wait was for a message.
func (w Wait) mailbox() bool { return engine.IsReceipt(w.Name) }

// received are the messages of all recorded receipts, in the order of their numbers.
func (x *Execution[Out]) received(stored map[string]string) (all []suspend.Message, err error) {
	for name, value := range stored {
		if strings.HasPrefix(name, engine.StepReceipt) {
			r, err := engine.DecodeReceipt([]byte(value))
			if err != nil {
				return nil, err
			}
			engine.OpenMessages(x.env.client.Link().Engine.Box(), r.Messages)
			all = append(all, r.Messages...)
		}
	}
	slices.SortFunc(all, func(a, b suspend.Message) int { return cmp.Compare(a.Number, b.Number) })
	return all, nil
}

// compareMessages holds the messages that the handler received in a disturbed run against those of the undisturbed one.
func compareMessages[Out any](base, r *Report[Out]) {
	r.t.Helper()
	words := func(r *Report[Out]) (all []string) {
		for _, m := range r.Messages {
			all = append(all, m.Mailbox+": "+string(m.Payload))
		}
		return all
	}
	if got, want := words(r), words(base); !slices.Equal(got, want) {
		received, undisturbed := differList(got, want)
		r.errorf("messages", "messages %s; undisturbed %s", received, undisturbed)
	}
}

// came is the cause, whether it came before the wait or not, which is a matter of time.
func (w Wait) came() string {
	early := w.Cause == suspend.CauseAlreadySatisfied
	switch {
	case early && (w.Answer == nil || len(w.Answer.Signals) > 0):
		return string(suspend.CauseSignal)
	case early || w.Cause == suspend.CauseChildren || w.Cause == suspend.CauseMessage:
		return "without a signal"
	}
	return string(w.Cause)
}

// tellings are what the handler learned of its waits, in their order.
func tellings(waits []Wait) (all []string) {
	for _, w := range waits {
		if w.mailbox() { // whether a message comes before its wait is a matter of time, too
			continue
		}
		text := w.Name + ": " + w.came()
		if w.Answer != nil {
			for _, s := range w.Answer.Signals {
				text += " " + s.WaitpointKey + "/" + s.Name + "=" + string(s.Payload)
			}
		}
		all = append(all, text)
	}
	return all
}
