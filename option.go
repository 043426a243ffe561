package flowfabric

import (
	"slices"
	"time"
)

// The options of an execution are declared here, once, but for [Key]. What a function of this file returns says where
// the option is accepted; the compiler refuses it elsewhere. A later option wins over an earlier one of the same name,
// and an option of a submission, a schedule or a node wins over the definition. A value out of bounds is reported by
// the call that got the option.
type (
	// WorkOption is accepted by handler.Define as a default, and by client.Submit, client.SubmitMany,
	// client.Schedule, flow.Add and flow.Child.
	WorkOption interface {
		DefineOption()
		SubmitOption()
		ScheduleOption()
		NodeOption()
	}

	// SharedOption is a [WorkOption] that flow.New, client.SubmitFlow and client.ScheduleFlow accept as well, for the
	// flow as a whole.
	SharedOption interface {
		WorkOption
		FlowOption()
		SubmitFlowOption()
		ScheduleFlowOption()
	}

	// StartOption is accepted where one execution begins: client.Submit, client.SubmitMany, flow.Add and flow.Child.
	StartOption interface {
		SubmitOption()
		NodeOption()
	}
)

// setter is every option but [Key]: the type that a function returns shows only the markers of the places where the
// option means something.
type setter func(s *Start)

func (f setter) Set(s *Start) { f(s) }

func (setter) DefineOption()       {}
func (setter) SubmitOption()       {}
func (setter) ScheduleOption()     {}
func (setter) ScheduleFlowOption() {}
func (setter) NodeOption()         {}
func (setter) FlowOption()         {}
func (setter) SubmitFlowOption()   {}
func (setter) AttachOption()       {}

// Priority is 0..9000; within a lane higher is claimed first, across partitions as docs/promises.md says. Default 0.
func Priority(n int) WorkOption {
	return setter(func(s *Start) { s.Priority = n })
}

// Lane names the lane: 1..64 bytes of printable ASCII without braces. Default "default".
func Lane(name string) WorkOption {
	return setter(func(s *Start) { s.Lane = name })
}

// Timeout bounds one attempt, suspended time excluded: 1 ms..10 years; 0, the default, is no bound. An attempt that
// runs longer fails with category attempt_timeout, and the retry policy decides what follows.
func Timeout(d time.Duration) WorkOption {
	return setter(func(s *Start) { s.AttemptTimeout = Millis(d) })
}

// Deadline bounds the whole execution, with all attempts and pauses: it ends as expired when it has not ended d after
// its creation (a node: after its flow was submitted, also while it waits for other nodes). 1 ms..10 years; 0, the
// default, is none. No retry follows.
func Deadline(d time.Duration) WorkOption {
	return setter(func(s *Start) { s.Deadline, s.DeadlineAt = Millis(d), time.Time{} })
}

// DeadlineAt is [Deadline] as an instant on the server's clock, at most 10 years ahead; of the two the later option
// counts. A time that has passed is accepted: the execution never runs and expires at once, as soon as any worker
// looks after its partition.
func DeadlineAt(t time.Time) StartOption {
	return setter(func(s *Start) { s.Deadline, s.DeadlineAt = 0, t })
}

// Delay keeps the execution from being claimed for d: 0..10 years, in whole milliseconds. It counts from the
// submission on the server's clock; for a node from when the nodes it depends on allow it to run. Default 0.
func Delay(d time.Duration) StartOption {
	return setter(func(s *Start) { s.Delay, s.DelayUntil = Millis(d), time.Time{} })
}

// DelayUntil keeps the execution from being claimed before t on the server's clock, at most 10 years ahead; of this
// and [Delay] the later option counts. A time that has passed means no delay.
func DelayUntil(t time.Time) StartOption {
	return setter(func(s *Start) { s.Delay, s.DelayUntil = 0, t })
}

// Retries is how often the execution is tried again after a failed attempt: 0..1000. The pauses are those of the
// definition, see handler.Retry; if it has no retries, 1 s growing to 60 s. Default 3.
func Retries(n int) WorkOption {
	return setter(func(s *Start) { s.Policy.Retry.MaxRetries = n })
}

// Retention is for how long the execution, its result and its frames are kept after its end: whole seconds, 1 s..10
// years. outcomes says for which ends: [Completed], [Failed], [Cancelled] (skipped members of flows as well),
// [Expired]; without any for all of them. Of several options the last one counts for an outcome. By default the lane
// decides: unless an operator said otherwise, what completed is kept for 24 h, and what failed, expired or was
// cancelled for 14 days. 0 takes a definition's retention back, and a definition itself refuses 0. After that it is
// purged, and its key is free. The members of a flow stay at least until the flow has ended. Another state is
// [ErrInvalidInput].
func Retention(d time.Duration, outcomes ...PublicState) WorkOption {
	if len(outcomes) == 0 {
		outcomes = []PublicState{Completed, Failed, Cancelled, Expired}
	}
	return setter(func(s *Start) {
		for _, outcome := range outcomes {
			if kept := s.Policy.Retention.Of(outcome); kept != nil {
				*kept = d
			} else {
				s.Policy.Retention.Completed = -1 // which the check of the policy refuses
			}
		}
	})
}

// Capabilities names what a worker must have to be given the execution, instead of what the definition names: at most
// 256 tokens and 4,096 bytes joined, no commas, white space or control characters. Duplicates are dropped. Workers
// offer "version:" and their runtime.Config.AppVersion by themselves. Default none.
func Capabilities(tokens ...string) WorkOption {
	return setter(func(s *Start) { s.Capabilities = tokens })
}

// Tags are labels stored with the execution, or with the flow. Every key needs a dot: "app.team", not "team". They
// are handed to the handler and replace the tags of the definition: at most 64, of a schedule 62. A key is two or
// more words of a-z, 0-9 and _, joined by dots, beginning with a letter, at most 64 bytes; a value has at most 256
// bytes. The map must not change until the call has returned; for a flow and its nodes, until the flow was submitted.
// Default none.
func Tags(tags map[string]string) SharedOption {
	return setter(func(s *Start) { s.Tags = tags })
}

// Gates names the gates that must admit the execution before it runs, and of whose amounts its handler spends: at most
// 16, each 1..64 letters, digits, "_", "." and "-", a letter or digit first. They replace those of the definition;
// those that are attached to its namespace, lane or tags come in addition. Of a flow: for all nodes, in addition to
// their own. Default none.
//
// A gate that does not exist refuses a submission, a schedule or a flow with [ErrNotFound] before anything is
// created; what is known to exist is believed for 10 s. For a child nobody asks before it is to run, and it waits
// then.
func Gates(names ...string) SharedOption {
	return setter(func(s *Start) { s.Names = names })
}

// LimitKey limits the executions that have this key, whatever their kind, lane or namespace: how many run at the same
// time, how many start within a period, or both. The key is computed at the submission: a tenant, a user, an API key,
// "mail:" + host. Nothing is registered first, there may be millions of keys, and one that nobody uses takes no
// memory. Work that has to wait is not handed out meanwhile, so it holds no slot of a worker and delays no other key.
//
// A key has 1..128 bytes; each byte other than letters, digits and "_.:/@+=-" counts three. Executions of the same
// key may be given different limits: each obeys its own, and all count. Starts are counted for each Per on its own.
// Several LimitKey with different keys add up, 8 at most. They replace those of the definition. Of a
// flow: for all nodes, in addition to their own.
//
// A key that is empty or too long, one that is given twice, or a limit that is out of bounds is [ErrInvalidInput].
// For a rule that an operator can change without a new submission, see [Gates].
func LimitKey(key string, limit Limit) SharedOption {
	l := KeyLimit{Key: key, Concurrency: limit.Concurrency, Rate: limit.Rate, Per: Millis(limit.Per)}
	return setter(func(s *Start) { s.Limits = append(slices.Clip(s.Limits), l) })
}

// Namespace is the namespace of the execution, or of a flow and all its members: 1..64 bytes of printable ASCII
// without braces. Default: client.Config.Namespace.
func Namespace(name string) interface { // accepted wherever something is submitted, and by client.AttachKey
	SubmitOption()
	ScheduleOption()
	SubmitFlowOption()
	ScheduleFlowOption()
	AttachOption()
} {
	return setter(func(s *Start) { s.Namespace = name })
}

// Creator is a note of who submitted: at most 64 bytes. Default: client.Config.Creator; for a node who submitted its
// flow, and for a child the execution that made it.
func Creator(name string) interface { // accepted wherever something is submitted, and by flow.Add and flow.Child
	StartOption
	ScheduleOption()
	SubmitFlowOption()
	ScheduleFlowOption()
} {
	return setter(func(s *Start) { s.Creator = name })
}
