package client

import (
	"errors"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// refusal is a server's answer in the words of the one who asked. It matches what the answer matches.
type refusal struct {
	text string
	err  error
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.err }

// admit refuses a call that cannot be made: on a closed client, or about no execution.
func (c *Client) admit(verb string, id flowfabric.ExecutionID) error {
	var err error
	switch {
	case c.closed.Load():
		err = ErrClosed
	case id.IsZero():
		err = fmt.Errorf("%w: the execution id is empty", flowfabric.ErrInvalidInput)
	default:
		return nil
	}
	if id.IsZero() {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return fmt.Errorf("%s %s: %w", verb, id, err)
}

// operated wraps the answer to one call with its verb and, where the server only has a code, with what it means for
// the one who asked: which state the execution is in, and what to do about it.
func operated(verb string, id flowfabric.ExecutionID, err error) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*flowfabric.Error](err); ok {
		err = inWords(refused, err)
	}
	return fmt.Errorf("%s %s: %w", verb, id, err)
}

// inWords replaces the text of a refusal that says too little; err wraps refused, and stays what is matched.
func inWords(refused *flowfabric.Error, err error) error {
	state, known := flowfabric.Project(flowfabric.Code(refused.Slot(0))) // of those that bring a state
	say := func(words string) error { return &refusal{refused.Code + ": " + words, err} }
	switch {
	case errors.Is(refused, flowfabric.ErrReplayNotAllowed):
		return say("it succeeded; client.Force() replays a success")
	case !known:
		return err
	case errors.Is(refused, flowfabric.ErrNotActive) && state.Terminal():
		return fmt.Errorf("%w: it is %s", flowfabric.ErrTerminal, state.Public)
	case errors.Is(refused, flowfabric.ErrNotActive):
		return say(fmt.Sprintf("nobody runs it, it is %s", state.Public))
	case errors.Is(refused, flowfabric.ErrNotEligible):
		return say(fmt.Sprintf("it is %s", state.Public))
	case errors.Is(refused, flowfabric.ErrNotTerminal):
		return say(fmt.Sprintf("it is %s; cancel it first", state.Public))
	case errors.Is(refused, flowfabric.ErrResultPurged):
		return say(fmt.Sprintf("it was purged; it was %s", state.Public))
	}
	return err
}
