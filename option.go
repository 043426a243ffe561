package flowfabric

import (
	"slices"
	"time"
)

// The options of an execution are declared here, once. What a function of this file returns says where the option is
// accepted; the compiler refuses it elsewhere. A later option wins over an earlier one of the same name, and an
// option of a submission, a schedule or a node wins over the definition. A value out of bounds is reported by the
// call that got the option.
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

	// CreatorOption is [Creator]: accepted by client.Submit, client.SubmitMany, client.Schedule, client.ScheduleFlow,
	// client.SubmitFlow, flow.Add and flow.Child.
	CreatorOption interface {
		StartOption
		ScheduleOption()
		SubmitFlowOption()
		ScheduleFlowOption()
	}

	// NamespaceOption is [Namespace]: accepted by client.Submit, client.SubmitMany, client.Schedule,
	// client.ScheduleFlow, client.SubmitFlow and client.AttachKey.
	NamespaceOption interface {
		SubmitOption()
		ScheduleOption()
		SubmitFlowOption()
		ScheduleFlowOption()
		AttachOption()
	}

	// SubmitKeyOption is [KeyWindow], [Debounce] and [DebounceMax]: accepted by client.Submit, and KeyWindow and
	// DebounceMax by client.SubmitMany.
	SubmitKeyOption interface{ SubmitOption() }

	// KeyOption is [IdempotencyKey]: accepted by client.Submit, client.SubmitFlow, client.Client.Signal, Approve and
	// Send.
	KeyOption interface {
		SubmitOption()
		SubmitFlowOption()
		SignalOption()
		ApproveOption()
		SendOption()
	}
)

// setter is every option: the type that a function returns shows only the markers of the places where the option
// means something.
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
func (setter) SignalOption()       {}
func (setter) ApproveOption()      {}
func (setter) SendOption()         {}

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
// 256 tokens and 4,096 bytes joined, no commas, white space or control characters. Duplicates are dropped. Default
// none.
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

// Budgets names the budgets that must have room before the execution runs, and that its handler spends of: at most
// 16, each 1..64 letters, digits, "_", "." and "-", a letter or digit first. They replace those of the definition;
// those that are attached to its namespace, lane or tags come in addition. Of a flow: for all nodes, in addition to
// their own. Default none.
//
// A budget that does not exist refuses a submission, a schedule or a flow with [ErrNotFound] before anything is
// created; what is known to exist is believed for 10 s. For a child nobody asks before it is to run, and it waits
// then.
func Budgets(names ...string) SharedOption {
	return setter(func(s *Start) { s.Budgets = names })
}

// Quotas names the quotas that must admit the execution before it runs: at most 8, as [Budgets] does budgets. One
// that does not exist is [ErrNotFound].
func Quotas(names ...string) SharedOption {
	return setter(func(s *Start) { s.Quotas = names })
}

// LimitKey limits the executions that have this key, whatever their kind, lane or namespace: how many run at the same
// time, how many start within a period, or both. The key is computed at the submission: a tenant, a user, an API key,
// "mail:" + host. Nothing is registered first, there may be millions of keys, and one that nobody uses takes no
// memory. Work that has to wait is not handed out meanwhile, so it holds no slot of a worker and delays no other key.
//
// A key has 1..128 bytes; each byte other than letters, digits and "_.:/@+=-" counts three. Executions of the same
// key may be given different limits: each obeys its own, and all count. Starts are counted for each Per on its own.
// Several LimitKey with different keys add up: with the quotas, 8 at most. They replace those of the definition. Of a
// flow: for all nodes, in addition to their own.
//
// A key that is empty or too long, one that is given twice, or a limit that is out of bounds is [ErrInvalidInput].
// For a rule that an operator can change without a new submission, see [Quotas].
func LimitKey(key string, limit Limit) SharedOption {
	l := KeyLimit{Key: key, Concurrency: limit.Concurrency, Rate: limit.Rate, Per: Millis(limit.Per)}
	return setter(func(s *Start) { s.Limits = append(slices.Clip(s.Limits), l) })
}

// Namespace is the namespace of the execution, or of a flow and all its members: 1..64 bytes of printable ASCII
// without braces. Default: client.Config.Namespace.
func Namespace(name string) NamespaceOption {
	return setter(func(s *Start) { s.Namespace = name })
}

// Creator is a note of who submitted: at most 64 bytes. Default: client.Config.Creator; for a node who submitted its
// flow, and for a child the execution that made it.
func Creator(name string) CreatorOption {
	return setter(func(s *Start) { s.Creator = name })
}

// Unique is a key that only one execution has at a time: 1..256 bytes. The key is taken as long as its execution
// waits, runs, is delayed, blocked or suspended; whatever end it comes to, the key is free. Meanwhile a second submit
// with an equal key, whatever its input, creates nothing and returns the handle of the first
// (client.Execution.Duplicate). [KeyWindow] keeps the key longer. Keys of different namespaces or kinds have nothing
// to do with each other; within a kind, those of Unique and [IdempotencyKey] are the same keys.
//
// Of a flow: as long as one of an equal key, in the same namespace and of the same kind, has not ended, a second submit
// makes nothing and returns the handle of the first (client.Flow.Duplicate), whatever its definition. If the first was
// cut short and is not released, a submit of the same definition completes it; else it has the key until a tick gives
// it up, a day later. A KeyWindow is for executions. Keys of flows, and those of executions, have nothing to do with
// each other. A replay of a flow whose key another one has by now is refused with [ErrConflict].
//
// An execution has one key: Unique and IdempotencyKey together are [ErrInvalidInput]. client.SubmitMany refuses it
// and takes client.UniqueKeys. A replay of an execution whose key another one has by now is refused with
// [ErrConflict].
func Unique(key string) interface { // accepted by client.Submit and client.SubmitFlow
	SubmitOption()
	SubmitFlowOption()
} {
	return setter(func(s *Start) { s.UniqueKey = &key })
}

// KeyWindow is for how long a submission has its key at least, whatever becomes of the execution, counted from the
// submission: 1 s..365 days, in whole milliseconds. Once it is over, the key is free as soon as the execution has
// ended. By default the key of [Unique] has no such time, and that of [IdempotencyKey] is taken for as long as the
// execution is retained. An execution is retained at least for its window, whatever its [Retention] says; an operator
// who purges it frees the key. Without a key it is [ErrInvalidInput].
func KeyWindow(d time.Duration) SubmitKeyOption {
	return setter(func(s *Start) { s.KeyWindow = new(Millis(d)) })
}

// IdempotencyKey recognises a submission that is repeated: 1..256 bytes.
//
// Of an execution: as long as the first one is retained, or has not ended within a [KeyWindow], a second submit with
// an equal key and an equal payload, to the same kind in the same namespace, creates nothing and returns the first
// execution (client.Execution.Duplicate); with another payload it fails with [ErrConflict]. The payload is compared
// as encoded, before any encryption. A key never leads to an execution that was purged. client.SubmitMany refuses it
// and takes client.IdempotencyKeys. See also [Unique].
//
// Of a flow: its id depends on (namespace, kind, key) alone. A second submit of the same flow with an equal key meets
// the first one (client.Flow.Duplicate), completes it if that was cut short less than a day ago, and otherwise
// changes nothing: one that was given up since is met as it is, cancelled because of flow_abandoned. Another flow
// under the key (other nodes, inputs, edges, budgets, quotas or mode) is [ErrConflict]. The key is taken as long as
// the flow is retained; for a day after that a submit under it is refused with [ErrResultPurged]. Without a key every
// submit makes a flow of its own.
//
// Of a signal: a later one to the same waitpoint with the same key, whatever else it says, is answered like the first
// (suspend.Delivered.Duplicate). So the key names the question that is answered, not the answer.
func IdempotencyKey(key string) KeyOption {
	return setter(func(s *Start) { s.IdempotencyKey = &key })
}

// Debounce gathers submissions under a key (1..256 bytes) into one execution that runs once none has come for d: 1
// ms..10 years, in whole milliseconds. The first makes an execution that is delayed by d. Each further one, as long
// as no worker was given that, replaces what it was submitted with and delays it by d from then on, in one atomic
// call, and returns its handle (client.Execution.Duplicate and Replaced). The first submission after that makes the
// next execution.
//
// What is replaced: input, tags, lane, priority, timeout, retry policy, retention, deadline, capabilities, budgets,
// quotas, limits of keys and creator. All of it is as if the execution had been submitted anew, so what an operator
// changed of it is gone. What stays: its id, the time of its creation, which decides its place among equals in the
// queue, its mailbox, its history, and that an operator holds it. It is replaced until a worker is given it, also
// after its delay: then it is delayed again. Without [DebounceMax] it may be put off for as long as submissions come.
//
// Keys of different namespaces or kinds have nothing to do with each other, nor with those of [Unique] and
// [IdempotencyKey]. With one of those, KeyWindow, Delay or DelayUntil it is [ErrInvalidInput]. client.SubmitMany
// refuses it and takes client.DebounceKeys. A lane that accepts nothing refuses to replace as well. A submission that
// is repeated after a lost reply is applied once, as long as it is among the last eight that its execution took in.
func Debounce(key string, d time.Duration) SubmitKeyOption {
	return setter(func(s *Start) { s.DebounceKey, s.Debounce = &key, Millis(d) })
}

// DebounceMax bounds for how long submissions under a [Debounce] key put their execution off in all: it may run at
// the latest d after its creation, with what the last submission said. Of several submissions each obeys its own
// bound. From the delay of the Debounce to 10 years, in whole milliseconds; without it there is no bound. Without a
// Debounce it is [ErrInvalidInput].
func DebounceMax(d time.Duration) SubmitKeyOption {
	return setter(func(s *Start) { s.DebounceMax = new(Millis(d)) })
}
