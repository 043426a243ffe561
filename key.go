package flowfabric

import "time"

// Key names what is submitted or sent, so that the server knows it when it comes again. It is itself an option of
// client.Submit, client.SubmitFlow, client.Client.Signal, Approve and Send; client.SubmitMany takes client.Keys. A call
// has one key: a second one is [ErrInvalidInput].
//
// Of an execution: as long as the key is held, a further submission with an equal key, to the same kind in the same
// namespace, creates nothing and returns the execution that holds it (client.Execution.Duplicate). The fields say for
// how long that is; with Text alone, as long as the execution is retained. Unless WhileActive or Debounce is set, a
// further submission must have an equal payload, as encoded before any encryption: with another one it fails with
// [ErrConflict]. A key never leads to an execution that was purged. A replay of an execution whose key another one
// holds by now is refused with [ErrConflict].
//
// Of a flow, with Text alone: its id depends on (namespace, kind, key). A second submit of the same flow with an equal
// key meets the first one (client.Flow.Duplicate). It completes the first one if that was cut short less than a day
// ago, and otherwise changes nothing: one that was given up since is met as it is, cancelled because of
// flow_abandoned. Another flow under the key (other nodes, inputs, edges, gates or mode) is [ErrConflict].
// The key is held as long as the flow is retained; for a day after that a submit under it is refused with
// [ErrResultPurged]. Without a key every submit makes a flow of its own.
//
// Of a flow, with WhileActive: as long as a flow of an equal key, in the same namespace and of the same kind, has not
// ended, a second submit makes nothing and returns the handle of the first, whatever its definition. If the first was
// cut short and is not released, a submit of the same definition completes it; else it holds the key until a tick
// gives it up, a day later. A replay of a flow whose key another one holds by now is refused with [ErrConflict]. A
// flow takes no other field.
//
// Of a signal: a later one to the same waitpoint with the same key, whatever else it says, is answered like the first
// (suspend.Delivered.Duplicate). So the key names the question that is answered, not the answer. Of a message to a
// mailbox: see client.Execution.Send. Both take Text alone.
//
// Keys of different namespaces or kinds have nothing to do with each other, nor have keys of flows with those of
// executions, nor keys that debounce with those that do not. A field out of bounds, and one that has no place in the
// call, is [ErrInvalidInput].
type Key struct {
	keyMarkers

	// Text is what is compared: 1..256 bytes.
	Text string

	// WhileActive lets the execution hold the key as long as it waits, runs, is delayed, blocked or suspended; whatever
	// end it comes to, the key is free. No payload is compared.
	WhileActive bool

	// Window is for how long the execution holds the key at least, whatever becomes of it, counted from the submission:
	// 1 s..365 days, in whole milliseconds. Once it is over, the key is free as soon as the execution has ended. The
	// execution is retained at least for its window, whatever its [Retention] says; an operator who purges it frees
	// the key. 0 is none.
	Window time.Duration

	// Debounce gathers submissions into one execution that runs once none has come for so long: 1 ms..10 years, in
	// whole milliseconds; 0 does not gather. The first submission makes an execution that is delayed by Debounce. Each
	// further one replaces its input and options and restarts the delay, in one atomic call, until a worker gets the
	// execution, also after the delay. It returns the handle of that execution (client.Execution.Duplicate and
	// Replaced). The first submission after that makes the next execution.
	//
	// What is replaced: input, tags, lane, priority, timeout, retry policy, retention, deadline, capabilities, gates,
	// limits of keys and creator. What an operator changed of these is gone. What stays: its id, the time of
	// its creation, which decides its place among equals in the queue, its mailbox, its history, and that an operator
	// holds it. A lane that accepts nothing refuses to replace as well. A submission that is repeated after a lost
	// reply is applied once, as long as it is among the last eight that its execution took in.
	//
	// Debounce excludes WhileActive, Window, [Delay] and [DelayUntil].
	Debounce time.Duration

	// DebounceMax bounds for how long submissions put their execution off in all: it may run at the latest so long
	// after its creation, with what the last submission said. Each submission obeys its own bound. From Debounce to 10
	// years, in whole milliseconds; 0 is no bound.
	DebounceMax time.Duration
}

// IdempotencyKey is a [Key] of this text alone.
func IdempotencyKey(text string) Key { return Key{Text: text} }

// keyMarkers show where a key is accepted.
type keyMarkers struct{}

func (keyMarkers) SubmitOption()     {}
func (keyMarkers) SubmitFlowOption() {}
func (keyMarkers) SignalOption()     {}
func (keyMarkers) ApproveOption()    {}
func (keyMarkers) SendOption()       {}
