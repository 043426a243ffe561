package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Why an answer is broken off, and why the tools that have not begun are not made.
var (
	errStopped     = errors.New("the answer was stopped")
	errInterrupted = errors.New("a message came before")
)

// halts is what a run knows of stops and of messages that interrupt it.
type halts struct {
	mu     sync.Mutex
	breaks context.CancelCauseFunc // breaks the answer off that is being made; nil: there is none
	latest uint64                  // number of the newest message that the run was told of
	heard  uint64                  // of the newest that it has taken

	turn    tasks.Turn
	did     []string        // tools of the turn that were called, by the names of their steps
	undone  []string        // those that were not made
	unknown []string        // those that a lost worker may have begun
	unmade  map[string]bool // calls of the last answer that this run has not made and will not, by their ids
	cut     error           // people were not waited for any longer; until the next answer
	looked  bool            // for messages, before the first answer of this run that is not recorded
}

// notice is told that a message came, or with 0 that somebody has stopped the run. It must not block.
func (r *run) notice(message uint64) {
	r.halts.mu.Lock()
	defer r.halts.mu.Unlock()
	r.halts.latest = max(r.halts.latest, message)
	if why := r.halts.why(r.cfg.WhileBusy, message == 0); why != nil && r.halts.breaks != nil {
		r.halts.breaks(why)
	}
}

// why is why an answer is to be broken off. The lock is held.
func (h *halts) why(busy WhileBusy, stopped bool) error {
	switch {
	case stopped:
		return errStopped
	case busy == Interrupt && h.latest > h.heard:
		return errInterrupted
	}
	return nil
}

// halt is why nothing more of this turn is to begin; nil if it goes on.
func (r *run) halt() error {
	stopped := r.halts.turn.Stop() != ""
	r.halts.mu.Lock()
	defer r.halts.mu.Unlock()
	return cmp.Or(r.halts.why(r.cfg.WhileBusy, stopped), r.halts.cut)
}

// tookMessage notes the number of a message.
func (r *run) tookMessage(number uint64) {
	r.halts.mu.Lock()
	defer r.halts.mu.Unlock()
	r.halts.heard = max(r.halts.heard, number)
}

// breakable is a context that ends when the answer is to be broken off, and what ends it. A message does not break a
// summary off: one is needed before it can be answered.
func (r *run) breakable(ctx context.Context, summary bool) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	cancel := func(why error) {
		if !summary || why != errInterrupted {
			end(why)
		}
	}
	r.halts.mu.Lock()
	r.halts.breaks = cancel
	r.halts.mu.Unlock()
	if why := r.halt(); why != nil { // it came before
		cancel(why)
	}
	return ctx, func() {
		r.halts.mu.Lock()
		r.halts.breaks = nil
		r.halts.mu.Unlock()
		cancel(nil)
	}
}

// broken is why an answer was broken off, nil if that is not why its context has ended.
func broken(ctx context.Context) error {
	if why := context.Cause(ctx); why == errStopped || why == errInterrupted { // as they are: nobody else has them
		return why
	}
	return nil
}

// partial is what a model has said before its answer was broken off.
func (r *run) partial(said []Part, why error, u Usage, req Request) Response {
	if u.Total() == 0 {
		bytes := 0
		for _, p := range said {
			bytes += len(p.Text)
		}
		u.Input = r.estimate(req)["input_tokens"]
		u.Output = int64(bytes+bytesPerToken-1) / bytesPerToken
		u.Estimated = u.Total()
	}
	return Response{Message: Message{Parts: said}, Stop: stopOf(why), Usage: u}
}

// spoken puts the deltas of an answer together.
type spoken struct {
	before []Part
	typ    PartType // of the last part
	last   strings.Builder
}

func (s *spoken) add(d Delta) {
	s.say(PartReasoning, d.Reasoning)
	s.say(PartText, d.Text)
}

func (s *spoken) say(typ PartType, text string) {
	if text == "" {
		return
	}
	if typ != s.typ {
		s.before = s.parts()
		s.last.Reset()
		s.typ = typ
	}
	s.last.WriteString(text)
}

func (s *spoken) parts() []Part {
	if s.last.Len() == 0 {
		return s.before
	}
	return append(s.before, Part{Type: s.typ, Text: s.last.String()})
}

// turnEvent is the payload, as JSON, of a frame of type [FrameTurn]: an answer was broken off, or what should have
// followed it was.
type turnEvent struct {
	Act       string   `json:"act"`
	By        string   `json:"by,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	Model     int      `json:"model"`
	Tokens    int64    `json:"tokens"`
	Estimated int64    `json:"estimated,omitempty"`
	Done      []string `json:"done"`
	NotMade   []string `json:"not_made"`
	Unknown   []string `json:"unknown,omitempty"`
}

// showHalt appends the frame of an answer that was broken off, or of a turn that was stopped behind it.
func (r *run) showHalt(ctx context.Context, act string, model int, u Usage) error {
	e := turnEvent{Act: act, Model: model, Tokens: u.Total(), Estimated: u.Estimated,
		Done: append([]string{}, r.halts.did...), NotMade: append([]string{}, r.halts.undone...), // [], not null
		Unknown: r.halts.unknown}
	if act == actStop {
		var err error
		if e.By, e.Reason, err = r.halts.turn.By(ctx); err != nil {
			return err
		}
	}
	payload, err := json.Marshal(e)
	if err != nil {
		return handler.Permanent(fmt.Errorf("an event does not encode: %w", err))
	}
	return r.task.FrameBytes(ctx, stream.Frame{Type: FrameTurn, Encoding: "json", Payload: payload})
}

// The acts of a turnEvent.
const (
	actStop      = "stop"
	actInterrupt = "interrupt"
)

var acts = map[StopReason]string{StopStopped: actStop, StopInterrupted: actInterrupt}

// stopOf is how an answer ends that is broken off.
func stopOf(why error) StopReason {
	if why == errInterrupted {
		return StopInterrupted
	}
	return StopStopped
}

// Turn implements [tasks.Said].
func (t turn) Turn() string {
	switch {
	case t.Stop == StopStopped:
		return engine.TurnStopped
	case t.goesOn || t.Stop == StopInterrupted || len(t.Message.Calls) > 0:
		return ""
	}
	return engine.TurnOver
}

// Heed implements [tasks.Stoppable]: the stop came before the last word.
func (t turn) Heed(ctx context.Context) (turn, error) {
	t.Stop = StopStopped
	return t, t.run.showHalt(ctx, actStop, t.run.done.Turns+1, t.Usage)
}

// stop is the value of the step by which a run heeds a stop between two answers.
type stop struct {
	Done    []string `json:"done,omitempty"`
	NotMade []string `json:"not_made,omitempty"`
	Unknown []string `json:"unknown,omitempty"`
}

// Turn implements [tasks.Said].
func (stop) Turn() string { return engine.TurnStopped }

// stopHere ends the turn behind the tools of an answer, if somebody has stopped it.
func (r *run) stopHere(ctx context.Context) (stopped bool, err error) {
	name := r.cfg.prefixed("stop " + strconv.Itoa(r.done.Turns))
	if !r.halts.turn.Recorded(name) && (r.halts.turn.Stop() == "" || r.halts.turn.Recorded(r.modelStep())) {
		return false, nil
	}
	r.steps++
	fresh := slices.Concat(r.tells, r.says)
	_, err = handler.Step(ctx, r.task, name, func(ctx context.Context) (stop, error) {
		if err := r.blobs.flush(ctx); err != nil {
			return stop{}, err
		}
		for _, m := range fresh[min(r.seen, len(fresh)):] {
			if err := r.show(ctx, m); err != nil {
				return stop{}, err
			}
		}
		return stop{r.halts.did, r.halts.undone, r.halts.unknown}, r.showHalt(ctx, actStop, r.done.Turns, Usage{})
	})
	r.seen = len(fresh)
	r.done.Stop = StopStopped
	return true, err
}

// look takes the messages that have come since the agent last heard some, before an answer, if it minds them while it
// talks. The first answer of a run that is not recorded is the place to say that it does.
func (r *run) look(ctx context.Context) error {
	if r.cfg.WhileBusy == "" {
		return nil
	}
	name := r.cfg.prefixed("before model " + strconv.Itoa(r.done.Turns+1))
	if !r.halts.turn.Received(name) {
		if r.halts.turn.Recorded(r.modelStep()) || r.halts.looked && r.halt() != errInterrupted {
			return nil
		}
		r.halts.looked = true
	}
	messages, err := r.halts.turn.Take(ctx, engine.Receiving{Name: name, Mailbox: r.cfg.Mailbox,
		Limit: limits.MaxReceived, Busy: string(r.cfg.WhileBusy)})
	for _, m := range messages {
		r.says = append(r.says, r.blobs.hold(r.said(m)))
	}
	if len(messages) > 0 {
		r.steps++
	}
	return err
}

// begins opens a turn, if an agent before this one, of the same run of the handler, has ended its last.
func (r *run) begins(ctx context.Context) error {
	if !*r.halts.turn.Over {
		return nil
	}
	*r.halts.turn.Over = false
	r.steps++
	_, err := handler.Step(ctx, r.task, r.cfg.prefixed("turn"), func(context.Context) (opening, error) {
		return opening{}, nil
	})
	return err
}

// opening is the value of the step that opens a turn.
type opening struct{}

// Turn implements [tasks.Said].
func (opening) Turn() string { return engine.TurnBegins }

// noneMade says that all of some calls are recorded as not made because the turn was halted. Those that are recorded
// have what came of them.
func (r *run) noneMade(ctx context.Context, jobs []*job) bool {
	for _, j := range jobs {
		if !r.halts.turn.Recorded(r.cfg.prefixed(j.named("tool"))) {
			return false
		}
		if r.step(ctx, j); j.err != nil || !j.done.Halted {
			return false
		}
	}
	return true
}

// skipped says that a group of calls for which the run would wait is not made, because the turn was halted before it
// waited. Children that a lost worker may have made are waited for: a stop ends that at once, and cancels them.
func (r *run) skipped(ctx context.Context, wait string, jobs []*job) bool {
	why := r.halt()
	if r.halts.turn.Answered(wait) || r.halts.turn.Announced(wait) || why == nil && !r.noneMade(ctx, jobs) {
		return false
	}
	for _, j := range jobs {
		j.leave(cmp.Or(why, errStopped)) // what is recorded says which
	}
	return true
}

// leave has a call not made.
func (j *job) leave(why error) {
	j.denied, j.halted = "the call was not made: "+why.Error(), true
}
