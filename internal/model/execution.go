package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
)

// Code is the stored state of an execution.
type Code = codes.Code

// Legal is every move there is, from the left code to those on the right. "" is before the creation.
var Legal = map[Code][]Code{
	"":     {"R1f", "R2af"},               // create; with a delay
	"R2af": {"R1f", "R2af", "T3n", "T4n"}, // due; put off by another submit; cancel; deadline
	// claim; put off; changed, at the bound of its delay; cancel; deadline; of one that continues, or that never ran
	"R1f":  {"A1", "R2af", "R1f", "T3", "T3n", "T4", "T4n"},
	"R1t":  {"A1", "T3", "T4", "R1p"},               // the same for what waits for its retry,
	"R1i":  {"A1", "T3", "T4", "R1p"},               // whose attempt is paused,
	"R1r":  {"A1", "T3", "T4", "R1p"},               // whose worker was lost,
	"R1p":  {"A1", "T3", "T3n", "T4", "T4n", "R1p"}, // or which was replayed, maybe before it ever ran
	"R2ai": {"R1i", "T3", "T4", "R1p"},              // due
	"R2b":  {"R1t", "T3", "T4", "R1p"},              // due
	"R2r":  {"R1r", "T3", "T4", "R1p"},              // due
	"R2c":  {"R1i", "T3", "T4", "R1p"},              // due
	"A1":   {"T1", "T2", "T3", "T4", "R1t", "R2b", "R1i", "R2ai", "R1r", "R2r", "R1f", "A3", "S1", "S2", "S5", "R1p"},
	// resumed; with a delay; escalated; its timeout; cancel; deadline
	"S1":  {"R1i", "R2c", "S5", "T2", "T3", "T4", "R1p"},
	"S2":  {"R1i", "R2c", "S5", "T2", "T3", "T4", "R1p"}, // for an approval
	"S5":  {"R1i", "R2c", "S5", "T2", "T3", "T4", "R1p"}, // for an operator
	"A3":  {"R1r", "T2", "T3", "T4", "R1p"},              // tick; the same over the reclaim cap; cancel; deadline
	"T1":  {"R1p"},                                       // replay
	"T2":  {"R1p"},
	"T3":  {"R1p"},
	"T3n": {"R1p"},
	"T4":  {"R1p"},
	"T4n": {"R1p"},
}

// claims says what attempt a claim makes of what waits; R1i goes on with the one it has.
var claims = map[Code]flowfabric.AttemptType{
	"R1f": flowfabric.AttemptInitial, "R1t": flowfabric.AttemptRetry, "R1r": flowfabric.AttemptReclaim,
	"R1p": flowfabric.AttemptReplay,
}

// due says what a delay becomes.
var due = map[Code]Code{"R2af": "R1f", "R2ai": "R1i", "R2b": "R1t", "R2r": "R1r", "R2c": "R1i"}

// Execution is one execution. Times are ms, 0 = never.
type Execution struct {
	Code            Code
	Route           int
	Priority        int
	Policy          flowfabric.Policy
	Creator, Digest string
	Key             string // "" = none
	Debounced       bool   // its key debounces: it has it until it is claimed
	Till            int64  // it has its key at least until then; -1 = as long as it is there
	Input           int    // bytes
	Created         int64
	Started, Ended  int64  // first claim, last end
	Filed           int64  // while it is over: when the tick looks whether it was kept long enough
	DelayUntil      int64  // while R2
	DelayRequest    string // the last request that changed it
	Deadline, Span  int64  // the span is known once a replay has used it
	TimeoutAt       int64  // of a running attempt
	TimeLeft        int64  // of a paused one
	RevokedAt       int64  // while A3
	RevokedBy       string // the last request that revoked it

	Held     Fence // of the current holder, or the last
	Claimed  int64
	Resumed  bool // the last claim went on with a paused attempt
	Attempts []Attempt
	Retries  int
	Reclaims int
	Replays  int
	Rewinds  int // before it ended, since it continued
	Links    int // how often it has continued
	Link     int // the first attempt since

	Category                  string // of the last failure
	CancelledBy, CancelReason string
	CancelSource              string
	Released                  *Release
	Request                   string // of the last replay
	Tags, Steps               map[string]string

	Order     map[string]int // of the steps: numbers in the order in which they were recorded
	StepOrder int            // the last such number
	Covers    map[string]Cover

	Suspension    *Suspension // the current one, or the last
	ResumeRequest string      // the last that resumed it
	Points        map[string]Waitpoint
	Told          bool // claims bring what the last suspension was answered
	Signals       int  // accepted so far, whatever the waitpoint

	Box   []string       // messages that nobody has received, as they are stored
	Marks map[string]int // by what messages are known again: their numbers
	Sent  int            // messages that came so far
}

// Attempt is one try. State is "" until it ends.
type Attempt struct {
	Type             flowfabric.AttemptType
	State            string
	Claimed, Ended   int64 // Claimed: when it was last taken up
	Category, Reason string
	Held             Fence
	Frames, Sequence uint64 // durable ones; of all modes
	Version, Live    uint64 // summary deltas, best-effort frames
	// epoch of the last frame's run; 0 when the handler has begun again under the same claim since
	Run      uint64
	Runs     uint64 // runs that appended frames
	Recorded uint64 // last frame that a recorded step covers
	Closed   string // why its stream was closed, "" while it is open
	Progress Progress
}

// Progress is what a handler said last.
type Progress struct {
	At      int64
	Percent int // -1: none given
	Message string
}

// Release is how a holder last gave its execution up, kept so that a repeat of the call answers the same.
type Release struct {
	Op   string // d delay, f fail, h hand back, x cancel
	By   Fence
	Slot string
}

func (r *Release) String() string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%s,%d,%d,%s", r.Op, r.By.Epoch, r.By.Attempt, r.Slot)
}

func (x *Execution) waiting() bool  { return strings.HasPrefix(string(x.Code), "R1") }
func (x *Execution) delayed() bool  { return strings.HasPrefix(string(x.Code), "R2") }
func (x *Execution) terminal() bool { return x.Code[0] == 'T' }

// open reports whether the last attempt has not ended yet.
func (x *Execution) open() bool {
	return x.Code == "A1" || x.Code == "A3" || x.Code == "R1i" || x.Code == "R2ai" || x.Code == "R2c" || x.suspended()
}

// record keeps a step under the next number.
func (x *Execution) record(name, value string) {
	x.StepOrder++
	x.recordAt(name, value, x.StepOrder)
}

func (x *Execution) recordAt(name, value string, order int) {
	if x.Order == nil {
		x.Order = map[string]int{}
	}
	x.Steps[name], x.Order[name] = value, order
}

// Cover is up to where a step covers the frames of its attempt, counted from 0.
type Cover struct {
	Attempt  int
	Sequence uint64
}

// cover notes that of a step of the current attempt.
func (x *Execution) cover(step string) {
	if x.Covers == nil {
		x.Covers = map[string]Cover{}
	}
	x.Covers[step] = Cover{len(x.Attempts) - 1, x.attempt().Sequence}
}

// forget drops the steps from a number on, with the frames that belong to them, and what a later wait was answered.
func (x *Execution) forget(from int) {
	set := map[int]uint64{}
	for name, c := range x.Covers {
		if x.Order[name] >= from {
			set[c.Attempt] = 0
			delete(x.Covers, name)
		}
	}
	for _, c := range x.Covers {
		if last, ok := set[c.Attempt]; ok {
			set[c.Attempt] = max(last, c.Sequence)
		}
	}
	for i, last := range set {
		x.Attempts[i].Recorded = last
	}
	maps.DeleteFunc(x.Steps, func(name, _ string) bool { return x.Order[name] >= from })
	if x.Suspension != nil && x.Suspension.After >= from {
		x.Told = false
	}
}

// asked is the number of the first waitpoint that was handed out for a wait whose timeout ended the execution; 0 if
// there is none.
func (x *Execution) asked() (first int) {
	u := x.Suspension
	if u == nil || u.Cause != "timeout" || u.Only != "" || strings.HasPrefix(u.Behaviour, "auto_resume") {
		return 0
	}
	return x.Order[x.handed(u.Point.ID)]
}

// attempt is the current or last attempt, nil before the first.
func (x *Execution) attempt() *Attempt {
	if len(x.Attempts) == 0 {
		return nil
	}
	return &x.Attempts[len(x.Attempts)-1]
}

// score orders a queue: higher priority first, then older.
func (x *Execution) score() int64 { return x.Created - int64(x.Priority)*1_000_000_000_000 }

// alarm is when time will do something to it wherever it is: deadline, timeout of attempt or suspension, or the
// requeue of what was revoked. 0 = never.
func (x *Execution) alarm() int64 {
	switch {
	case x.terminal():
		return 0
	case x.Code == "A3" && (x.Deadline == 0 || x.RevokedAt < x.Deadline):
		return x.RevokedAt
	case x.Code == "A1" && x.TimeoutAt != 0 && (x.Deadline == 0 || x.TimeoutAt < x.Deadline):
		return x.TimeoutAt
	case x.suspended() && x.Suspension.Until != 0 && (x.Deadline == 0 || x.Suspension.Until < x.Deadline):
		return x.Suspension.Until
	}
	return x.Deadline
}

// overdue reports whether the deadline has passed.
func (x *Execution) overdue(now int64) bool { return x.Deadline != 0 && x.Deadline <= now }

// end closes the current attempt's books. Those of one that was revoked were closed then.
func (x *Execution) end(now int64, state, category, reason string) {
	if x.Code == "A3" {
		return
	}
	a := x.attempt()
	a.State, a.Category, a.Reason, a.Ended, a.Claimed, a.Held = state, category, reason, now, x.Claimed, x.Held
}

// close ends the current attempt's stream; the first reason stays.
func (x *Execution) close(reason string) {
	if a := x.attempt(); a != nil && a.Closed == "" {
		a.Closed = reason
	}
}

func (x *Execution) clone() *Execution {
	c := *x
	c.Attempts, c.Tags, c.Steps, c.Order = slices.Clone(x.Attempts), maps.Clone(x.Tags), maps.Clone(x.Steps),
		maps.Clone(x.Order)
	c.Covers = maps.Clone(x.Covers)
	return &c // Released, Suspension, Points, Box and Marks are never changed in place
}
