package engine

import (
	"context"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/internal/wire"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// KeySeeded answers SeedTokenKey for one partition.
type KeySeeded struct {
	Current string // the key that signs there now
	Seeded  bool   // this call made it so
	Good    bool   // the offered key verifies there
}

// SeedTokenKey makes a key current in every partition that knows none, and tells what each partition has. It may be
// called at every start. denied.KidConflict when the kid is in use with another secret. The first partition that
// fails is the error.
func (e *Engine) SeedTokenKey(ctx context.Context, k suspend.TokenKey) ([]KeySeeded, error) {
	out := make([]KeySeeded, e.partitions)
	p := pool.New().WithContext(ctx).WithMaxGoroutines(laneCalls).WithCancelOnError().WithFirstError()
	for i := range e.partitions {
		p.Go(func(ctx context.Context) error {
			r, already, err := e.setTokenKeys(ctx, i, "seed", k, 0, false)
			switch {
			case already:
				out[i] = KeySeeded{Current: r.Current, Good: r.Good}
			case err == nil:
				out[i] = KeySeeded{Current: k.Kid, Seeded: true, Good: true}
			}
			return err
		})
	}
	return out, p.Wait()
}

// RotateTokenKey makes a key current in every partition; tokens of the key before stay good for grace. Without force
// a partition refuses (denied.GraceTooShort) when waitpoints are open whose tokens are needed for longer. The answers
// are in the order of partitions, each with its own error; the call may be repeated.
func (e *Engine) RotateTokenKey(ctx context.Context, k suspend.TokenKey, grace time.Duration,
	force bool) []suspend.KeyRotated {
	return forEach(e, func(partition uint16) suspend.KeyRotated {
		r, already, err := e.setTokenKeys(ctx, partition, "rotate", k, grace, force)
		if already {
			r.Previous = r.Current
		}
		return suspend.KeyRotated{Partition: partition, Noop: already, Previous: r.Previous, Reaped: r.Reaped,
			Open: r.Open, Err: err}
	})
}

// setTokenKeys makes a key known to one partition (lua/suspend/ff_set_token_keys.lua).
func (e *Engine) setTokenKeys(ctx context.Context, partition uint16, mode string, k suspend.TokenKey,
	grace time.Duration,
	force bool) (wire.SetTokenKeysReply, bool, error) {
	return ask[wire.SetTokenKeysReply](ctx, e, partition,
		wire.SetTokenKeys{Mode: mode, Kid: k.Kid, Fingerprint: k.Fingerprint, Grace: grace, Force: force})
}

// TokenKeys lists the keys that verify tokens, by partition; each has its own error.
func (e *Engine) TokenKeys(ctx context.Context) []suspend.PartitionKeys {
	return forEach(e, func(partition uint16) suspend.PartitionKeys { return e.listTokenKeys(ctx, partition) })
}

// listTokenKeys reads the keys of one partition (lua/suspend/ff_list_token_keys.lua).
func (e *Engine) listTokenKeys(ctx context.Context, partition uint16) suspend.PartitionKeys {
	r, _, err := ask[wire.ListTokenKeysReply](ctx, e, partition, wire.ListTokenKeys{})
	out := suspend.PartitionKeys{Partition: partition, Current: r.Current, Keys: []suspend.TokenKey{}, Err: err}
	for _, k := range r.Keys {
		out.Keys = append(out.Keys, suspend.TokenKey{Kid: k.Kid, Fingerprint: k.Fingerprint,
			Current: k.Kid == r.Current, ExpiresAt: k.Expiry, Open: k.Open, NeededUntil: k.Needed})
	}
	return out
}
