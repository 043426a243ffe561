package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Effects of a delivered signal (spec 20 §3.4), one vocabulary for every producer and reader.
const (
	EffectBuffered  = "buffered_for_pending_waitpoint"
	EffectAppended  = "appended_to_waitpoint"           // a part of the condition took it, the condition is still open
	EffectNone      = "no_op"                           // nothing wanted it
	EffectSatisfied = "resume_condition_satisfied"      // it closed the condition
	EffectAgain     = "appended_to_waitpoint_duplicate" // what it stands for is there already
	EffectUnmatched = "signal_ignored_matcher_failed"   // no part of the condition accepts its name
	EffectTimeout   = "timeout"                         // the signal that a suspension's own timeout makes
)

// Causes of a resumption (spec 20 §3.11).
const (
	CauseSignal           = "signal"
	CauseOperator         = "operator"
	CauseTimeout          = "timeout"
	CauseAlreadySatisfied = "already_satisfied" // by signals that came before the suspension
)

// SourceOperator is the source type of what operators deliver.
const SourceOperator = "operator"

// NewSignal is what a sender says. Names, sources and payloads are claims of whoever holds the token (spec 20 §4.3).
type NewSignal struct {
	ID             uuid.UUID // makes a repeat harmless; nil mints one
	Name           string    // 1..128 bytes, not beginning with "__"
	Category       string    // ≤ 64 bytes
	SourceType     string    // ≤ 64 bytes, for example webhook or person
	Source         string    // ≤ 256 bytes, who
	Correlation    string    // ≤ 256 bytes
	IdempotencyKey string    // ≤ 256 bytes; a later signal with the same key is answered like the first
	DedupTTL       time.Duration
	CreatedAt      time.Time // the sender's clock; zero: not said
	Encoding       string    // json (default), utf8 or bytes
	Payload        []byte    // ≤ 64 KiB
	Trace          string    // W3C traceparent of the sender's span; kept beside Correlation if there is room for both
}

// Delivered answers a delivery.
type Delivered struct {
	Signal    uuid.UUID // the first delivery's id, if this one repeats it
	Effect    string    // of the first delivery
	Duplicate bool      // another delivery with this idempotency key came first
	Open      bool      // the waitpoint takes more signals
}

// Signal is a stored signal.
type Signal struct {
	ID             uuid.UUID
	Waitpoint      uuid.UUID
	WaitpointKey   string
	Name           string
	Category       string
	SourceType     string
	Source         string
	Correlation    string
	IdempotencyKey string
	CreatedAt      time.Time // the sender's clock
	AcceptedAt     time.Time // the server's
	Encoding       string
	Effect         string
	LateBy         time.Duration // how long after the suspension's timeout it came
	Order          int64         // its place among all signals that the execution accepted, from 1; 0: made by a timeout
	Trace          string        // W3C traceparent of the sender's span
	Payload        []byte
}

// Resume is what a resumed attempt is told: why it goes on, and by which signals, in the order they were accepted.
type Resume struct {
	Name       string // under which the handler waited; "" if it gave none
	Cause      string // CauseSignal, CauseOperator, CauseTimeout or CauseAlreadySatisfied
	Suspension uuid.UUID
	ClosedAt   time.Time
	TimeoutAt  time.Time // zero: none was set
	Closer     string    // id of the signal that closed the condition
	By         string    // the operator who resumed it
	Reason     string    // what they said
	Signals    []Signal
}

const unit = "\x1f"

// signalParts is how many parts lua/lib/signal.lua joins.
const signalParts = 16

// decodeSignal reads the stored form.
func decodeSignal(text string) (Signal, error) {
	p := strings.SplitN(text, unit, signalParts)
	if len(p) != signalParts {
		return Signal{}, fmt.Errorf("%w: a signal of %d parts", flowfabric.ErrReply, len(p))
	}
	s := Signal{WaitpointKey: p[2], Name: p[3], Category: p[4], SourceType: p[5], Source: p[6],
		IdempotencyKey: p[8], Encoding: p[11], Effect: p[12], Payload: []byte(p[15])}
	s.Correlation, s.Trace = cutTrace(p[7])
	var errs [6]error
	s.ID, errs[0] = uuid.Parse(p[0])
	if p[1] != "" { // a timeout has none
		s.Waitpoint, errs[1] = uuid.Parse(p[1])
	}
	s.CreatedAt, errs[2] = millisAt(p[9])
	s.AcceptedAt, errs[3] = millisAt(p[10])
	if p[13] != "" {
		var late int64
		late, errs[4] = strconv.ParseInt(p[13], 10, 64)
		s.LateBy = time.Duration(late) * time.Millisecond
	}
	s.Order, errs[5] = strconv.ParseInt(p[14], 10, 64)
	for _, err := range errs {
		if err != nil {
			return Signal{}, fmt.Errorf("%w: signal: %w", flowfabric.ErrReply, err)
		}
	}
	return s, nil
}

func millisAt(text string) (time.Time, error) {
	if text == "" || text == "0" {
		return time.Time{}, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	return time.UnixMilli(ms), err
}

// DecodeResume reads what lua/lib/suspension.lua tells of a resumption, from a claim or from the step that keeps it.
func DecodeResume(blob []byte) (Resume, error) {
	p := strings.SplitN(string(blob), unit, 10)
	if len(p) < 9 {
		return Resume{}, fmt.Errorf("%w: a resumption of %d parts", flowfabric.ErrReply, len(p))
	}
	r := Resume{Name: p[0], Cause: p[1], Closer: p[5], By: p[6], Reason: p[7]}
	var errs [4]error
	r.Suspension, errs[0] = uuid.Parse(p[2])
	r.ClosedAt, errs[1] = millisAt(p[3])
	r.TimeoutAt, errs[2] = millisAt(p[4])
	var count int
	count, errs[3] = strconv.Atoi(p[8])
	for _, err := range errs {
		if err != nil {
			return Resume{}, fmt.Errorf("%w: resumption: %w", flowfabric.ErrReply, err)
		}
	}
	rest := ""
	if len(p) == 10 {
		rest = p[9]
	}
	for i := range count {
		if i > 0 {
			var ok bool
			if rest, ok = strings.CutPrefix(rest, unit); !ok {
				return Resume{}, fmt.Errorf("%w: %d signals, %d announced", flowfabric.ErrReply, i, count)
			}
		}
		size, tail, ok := strings.Cut(rest, ":")
		n, err := strconv.Atoi(size)
		if !ok || err != nil || n < 0 || n > len(tail) {
			return Resume{}, fmt.Errorf("%w: signal %d of %d is cut short", flowfabric.ErrReply, i, count)
		}
		s, err := decodeSignal(tail[:n])
		if err != nil {
			return Resume{}, err
		}
		r.Signals, rest = append(r.Signals, s), tail[n:]
	}
	if rest != "" {
		return Resume{}, fmt.Errorf("%w: %d bytes follow the signals", flowfabric.ErrReply, len(rest))
	}
	slices.SortFunc(r.Signals, func(a, b Signal) int { return cmp.Compare(a.Order, b.Order) })
	return r, nil
}
