package handler

import (
	"context"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// turning is what a task knows of the turns of its run. Guarded by Task.mu.
type turning struct {
	listens bool                 // to the hold
	stop    string               // request of the stop that waits
	heeded  map[string]bool      // requests of those that do so no more
	latest  uint64               // number of the newest message that was told
	hear    func(message uint64) // nil: nobody listens
	over    bool                 // an agent has ended its last turn
}

// turns is what package agent asks of a task about its turns, see [Task.Kin].
func (t *Task) turns() tasks.Turn {
	t.mu.Lock()
	first := !t.turn.listens
	t.turn.listens = true
	if first && t.cfg.Claim.Stop != "" {
		t.turn.stop = t.cfg.Claim.Stop
	}
	t.mu.Unlock()
	if first && t.cfg.Lease != nil { // without the lock: the hold calls back at once, under one of its own
		t.cfg.Lease.Listen(t.toldOf)
	}
	return tasks.Turn{Stop: t.stopAsked, By: t.stopBy, Listen: t.listen, Recorded: t.Recorded, Answered: t.wasAnswered,
		Announced: func(wait string) bool { return t.Recorded(streamed + wait) },
		Received:  func(name string) bool { return t.ownWaits().Received(name) },
		Unasked:   func() string { return t.ownWaits().Unasked() },
		Take:      t.take, Drain: t.drain, Ask: t.askAll, Over: &t.turn.over}
}

// toldOf is told of a notice that took nothing away.
func (t *Task) toldOf(cause string) {
	kind, which, _ := strings.Cut(cause, ":")
	t.mu.Lock()
	hear, message := t.turn.hear, uint64(0)
	switch {
	case kind == "message":
		message, _ = strconv.ParseUint(which, 10, 64) // the server made it; 0 would be a stop that nobody asked for
		t.turn.latest = max(t.turn.latest, message)
		if message == 0 {
			hear = nil
		}
	case kind != "stop" || t.turn.heeded[which]:
		hear = nil
	default:
		t.turn.stop = which
	}
	t.mu.Unlock()
	if hear != nil {
		hear(message)
	}
}

func (t *Task) stopAsked() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.turn.stop
}

func (t *Task) stopBy(ctx context.Context) (by, reason string, err error) {
	if t.cfg.Results == nil {
		return "", "", nil
	}
	s, err := t.cfg.Results.ReadExecution(ctx, t.ID())
	return s.StopBy, s.StopReason, err
}

func (t *Task) listen(f func(message uint64)) {
	t.mu.Lock()
	t.turn.hear = f
	stop, latest := t.turn.stop, t.turn.latest
	t.mu.Unlock()
	if f == nil {
		return
	}
	if latest > 0 {
		f(latest)
	}
	if stop != "" {
		f(0)
	}
}

func (t *Task) wasAnswered(wait string) bool {
	t.mu.Lock()
	kids := t.kids.answers[wait]
	t.mu.Unlock()
	if kids != nil {
		return true
	}
	answer, err := t.ownWaits().Answer(wait)
	return answer != nil || err != nil
}

func (t *Task) take(ctx context.Context, q engine.Receiving) ([]suspend.Message, error) {
	messages, _, err := t.ownWaits().Take(ctx, q)
	for i := 0; err == nil && i < len(messages); i++ {
		err = t.readable(messages[i].Payload)
	}
	return messages, err
}

// spoke notes what the record of a step said of the turn.
func (t *Task) spoke(turn, stop string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if turn != engine.TurnStopped {
		if stop != "" && !t.turn.heeded[stop] {
			t.turn.stop = stop
		}
		return
	}
	if t.turn.heeded == nil {
		t.turn.heeded = map[string]bool{}
	}
	t.turn.heeded[stop], t.turn.heeded[t.turn.stop] = true, true
	t.turn.stop = ""
}
