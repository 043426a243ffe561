package admit

import (
	"context"
	"errors"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// Reckoner is what ending reservations needs of the server; *engine.Engine is one.
type Reckoner interface {
	Waker
	Suspects(ctx context.Context, partition uint16) ([]engine.SuspectReservation, error)
	CheckHolds(ctx context.Context, partition uint16, holds []engine.Hold) ([]string, error)
	Vouch(ctx context.Context, x engine.SuspectReservation) error
	Resolve(ctx context.Context, x engine.SuspectReservation) ([]engine.Waiter, error)
	GatePartitions() uint16
}

// maxReckoned bounds how many pages of suspects one go looks at.
const maxReckoned = 64

// Reckon ends the reservations of a partition of gates whose leases are over, as the gate says whose word decides: they
// are charged in full, or given back if they were never made in all gates. Who holds its lease keeps what it has. That
// two do so is harmless. A partition of executions that does not answer leaves its reservations as they are. It returns
// how many it ended.
func Reckon(ctx context.Context, store Reckoner, partition uint16) (ended int, failed error) {
	for range maxReckoned {
		list, err := store.Suspects(ctx, partition)
		if errors.Is(err, denied.PartitionMissing) {
			return ended, failed
		}
		if err != nil || len(list) == 0 {
			return ended, errors.Join(failed, err)
		}
		by := map[uint16][]engine.SuspectReservation{}
		for _, x := range list {
			p := x.Execution.Partition()
			by[p] = append(by[p], x)
		}
		settled := 0
		for p, part := range by {
			n, vouched, err := reckon(ctx, store, p, part)
			ended, settled = ended+n, settled+n+vouched
			failed = errors.Join(failed, err)
		}
		if settled == 0 {
			return ended, failed
		}
	}
	return ended, failed
}

// reckon asks one partition of executions.
func reckon(ctx context.Context, store Reckoner, partition uint16,
	list []engine.SuspectReservation) (ended, vouched int, failed error) {
	holds := make([]engine.Hold, len(list))
	for i, x := range list {
		holds[i] = x.Hold
	}
	answers, err := store.CheckHolds(ctx, partition, holds)
	if err != nil && !errors.Is(err, flowfabric.ErrPartitionFrozen) {
		return 0, 0, err
	}
	for i, answer := range answers {
		if answer == engine.NewsHeld {
			failed = errors.Join(failed, store.Vouch(ctx, list[i]))
			vouched++
			continue
		}
		wake, err := store.Resolve(ctx, list[i])
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		ended++
		_ = Wake(ctx, store, wake) // else they open by themselves
	}
	return ended, vouched, failed
}
