package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/suspend"
)

const unit = "\x1f"

// signalParts is how many parts lua/lib/signal.lua joins.
const signalParts = 16

// decodeSignal reads the stored form.
func decodeSignal(text string) (suspend.StoredSignal, error) {
	p := strings.SplitN(text, unit, signalParts)
	if len(p) != signalParts {
		return suspend.StoredSignal{}, fmt.Errorf("%w: a signal of %d parts", denied.Reply, len(p))
	}
	s := suspend.StoredSignal{WaitpointKey: p[2], Name: p[3], Category: p[4], SourceType: p[5], Source: p[6],
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
			return suspend.StoredSignal{}, fmt.Errorf("%w: signal: %w", denied.Reply, err)
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
func DecodeResume(blob []byte) (suspend.Result, error) {
	p := strings.SplitN(string(blob), unit, 10)
	if len(p) < 9 {
		return suspend.Result{}, fmt.Errorf("%w: a resumption of %d parts", denied.Reply, len(p))
	}
	r := suspend.Result{Name: p[0], Cause: p[1], Closer: p[5], By: p[6], Reason: p[7]}
	var errs [4]error
	r.Suspension, errs[0] = uuid.Parse(p[2])
	r.ResumedAt, errs[1] = millisAt(p[3])
	r.TimeoutAt, errs[2] = millisAt(p[4])
	var count int
	count, errs[3] = strconv.Atoi(p[8])
	for _, err := range errs {
		if err != nil {
			return suspend.Result{}, fmt.Errorf("%w: resumption: %w", denied.Reply, err)
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
				return suspend.Result{}, fmt.Errorf("%w: %d signals, %d announced", denied.Reply, i, count)
			}
		}
		size, tail, ok := strings.Cut(rest, ":")
		n, err := strconv.Atoi(size)
		if !ok || err != nil || n < 0 || n > len(tail) {
			return suspend.Result{}, fmt.Errorf("%w: signal %d of %d is cut short", denied.Reply, i, count)
		}
		s, err := decodeSignal(tail[:n])
		if err != nil {
			return suspend.Result{}, err
		}
		r.Signals, rest = append(r.Signals, s), tail[n:]
	}
	if rest != "" {
		return suspend.Result{}, fmt.Errorf("%w: %d bytes follow the signals", denied.Reply, len(rest))
	}
	slices.SortFunc(r.Signals, func(a, b suspend.StoredSignal) int { return cmp.Compare(a.Order, b.Order) })
	return r, nil
}
