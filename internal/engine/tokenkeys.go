package engine

import (
	"context"
	"strconv"
	"time"

	"github.com/sourcegraph/conc/pool"
)

// keyCalls is how many partitions are asked at once.
const keyCalls = 16

// TokenKey names a key by its id and the fingerprint of its secret, 16 hex digits. The secret stays in configuration.
type TokenKey struct {
	Kid         string
	Fingerprint string
}

// KeySeeded answers SeedTokenKey for one partition.
type KeySeeded struct {
	Current string // the key that signs there now
	Seeded  bool   // this call made it so
	Good    bool   // the offered key verifies there
}

// KeyRotated answers RotateTokenKey for one partition.
type KeyRotated struct {
	Partition uint16
	Previous  string // the key that signed until now; "" if there was none
	Noop      bool   // it was the current key already
	Reaped    int    // keys forgotten because their grace was over
	Open      int    // waitpoints open under the previous key
	// denied.GraceTooShort (slots: kid, open waitpoints, needed until, ms), denied.KidConflict, or why the call
	// failed
	Err error
}

// KeyState is a key that verifies tokens in some partition.
type KeyState struct {
	TokenKey
	Current     bool      // it signs
	ExpiresAt   time.Time // zero for the current one
	Open        int       // waitpoints open under it
	NeededUntil time.Time // when the last of them ends; far in the future if one has no end
}

// PartitionKeys are the keys of one partition.
type PartitionKeys struct {
	Partition uint16
	Current   string
	Keys      []KeyState
	Err       error
}

// SeedTokenKey makes a key current in every partition that knows none, and tells what each partition has. It may be
// called at every start. denied.KidConflict when the kid is in use with another secret. The first partition that
// fails is the error.
func (e *Engine) SeedTokenKey(ctx context.Context, k TokenKey) ([]KeySeeded, error) {
	out := make([]KeySeeded, e.partitions)
	p := pool.New().WithContext(ctx).WithMaxGoroutines(keyCalls).WithCancelOnError().WithFirstError()
	for i := range e.partitions {
		p.Go(func(ctx context.Context) error {
			r, err := e.setTokenKeys(ctx, i, "seed", k, 0, false)
			if err != nil {
				return err
			}
			if r.Already {
				out[i] = KeySeeded{Current: r.Text(), Good: r.Flag()}
			} else {
				out[i] = KeySeeded{Current: k.Kid, Seeded: true, Good: true}
			}
			return r.fail()
		})
	}
	return out, p.Wait()
}

// RotateTokenKey makes a key current in every partition; tokens of the key before stay good for grace. Without force
// a partition refuses (denied.GraceTooShort) when waitpoints are open whose tokens are needed for longer. The answers
// are in the order of partitions, each with its own error; the call may be repeated.
func (e *Engine) RotateTokenKey(ctx context.Context, k TokenKey, grace time.Duration, force bool) []KeyRotated {
	out := make([]KeyRotated, e.partitions)
	p := pool.New().WithMaxGoroutines(keyCalls)
	for i := range e.partitions {
		p.Go(func() {
			out[i] = e.rotate(ctx, i, k, grace, force)
		})
	}
	p.Wait()
	return out
}

func (e *Engine) rotate(ctx context.Context, partition uint16, k TokenKey, grace time.Duration, force bool) KeyRotated {
	out := KeyRotated{Partition: partition}
	r, err := e.setTokenKeys(ctx, partition, "rotate", k, grace, force)
	if err != nil {
		out.Err = err
		return out
	}
	if r.Already {
		out.Noop, out.Previous = true, r.Text()
		return out
	}
	r.Text()
	out.Previous, out.Reaped, out.Open = r.Text(), r.Int(), r.Int()
	out.Err = r.fail()
	return out
}

// setTokenKeys makes a key known to one partition (lua/suspend/ff_set_token_keys.lua).
func (e *Engine) setTokenKeys(ctx context.Context, partition uint16, mode string, k TokenKey, grace time.Duration,
	force bool) (*reader, error) {
	flag := "0"
	if force {
		flag = "1"
	}
	return e.call(ctx, fnSetKeys, partition, protocol, mode, k.Kid, k.Fingerprint,
		strconv.FormatInt(grace.Milliseconds(), 10), flag)
}

// TokenKeys lists the keys that verify tokens, by partition; each has its own error.
func (e *Engine) TokenKeys(ctx context.Context) []PartitionKeys {
	out := make([]PartitionKeys, e.partitions)
	p := pool.New().WithMaxGoroutines(keyCalls)
	for i := range e.partitions {
		p.Go(func() {
			out[i] = e.listTokenKeys(ctx, i)
		})
	}
	p.Wait()
	return out
}

// listTokenKeys reads the keys of one partition (lua/suspend/ff_list_token_keys.lua).
func (e *Engine) listTokenKeys(ctx context.Context, partition uint16) PartitionKeys {
	out := PartitionKeys{Partition: partition}
	r, err := e.call(ctx, fnListKeys, partition, protocol)
	if err != nil {
		out.Err = err
		return out
	}
	out.Current = r.Text()
	for range r.Count(5) {
		k := KeyState{TokenKey: TokenKey{Kid: r.Text(), Fingerprint: r.Text()}, ExpiresAt: r.Instant(),
			Open: r.Int(), NeededUntil: r.Instant()}
		k.Current = k.Kid == out.Current
		out.Keys = append(out.Keys, k)
	}
	out.Err = r.fail()
	return out
}
