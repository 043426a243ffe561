package fftest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/contract"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

// housekeeping are the writes at which a crash makes no difference to an execution: the worker dies without having
// been asked or answered anything about one.
var housekeeping = []string{
	"ff_configure", "ff_boot", "ff_set_subscription", "ff_tick", "ff_session_renew", "ff_session_close",
	"ff_forward_ring",
	"ff_set_token_keys", "ff_register_worker", "ff_leave_worker", "ff_note_times", "ff_settle_gates", "ff_refuse_start",
	"ff_forget_expected",
	"ff_trim_outbox",
}

// deliveries are the writes of those who answer waits, before and after which [Crashes] lets a worker die, too.
var deliveries = []string{"ff_deliver_signal", "ff_approve_waitpoint", "ff_resume_execution", "ff_send_message",
	"ff_stop_turn", "ff_publish_event"}

// writes are the functions before and after which [Crashes] lets a worker die.
var writes = sync.OnceValue(func() map[string]bool {
	set := map[string]bool{}
	for _, f := range contract.Functions() {
		set[f.Name] = !slices.Contains(f.Flags, "no-writes") && !slices.Contains(housekeeping, f.Name)
	}
	return set
})

// The arguments of ff_record_step: FCALL function 1 root protocol id session claim epoch attempt name value; those of
// ff_suspend_execution are the same up to the attempt: … suspension request name.
const (
	argExecution = 5
	argStep      = 10
	argWait      = 12
)

// crash is where a worker is to die. The zero value: nowhere. A worker polls for work while its handlers write, so only
// the calls of one function come in the same order in every run: they are counted by function.
type crash struct {
	function string
	call     int  // of that function, counted from 1
	after    bool // the call has been carried out
}

// places lists where the workers of a run could have died: before and after each write they made, of the functions
// in the order of their first call.
func (j *journal) places() (all []crash) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, function := range j.order {
		for n := range j.calls[function] {
			all = append(all, crash{function, n + 1, false}, crash{function, n + 1, true})
		}
	}
	return all
}

// journal is what the worker processes of one environment asked of the store, and what effects their handlers noted, in
// order.
type journal struct {
	mu       sync.Mutex
	calls    map[string]int // writes so far, by function
	order    []string       // the functions of calls, in the order of their first one
	plan     crash
	crashed  string // where it happened, "" as long as it has not
	orphaned bool   // it has, and no other worker runs the handler yet: what happens now is the dead one's doing
	events   []event
	found    findings // of all runs of a Crashes, nil elsewhere
	began    map[flowfabric.ExecutionID]int
	reserved map[flowfabric.ExecutionID]map[string]int
	weary    context.Context // ends when a handler was run too often
	tire     context.CancelFunc
	alive    *link         // of the worker that runs now, nil while none does
	stir     chan struct{} // closed, and replaced, when a worker suspends an execution
}

// maxRuns is how often the handler of one execution is run before it counts as one that never ends.
const maxRuns = 1000

func newJournal(plan crash) *journal {
	j := &journal{calls: map[string]int{}, plan: plan,
		began: map[flowfabric.ExecutionID]int{}, reserved: map[flowfabric.ExecutionID]map[string]int{}}
	j.weary, j.tire = context.WithCancel(context.Background())
	return j
}

// reserves notes what became of a reservation.
func (j *journal) reserves(id flowfabric.ExecutionID, what tasks.Reservation) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.reserved[id] == nil {
		j.reserved[id] = map[string]int{}
	}
	j.reserved[id][string(what)]++
}

// reservations are how many reservations of an execution became what.
func (j *journal) reservations(id flowfabric.ExecutionID) map[string]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.reserved[id])
}

type eventKind uint8

const (
	effectDone   eventKind = iota // a handler did something to the world outside
	stepRecorded                  // a step was sent to the store
	runContinued                  // the execution continued with another input, for which the same work is done again
	// so was the completion, a delay or a wait for children; after a failure the same work is done again
	runRecorded
	waitRecorded // so was a wait, which ends a run, too
)

type event struct {
	kind      eventKind
	execution string // of a step or wait: its UUID
	name      string // of the effect, the step, the wait, or the function
}

// called returns the function that a request calls, "" for other requests.
func called(args []string) string {
	if len(args) < 2 || args[0] != "FCALL" {
		return ""
	}
	return args[1]
}

// note records a request that a worker sends over l and decides whether it is delivered and whether the worker dies of
// it. What a dead one still sends, over any of its connections, is not delivered.
func (j *journal) note(l *link, args []string) (deliver, crashed bool) {
	function := called(args)
	j.mu.Lock()
	defer j.mu.Unlock()
	l.sent.Add(1)
	if l.crashed || !writes()[function] {
		return !l.crashed, l.crashed
	}
	if crashed = j.count(function, l); crashed && !j.plan.after {
		return false, true
	}
	switch function {
	case "ff_suspend_execution":
		if len(args) > argWait {
			j.events = append(j.events, event{waitRecorded, args[argExecution], args[argWait]})
		}
		close(j.stir)
		j.stir = make(chan struct{})
	case "ff_record_step":
		if len(args) > argStep {
			j.events = append(j.events, event{stepRecorded, args[argExecution], args[argStep]})
		}
	case "ff_continue_execution":
		j.events = append(j.events, event{kind: runContinued, name: function})
	case "ff_complete_execution", "ff_delay_execution":
		j.events = append(j.events, event{kind: runRecorded, name: function})
	}
	return true, crashed
}

// count counts a write and reports whether the worker behind l dies of it. The caller holds mu.
func (j *journal) count(function string, l *link) (crashed bool) {
	if j.calls[function]++; j.calls[function] == 1 {
		j.order = append(j.order, function)
	}
	if j.crashed != "" || l == nil || function != j.plan.function || j.calls[function] != j.plan.call {
		return false
	}
	when := "before"
	if j.plan.after {
		when = "after"
	}
	j.crashed = fmt.Sprintf("died %s call %d of %s", when, j.plan.call, function)
	l.crashed, j.orphaned = true, true
	return true
}

// outside records a request that comes from outside and returns the worker, if any, that dies before or after it.
func (j *journal) outside(function string) (victim *link, after bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if slices.Contains(deliveries, function) && j.count(function, j.alive) {
		return j.alive, j.plan.after
	}
	return nil, false
}

// enter makes what belongs to the bubble that it is called in.
func (j *journal) enter() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stir = make(chan struct{})
}

// runs notes which worker runs now, nil for none.
func (j *journal) runs(l *link) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.alive = l
}

// stirred returns a channel that is closed when a worker suspends an execution.
func (j *journal) stirred() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stir
}

// begin is told that the worker behind l begins to run a handler.
func (j *journal) begin(l *link) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !l.crashed {
		j.orphaned = false
	}
}

// begins counts how often an execution's handler is run.
func (j *journal) begins(id flowfabric.ExecutionID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.began[id]++; j.began[id] > maxRuns {
		j.tire()
	}
}

// effect records what a handler did, unless its worker was dead already: Go cannot end a goroutine from outside, and a
// process that really dies does nothing more.
func (j *journal) effect(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.orphaned {
		return
	}
	j.events = append(j.events, event{kind: effectDone, name: name})
}

// history is a copy of all events so far.
func (j *journal) history() []event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.events)
}

// ranks tells in which order an execution's waits were first asked for.
func (j *journal) ranks(id flowfabric.ExecutionID) map[string]int {
	ranks := map[string]int{}
	for i, e := range j.history() {
		if _, known := ranks[e.name]; !known && e.kind == waitRecorded && e.execution == ids.UUID(id).String() {
			ranks[e.name] = i
		}
	}
	return ranks
}

// crashedAt says where the planned crash has happened, "" if it has not.
func (j *journal) crashedAt() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.crashed
}
