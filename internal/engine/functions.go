package engine

import "github.com/flowfabric/flowfabric-go/internal/wire"

// function is one of the library. What it takes, answers and refuses is in the header of its file in lua/.
type function struct {
	name     string
	readonly bool
	once     bool // its caller repeats it, the engine does not
	bare     bool // of no partition: it takes no note of who asks
}

// functionOf are the functions by name.
var functionOf = func() map[string]function {
	out := map[string]function{}
	for name := range wire.Calls {
		out[name] = function{name: name, readonly: wire.ReadOnly[name]}
	}
	for _, name := range []string{"ff_create_execution", "ff_flow_create", "ff_flow_stage", "ff_flow_seal"} {
		out[name] = function{name: name, once: true}
	}
	for _, name := range []string{"ff_configure", "ff_boot"} {
		out[name] = function{name: name, bare: true}
	}
	return out
}()

// Those that are called by hand, often.
var (
	fnBoot     = functionOf["ff_boot"]
	fnPoll     = functionOf["ff_poll"]
	fnCreate   = functionOf["ff_create_execution"]
	fnComplete = functionOf["ff_complete_execution"]
	fnClaim    = functionOf["ff_claim_next"]
	fnRenew    = functionOf["ff_session_renew"]
	fnAppend   = functionOf["ff_append_frames"]
)
