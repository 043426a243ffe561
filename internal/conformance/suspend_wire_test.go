package conformance

import (
	"slices"
	"strconv"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// The wire forms of what concerns suspensions, after protocol and fence or id.

// wirePend opens a waitpoint for an hour, as a step under its name unless that is empty.
func wirePend(name string, m engine.Minted) []string {
	return []string{name, m.ID.String(), m.Key, m.Kid, m.Digest, m.Nonce, "3600000", "", ""}
}

func wireSuspend(q engine.Suspension) []string {
	timeout := ""
	if q.Timeout > 0 {
		timeout = strconv.FormatInt(q.Timeout.Milliseconds(), 10)
	}
	several := "0"
	if q.Several {
		several = "1"
	}
	args := []string{q.ID.String(), q.Request, q.Name, q.Reason, timeout, q.Behaviour,
		strconv.FormatInt(q.ResumeDelay.Milliseconds(), 10), q.Condition, q.Question, several,
		strconv.Itoa(len(q.Bindings))}
	for _, b := range q.Bindings {
		within := ""
		if b.Within > 0 {
			within = strconv.FormatInt(b.Within.Milliseconds(), 10)
		}
		if b.Pending {
			args = append(args, b.ID.String(), b.Key, "p", "", "", "", within)
		} else {
			args = append(args, b.ID.String(), b.Key, "f", b.Kid, b.Digest, b.Nonce, within)
		}
	}
	return args
}

// wireSignal is a signal by name, from an operator; key is its idempotency key.
func wireSignal(id flowfabric.UUID, name, key string) []string {
	ttl := "0"
	if key != "" {
		ttl = "86400000"
	}
	return []string{id.String(), name, "", "operator", "me", "", key, ttl, "", "json", `"payload"`}
}

func wireDeliver(id flowfabric.ExecutionID, m engine.Minted, name string) []string {
	return slices.Concat([]string{proto, ids.UUID(id).String(), m.ID.String(), m.Digest}, wireSignal(mint.UUID(),
		name, ""))
}

func wireApprove(id flowfabric.ExecutionID, waitpoint, name string) []string {
	return slices.Concat([]string{proto, ids.UUID(id).String(), waitpoint}, wireSignal(mint.UUID(), name, ""))
}

func wireResume(id flowfabric.ExecutionID, request string) []string {
	return []string{protoOf("me", "reason"), ids.UUID(id).String(), "", request, "operator", "0"}
}

// wireReissue gives a waitpoint a new token.
func wireReissue(id flowfabric.ExecutionID, m engine.Minted) []string {
	new := mintedBy(m.Kid, m.Key)
	return []string{protoOf("me", ""), ids.UUID(id).String(), m.ID.String(), new.Kid, new.Digest, new.Nonce}
}

// wireKey makes a key known; mode is seed or rotate.
func wireKey(mode, kid, grace, force string) []string {
	return []string{proto, mode, kid, printOf("secret of " + kid), grace, force}
}
