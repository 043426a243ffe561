// Package driver is what a task system must offer to be measured here. FlowFabric and its peers are measured by the
// same scenarios through the same few methods; what a system lacks is reported as "n/a" and never imitated.
//
//	System ──Serve──▶ Server (private, empty)          one per scenario
//	   └────Open────▶ Store ──Submit, SubmitMany──▶    one per round, after Server.Reset
//	                    └────Work──▶ handler           one worker per call, as if it were a process
//	                    └────Streamer, Suspender, Counter, Poller: only systems that have it
//
// # What every driver keeps, so that figures can be compared
//
//   - A job carries exactly the payload it is given, and nothing the scenario did not ask for: no
//     delay, no uniqueness, no deadline, default priority, the system's default retry policy.
//   - A typed job ([Settings].Typed) carries it as the text of a [Document], encoded and decoded in the way the
//     system has for typed jobs, and its result is the document's [Answer]. Other jobs carry bytes.
//   - Submit returns once the server has confirmed the job, SubmitMany once it has confirmed all.
//   - The handler gets the payload and returns nothing; its job then completes, without a result unless it is typed.
//   - A completed job is retained for an hour or more, so that its outcome could be asked for. A second driver
//     without retention may stand beside it, under another name.
//   - Settings are the system's defaults. A tuned driver stands beside the default one, under another name
//     that says what was tuned.
//   - Nothing is forced to disk by the server, in any system.
//   - Logging at level info into nothing, metrics on, as in production.
package driver

import (
	"context"
	"errors"
	"time"
)

// System is one system under test, in one configuration.
type System interface {
	// Name tells systems and configurations apart, for example "flowfabric".
	Name() string
	// Version of the system, as exactly as it is known.
	Version() string
	// Serve starts a private, empty server of the kind the system needs. An error that wraps [ErrNotInstalled]
	// says that this machine lacks something, and what installs it; the run then goes on without the system.
	Serve(ctx context.Context) (Server, error)
	// Open connects producers and workers to a server that was just started or reset.
	Open(ctx context.Context, s Server, cfg Settings) (Store, error)
}

// ErrNotInstalled is why a system cannot be measured on this machine.
var ErrNotInstalled = errors.New("not installed")

// Settings are the run's, for all systems.
type Settings struct {
	// Partitions to spread the work over, where the system has such a thing.
	Partitions int
	// Typed jobs carry a JSON document and have a result. Payloads are printable then.
	Typed bool
}

// Server is a private server process and what it says of itself. There is one implementation for every kind of server.
type Server interface {
	// Name and version, as the server itself tells them.
	Name() string
	// URL at which the system reaches it.
	URL() string
	// PID of the process, for profilers.
	PID() int
	// Reset drops all data.
	Reset(ctx context.Context) error
	// Sample reads the counters.
	Sample(ctx context.Context) (Sample, error)
	// Memory is what the data occupy, in bytes, without the buffers of connections.
	Memory(ctx context.Context) (float64, error)
	// Stop ends the process and removes its files.
	Stop()
}

// Callable is a [Server] that runs functions. Trivial opens connections through which call makes the server run one
// that does nothing.
type Callable interface {
	Trivial(ctx context.Context) (call func(context.Context) error, stop func(), err error)
}

// Sample is the state of a server's counters, or the difference of two.
type Sample struct {
	CPU time.Duration // of the whole process, user and system
	// Commands by name, those that functions and scripts make included.
	Commands map[string]Command
}

// Command counts the calls of one command and the time spent in them.
type Command struct {
	Calls float64 `json:"calls"`
	USec  float64 `json:"usec"`
}

// Sub is what happened between before and s.
func (s Sample) Sub(before Sample) Sample {
	out := Sample{CPU: s.CPU - before.CPU, Commands: map[string]Command{}}
	for name, c := range s.Commands {
		b := before.Commands[name]
		if c.Calls > b.Calls {
			out.Commands[name] = Command{c.Calls - b.Calls, c.USec - b.USec}
		}
	}
	return out
}

// Store is an open connection to one server. Its methods may be called concurrently.
type Store interface {
	Submit(ctx context.Context, payload []byte) error
	// SubmitMany submits at least 100 jobs in the way the system has for many; if it has none, one by one on all its
	// connections.
	SubmitMany(ctx context.Context, payloads [][]byte) error
	// Work starts a worker with connections of its own and returns when it can take work. stop lets running
	// handlers end and waits until the worker has ended.
	Work(ctx context.Context, w Worker) (stop func() error, err error)
	// Close disconnects; workers have been stopped before.
	Close()
}

// Worker says what one worker does.
type Worker struct {
	// Handle gets a job's payload. It is called concurrently.
	Handle      func(ctx context.Context, payload []byte)
	Concurrency int
	// Counts says that Handle returns at once and looks at no payload. A worker in a process of its own may then have
	// such a handler there, and afterwards call Handle once for every job that it handled, without the payload.
	Counts bool
	// Work is how long a job takes, 0 if that is no matter: Handle returns after so long. With Counts a worker in a
	// process of its own takes that time there. No more than Concurrency handlers may then run at once in any
	// configuration.
	Work time.Duration
}

// Remote is a [Store] whose producers and workers live, wholly or in part, in processes of their own. Their processor
// time counts as this process's.
type Remote interface {
	PIDs() []int
}

// Producer is a [Store] that submits from a process of its own. Where calls are timed, that process makes and times
// them, so that what the two processes say to each other is no part of the figures.
type Producer interface {
	// Prepare hands payloads over. send then submits them as so many concurrent submitters, each its share and
	// perCall jobs in a call, and returns how long the calls took.
	Prepare(ctx context.Context, payloads [][]byte, submitters,
		perCall int) (send func(context.Context) ([]time.Duration, error), err error)
	// SubmitAt is Submit; it returns when the other process began, by the clock of [Began].
	SubmitAt(ctx context.Context, payload []byte) (time.Time, error)
}

// Poller is a [Store] whose idle workers look for jobs from time to time, where others are woken. How long a job
// waits then depends on when it comes, so scenarios that submit to an idle worker let it come at any moment between
// two looks.
type Poller interface {
	// Poll is the mean time between two looks.
	Poll() time.Duration
}

// Counter is a [Store] that can tell how many completed jobs the server retains.
type Counter interface {
	Done(ctx context.Context) (int, error)
}

// Settler is a [Counter] whose workers settle jobs many at once, some time after their handlers have returned.
// Throughput of others ends with the last handler, when no more jobs than handlers can run at once are unsettled;
// that of a Settler ends when as few are, and counts the jobs that were settled meanwhile.
type Settler interface {
	Counter
	// Settle waits until at most so many of the jobs that workers have fetched are not settled, and returns how many.
	Settle(ctx context.Context, most int) (left int, err error)
}

// Partitioned is a [Store] that spreads work over as many partitions as [Settings] say. Partitions is how many there
// are.
type Partitioned interface {
	Partitions() int
}

// Router is a [Store] whose workers can take work from several routes: kinds of jobs, queues, or whatever the server
// keeps apart. Routes is the same store with n of them: calls of Submit and SubmitMany go round them, and every
// worker takes from all.
type Router interface {
	Routes(n int) Store
}

// Spacer is a [Store] whose jobs belong to namespaces, which keep them apart without being a route each.
// Namespaces is the same store with n of them: calls of Submit and SubmitMany go round them, and every worker takes
// from all.
type Spacer interface {
	Namespaces(n int) Store
}

// Lightest is a [Store] that can make the call of its own that costs the server least.
type Lightest interface {
	Lightest(ctx context.Context) error
}

// Suspender is a [Store] whose jobs can wait for a signal from outside without occupying a worker.
type Suspender interface {
	// Suspend submits n jobs with the given payload and returns once all of them wait. signal wakes job i, and returns
	// once the server has confirmed that; resumed is called as soon as the job's handler runs again. stop ends the
	// worker.
	Suspend(ctx context.Context, payload []byte, n int,
		resumed func(i int)) (signal func(ctx context.Context, i int) error, stop func() error, err error)
}

// Grapher is a [Store] whose jobs can depend on each other.
type Grapher interface {
	// Graphs starts a worker that tells the times of every job. submit puts in a graph, and returns once the server
	// has confirmed all of it; it may be called concurrently. stop ends the worker.
	Graphs(ctx context.Context, concurrency int,
		times Times) (submit func(context.Context, Graph) error, stop func() error, err error)
	// Settled counts the jobs and edges of all graphs so far, and tells whether anything is left to do about one of
	// them.
	Settled(ctx context.Context) (jobs, edges int, left bool, err error)
}

// Graph is a number of jobs of which some depend on earlier ones.
type Graph struct {
	Number  int // by which its jobs' times are told
	Nodes   []Node
	Payload []byte // of every job; its first eight bytes may be replaced
}

// Node is one job.
type Node struct {
	After      []int // the nodes that it needs, all of them lower than its own
	Need       int   // how many of them must succeed; 0: all
	CancelRest bool  // cancel those that are not needed any more
	Cleanup    bool  // run it once they have ended, whatever they came to
}

// Times is told when handlers begin and end. Its methods are called concurrently.
type Times interface {
	Began(graph, node int, at time.Time)
	Ended(graph, node int, at time.Time)
}

// Streamer is a [Store] whose running jobs put out frames that others can follow.
type Streamer interface {
	// Streams starts n jobs that run until stop is called, and returns their streams.
	Streams(ctx context.Context, n int) (streams []Stream, stop func() error, err error)
}

// Stream is the output of one running job. Append is called by one goroutine at a time.
type Stream interface {
	// Append stores frames in one call and returns when the server has confirmed them.
	Append(ctx context.Context, frames [][]byte) error
	// Tail hands every frame appended from now on to seen until ctx ends, and then returns nil. ready is
	// called when nothing that is appended afterwards can be missed. All tails share one connection.
	Tail(ctx context.Context, ready func(), seen func(frame []byte)) error
}

// Claimer is a [Store] from which jobs can be claimed without running them.
type Claimer interface {
	// Claimant is one of so many that claim the jobs at the same time. claim takes up to most of them in a call, and
	// tells how many; 0 is the end. With settle it settles them afterwards in another call.
	Claimant(ctx context.Context, number, of int,
		settle bool) (claim func(ctx context.Context, most int) (int, error), err error)
}
