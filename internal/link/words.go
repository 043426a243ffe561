package link

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// refusal is a server's answer in the words of the one who asked. It matches what the answer matches.
type refusal struct {
	text string
	err  error
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.err }

// InWords is err with another text.
func InWords(text string, err error) error { return &refusal{text, err} }

// Operated wraps the answer to one call with its verb and, where the server only has a code, with what it means for
// the one who asked: which state the execution is in, and what to do about it.
func Operated(verb string, id flowfabric.ExecutionID, err error) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*flowfabric.Error](err); ok {
		err = explained(refused, err)
	}
	return fmt.Errorf("%s %s: %w", verb, id, err)
}

// explained replaces the text of a refusal that says too little; err wraps refused, and stays what is matched.
func explained(refused *flowfabric.Error, err error) error {
	state, known := codes.Project(codes.Code(denied.Slot(refused, 0))) // of those that bring a state
	say := func(words string) error { return InWords(refused.Code+": "+words, err) }
	switch {
	case errors.Is(refused, denied.ReplayNotAllowed):
		return say("it succeeded; Force replays a success")
	case !known:
		return err
	case errors.Is(refused, denied.NotActive) && state.Terminal():
		return fmt.Errorf("%w: it is %s", flowfabric.ErrTerminal, state.Public)
	case errors.Is(refused, denied.NotActive):
		return say(fmt.Sprintf("nobody runs it, it is %s", state.Public))
	case errors.Is(refused, denied.NotEligible):
		return say(fmt.Sprintf("it is %s", state.Public))
	case errors.Is(refused, denied.NotTerminal):
		return say(fmt.Sprintf("it is %s; cancel it first", state.Public))
	case errors.Is(refused, flowfabric.ErrResultPurged):
		return say(fmt.Sprintf("it was purged; it was %s", state.Public))
	}
	return err
}

// Signalled is [Operated] for calls about waitpoints and suspensions. It says what to do next; it never shows a token.
func Signalled(verb string, id flowfabric.ExecutionID, err error) error {
	refused, ok := errors.AsType[*flowfabric.Error](err)
	if !ok {
		return Operated(verb, id, err)
	}
	words := signalWords(refused)
	if words == "" {
		return Operated(verb, id, err)
	}
	return fmt.Errorf("%s %s: %w", verb, id, InWords(refused.Code+": "+words, err))
}

// signalWords is what a refusal means for the one who asked, "" if the server's own words say it.
func signalWords(refused *flowfabric.Error) string {
	switch is := func(target error) bool { return errors.Is(refused, target) }; {
	case is(denied.Token):
		return "the token opens no waitpoint of this store: it is of another store, was replaced by admin.ReissueToken, or is of an execution that was purged"
	case is(flowfabric.ErrTokenExpired):
		return "the key of the token was rotated out; admin.ReissueToken makes a new token for its waitpoint"
	case is(denied.NoTokenKeys):
		return "the store knows no token key; start a worker with Config.TokenKeys (" + suspend.EnvTokenKeys +
			"), or call admin.RotateTokenKeys"
	case is(denied.WaitpointClosed):
		return "it came too late, the waitpoint closed" + closing(denied.Slot(refused, 0), denied.Slot(refused, 1))
	case is(denied.WaitpointNotOpen):
		return "the waitpoint is closed" + closing(denied.Slot(refused, 0), "") + "; no token opens it any more"
	case is(denied.NoWaitpoint):
		return fmt.Sprintf("the execution has no waitpoint %.80q; client.Waitpoints lists those it has",
			denied.Slot(refused, 0))
	case is(denied.SuspensionChanged):
		return "it is suspended anew, as " + denied.Slot(refused, 0) +
			"; look at client.Suspension before you resume that one"
	case is(denied.KidNotCurrent):
		return fmt.Sprintf(
			"tokens are signed with kid %q now, which is not among this client's token keys; add it to Config.TokenKeys (%s)",
			denied.Slot(refused, 0), suspend.EnvTokenKeys)
	case is(denied.NotSignalable):
		return "it has ended" + stateOf(refused) + "; nobody waits for a signal"
	case is(denied.NotSuspended):
		return "only a suspended execution is resumed" + stateOf(refused)
	}
	return ""
}

// closing tells why and when a waitpoint closed, as far as the server said.
func closing(reason, when string) string {
	text := ""
	if ms, err := strconv.ParseInt(when, 10, 64); err == nil && ms > 0 {
		text = " at " + time.UnixMilli(ms).UTC().Format(time.RFC3339)
	}
	if reason != "" {
		text += " (" + reason + ")"
	}
	return text
}

// stateOf tells the state that a refusal brings, if it does.
func stateOf(refused *flowfabric.Error) string {
	state, known := codes.Project(codes.Code(denied.Slot(refused, 0)))
	if !known {
		return ""
	}
	return fmt.Sprintf(", it is %s", state.Public)
}

// AboutFlow wraps the answer to a call about a flow with its verb, and puts the state it was refused for into words.
func AboutFlow(verb string, id flowfabric.FlowID, err error) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*flowfabric.Error](err); ok {
		state, known := engine.FlowStateOf(denied.Slot(refused, 0))
		switch {
		case !known:
		case errors.Is(refused, denied.FlowTerminal):
			err = InWords(fmt.Sprintf("%s: it is %s", refused.Code, state), err)
		case errors.Is(refused, flowfabric.ErrResultPurged):
			err = InWords(fmt.Sprintf("%s: it was purged; it was %s", refused.Code, state), err)
		}
	}
	return fmt.Errorf("%s flow %s: %w", verb, id, err)
}

// Admit refuses a call about an execution that cannot be made: closed is the client's error once it is closed, or id
// is zero.
func Admit(verb string, id flowfabric.ExecutionID, closed error) error {
	err := closed
	if err == nil && id.IsZero() {
		err = fmt.Errorf("%w: the execution id is empty", flowfabric.ErrInvalidInput)
	}
	switch {
	case err == nil:
		return nil
	case id.IsZero():
		return fmt.Errorf("%s: %w", verb, err)
	}
	return fmt.Errorf("%s %s: %w", verb, id, err)
}

// CheckBy refuses a name of who asks that is too long to be kept.
func CheckBy(by string) error {
	if len(by) > limits.MaxName {
		return fmt.Errorf("%w: By has %d bytes, want at most %d", flowfabric.ErrInvalidInput, len(by), limits.MaxName)
	}
	return nil
}

// CheckNamed refuses a call that decides something in somebody's name and does not say whose, in 1..limit bytes.
func CheckNamed(by string, limit int) error {
	if by == "" || len(by) > limit || strings.ContainsFunc(by, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return fmt.Errorf(
			"%w: By has %d bytes, want 1..%d without control characters that say who asks (flowfabric.By, or client.Config.Creator)",
			flowfabric.ErrInvalidInput, len(by), limit)
	}
	return nil
}

// AdmitFlow is [Admit] for a call about a flow.
func AdmitFlow(verb string, id flowfabric.FlowID, closed error) error {
	err := closed
	if err == nil && id.IsZero() {
		err = fmt.Errorf("%w: the flow id is empty", flowfabric.ErrInvalidInput)
	}
	switch {
	case err == nil:
		return nil
	case id.IsZero():
		return fmt.Errorf("%s: %w", verb, err)
	}
	return fmt.Errorf("%s flow %s: %w", verb, id, err)
}
