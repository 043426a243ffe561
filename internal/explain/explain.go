// Package explain says in one or two sentences why an execution is where it is, and what moves it next.
//
//	engine.Explain ──▶ engine.Facts ──▶ account: reason, sentence, next, at ──▶ flowfabric.Explanation
//	engine.Workers ──▶ crew: who could run it ──┘
//
// An explanation is made of facts alone, so that docs/how-to/why.md can be written by the code that explains real
// executions.
package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/prose"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// Source is what an explanation is made from; *[engine.Engine] is one.
type Source interface {
	Explain(ctx context.Context, id flowfabric.ExecutionID) (engine.Facts, error)
	Workers(ctx context.Context) []engine.InPartition[[]flowfabric.Worker]
}

// Of explains where an execution is and what moves it next. It reads one consistent snapshot of the execution's
// partition and, for one that waits, the registered workers; for one that waits for its children those of them that are
// suspended, and theirs, 16 in all. It writes nothing. An id that names nothing, a purged
// execution, and a frozen or missing partition are explained too, without an error.
//
// Errors: flowfabric.ErrInvalidInput for the zero id and one of a partition that this store does not have;
// ErrTransport and its kin.
func Of(ctx context.Context, from Source, id flowfabric.ExecutionID) (flowfabric.Explanation, error) {
	f, err := from.Explain(ctx, id)
	if err != nil {
		return gone(id, err)
	}
	if s := f.Suspension; s != nil && f.Phase().LifecyclePhase == "suspended" && waitwords.OfChildren(s.Condition) {
		left := maxAsked
		f.Asks = asks(ctx, from, f.Others, nil, &left)
	}
	var crew crew
	if f.Phase().Eligibility == "eligible_now" {
		crew = muster(ctx, from)
	}
	return explain(f, crew), nil
}

// account is an explanation in the making.
type account struct {
	reason    string
	why, next string
	at        time.Time
	ticked    bool // next is what a tick does, and it is due
	timed     bool // next is what a tick does, later
}

// patience is how late a tick may be before an explanation says so: another process needs some seconds to take it over.
const patience = 5 * time.Second

// explain turns facts into an explanation. It has no other source.
func explain(f engine.Facts, workers crew) flowfabric.Explanation {
	out := flowfabric.Explanation{ID: f.ID, State: engine.Gated(f.State, f.ClosedWhy).Public,
		ClosedUntil: f.ClosedUntil, ClosedWhy: f.ClosedWhy}
	switch out.State {
	case flowfabric.Waiting, flowfabric.WaitingGate:
		if f.Ahead >= 0 {
			out.Ahead = &f.Ahead
		}
	}
	var a account
	switch f.Phase().LifecyclePhase {
	case "runnable":
		switch f.Phase().Eligibility {
		case "eligible_now":
			out.Serving, out.Capable = workers.count(f.Route)
			a = waits(f, workers)
			if f.GrantedTo != "" {
				a = granted(f)
			}
		case "blocked_by_dependencies":
			a = blocked(f)
		case "blocked_by_operator":
			a = held(f)
		default:
			a = delayed(f)
		}
	case "active":
		a = active(f)
	case "suspended":
		a = suspended(f)
	default:
		a = over(f)
	}
	if barred(f) {
		a = doomed(f)
	}
	a = deadlineFirst(f, a)
	out.Reason, out.Sentence, out.Next, out.At = a.reason, a.why, a.next, a.at
	late := f.TickOverdue && f.Now.Sub(f.TickWake) > patience
	switch {
	case a.ticked && late:
		out.Reason += overdue
		out.Next += " But " + unmaintained(f) + ": it does not happen until a worker with maintenance takes over."
	case a.ticked:
		out.Next += " That is due; a tick comes within about a second."
	case late && a.timed:
		out.Next += " But " + unmaintained(f) +
			": delays and timeouts do not fire until a worker with maintenance takes over."
	}
	return out
}

// unmaintained says that nobody ticks, and who should.
func unmaintained(f engine.Facts) string {
	who := "nobody owns it"
	if f.TickOwner != "" {
		who = "its owner " + quote(f.TickOwner) + " does not come"
	}
	since := ""
	if f.TickWake.Year() > 1970 { // something that was due before it was made says nothing about who ticks
		since = ", due since " + moment(f, f.TickWake)
	}
	return "the partition's tick is overdue" + since + ", and " + who
}

// deadlineFirst corrects an account that does not reckon with the deadline.
func deadlineFirst(f engine.Facts, a account) account {
	d := f.DeadlineAt
	if d.IsZero() || f.State.Terminal() || a.reason == WhyReclaimsExhausted && f.Code == codes.LeaseExpired {
		return a
	}
	switch {
	case !d.After(f.Now):
		next := "A tick ends it expired."
		if f.Code == codes.Active {
			next = "A tick ends it expired, unless its worker ends it before."
		}
		return account{reason: WhyDeadlineDue, why: a.why + " Its deadline passed at " + moment(f, d) + ".", next: next,
			at: d, ticked: true}
	case a.at.IsZero():
		a.next += " If it has not ended by its deadline, " + moment(f, d) + ", a tick ends it expired."
		a.at = d
	case !d.After(a.at):
		a.next += " But its deadline, " + moment(f, d) + ", is not later than that: a tick ends it expired then."
		a.at = d
	default:
		a.next += " Its deadline is " + moment(f, d) + "."
	}
	return a
}

// gone explains what has no facts. Errors that explain nothing stay errors.
func gone(id flowfabric.ExecutionID, err error) (flowfabric.Explanation, error) {
	out := flowfabric.Explanation{ID: id}
	refused, ok := errors.AsType[*flowfabric.Error](err)
	switch {
	case !ok:
		return flowfabric.Explanation{}, err
	case errors.Is(err, denied.NoExecution):
		out.Reason = WhyNotFound
		out.Sentence =
			"The store has no execution of this id: it was never created, or it was purged and its tombstone is gone too."
		out.Next = "Nothing moves it; an execution can be created under this id."
	case errors.Is(err, flowfabric.ErrResultPurged):
		state := codes.Shown(codes.Code(denied.Slot(refused, 0)))
		ms, _ := strconv.ParseInt(denied.Slot(refused, 1), 10, 64)
		out.Reason, out.State, out.At = WhyPurged, state.Public, time.UnixMilli(ms).UTC()
		out.Sentence = fmt.Sprintf("It ended %s and was purged: what is left is a tombstone, which keeps its id taken.",
			state.Public)
		out.Next = "Nothing moves it; the tombstone goes at " + stamp(out.At) + ", and then the id is free."
	case errors.Is(err, flowfabric.ErrPartitionFrozen):
		out.Reason = WhyPartitionFrozen
		out.Sentence = fmt.Sprintf(
			"Its partition %d is frozen%s, and calls to it are refused; leases go on running out. "+
				"While it is, nothing can be said about the execution, not even whether there is one.", id.Partition(),
			because(denied.Slot(refused, 1)))
		out.Next =
			"If there is one, it goes on where it was once an operator thaws the partition (flowfabric thaw, admin.Thaw)."
	case errors.Is(err, denied.PartitionMissing):
		out.Reason = WhyPartitionMissing
		out.Sentence = fmt.Sprintf(
			"The root key of its partition %d does not exist: the store was flushed, or lost its data.", id.Partition())
		out.Next =
			"Nothing moves it: restore the store from a backup, or create it again, which brings no execution back."
	default:
		return flowfabric.Explanation{}, err
	}
	return out, nil
}

func because(text string) string {
	if text == "" {
		return ""
	}
	if strings.HasPrefix(text, "by ") || strings.HasPrefix(text, "(by ") { // it says who and not why
		return ", " + quote(text)
	}
	return " because of " + quote(text)
}

// stamp is an instant as explanations write it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// moment is stamp with how far from now that is.
func moment(f engine.Facts, t time.Time) string {
	d, unit := t.Sub(f.Now), time.Second
	if d.Abs() < 10*time.Second {
		unit = time.Millisecond
	}
	switch d = d.Round(unit); {
	case d > 0:
		return fmt.Sprintf("%s (in %s)", stamp(t), d)
	case d < 0:
		return fmt.Sprintf("%s (%s ago)", stamp(t), -d)
	}
	return stamp(t) + " (now)"
}

// quote is a text of a user's on one line, cut to 200 bytes.
func quote(text string) string {
	text = prose.Folded(text)
	if short := prose.Cut(text, 200); short != text {
		text = short + "…"
	}
	return strconv.Quote(text)
}

// quoted is a list of them.
func quoted[T ~string](texts []T) string {
	out := ""
	for i, text := range texts {
		if i > 0 {
			out += ", "
		}
		out += quote(string(text))
	}
	return out
}

// plural counts things.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}

// holder is the worker instance that holds or last held the execution.
func holder(f engine.Facts) string { return quote(ids.Worker(f.Session)) }

// failure tells how the last attempt that did not succeed ended; "" when there was none.
func failure(f engine.Facts) string {
	for _, a := range slices.Backward(f.AttemptLog) {
		if a.Category == "" {
			continue
		}
		text := fmt.Sprintf("attempt %d ended with %s", a.Index, quote(string(a.Category)))
		if a.Message != "" {
			text += ": " + quote(a.Message)
		}
		return text
	}
	return ""
}
