package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/prose"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// signaller is the part of the engine behind token keys. Each call may be repeated.
type signaller interface {
	ReadSuspension(ctx context.Context, id flowfabric.ExecutionID) (suspend.Record, error)
	ReissueToken(ctx context.Context, id flowfabric.ExecutionID, m engine.Minted) (key string, err error)
	RotateTokenKey(ctx context.Context, k suspend.TokenKey, grace time.Duration, force bool) []suspend.KeyRotated
	TokenKeys(ctx context.Context) []suspend.PartitionKeys
}

// Rotation says how [Admin.RotateTokenKeys] changes the key that signs tokens.
type Rotation struct {
	// of the key that signs from now on: one of client.Config.TokenKeys
	Kid string `json:"kid" jsonschema:"id of the key that signs from now on; this process must have it"`
	// Grace is how long tokens of the key before stay good: whole milliseconds from 1 ms; 0 is 24 h.
	Grace flowfabric.Millis `json:"grace_ms,omitempty" jsonschema:"how long tokens of the key before stay good; default a day"`
	// Force rotates although tokens of open waitpoints then end before they are needed.
	Force bool `json:"force,omitempty" jsonschema:"although tokens of open waitpoints then end before they are needed"`
}

// RotateTokenKeys makes a key sign new tokens in every partition. What travels is its fingerprint, never the secret.
// Give the key to every worker first, behind the one in use; then rotate; then drop the old one from the
// configuration once the grace is over.
//
// A partition where tokens of open waitpoints are needed for longer than the grace refuses, unless r.Force is set;
// such a token then expires, and [Admin.ReissueToken] makes another. The answers are in the order of partitions, each
// with its own error; the error sums up those. Partitions that were rotated stay so, and the call may be repeated.
//
// Errors, before any call: flowfabric.ErrNoTokenKeys; ErrConfig for a key id that this client has no key of; one of
// code invalid_grace_ms for a grace that is not a whole number of milliseconds, 1 or more. Then a [*PartitionsError]
// that matches ErrState, which tells how many waitpoints are open and until when, ErrConflict when the key id was
// used with another secret, or ErrTransport; the context's.
func (a *Admin) RotateTokenKeys(ctx context.Context, r Rotation, opts ...flowfabric.ActOption) ([]suspend.KeyRotated,
	error) {
	act, unnamed := a.act(opts)
	key, err := a.keyFor(r.Kid)
	grace := cmp.Or(time.Duration(r.Grace), limits.DefaultKeyGrace)
	switch {
	case a.closed():
		err = client.ErrClosed
	case err == nil && unnamed != nil:
		err = unnamed
	case err == nil && (grace < time.Millisecond || grace%time.Millisecond != 0):
		err = fmt.Errorf("%w: the grace is %s, want 1 ms or more", denied.Grace, grace)
	}
	if err != nil {
		return nil, fmt.Errorf("rotate token keys: %w", err)
	}
	ctx = act.Noted(ctx, "rotate to", "token key", r.Kid)
	rotated := a.store.RotateTokenKey(ctx, key, grace, r.Force)
	var failed partitionErrors
	for i, x := range rotated {
		if x.Err != nil {
			rotated[i].Error = prose.Message(x.Err)
			failed.add(x.Partition, x.Err)
		} else {
			a.conn.Keyring.Use(x.Partition, r.Kid)
		}
	}
	return rotated, failed.sum(fmt.Sprintf("rotate token keys to %q", r.Kid), len(rotated))
}

// TokenKeys lists the keys that verify tokens, by partition: which one signs, until when the others are good, how many
// waitpoints are open under each and until when. Each partition has its own error; the error, a [*PartitionsError],
// sums up those.
func (a *Admin) TokenKeys(ctx context.Context) ([]suspend.PartitionKeys, error) {
	if a.closed() {
		return nil, fmt.Errorf("list token keys: %w", client.ErrClosed)
	}
	listed := a.store.TokenKeys(ctx)
	var failed partitionErrors
	for i, p := range listed {
		if p.Err != nil {
			listed[i].Error = prose.Message(p.Err)
			failed.add(p.Partition, p.Err)
		}
	}
	return listed, failed.sum("list token keys", len(listed))
}

// ReissueToken gives an open waitpoint a new token, because the old one was lost or its key is about to end; the old
// one is dead at once. It needs a key of client.Config.TokenKeys that is in use. It is done in somebody's name, which
// the execution's history keeps: without By the client's Creator asks, 1..64 bytes, and without either it is refused.
//
// Errors: flowfabric.ErrNoTokenKeys without token keys, or when none of them is in use; ErrNotFound for execution and
// waitpoint; ErrWaitpointClosed; ErrInvalidInput.
func (a *Admin) ReissueToken(ctx context.Context, id flowfabric.ExecutionID, waitpoint flowfabric.UUID,
	opts ...flowfabric.ActOption) (suspend.Token, error) {
	if err := a.admit("reissue token of", id); err != nil {
		return suspend.Token{}, err
	}
	act := link.ActOf(opts)
	act.By = cmp.Or(act.By, a.conn.Creator)
	token, err := a.reissue(ctx, id, waitpoint, act)
	return token, link.Signalled("reissue token of", id, err)
}

func (a *Admin) reissue(ctx context.Context, id flowfabric.ExecutionID, waitpoint flowfabric.UUID,
	act link.Act) (suspend.Token, error) {
	if err := link.CheckNamed(act.By, limits.MaxName); err != nil {
		return suspend.Token{}, err
	}
	s, err := a.store.ReadSuspension(ctx, id)
	if err != nil {
		return suspend.Token{}, err
	}
	i := slices.IndexFunc(s.Waitpoints, func(w suspend.Waitpoint) bool { return w.ID == waitpoint })
	if i < 0 {
		return suspend.Token{},
			denied.New("ff_reissue_token", flowfabric.CodeOf(denied.NoWaitpoint), waitpoint.String())
	}
	var token suspend.Token
	err = a.conn.Keyring.Signed(id.Partition(), func() error {
		m, made, err := a.conn.Keyring.Reissue(id, waitpoint, s.Waitpoints[i].Key)
		if err != nil {
			return err
		}
		token = made
		_, err = a.store.ReissueToken(act.Execution(ctx, "reissue token", id, s.Waitpoints[i].Key), id, m)
		return err
	})
	if err != nil {
		return suspend.Token{}, err
	}
	return token, nil
}

// keyFor finds the key to rotate to.
func (a *Admin) keyFor(kid string) (suspend.TokenKey, error) {
	key, ok := a.conn.Keyring.Key(kid)
	switch {
	case ok:
		return key, nil
	case a.conn.Keyring == nil:
		return key, fmt.Errorf("%w: this client has none; set Config.TokenKeys or %s", flowfabric.ErrNoTokenKeys,
			suspend.EnvTokenKeys)
	}
	return key, fmt.Errorf(
		"%w: the key id that was asked for is not among this client's token keys (%s); add it to Config.TokenKeys (%s) of all workers and clients first",
		flowfabric.ErrConfig, strings.Join(a.conn.Keyring.Kids(), ","), suspend.EnvTokenKeys)
}
