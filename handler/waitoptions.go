package handler

import (
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// waitOptions are the options of a wait, put together.
type waitOptions struct {
	within    time.Duration
	behaviour suspend.Behaviour
	reason    suspend.Reason
	delay     time.Duration
	named     string
	key       string
	question  *suspend.Question
	bad       error // an option is nil
}

func waitOptionsOf(opts []suspend.Option) waitOptions {
	o := waitOptions{behaviour: suspend.Fail, reason: suspend.ReasonSignal}
	for i, opt := range opts {
		switch opt := opt.(type) {
		case suspend.Within:
			o.within = time.Duration(opt)
		case suspend.OnTimeout:
			o.behaviour = suspend.Behaviour(opt)
		case suspend.Because:
			o.reason = suspend.Reason(opt)
		case suspend.ResumeAfter:
			o.delay = time.Duration(opt)
		case suspend.Named:
			o.named = string(opt)
		case suspend.At:
			o.key = string(opt)
		case suspend.Asking:
			q := suspend.Question(opt)
			o.question = &q
		default:
			o.bad = fmt.Errorf("%w: option %d of the wait is nil", flowfabric.ErrInvalidInput, i)
		}
	}
	return o
}

// wanted is the error that asks for a wait.
func (o waitOptions) wanted(name string, cond suspend.Condition) (*waitwords.Wanted, error) {
	if o.bad != nil {
		return nil, o.bad
	}
	text, keys, err := cond.Compile()
	if err != nil {
		return nil, err
	}
	switch {
	case o.key != "":
		return nil, fmt.Errorf("%w: the option At is for Await and Ask; name the key in the condition",
			flowfabric.ErrInvalidInput)
	case o.named != "":
		return nil, fmt.Errorf("%w: the option Named is for Await; narrow a condition with Condition.Named",
			flowfabric.ErrInvalidInput)
	case text == waitwords.TimeoutCondition && o.within <= 0:
		return nil, fmt.Errorf("%w: timeout_only_without_deadline: Timeout needs Within", denied.Condition)
	case o.within < 0 || o.within > limits.MaxDelay:
		return nil, fmt.Errorf("%w: Within is %v, want 1ms to ten years, or 0 for ever", flowfabric.ErrInvalidInput,
			o.within)
	case o.delay < 0 || o.delay > limits.MaxResumeDelay:
		return nil, fmt.Errorf("%w: ResumeAfter is %v, want 0..30 days", flowfabric.ErrInvalidInput, o.delay)
	}
	switch o.behaviour {
	case suspend.Fail, suspend.Cancel, suspend.Expire, suspend.Resume, suspend.Remind, suspend.Escalate,
		suspend.Notice:
	default:
		return nil, fmt.Errorf("%w: OnTimeout is %q, want Fail, Cancel, Expire, Resume, Remind, Notice or Escalate",
			flowfabric.ErrInvalidInput, string(o.behaviour))
	}
	switch o.reason {
	case suspend.ReasonSignal, suspend.ReasonApproval, suspend.ReasonCallback, suspend.ReasonToolResult,
		suspend.ReasonReview, "paused_by_policy", "paused_by_budget", "step_boundary", "manual_pause",
		"waiting_for_children":
	default:
		return nil, fmt.Errorf("%w: Because is %q, want one of the Reason constants", flowfabric.ErrInvalidInput,
			string(o.reason))
	}
	question, err := o.asked()
	if err != nil {
		return nil, err
	}
	return &waitwords.Wanted{Name: name, Condition: text, Keys: keys, Question: question, Reason: string(o.reason),
		Behaviour: string(o.behaviour), Within: o.within, ResumeDelay: o.delay}, nil
}

// asked is the question of the options, as it is stored; "" if there is none.
func (o waitOptions) asked() (string, error) {
	if o.question == nil {
		return "", nil
	}
	_, text, err := encodeQuestion(*o.question)
	return text, err
}
