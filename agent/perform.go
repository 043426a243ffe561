package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/codes"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// maxFailure bounds the error of a tool, in bytes.
const maxFailure = 16 << 10

// outcome is the value of a tool's step.
type outcome struct {
	Message Message       `json:"message"`
	Took    time.Duration `json:"took"`
	Halted  bool          `json:"halted,omitempty"` // it was not made: the turn was halted
	// Unknown says that an earlier run may have begun it, and that the turn was halted before a record.
	Unknown bool `json:"unknown,omitempty"`
}

// job is a tool call of a turn.
type job struct {
	ToolCall
	number string      // "1.2": turn and place
	take   int         // of the turn
	tool   *definition // nil if there is none of that name
	denied string      // why it must not run, in words for the model; "" lets it run
	ask    bool        // people decide
	reject bool        // and did, against it
	bears  bool        // it is to be a child execution
	child  *offspring  // which is that one
	halted bool        // denied, because the turn was halted
	quit   bool        // people were not waited for any longer: no run has made it, if it was approved
	lost   bool        // denied like that, though an earlier run may have begun it

	decision Decision // of the tool
	edited   *Edited  // what people changed
	done     outcome
	err      error

	stepped  bool // its step was asked for
	worked   bool // by this run, which has recorded it
	returned bool // from its step
}

func (j *job) named(what string) string { return what + " " + j.number + " " + stepWord(j.Name) }

// stepWord makes a name that a model has chosen fit for the name of a step.
func stepWord(name string) string {
	word := []byte(name)
	if len(word) > limits.MaxToolName {
		word = word[:limits.MaxToolName]
	}
	for i := range word {
		if !nameByte(word[i], "_-") {
			word[i] = '_'
		}
	}
	return string(word)
}

// perform makes the calls of an answer, each as a step of its own: first those that nobody is asked about, then the
// approved ones, then those that are children.
func (r *run) perform(ctx context.Context, calls []ToolCall) error {
	jobs := make([]*job, len(calls))
	for i, c := range calls {
		jobs[i] = r.jobOf(c, i)
		if err := r.decided(jobs[i]); err != nil {
			return err
		}
		jobs[i].bears = jobs[i].bears && jobs[i].denied == ""
	}
	r.early = len(jobs) > 1 || r.cfg.Governor != ""
	if err := r.work(ctx, which(jobs, func(j *job) bool { return !j.ask && !j.bears })); err != nil {
		return err
	}
	asked := which(jobs, func(j *job) bool { return j.ask })
	if err := r.approve(ctx, asked); err != nil {
		return err
	}
	for _, j := range asked {
		j.bears = j.bears && j.denied == ""
	}
	if err := r.work(ctx, which(asked, func(j *job) bool { return !j.bears })); err != nil {
		return err
	}
	if err := r.children(ctx, which(jobs, func(j *job) bool { return j.bears })); err != nil {
		return err
	}
	for _, name := range r.allowed {
		r.always[name] = true
	}
	r.allowed = nil
	r.halts.unmade = map[string]bool{}
	for _, j := range jobs {
		r.halts.unmade[j.ID] = j.done.Halted || j.done.Unknown
		switch step := r.cfg.prefixed(j.named("tool")); {
		case j.done.Halted:
			r.halts.undone = append(r.halts.undone, step)
		case j.done.Unknown:
			r.halts.unknown = append(r.halts.unknown, step)
		default:
			r.halts.did = append(r.halts.did, step)
		}
		r.tells = append(r.tells, j.done.Message)
		r.took += j.done.Took
	}
	return nil
}

func (r *run) jobOf(c ToolCall, place int) *job {
	j := &job{ToolCall: c, number: fmt.Sprintf("%d.%d", r.done.Turns, place+1), take: r.take,
		tool: r.tools[c.Name]}
	j.bears = j.tool != nil && j.tool.child != nil && j.bad() == nil
	return j
}

// which are the jobs of a kind, in their order.
func which(jobs []*job, is func(*job) bool) (some []*job) {
	for _, j := range jobs {
		if is(j) {
			some = append(some, j)
		}
	}
	return some
}

// bad is what is wrong with the name or the arguments of a call.
func (j *job) bad() error {
	if j.tool == nil {
		return fmt.Errorf("there is no tool %.80q", j.Name)
	}
	return j.tool.check(j.Arguments)
}

// work makes calls: first those that do not suspend, then the others in their order.
func (r *run) work(ctx context.Context, jobs []*job) error {
	suspends := func(j *job) bool { return j.tool != nil && j.tool.suspends }
	if err := r.atOnce(ctx, slices.DeleteFunc(slices.Clone(jobs), suspends)); err != nil {
		return err
	}
	for _, j := range jobs {
		if suspends(j) {
			if r.step(ctx, j); j.err != nil {
				return j.err
			}
			r.wrote = r.wrote || j.worked // the next one begins after it
		}
	}
	return nil
}

// atOnce runs the steps of calls. One that fails does not stop the others: what they did is recorded.
func (r *run) atOnce(ctx context.Context, jobs []*job) error {
	if len(jobs) == 1 {
		r.step(ctx, jobs[0])
		return jobs[0].err
	}
	p := pool.New().WithMaxGoroutines(r.cfg.Parallel)
	for _, j := range jobs {
		p.Go(func() {
			r.step(ctx, j)
			j.returned = true
		})
	}
	p.Wait()
	var failed error
	for _, j := range jobs {
		if !j.returned { // the tool ended its goroutine, as a test's FailNow does: it means that of the handler
			runtime.Goexit()
		}
		failed = errors.Join(failed, j.err)
	}
	return failed
}

// step makes one call and records what came of it.
func (r *run) step(ctx context.Context, j *job) {
	if j.stepped {
		return
	}
	j.stepped = true
	name := r.cfg.prefixed(j.named("tool"))
	outside := ctx
	j.done, j.err = handler.Step(ctx, r.task, name, func(ctx context.Context) (outcome, error) {
		if j.tool != nil && j.tool.suspends {
			ctx = outside // it is no part of the step, which only keeps what it returns
		}
		began := time.Now()
		parts, failed, err := r.result(ctx, name, j)
		took := time.Since(began)
		if err != nil {
			return outcome{}, err
		}
		m := Message{Role: ToolRole, Call: j.ID, Tool: strings.ToValidUTF8(j.Name, "\ufffd"), Parts: parts,
			Failed: failed, Denied: failed && j.reject, Edited: j.edited}
		if err := r.showEarly(ctx, m); err != nil {
			return outcome{}, err
		}
		j.worked = !j.lost
		return outcome{Message: m, Took: took, Halted: j.halted, Unknown: j.lost}, nil
	})
}

// result is what the model is told about a call. An error ends the run.
func (r *run) result(ctx context.Context, step string, j *job) (parts []Part, failed bool, err error) {
	if j.denied != "" {
		return failure(j.denied), true, nil
	}
	if bad := j.bad(); bad != nil {
		return failure(bad.Error()), true, nil
	}
	if why := r.halt(); why != nil && j.child == nil && !r.begun(j) {
		if j.leave(why); !r.wrote && !j.quit {
			j.denied, j.halted, j.lost = "the call may have been made, and is not repeated: "+why.Error(), false, true
		}
		return failure(j.denied), true, nil
	}
	ctx, span := r.spans.tool(ctx, j)
	defer func() { span.worked(ctx, r.task, failed, err) }()
	err = errPanicked
	if j.child != nil {
		parts, failed, err = r.came(ctx, j)
	} else {
		parts, err = j.tool.call(context.WithValue(ctx, callKey{}, callOf(r.task, step, j)), j.Arguments)
		if err != nil && (j.tool.endsRun || r.ends(ctx, err)) {
			return nil, false, err
		}
		if err != nil {
			parts, failed, err = failure(err.Error()), true, nil
		} else {
			parts, failed, err = r.found(ctx, j, parts)
		}
	}
	if j.edited != nil && err == nil {
		parts = append([]Part{j.edited.note()}, parts...)
	}
	return parts, failed, err
}

// begun says that a tool that suspends has begun: the answer that this run was resumed with is for it.
func (r *run) begun(j *job) bool { return j.tool.suspends && r.halts.turn.Unasked() != "" }

// found makes what a tool has found fit for its step.
func (r *run) found(ctx context.Context, j *job, found []Part) (parts []Part, failed bool, err error) {
	data := map[string][]byte{}
	parts = r.blobs.shelve(found, data)
	if err := r.cfg.checkMessage(Message{Parts: parts}); err != nil {
		return nil, false, handler.Permanent(fmt.Errorf("agent: the result of tool %s: %w", j.tool.spec.Name, err))
	}
	most := limits.MaxToolResult
	if j.edited != nil {
		most -= 2 * encodedText(string(j.edited.Arguments)) // what ran is in the step, too, twice
	}
	if n := size(parts); n > most {
		return failure(fmt.Sprintf("the result has %d bytes as JSON, more than %d; ask for less", n, most)), true, nil
	}
	for _, d := range data {
		if len(d) > blob.MaxSize {
			return failure(fmt.Sprintf("the result has %d bytes, more than %d; ask for less", len(d), blob.MaxSize)),
				true, nil
		}
	}
	return parts, false, r.blobs.put(ctx, data)
}

func failure(text string) []Part { return Text(cut(text, maxFailure, limits.MaxToolResult)) }

// ends reports an error of a tool that is not for the model: its author has said what follows, or the execution must
// stop.
func (r *run) ends(ctx context.Context, err error) bool {
	if ctx.Err() != nil || handler.IsWait(err) {
		return true
	}
	out := handler.Classify(ctx, r.task, err)
	if out.Kind != codes.OutcomeFail || out.Failure.Permanent || out.Failure.RetryAfter != nil {
		return true
	}
	return out.Failure.Category != "handler_error" && !errors.Is(err, flowfabric.ErrOverBudget)
}
