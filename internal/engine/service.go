package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// ServiceCall is a call to a service, for which its gate is asked.
type ServiceCall struct {
	Service   string
	Fence     flowfabric.Fence // of the execution that makes it: id and epoch
	Number    uint64           // of the call among those of the lease, from 1
	Namespace string           // of the execution: by whose weight it waits
	Priority  int              // of the execution
	Since     time.Time        // when that was created
	Waited    time.Duration    // in its slot, for this call
	Estimate  map[string]int64 // at most 8 dimensions
	Used      map[string]int64 // of one that has ended
	Pause     time.Duration    // that the service asked for when it refused the call; 0: it said nothing
}

// Turn is what a gate answers to one that wants to call its service.
type Turn struct {
	Admitted bool
	Stay     bool          // in its slot, until it asks again
	Retry    time.Duration // until it asks again
	Place    int           // in line, from 1
	Waiting  int           // how many are in line
	// of one that TurnOf was asked about: what its call is to use, and until when nobody calls the service, which
	// refused calls
	Wants       map[string]int64
	ClosedUntil time.Time
}

// CallEnd is how a call ended.
type CallEnd string

// How a call ends: it was made; it was not; the service refused it; nobody says, and its lease is over.
const (
	CallSettled  CallEnd = "settle"
	CallReleased CallEnd = "release"
	CallRefused  CallEnd = "refused"
	CallOver     CallEnd = "over"
)

// Acquire asks for a call's turn (lua/admission/ff_acquire.lua). Asked again for a call that was let through it answers
// so again. denied.NoGate; ErrInvalidInput: the gate is none of a service, or the estimate is more than a minute has.
func (e *Engine) Acquire(ctx context.Context, x ServiceCall) (Turn, error) {
	r, _, err := e.acquire(ctx, x, "acquire")
	return Turn{Admitted: r.Admitted, Stay: r.Stay, Retry: r.Retry, Place: r.Place, Waiting: r.Waiting}, err
}

// EndCall says how a call ended, once; already: it was said before, or the call was not let through. denied.NoGate.
func (e *Engine) EndCall(ctx context.Context, x ServiceCall, how CallEnd) (already bool, err error) {
	_, already, err = e.acquire(ctx, x, string(how))
	return already, err
}

func (e *Engine) acquire(ctx context.Context, x ServiceCall, how string) (wire.AcquireReply, bool, error) {
	q := wire.Acquire{Name: x.Service, How: how, Execution: full(x.Fence.Execution), Epoch: int(x.Fence.Epoch),
		Number: int(x.Number), Namespace: x.Namespace, Priority: x.Priority, Since: max(0, int(x.Since.UnixMilli())),
		Waited: min(x.Waited, time.Hour), Pause: min(max(0, x.Pause), time.Hour)}
	if q.Namespace == "" { // of one that has ended: it matters to nobody
		q.Namespace = "-"
	}
	dims := maps.Clone(x.Estimate)
	for dim := range x.Used {
		if _, ok := dims[dim]; !ok {
			if dims == nil {
				dims = map[string]int64{}
			}
			dims[dim] = 0
		}
	}
	for _, dim := range slices.Sorted(maps.Keys(dims)) {
		q.Amounts = append(q.Amounts, wire.AcquireAmount{Dimension: dim, Estimate: int(dims[dim]),
			Used: int(x.Used[dim])})
	}
	r, already, err := read[wire.AcquireReply](e.onGate(ctx, flowfabric.Gate(x.Service), false, q))
	for _, w := range r.Wakes { // else they come when their time is over
		if id, bad := gatetext.ParseSpender(w); bad == nil {
			_, _ = e.SetDelay(ctx, id, DelayChange{Request: mint.UUID(), service: x.Service})
		}
	}
	return r, already, err
}

// service reads the definition of the gate of a service.
func service(v map[string]string) *admission.Service {
	f := wire.Fields{M: v, R: &reader{}}
	s := &admission.Service{Calls: int(f.Number("cl")), Patience: millis(f.Number("pt"))}
	for part := range strings.SplitSeq(v["sv"], ",") {
		gatetext.ParseRate(s, part)
	}
	for field := range v {
		if namespace, ok := strings.CutPrefix(field, "t:"); ok {
			if s.Weights == nil {
				s.Weights = map[string]int{}
			}
			s.Weights[namespace] = int(f.Number(field))
		}
	}
	return s
}

// serviceState reads the pace of a service; what is no number in it counts as 0.
func serviceState(v map[string]string) *admission.ServiceState {
	f := wire.Fields{M: v, R: &reader{}}
	s := &admission.ServiceState{Room: map[string]int64{}, Share: int(f.Number("f")), UnderWay: int(f.Number("held")),
		AtOnce: int(f.Number("cap")), Waiting: int(f.Number("wn")), ClosedUntil: f.Instant("cu"),
		Refused: uint64(f.Number("ln")), LastRefused: f.Instant("la"), CallTime: millis(f.Number("du"))}
	for field, text := range v {
		if dim, ok := strings.CutPrefix(field, "l:"); ok {
			s.Room[dim], _ = strconv.ParseInt(text, 10, 64)
		}
	}
	return s
}

// waitsAt reads one that waits for a call of a service.
func waitsAt(text string) (admission.Spender, error) {
	text, amounts, _ := strings.Cut(text, "\x1f")
	h := header{rest: text}
	id, err := gatetext.ParseSpender(h.next())
	state := h.next()
	w := admission.Spender{Execution: id, Away: state != "s", At: time.UnixMilli(int64(h.unsigned())).UTC(),
		Turn: millis(int64(h.unsigned())), Namespace: h.rest, Waits: amountsOf(amounts)}
	if err = errors.Join(err, h.err); err != nil {
		return w, fmt.Errorf("waits: %w", err)
	}
	return w, nil
}

// TurnOf is the place of an execution in the line of a service, from 1, and in how long its turn comes; 0: it has none.
func (e *Engine) TurnOf(ctx context.Context, name string, id flowfabric.ExecutionID) (Turn, error) {
	r, _, err := read[wire.ReadGateReply](e.onGate(ctx, flowfabric.Gate(name), false,
		wire.ReadGate{Name: name, Execution: full(id)}))
	if err != nil {
		return Turn{}, err
	}
	waiting, _ := strconv.Atoi(r.Pace["wn"])
	return Turn{Retry: r.Turn, Place: r.Place, Waiting: waiting, Wants: amountsOf(r.Wants),
		ClosedUntil: serviceState(r.Pace).ClosedUntil}, nil
}
