package client

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// signalled is operated for calls about waitpoints and suspensions. It says what to do next; it never shows a token.
func signalled(verb string, id flowfabric.ExecutionID, err error) error {
	refused, ok := errors.AsType[*flowfabric.Error](err)
	if !ok {
		return operated(verb, id, err)
	}
	words := signalWords(refused)
	if words == "" {
		return operated(verb, id, err)
	}
	return fmt.Errorf("%s %s: %w", verb, id, &refusal{refused.Code + ": " + words, err})
}

// signalWords is what a refusal means for the one who asked, "" if the server's own words say it.
func signalWords(refused *flowfabric.Error) string {
	switch is := func(target error) bool { return errors.Is(refused, target) }; {
	case is(flowfabric.ErrInvalidToken):
		return "the token opens no waitpoint of this store: it is of another store, was replaced by client.ReissueToken, or is of an execution that was purged"
	case is(flowfabric.ErrTokenExpired):
		return "the key of the token was rotated out; client.ReissueToken makes a new token for its waitpoint"
	case is(flowfabric.ErrNoTokenKeys):
		return "the store knows no token key; start a worker with Config.TokenKeys (" + suspend.EnvTokenKeys + "), or call client.RotateTokenKeys"
	case is(flowfabric.ErrWaitpointClosed):
		return "it came too late, the waitpoint closed" + closing(refused.Slot(0), refused.Slot(1))
	case is(flowfabric.ErrWaitpointNotOpen):
		return "the waitpoint is closed" + closing(refused.Slot(0), "") + "; no token opens it any more"
	case is(flowfabric.ErrWaitpointNotFound):
		return fmt.Sprintf("the execution has no waitpoint %.80q; client.Waitpoints lists those it has", refused.Slot(0))
	case is(flowfabric.ErrSuspensionChanged):
		return "it is suspended anew, as " + refused.Slot(0) + "; look at client.Suspension before you resume that one"
	case is(flowfabric.ErrKidNotCurrent):
		return fmt.Sprintf("tokens are signed with kid %q now, which is not among this client's token keys; add it to Config.TokenKeys (%s)",
			refused.Slot(0), suspend.EnvTokenKeys)
	case is(flowfabric.ErrNotSignalable):
		return "it has ended" + stateOf(refused) + "; nobody waits for a signal"
	case is(flowfabric.ErrNotSuspended):
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
	state, known := flowfabric.Project(flowfabric.Code(refused.Slot(0)))
	if !known {
		return ""
	}
	return fmt.Sprintf(", it is %s", state.Public)
}
