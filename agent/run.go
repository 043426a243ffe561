package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
)

// Result is the outcome of an agent.
type Result struct {
	Text string `json:"text"` // of the last answer
	// Messages are the whole conversation, Config.Messages included. For Config.Continue they begin with the summary,
	// if there is one.
	Messages []Message  `json:"messages"`
	Usage    Usage      `json:"usage"`          // of all answers and summaries of the run
	Turns    int        `json:"turns"`          // answers of the run
	Stop     StopReason `json:"stop,omitempty"` // why the last answer ended; "" if there was none
}

// run is one call of [Run].
type run struct {
	cfg   Config
	task  *handler.Task
	tools map[string]*definition
	specs []ToolSpec
	spans *spans
	blobs shelf
	form  *form // of the answer; nil for a text

	done  Result        // so far; Messages is what the model has seen, and what it answered
	took  time.Duration // by recorded steps
	tells []Message     // of tools, since the last model call
	says  []Message     // of the user, since the last model call
	seen  int           // how many of the first says readers have been shown, before the execution continued
	sizes []int64       // of recorded answers of this run, in tokens
	steps int           // recorded so far, at most: receipts and waits among them
	take  int           // in which the last answer was made
	early bool          // results of tools are shown before the model is
	wrote bool          // this run has recorded it, so that no other has begun what it wants
	made  int           // calls of this run for children
	halts halts

	always  map[string]bool // tools that nobody is asked about any more
	allowed []string        // those that are to be among them once the turn is over

	shrunk compacted       // what the model sees of the conversation
	warned map[string]bool // of which limits
}

// Run lets a model work with tools until it has ended, and returns what came of it. A handler calls it; what it
// returns is the handler's to use:
//
//	func research(ctx context.Context, t *handler.Task, question string) (string, error) {
//		r, err := agent.Run(ctx, t, agent.Config{Model: model, Tools: tools, Prompt: question})
//		return r.Text, err
//	}
//
// Each model call and each tool call is a step of the handler (handler.Step), "model 1", "tool 1.2 search", with the
// agent's name before it if it has one. So what was recorded is not repeated by a later run of the handler, and the
// limits of steps hold: an answer or a tool's result has at most 256 KiB, and an execution at most 1,000 steps. An
// agent waits as handler.Await does: Run returns an error that the handler must return.
//
// With Config.Blobs images and files are stored before anything that is recorded or returned refers to them.
//
// An answer that ended early ([StopLength], [StopRefusal], [StopStopped]) is no error, see Result.Stop. Who stops a
// turn ([Stop]) ends the run, or has a Conversation wait for the next message; the results of tools that no model has
// seen are at the end of Result.Messages then.
//
// Errors come with the result so far: a [*LimitError]; what the model, or a tool that may end the run, returned;
// flowfabric.ErrInvalidInput for a configuration that is not valid; the errors of handler.Step,
// handler.Task.SpendUsage, handler.Task.Ask and handler.Receive; the context's cause. A panic of a tool goes on in
// the handler. A handler calls Run from one goroutine at a time.
func Run(ctx context.Context, t *handler.Task, cfg Config) (Result, error) {
	return work(ctx, t, cfg, nil)
}

// work is [Run], of an answer that has a form or none.
func work(ctx context.Context, t *handler.Task, cfg Config, f *form) (Result, error) {
	if t == nil {
		return Result{}, handler.Permanent(fmt.Errorf("agent: %w: the task is nil; a handler gets one",
			flowfabric.ErrInvalidInput))
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return Result{}, err
	}
	if err := f.join(&cfg); err != nil {
		return Result{}, err
	}
	r := newRun(t, cfg)
	r.form = f
	r.halts.turn.Listen(r.notice)
	defer r.halts.turn.Listen(nil)
	err := errPanicked
	defer func() { r.spans.end(ctx, t, err) }()
	if err = r.loop(ctx); err == nil && r.done.Turns == 0 {
		r.silent()
	}
	*r.halts.turn.Over = err == nil && r.done.Turns > 0
	if !handler.IsWait(err) && ctx.Err() == nil { // the handler may return the messages
		if bad := r.blobs.flush(ctx); bad != nil {
			err = errors.Join(err, bad)
		}
	}
	return r.done, err
}

func newRun(t *handler.Task, cfg Config) *run {
	r := &run{cfg: cfg, task: t, tools: map[string]*definition{}, always: map[string]bool{},
		warned: map[string]bool{},
		spans:  newSpans(t, cfg), seen: shown(t, cfg.Messages),
		blobs: shelf{cfg.Blobs, map[string][]byte{}}}
	r.halts.turn = t.Kin().Turn()
	for _, tool := range cfg.Tools {
		r.tools[tool.d.spec.Name] = tool.d
		r.specs = append(r.specs, tool.d.spec)
	}
	for _, m := range cfg.Messages {
		r.says = append(r.says, r.blobs.hold(m))
	}
	if cfg.Prompt != "" {
		r.says = append(r.says, r.blobs.hold(Message{Role: User, Parts: Text(cfg.Prompt)}))
	}
	return r
}

// loop asks the model, runs the tools it wants, and asks again, until it wants none.
func (r *run) loop(ctx context.Context) error {
	if err := r.begins(ctx); err != nil {
		return err
	}
	if goOn, err := r.begin(ctx); err != nil || !goOn {
		return err
	}
	for {
		if err := r.goOn(ctx); err != nil {
			return err
		}
		if err := r.limit(); err != nil {
			return err
		}
		if err := r.look(ctx); err != nil {
			return err
		}
		if err := r.reworded(); err != nil {
			return err
		}
		if err := r.compact(ctx); err != nil {
			return err
		}
		r.warn()
		calls, err := r.ask(ctx)
		if err != nil {
			return err
		}
		ended := len(calls) == 0
		if !ended {
			if err := r.limit(); err != nil { // the model will not see what tools would find out
				return err
			}
			if err := r.perform(ctx, calls); err != nil {
				return err
			}
			if ended, err = r.stopHere(ctx); err != nil {
				return err
			}
		}
		if !ended {
			if err := r.hear(ctx); err != nil {
				return err
			}
			if handed, err := r.handedIn(calls); err != nil || handed {
				return err
			}
			continue
		}
		goOn, err := r.next(ctx)
		if err == nil && !goOn {
			goOn, err = r.fits()
		}
		if err != nil || !goOn {
			r.unheard(err)
			return err
		}
	}
}

// unheard puts what no model has seen behind the conversation of a run that was stopped.
func (r *run) unheard(err error) {
	if err == nil && r.done.Stop == StopStopped {
		r.done.Messages = slices.Concat(r.done.Messages, r.tells, r.says)
		r.tells, r.says = nil, nil
	}
}

// begin waits for a first message of the user, if there is none to begin with.
func (r *run) begin(ctx context.Context) (goOn bool, err error) {
	if n := len(r.says); n > 0 && r.says[n-1].Role != Assistant {
		return true, nil
	}
	return r.receive(ctx)
}

// next finds out whether there is more to answer when the model has ended.
func (r *run) next(ctx context.Context) (goOn bool, err error) {
	if r.cfg.Mailbox == "" {
		return false, nil
	}
	before := len(r.says) // of a turn that was stopped
	if err := r.turnTo(ctx); err != nil || len(r.says) > before {
		r.halts.did, r.halts.undone, r.halts.unknown = nil, nil, nil
		return true, err
	}
	if !r.cfg.Conversation {
		return false, nil
	}
	if err := r.goOn(ctx); err != nil {
		return false, err
	}
	if err := r.limit(); err != nil { // nobody should write what would not be answered
		return false, err
	}
	r.halts.did, r.halts.undone, r.halts.unknown = nil, nil, nil
	return r.receive(ctx)
}

// prefixed is the name of a step or wait of this agent.
func (c Config) prefixed(name string) string {
	if c.Name == "" {
		return name
	}
	return c.Name + " " + name
}
