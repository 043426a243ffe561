// Package times measures the attempts that a process settles: how they ended, how long they had waited, and how long
// they ran, by namespace, kind and minute of the server's clock. A [Recorder] adds in memory and sends a minute when
// it is over, and all that it has when the process ends. So the store does nothing for a single attempt, adds up each
// minute of a process once, and a process that dies takes little more than a minute with it. What cannot be sent is
// sent again for ten minutes, then dropped: these are statistics, which no work depends on.
package times

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"math"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/fault"
	"github.com/flowfabric/flowfabric-go/internal/spread"
)

const (
	every       = 10 * time.Second // between two looks for minutes that are over
	late        = 5 * time.Second  // what ended in a minute is counted by then
	callTimeout = 5 * time.Second
	kept        = 10 * time.Minute // what was not sent by then is dropped
	shardCount  = 8
	// most is how many kinds of namespaces a shard, and the whole process, tell apart at a time. What comes above it
	// counts in the sums of all namespaces alone.
	most = 256
)

// Outcome is how an attempt ended.
type Outcome int

// The outcomes.
const (
	Completed Outcome = iota
	Failed            // and is not tried again
	Retried           // failed, and is tried again
	Other             // the run ended otherwise: it suspends, delays, continues, was released or cancelled
)

// Attempt is a run of an attempt that was settled.
type Attempt struct {
	Namespace, Kind string
	Outcome         Outcome
	// Waited is how long the execution was there before its handler began; below zero: that is not known, or does not
	// count again.
	Waited time.Duration
	Ran    time.Duration // from its claim to its end; counts of those that completed or failed
	At     time.Time     // when it ended, by the server's clock
}

// Waited is how long a claimed execution was there and not claimed, a requested delay included; below zero for one that
// has run before, and for a member of a flow, of which the claim does not tell when it could run.
func Waited(c *engine.Claim) time.Duration {
	if c.Type != flowfabric.AttemptInitial || !c.Flow.IsZero() {
		return -1
	}
	return max(c.ClaimedAt.Sub(c.CreatedAt), 0)
}

// Store is where times are kept; *engine.Engine is one.
type Store interface {
	NoteTimes(ctx context.Context, namespace, sender string, number uint64, rows []engine.Times) error
}

// Recorder adds up attempts. Make it with [New]. Safe for concurrent use.
type Recorder struct {
	store  Store
	log    *slog.Logger
	sender string
	shards [shardCount]shard

	turn   chan struct{} // capacity 1: one sends at a time; a mutex would not end with its context
	number uint64
	unsent []batch
	failed bool // the last call failed, which was logged
}

// place is what is counted together. Without a namespace it counts in the sums of all namespaces alone.
type place struct {
	namespace, kind string
	minute          int64
}

type shard struct {
	mu    sync.Mutex
	cells map[place]*spread.Tally
	last  place // of the tally that was used last, which is the next one's mostly
	tally *spread.Tally
}

// batch is a call that was not answered yet. It is repeated as it was, so that the store knows it again.
type batch struct {
	namespace string
	number    uint64
	rows      []engine.Times
	made      time.Time
}

// New makes a recorder for a process.
func New(s Store, log *slog.Logger) *Recorder {
	return &Recorder{store: s, log: log, sender: rand.Text(), turn: make(chan struct{}, 1)}
}

// Add counts an attempt of a partition. It never waits for a call.
func (r *Recorder) Add(partition uint16, a Attempt) {
	s := &r.shards[partition%shardCount]
	at := place{a.Namespace, a.Kind, a.At.UnixMilli() / 60_000}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tally == nil || s.last != at {
		s.last, s.tally = at, cell(&s.cells, at)
	}
	a.count(s.tally)
}

func (a *Attempt) count(t *spread.Tally) {
	switch a.Outcome {
	case Completed:
		t.Completed++
	case Failed:
		t.Failed++
	case Retried:
		t.Retried++
	default:
		t.Other++
	}
	if a.Outcome != Other {
		t.Ran.Add(a.Ran)
	}
	if a.Waited >= 0 {
		t.Waited.Add(a.Waited)
	}
}

// cell is the tally of a place, or of a wider one if there are too many.
func cell(cells *map[place]*spread.Tally, at place) *spread.Tally {
	if *cells == nil {
		*cells = map[place]*spread.Tally{}
	}
	if at.kind == engine.EveryKind { // a kind of this name would count twice
		at.kind = ""
	}
	for i := range 3 {
		if t := (*cells)[at]; t != nil {
			return t
		}
		if len(*cells) < (i+1)*most || i == 2 {
			break
		}
		at.namespace = ""
		if i == 1 {
			at.kind = ""
		}
	}
	t := &spread.Tally{}
	(*cells)[at] = t
	return t
}

// Run sends minutes that are over until ctx ends. It never returns before.
func (r *Recorder) Run(ctx context.Context) {
	// Processes that start together do not send together.
	timer := time.NewTimer(time.Duration(mathrand.Int64N(int64(every))))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		r.SendUntil(ctx, time.Now().Add(-late))
		timer.Reset(every)
	}
}

// Send sends what was measured so far, and what could not be sent before. What fails is sent again with the next call.
func (r *Recorder) Send(ctx context.Context) { r.send(ctx, math.MaxInt64) }

// SendUntil is Send for minutes that were over by then. Clocks that differ only make it send a minute in two parts.
func (r *Recorder) SendUntil(ctx context.Context, then time.Time) { r.send(ctx, then.Unix()/60) }

func (r *Recorder) send(ctx context.Context, until int64) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return
	}
	r.gather(until)
	blocked, failure := map[string]bool{}, error(nil)
	r.unsent = slices.DeleteFunc(r.unsent, func(b batch) (done bool) {
		if blocked[b.namespace] || ctx.Err() != nil { // its calls are sent in order
			return false
		}
		call, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		err := r.store.NoteTimes(call, b.namespace, r.sender, b.number, b.rows)
		if err == nil {
			return true
		}
		failure = errors.Join(failure, err)
		blocked[b.namespace] = true
		return denied.ClassOf(err) == fault.Caller || time.Since(b.made) > kept
	})
	if failure != nil && !r.failed && ctx.Err() == nil {
		r.log.Warn("flowfabric: the process could not store how long attempts waited and ran; it tries again",
			"error", failure)
	}
	r.failed = failure != nil
}

// take removes the tallies of minutes before one.
func (s *shard) take(until int64) map[place]*spread.Tally {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := map[place]*spread.Tally{}
	for at, t := range s.cells {
		if at.minute < until {
			taken[at] = t
			delete(s.cells, at)
		}
	}
	s.tally = nil
	return taken
}

// gather makes calls of what was measured in minutes before one, and not sent.
func (r *Recorder) gather(until int64) {
	var all, rest map[place]*spread.Tally
	for i := range r.shards {
		s := &r.shards[i]
		for at, t := range s.take(until) {
			into := &all
			if at.namespace == "" { // it must take no place of one that is told apart
				into = &rest
			}
			cell(into, at).Merge(t)
		}
	}
	for at, t := range rest {
		cell(&all, at).Merge(t)
	}
	rows := map[string][]engine.Times{}
	for at, t := range sums(all) {
		rows[at.namespace] = append(rows[at.namespace], engine.Times{Kind: at.kind, Minute: at.minute, Tally: t})
	}
	for namespace, list := range rows {
		slices.SortFunc(list, func(a, b engine.Times) int { return strings.Compare(a.Kind, b.Kind) })
		for part := range slices.Chunk(list, engine.MaxTimes) {
			r.number++
			r.unsent = append(r.unsent, batch{namespace, r.number, part, time.Now()})
		}
	}
}

// sums adds those of all kinds of a namespace, and of a kind, and of everything, in all namespaces.
func sums(all map[place]*spread.Tally) map[place]*spread.Tally {
	out := map[place]*spread.Tally{}
	add := func(at place, t *spread.Tally) {
		if out[at] == nil {
			out[at] = &spread.Tally{}
		}
		out[at].Merge(t)
	}
	for at, t := range all {
		add(place{engine.AllSpaces, at.kind, at.minute}, t)
		add(place{engine.AllSpaces, engine.EveryKind, at.minute}, t)
		if at.namespace != "" && at.namespace != engine.AllSpaces {
			add(at, t)
			add(place{at.namespace, engine.EveryKind, at.minute}, t)
		}
	}
	return out
}
