// Package ledger sets amounts of several gates aside for one call, in all of them or in none, and says afterwards what
// was used (lua/lib/ledger.lua). Each gate is asked by a call of its own, the first one of the execution that counts
// amounts last. That one's word decides if the process dies in between. So all gates are known before one is asked.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/fault"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// undoTime bounds giving back what was reserved for a call that is not made, also when the caller has gone.
const undoTime = 3 * time.Second

// maxAsked bounds the gates that are asked for a call, whatever is put above them meanwhile.
const maxAsked = limits.MaxGates * (limits.MaxGateDepth + 1)

// Store is what a ledger needs of the server; *engine.Engine is one.
type Store interface {
	Reserve(ctx context.Context, x engine.Reservation) (admission.Reported, []engine.Waiter, error)
	Settle(ctx context.Context, x engine.Reservation) (admission.Reported, []engine.Waiter, error)
	Unreserve(ctx context.Context, x engine.Reservation) (admission.Reported, []engine.Waiter, error)
	OpenRoutes(ctx context.Context, partition uint16, routes []uint64) (waiting []bool, err error)
	// AboveGate tells which gate is above another one, "" if none, and whether that one counts amounts.
	AboveGate(ctx context.Context, gate string) (parent string, counts bool, err error)
	EstimateOf(gate, label string) map[string]int64
	RaiseLimits(ctx context.Context, x engine.Raise) (raised map[string]int64, wake []engine.Waiter, err error)
}

// Entry is a reservation of a call in all its gates.
type Entry struct {
	Fence    flowfabric.Fence
	Of       flowfabric.ExecutionID // of a share: the parent, whose own share, if there is one, it is a part of
	Number   uint64                 // of the reservation under the lease, from 1
	Below    uint64                 // those with a lower number are over for good
	Priority int                    // of the execution
	Since    time.Time              // when it was created
	Own      []string               // the gates of the execution, sorted
	Label    string                 // of calls that are alike
	Amounts  map[string]int64
	// Last is the gate whose word decides, "" if none counts amounts; Reserve sets it.
	Last string
	// Held are the gates that have it, the one that decides last; Reserve sets it.
	Held []string
	// Repeats says that whoever asks repeats the same call after an error that leaves open what was done. So nothing is
	// given back then, nor if the reservation was made before with other amounts.
	Repeats bool

	void bool // the gate that decides has given it back
}

// Refused is why a gate did not set something aside.
type Refused struct {
	Gate string
	admission.Reported
	Amounts map[string]int64 // that it was asked for
}

// chain is the order in which gates are asked: those that count amounts, of the execution and above those, the first
// one of the execution last, or if none of its own counts, the nearest above. That gate decides.
func (x *Entry) chain(ctx context.Context, store Store) (order []string, err error) {
	depth, names := map[string]int{}, slices.Clone(x.Own)
	for i := 0; i < len(names); i++ {
		parent, counts, err := store.AboveGate(ctx, names[i])
		if err != nil {
			return nil, err
		}
		if counts {
			order = append(order, names[i])
		}
		if parent == "" {
			continue
		}
		if err := x.deeper(depth, names[i], parent); err != nil {
			return nil, err
		}
		if !slices.Contains(names, parent) {
			names = append(names, parent)
		}
	}
	x.Last = ""
	if len(order) > 0 {
		x.Last = order[0]
		order = append(order[1:], x.Last)
	}
	return order, nil
}

// deeper notes that a gate is above another one.
func (x *Entry) deeper(depth map[string]int, name, parent string) error {
	if depth[parent] = max(depth[parent], depth[name]+1); depth[parent] > limits.MaxGateDepth {
		return fmt.Errorf("%w: gate %q has more than %d above it", flowfabric.ErrInvalidInput, x.Own[0],
			limits.MaxGateDepth)
	}
	return nil
}

// Reserve sets the amounts aside in all gates that count them. If one refuses, none has them. An error of a kind that
// leaves open whether a gate did gives everything back, too.
func Reserve(ctx context.Context, store Store, x *Entry) (*Refused, error) {
	x.Held = nil
	order, err := x.chain(ctx, store)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(order); i++ {
		name := order[i]
		said, part, err := x.ask(ctx, store, name, len(order) > 1 && name == x.Last)
		if err != nil {
			if !x.Repeats || !Open(err) && !errors.Is(err, denied.Idempotency) {
				x.giveBack(ctx, store, name)
			}
			return nil, err
		}
		// One that was put above it meanwhile counts, too; a process that dies now leaves what it does not know.
		if parent := said.Parent; parent != "" && !slices.Contains(order, parent) && len(order) < maxAsked {
			order = append(order, parent)
		}
		switch {
		case said.Applied:
			x.Held = append(x.Held, name)
		case said.Verdict != codes.WithinBudget:
			x.giveBack(ctx, store, "")
			return &Refused{Gate: name, Reported: said, Amounts: part}, nil
		}
	}
	// who was heard of late was asked after the one that decides, which is the first to be told what was used
	if i := slices.Index(x.Held, x.Last); i >= 0 {
		x.Held = append(slices.Delete(x.Held, i, i+1), x.Last)
	}
	return nil, nil
}

// ask asks one gate, of those dimensions that it counts. One that decides for others notes a reservation of which it
// counts nothing.
func (x *Entry) ask(ctx context.Context, store Store, name string,
	decides bool) (admission.Reported, map[string]int64, error) {
	part := x.Amounts
	for {
		said, wake, err := store.Reserve(ctx, x.at(name, part))
		open(ctx, store, wake)
		if !errors.Is(err, denied.Dimension) || len(part) == 0 {
			return said, part, err
		}
		strange := Strangers(err, part)
		part = maps.Clone(part)
		for _, dim := range strange {
			delete(part, dim)
		}
		if len(part) == 0 && !decides {
			return admission.Reported{Verdict: codes.WithinBudget}, nil, nil
		}
	}
}

// Strangers are the dimensions that a gate says it does not know: all that it was told of, if it names none of them.
func Strangers(err error, told map[string]int64) []string {
	var out []string
	if e, ok := errors.AsType[*flowfabric.Error](err); ok {
		for _, dim := range e.Detail {
			if _, ok := told[dim]; ok {
				out = append(out, dim)
			}
		}
	}
	if out == nil {
		return slices.Collect(maps.Keys(told))
	}
	return out
}

func (x *Entry) at(name string, amounts map[string]int64) engine.Reservation {
	r := engine.Reservation{Gate: name, Execution: x.Fence.Execution, Epoch: x.Fence.Epoch, Number: x.Number,
		Of: x.Of, Below: x.Below, Priority: x.Priority, Since: x.Since, Label: x.Label, Amounts: amounts}
	if name != x.Last {
		r.Last = x.Last
	}
	return r
}

// giveBack returns what was reserved, and what another gate perhaps did.
func (x *Entry) giveBack(ctx context.Context, store Store, perhaps string) {
	if perhaps != "" {
		x.Held = append(x.Held, perhaps)
	}
	_ = Release(ctx, store, x) // else the end of the lease does
}

// Release gives everything back: the call is not made. After an error some gates may still have it, until the lease is
// over.
func Release(ctx context.Context, store Store, x *Entry) (failed error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	var left []string
	for i, name := range slices.Backward(x.Held) {
		_, wake, err := store.Unreserve(ctx, x.at(name, nil))
		open(ctx, store, wake)
		if err != nil && Open(err) {
			failed, left = errors.Join(failed, err), append([]string{name}, left...)
			if name == x.Last { // the others must not know better than the one that decides
				left = slices.Clone(x.Held[:i+1])
				break
			}
		} else if name == x.Last {
			x.void = true
		}
	}
	x.Held = left
	return failed
}

// Settle says what was used, the gate first whose word decides. With an error it is to be repeated, with those gates
// that are left in Held. One that the gate whose word decides has given back is given back.
func Settle(ctx context.Context, store Store, x *Entry,
	used map[string]int64) (said []admission.Reported, failed error) {
	if x.void {
		return nil, Release(ctx, store, x)
	}
	var left []string
settling:
	for i, name := range slices.Backward(x.Held) {
		r, wake, err := store.Settle(ctx, x.at(name, x.counted(used)))
		open(ctx, store, wake)
		switch {
		case err == nil:
			said = append(said, r)
		case Open(err) && name == x.Last: // the others must not know better than the one that decides
			failed, left = errors.Join(failed, err), slices.Clone(x.Held[:i+1])
			break settling
		case Open(err):
			failed, left = errors.Join(failed, err), append([]string{name}, left...)
		case !errors.Is(err, denied.NoGate): // a gate that was removed counts nothing
			failed = errors.Join(failed, err)
		}
	}
	x.Held = left
	return said, failed
}

// Ended is what a gate said to the end of a reservation.
type Ended struct {
	Gate string
	admission.Reported
}

// SettleAll says what was used where it is not known which gates have the reservation: in those of the execution, the
// one first whose word decides, and in all that they say are above them. A gate that has no such reservation counts
// what was used, once. After an error it is to be repeated.
func SettleAll(ctx context.Context, store Store, x *Entry, used map[string]int64) ([]Ended, error) {
	used = x.counted(used)
	return x.all(ctx, store, func(name string) (admission.Reported, []engine.Waiter, error) {
		return store.Settle(ctx, x.at(name, used))
	})
}

// ReleaseAll gives a reservation back where it is not known which gates have it, as SettleAll does.
func ReleaseAll(ctx context.Context, store Store, x *Entry) ([]Ended, error) {
	return x.all(ctx, store, func(name string) (admission.Reported, []engine.Waiter, error) {
		return store.Unreserve(ctx, x.at(name, nil))
	})
}

// all ends a reservation in the gates of the execution and in those above. What they say is of those that count
// amounts. Those above a gate that does not answer are not told, unless it is known who they are.
func (x *Entry) all(ctx context.Context, store Store,
	end func(name string) (admission.Reported, []engine.Waiter, error)) (said []Ended, failed error) {
	order, depth := slices.Clone(x.Own), map[string]int{}
	for i := 0; i < len(order); i++ {
		name := order[i]
		r, wake, err := end(name)
		open(ctx, store, wake)
		parent := r.Parent
		switch {
		case err == nil && r.Applied:
			said = append(said, Ended{Gate: name, Reported: r})
		case err != nil:
			parent, _, _ = store.AboveGate(ctx, name)
			if !errors.Is(err, denied.NoGate) { // a gate that was removed counts nothing
				failed = errors.Join(failed, err)
			}
		}
		if parent != "" && !slices.Contains(order, parent) && depth[name] < limits.MaxGateDepth {
			order, depth[parent] = append(order, parent), depth[name]+1
		}
	}
	return said, failed
}

// counted are amounts without those that are 0: to settle nothing is to have used nothing.
func (x *Entry) counted(used map[string]int64) map[string]int64 {
	out := maps.Clone(used)
	maps.DeleteFunc(out, func(_ string, n int64) bool { return n == 0 })
	return out
}

// Open reports an error that leaves open whether a call was made, so that it is to be repeated.
func Open(err error) bool {
	class := denied.ClassOf(err)
	return class == 0 || class == fault.Retry
}

// Raise lifts the hard limits of a gate for its period, once for a request, and wakes who waits for room.
func Raise(ctx context.Context, store Store, x engine.Raise) error {
	_, wake, err := store.RaiseLimits(ctx, x)
	open(ctx, store, wake)
	return err
}

// open opens the routes that wait for what there is room for now; else they open by themselves.
func open(ctx context.Context, store Store, wake []engine.Waiter) {
	by := map[uint16][]uint64{}
	for _, w := range wake {
		by[w.Partition] = append(by[w.Partition], w.Route)
	}
	for partition, routes := range by {
		_, _ = store.OpenRoutes(ctx, partition, routes)
	}
}
