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
}

// job is a tool call of a turn.
type job struct {
	ToolCall
	number string      // "1.2": turn and place
	tool   *definition // nil if there is none of that name
	ask    bool        // people decide
	bears  bool        // it is to be a child execution
	child  *offspring  // which is that one
	denied string      // why it is not made, by the decision of people or for another reason
	done   outcome
	err    error

	returned bool // its step
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
	}
	if err := r.work(ctx, which(jobs, func(j *job) bool { return !j.ask && !j.bears })); err != nil {
		return err
	}
	asked := which(jobs, func(j *job) bool { return j.ask })
	for _, j := range asked {
		var err error
		if j.denied, err = j.tool.ask(ctx, r.task, r.cfg.prefixed(j.named("approve")), j.Arguments); err != nil {
			return err
		}
		j.bears = j.bears && j.denied == ""
	}
	if err := r.work(ctx, which(asked, func(j *job) bool { return !j.bears })); err != nil {
		return err
	}
	if err := r.children(ctx, which(jobs, func(j *job) bool { return j.bears })); err != nil {
		return err
	}
	for _, j := range jobs {
		r.tells = append(r.tells, j.done.Message)
		r.took += j.done.Took
	}
	return nil
}

func (r *run) jobOf(c ToolCall, place int) *job {
	j := &job{ToolCall: c, number: fmt.Sprintf("%d.%d", r.done.Turns, place+1), tool: r.tools[c.Name]}
	if j.tool != nil && (j.tool.approval != nil || j.tool.child != nil) && j.bad() == nil {
		j.ask, j.bears = j.tool.approval != nil, j.tool.child != nil
	}
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
			Failed: failed}
		return outcome{Message: m, Took: took}, nil
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
	ctx, span := r.spans.tool(ctx, j)
	defer func() { span.worked(ctx, r.task, failed, err) }()
	err = errPanicked
	if j.child != nil {
		parts, failed, err = r.came(ctx, j)
		return parts, failed, err
	}
	parts, err = j.tool.call(context.WithValue(ctx, callKey{}, callOf(r.task, step, j.ToolCall)), j.Arguments)
	if err != nil {
		if j.tool.endsRun || r.ends(ctx, err) {
			return nil, false, err
		}
		return failure(err.Error()), true, nil
	}
	return r.found(ctx, j, parts)
}

// found makes what a tool has found fit for its step.
func (r *run) found(ctx context.Context, j *job, found []Part) (parts []Part, failed bool, err error) {
	data := map[string][]byte{}
	parts = r.blobs.shelve(found, data)
	if err := r.cfg.checkMessage(Message{Parts: parts}); err != nil {
		return nil, false, handler.Permanent(fmt.Errorf("agent: the result of tool %s: %w", j.tool.spec.Name, err))
	}
	if n := size(parts); n > limits.MaxToolResult {
		return failure(fmt.Sprintf("the result has %d bytes as JSON, more than %d; ask for less", n,
			limits.MaxToolResult)), true, nil
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
