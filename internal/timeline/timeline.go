package timeline

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// The kinds of events. Created, claimed and ended times come from the core and the attempts, the others from the
// list.
const (
	EventCreated   = "created"
	EventClaimed   = "claimed"       // an attempt began, or goes on after a pause
	EventAttempt   = "attempt_ended" // Detail has state and category
	EventEnded     = "ended"         // State says how
	EventDelayed   = "delayed"       // by its holder, Until
	EventReleased  = "released"      // handed back by a worker that shut down
	EventRevoked   = "revoked"
	EventCancelled = "cancelled"
	EventExpired   = "expired"
	EventPriority  = "priority"
	EventReplayed  = "replayed" // State, Until: how and when the run before had ended
	EventRewound   = "rewound"  // Detail: the first step that was forgotten

	// the handler went on with another input; Detail: how often it had by then
	EventContinued = "continued"
	// Detail: the reason; Reason: the name under which the handler waits
	EventSuspended = "suspended"
	// Detail: the cause; By: the operator, or the sender of the signal or message; Reason: the name of the signal
	EventResumed   = "resumed"
	EventEscalated = "escalated"          // the suspension lasted too long; Detail: the reason it had
	EventOverslept = "suspension_timeout" // Detail: what it led to
	EventSkipped   = "skipped"            // Detail: why
	// an upstream succeeded after its input was needed; Detail: the input, Reason: the upstream
	EventLateInput = "late_input"
	// a fork was made; Source: from (this one is the fork) or to; Detail: the other's UUID and the step, By, Reason
	EventForked   = "forked"
	EventReissued = "token_reissued" // By: who asked; Detail: the waitpoint's key
	EventHeld     = "held"           // kept from being handed out, by an operator
	EventUnheld   = "unheld"
	EventDelay    = "delay_changed" // by an operator; Until, zero for at once
	EventStopped  = "stopped"       // somebody asked it to end what it says
	EventTagged   = "tagged"        // tags were changed, by somebody who said who it is
)

// ranks order what happened in the same millisecond of one attempt.
var ranks = map[string]int{EventCreated: -3, EventClaimed: -2, EventSuspended: -1, EventAttempt: 1, EventTagged: 2,
	EventEnded:    2,
	EventReplayed: 3}

// ranked is an event with its rank. Those of the event list keep their order there, whatever their kinds.
type ranked struct {
	flowfabric.Event
	rank int
}

func inOrder(a, b ranked) int { return cmp.Or(sameTime(a.Event, b.Event), cmp.Compare(a.rank, b.rank)) }

// sameTime compares what comes before the rank: 0 is the same millisecond of one lease.
func sameTime(a, b flowfabric.Event) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Epoch, b.Epoch))
}

// Read puts together what an execution's core, what is kept of its attempts and its event list tell, oldest first.
// What cannot be read stops r.
func Read(core, attempts map[string]string, entries []string, r *wire.Reader) []flowfabric.Event {
	list := all(core, attempts, entries, r)
	slices.SortStableFunc(list, inOrder)
	events := make([]flowfabric.Event, len(list))
	for i, e := range list {
		events[i] = e.Event
	}
	events = onceClaimed(events)
	nameClaims(events, attemptTypes(core, attempts, r))
	for i, e := range events {
		events[i] = Told(e)
	}
	return events
}

// all puts together what core, folded attempts and event list tell.
func all(core, attempts map[string]string, entries []string, r *wire.Reader) (out []ranked) {
	f := wire.Fields{M: core, R: r}
	put := func(e flowfabric.Event) { out = append(out, ranked{e, ranks[e.Kind]}) }
	put(flowfabric.Event{At: f.Instant("created_at"), Kind: EventCreated, By: core["creator"]})
	log := Attempts(attempts, r)
	for _, a := range log {
		put(flowfabric.Event{At: a.ClaimedAt, Kind: EventClaimed, Attempt: a.Index, Epoch: a.Epoch,
			Session: a.Session, Detail: string(a.Type)})
	}
	current := uint32(f.Number("attempts"))
	if current > 0 && (len(log) == 0 || log[len(log)-1].Index < current) {
		put(flowfabric.Event{At: f.Instant("claimed_at"), Kind: EventClaimed, Attempt: current,
			Epoch:   uint64(f.Number("epoch")),
			Session: core["session"], Detail: core["attempt_type"]})
	}
	listed := len(out)
	for _, text := range entries {
		for _, e := range recorded(text, r) {
			put(e)
		}
	}
	for i := listed + 1; i < len(out); i++ {
		if before := out[i-1]; sameTime(before.Event, out[i].Event) == 0 {
			out[i].rank = max(out[i].rank, before.rank)
		}
	}
	for _, a := range log {
		put(flowfabric.Event{At: a.EndedAt, Kind: EventAttempt, Attempt: a.Index, Epoch: a.Epoch,
			Session: a.Session, Detail: strings.TrimSpace(a.State + " " + string(a.Category)), Reason: a.Message})
	}
	if at := f.Instant("ended_at"); !at.IsZero() {
		put(flowfabric.Event{At: at, Kind: EventEnded, Attempt: current,
			Epoch: uint64(f.Number("epoch")), Session: core["session"],
			By: core["cancelled_by"], Source: core["cancel_source"],
			State:  codes.Shown(codes.Code(core["state"])).Public,
			Detail: endCategory(core)})
	}
	return out
}

// CancelTimeout is the source of a cancellation that nobody asked for: the timeout of a wait says so.
const CancelTimeout = "system_timeout_policy"

// endCategory is why an execution ended. The core keeps the category of its last failed attempt, which says nothing
// of an end in success, or of one that somebody else decided.
func endCategory(core map[string]string) string {
	code := core["state"]
	if strings.HasPrefix(code, "T1") ||
		strings.HasPrefix(code, "T3") && core["cancel_source"] != CancelTimeout {
		return ""
	}
	return core["failure_category"]
}

// onceClaimed leaves one event of each claim, as the core, the folded attempt and a pause all tell when it was made.
// The epoch tells claims apart. events are in order.
func onceClaimed(events []flowfabric.Event) []flowfabric.Event {
	seen := make(map[[2]uint64]bool, len(events))
	return slices.DeleteFunc(events, func(e flowfabric.Event) bool {
		if e.Kind != EventClaimed {
			return false
		}
		claim := [2]uint64{uint64(e.Attempt), e.Epoch}
		again := seen[claim]
		seen[claim] = true
		return again
	})
}

// nameClaims says of every claim why it was made: the first of an attempt by the attempt's type, later ones resumed it.
func nameClaims(events []flowfabric.Event, types map[uint32]string) {
	seen := map[uint32]bool{}
	for i := range events {
		e := &events[i]
		if e.Kind != EventClaimed {
			continue
		}
		e.Detail = types[e.Attempt]
		if seen[e.Attempt] {
			e.Detail = string(flowfabric.AttemptResumed)
		}
		seen[e.Attempt] = true
	}
}

// attemptTypes lists the types of all attempts: of the last from the core, of the others from their records.
func attemptTypes(core, attempts map[string]string, r *wire.Reader) map[uint32]string {
	types := map[uint32]string{}
	if n := (wire.Fields{M: core, R: r}).Number("attempts"); n > 0 {
		types[uint32(n)] = core["attempt_type"]
	}
	for _, a := range Attempts(attempts, r) {
		types[a.Index] = string(a.Type)
	}
	return types
}

// ofHolds are the kinds that the library has another word for.
var ofHolds = map[string]string{"paused": EventHeld, "unpaused": EventUnheld}

// pauses are the kinds that tell also when what they ended was claimed.
var pauses = []string{EventDelayed, EventReleased, EventContinued, EventSuspended}

// recorded reads one entry of the list: event, ms, attempt, epoch, session, and two texts.
func recorded(text string, r *wire.Reader) []flowfabric.Event {
	p := strings.SplitN(text, "\x1f", 7)
	if len(p) != 7 {
		r.Stop("history entry %.40q", text)
		return nil
	}
	f := wire.Fields{M: map[string]string{"at": p[1], "attempt": p[2], "epoch": p[3], "claimed": p[6]}, R: r}
	session, from, _ := strings.Cut(p[4], " ")
	e := flowfabric.Event{Kind: cmp.Or(ofHolds[p[0]], p[0]), At: f.Instant("at"), Attempt: uint32(f.Number("attempt")),
		Epoch: uint64(f.Number("epoch")), Session: session, From: from}
	switch e.Kind {
	case EventDelayed, EventReleased:
		if ms, err := strconv.ParseInt(p[5], 10, 64); err == nil {
			e.Until = time.UnixMilli(ms).UTC()
		} else if e.Kind == EventReleased {
			e.Detail = p[5]
		}
	case EventCancelled:
		e.Source, e.By, _ = strings.Cut(p[5], " ")
		e.Reason = p[6]
	case EventRevoked, EventHeld, EventUnheld, EventTagged:
		e.By, e.Reason = p[5], p[6]
	case EventStopped: // request; who and why
		e.By, e.Reason, _ = strings.Cut(p[6], "\t")
	case EventDelay: // until, request, who
		told := strings.SplitN(p[5], " ", 3)
		if len(told) != 3 {
			r.Stop("history entry %.40q", text)
			return nil
		}
		if ms, err := strconv.ParseInt(told[0], 10, 64); err == nil && ms > 0 {
			e.Until = time.UnixMilli(ms).UTC()
		}
		e.By, e.Reason = told[2], p[6]
	case EventPriority:
		e.Detail, e.By = p[5], p[6]
	case EventForked:
		e.By = p[5]
		e.Detail, e.Reason, _ = strings.Cut(p[6], "\x1f")
	case EventReplayed:
		e.By = p[5]
		was := strings.SplitN(p[6], " ", 5) // code, ended at, category, steps, reason
		if len(was) != 5 {
			r.Stop("history entry %.40q", text)
			return nil
		}
		e.State, e.Reason = codes.Shown(codes.Code(was[0])).Public, was[4]
		if ms, err := strconv.ParseInt(was[1], 10, 64); err == nil {
			e.Until = time.UnixMilli(ms).UTC()
		}
	case EventRewound: // how long the step is, the step and the reason
		size, rest, _ := strings.Cut(p[6], " ")
		n, err := strconv.Atoi(size)
		if err != nil || n < 0 || n > len(rest) {
			r.Stop("history entry %.40q", text)
			return nil
		}
		e.By, e.Detail, e.Reason = p[5], rest[:n], rest[n:]
	case EventContinued: // its attempt may be one that is not kept
		e.Detail = p[5]
	case EventSuspended:
		e.Detail, e.Reason, _ = strings.Cut(p[5], " ")
	case EventLateInput:
		e.Detail, e.Reason = p[5], p[6]
	case EventReissued:
		e.By, e.Detail = p[5], p[6]
	case EventResumed:
		e.Detail, e.Reason, _ = strings.Cut(p[5], " ")
		e.Source, e.By, _ = strings.Cut(p[6], "\t")
	default:
		e.Detail = p[5]
	}
	if slices.Contains(pauses, e.Kind) {
		return []flowfabric.Event{{At: f.Instant("claimed"), Kind: EventClaimed, Attempt: e.Attempt, Epoch: e.Epoch,
			Session: e.Session}, e}
	}
	return []flowfabric.Event{e}
}

// Attempts are what is kept of the attempts of an execution, by number.
func Attempts(attempts map[string]string, r *wire.Reader) []flowfabric.AttemptRecord {
	var out []flowfabric.AttemptRecord
	for k, v := range attempts {
		index, err := strconv.ParseUint(k, 10, 32)
		if err != nil {
			continue // a reason ("1r"), the cancel text or the categories
		}
		parts := strings.Split(v, "\x1f")
		if len(parts) != 9 {
			r.Stop("attempt %s has %d parts, want 9", k, len(parts))
			return nil
		}
		at := wire.Fields{R: r, M: map[string]string{"claimed": parts[1], "ended": parts[2], "epoch": parts[6],
			"claim": parts[7]}}
		out = append(out, flowfabric.AttemptRecord{
			Index: uint32(index), Type: flowfabric.AttemptType(parts[0]), State: parts[3],
			ClaimedAt: at.Instant("claimed"), EndedAt: at.Instant("ended"), Category: flowfabric.Category(parts[4]),
			Worker: ids.Worker(parts[5]), Session: parts[5], Epoch: uint64(at.Number("epoch")),
			Claim: uint64(at.Number("claim")), Message: attempts[k+"r"],
		})
	}
	slices.SortFunc(out, func(a, b flowfabric.AttemptRecord) int { return int(a.Index) - int(b.Index) })
	return out
}
