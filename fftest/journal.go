package fftest

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/flowfabric/flowfabric-go/lua"
)

// housekeeping are the writes at which a crash makes no difference to an execution: the worker dies without having
// been asked or answered anything about one.
var housekeeping = []string{
	"ff_configure", "ff_boot", "ff_set_interest", "ff_tick", "ff_session_renew", "ff_session_close", "ff_pass_ring",
}

// writes are the functions before and after which [Crashes] lets a worker die.
var writes = sync.OnceValue(func() map[string]bool {
	set := map[string]bool{}
	for _, f := range lua.Functions() {
		set[f.Name] = !slices.Contains(f.Flags, "no-writes") && !slices.Contains(housekeeping, f.Name)
	}
	return set
})

// scriptCall is the last line of a script: the function it is made of.
var scriptCall = regexp.MustCompile(`return (ff_\w+)\(KEYS, ARGV\)\s*$`)

// recordStep's arguments: EVALSHA sha 1 root protocol id session claim epoch attempt name value.
const (
	argExecution = 5
	argStep      = 10
)

// crash is where a worker is to die. The zero value: nowhere.
type crash struct {
	call  int  // counted from 1
	after bool // the call has been carried out
}

// journal is what the worker processes of one world asked of the store, and what effects their handlers noted, in
// order.
type journal struct {
	mu        sync.Mutex
	functions map[string]string // by the digest of their script
	calls     int               // writes so far
	plan      crash
	crashed   string // where it happened, "" as long as it has not
	events    []event
}

func newJournal(plan crash) *journal { return &journal{functions: map[string]string{}, plan: plan} }

type eventKind uint8

const (
	effectDone   eventKind = iota // a handler did something to the world outside
	stepRecorded                  // a step was sent to the store
	passRecorded                  // so was an outcome after which the same work is not done again
)

type event struct {
	kind      eventKind
	execution string // of a step: its UUID
	name      string // of the effect, the step, or the function
}

// learn returns the function that a request calls, "" for other requests and those that the server cannot carry out.
func (j *journal) learn(args []string) string {
	if len(args) < 2 {
		return ""
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch args[0] {
	case "EVALSHA": // of an unknown script: the server does not know it either, and EVAL follows
		return j.functions[args[1]]
	case "EVAL":
		name := scriptCall.FindStringSubmatch(args[1])
		if name == nil {
			return ""
		}
		sum := sha1.Sum([]byte(args[1]))
		j.functions[hex.EncodeToString(sum[:])] = name[1]
		return name[1]
	}
	return ""
}

// note books a request that a worker sends over l and decides whether it is delivered and whether the worker dies of
// it. What a dead one still sends, over any of its connections, is not delivered.
func (j *journal) note(l *link, args []string) (deliver, crashed bool) {
	function := j.learn(args)
	j.mu.Lock()
	defer j.mu.Unlock()
	if l.crashed || !writes()[function] {
		return !l.crashed, l.crashed
	}
	j.calls++
	if j.crashed == "" && j.calls == j.plan.call {
		when := "before"
		if j.plan.after {
			when = "after"
		}
		j.crashed = fmt.Sprintf("died %s call %d (%s)", when, j.calls, function)
		l.crashed, crashed = true, true
		if !j.plan.after {
			return false, true
		}
	}
	switch function {
	case "ff_record_step":
		if len(args) > argStep {
			j.events = append(j.events, event{stepRecorded, args[argExecution], args[argStep]})
		}
	case "ff_complete_execution", "ff_delay_execution":
		j.events = append(j.events, event{kind: passRecorded, name: function})
	}
	return true, crashed
}

func (j *journal) effect(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, event{kind: effectDone, name: name})
}

// history is a copy of all events so far.
func (j *journal) history() []event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.events)
}

// crashedAt says where the planned crash has happened, "" if it has not.
func (j *journal) crashedAt() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.crashed
}
