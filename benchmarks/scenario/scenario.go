// Package scenario measures one aspect of a task system each: how fast jobs go in and out, how soon they start, what
// frames cost, what holding and idling cost, and what jobs occupy. A scenario knows systems only through package
// driver. Every round begins on an empty server with new connections.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// Options are the sizes of a run; all are required.
type Options struct {
	Items       int             // jobs (or frames) per round of the throughput scenarios
	Payload     int             // bytes of a job's payload and of a frame
	Work        time.Duration   // that a handler takes in drain and lifecycle
	Raw         bool            // jobs carry bytes, in all scenarios, instead of a JSON document, and have no results
	Sleeps      []time.Duration // that handlers take in sleep, ascending
	Handlers    []int           // at once in sleep, ascending
	Concurrency int             // submitting goroutines, handlers of a worker, and streams appended to
	Batch       int             // frames per append
	Partitions  int             //
	Rounds      int             // of every scenario
	Samples     int             // of the latency and tail scenarios
	Tailers     int             // of the tail scenario's second part
	Held        int             // jobs measured in memory
	Workers     int             // in idle
	Members     int             // of a flow in flow (ten times that in its largest part) and bounds
	Window      time.Duration   // of observation in idle
	Settle      time.Duration   // before a window
	Pause       time.Duration   // before each sample of latency, suspend and tail
	Growth      []int           // jobs that wait in growth, from few to many
	ProfileDir  string          // for processor profiles of the measured parts; empty: none
}

// Scenario is one aspect. Run measures one round.
type Scenario struct {
	Name, About string
	Run         func(ctx context.Context, b *Bench) error
}

// All scenarios, in the order they run.
var All = []Scenario{
	{"submit", "producers only: one goroutine, many goroutines, batches of 1,000", submit},
	{"drain", "a worker empties a queue that was filled before", drain},
	{"sleep", "drain with handlers that take their time: the share of what as many handlers could do at most", sleep},
	{"claims", "executions claimed, by how many a call, with and without settling them", claims},
	{"lifecycle", "submitting and working at the same time", lifecycle},
	{"latency", "one job at a time on an idle worker: submit until its handler starts", latency},
	{"append", "frames of running jobs, many per call, beside raw pipelined XADD", appendFrames},
	{"tail", "append until a follower has the frame, one and many followers on one connection", tail},
	{"suspend", "jobs that wait for a signal: what they occupy, and a signal until the handler runs again", suspended},
	{"cleanup", "graphs of 10,000 jobs, without and with jobs that run whatever the others came to", cleanups},
	{"flow", "graphs of jobs: chains, one to many to a join, one of many and the rest cancelled", flows},
	{"idle", "many workers and nothing to do", idle},
	{"memory", "bytes per waiting, active and completed job", memory},
	{"growth", "what a job costs beside 10,000 and more that wait, and on many routes", growth},
	{"partitions", "what a job and an idle worker cost at 1 to 256 partitions", partitions},
	{"calls", "how many calls of a function that does nothing the server takes, beside the system's lightest", calls},
}

// Bench is one system in one round of one scenario.
type Bench struct {
	Options
	System driver.System
	Server driver.Server
	Store  driver.Store

	scenario string
	part     string // of the scenario, for the names of profiles
	round    int
	bytes    bool // a variant of jobs that carry bytes
	record   func(variant string, r Round)
}

// Round is what one round of one variant measured.
type Round struct {
	Figures      measure.Figures           `json:"figures,omitempty"`
	Commands     map[string]driver.Command `json:"commands,omitempty"`
	NotAvailable string                    `json:"not_available,omitempty"` // why the system has no figures
}

// open gives the bench an empty server and new connections.
func (b *Bench) open(ctx context.Context) error {
	return b.openAs(ctx, driver.Settings{Partitions: b.Partitions, Typed: b.typed()})
}

// openAs is open with other settings than the run's.
func (b *Bench) openAs(ctx context.Context, cfg driver.Settings) (err error) {
	b.close()
	if err := b.Server.Reset(ctx); err != nil {
		return fmt.Errorf("reset server: %w", err)
	}
	b.Store, err = b.System.Open(ctx, b.Server, cfg)
	return err
}

// typed tells whether jobs carry documents and have results.
func (b *Bench) typed() bool { return !b.Raw && !b.bytes }

func (b *Bench) close() {
	if b.Store != nil {
		b.Store.Close()
		b.Store = nil
	}
}

// start begins a measured part.
func (b *Bench) start(ctx context.Context, variant string) (*measure.Meter, error) {
	return measure.Start(ctx, b.Server, b.profile(variant), b.others()...)
}

// startHot begins a measured part in the middle of the work.
func (b *Bench) startHot(ctx context.Context, variant string) (*measure.Meter, error) {
	return measure.StartHot(ctx, b.Server, b.profile(variant), b.others()...)
}

// others are the processes of the store besides this one.
func (b *Bench) others() []int {
	if remote, ok := b.Store.(driver.Remote); ok {
		return remote.PIDs()
	}
	return nil
}

func (b *Bench) profile(variant string) string {
	if b.ProfileDir == "" {
		return ""
	}
	name := b.System.Name() + "-" + b.scenario
	for _, part := range []string{b.part, variant} {
		if part != "" {
			name += "-" + part
		}
	}
	return filepath.Join(b.ProfileDir, fmt.Sprintf("%s-%d", name, b.round))
}

// done files the figures of a variant.
func (b *Bench) done(variant string, f measure.Figures, commands map[string]driver.Command) {
	if len(b.others()) > 0 { // what they allocate is not known
		delete(f, measure.AllocItem)
	}
	b.record(variant, Round{Figures: f, Commands: commands})
}

// lacks files that the system does not have what the scenario is about.
func (b *Bench) lacks(what string) error {
	b.record("", Round{NotAvailable: "n/a: " + what})
	return nil
}

// payloads makes n payloads, different from each other and hard to compress. Of typed jobs they are printable, and so
// much shorter that the documents have the size that was asked for.
func (b *Bench) payloads(n int) [][]byte {
	size := b.Payload
	if b.typed() {
		size = max(size-driver.Envelope, 1)
	}
	random := rand.NewChaCha8([32]byte{})
	all := make([]byte, n*size)
	_, _ = random.Read(all) // never fails
	if b.typed() {
		const printable = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		for i, c := range all {
			all[i] = printable[c%64]
		}
	}
	out := make([][]byte, n)
	for i := range out {
		out[i] = all[i*size : (i+1)*size : (i+1)*size]
	}
	return out
}

// fill submits n jobs, in bulk.
func (b *Bench) fill(ctx context.Context, n int) error {
	if err := b.Store.SubmitMany(ctx, b.payloads(n)); err != nil {
		return fmt.Errorf("fill the queue: %w", err)
	}
	return nil
}

// retained adds how many completed jobs the server knows, if the system can tell.
func (b *Bench) retained(ctx context.Context, f measure.Figures) error {
	counter, ok := b.Store.(driver.Counter)
	if !ok {
		return nil
	}
	n, err := counter.Done(ctx)
	f[measure.Retained] = float64(n)
	return err
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// working runs fn while a worker works, and reports the errors of both.
func (b *Bench) working(ctx context.Context, w driver.Worker, fn func() error) error {
	stop, err := b.Store.Work(ctx, w)
	if err != nil {
		return fmt.Errorf("start worker: %w", err)
	}
	err = fn()
	return errors.Join(err, stop())
}
