package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Suspension reads the current suspension of an execution, or its last one: why and since when it waits, what ended it, and
// every waitpoint that is still known. The zero ID says that it was never suspended. Errors: flowfabric.ErrNotFound;
// ErrResultPurged after a purge. Spec 20 §3.11.
func (c *Client) Suspension(ctx context.Context, id flowfabric.ExecutionID) (suspend.Record, error) {
	if err := c.admit("suspension of", id); err != nil {
		return suspend.Record{}, err
	}
	s, err := c.store.ReadSuspension(ctx, id)
	if err != nil {
		return suspend.Record{}, signalled("suspension of", id, err)
	}
	return s, nil
}

// Waitpoints lists the waitpoints of an execution, the open ones first and of those the oldest first. Of a token it shows the key
// it is signed with and a fingerprint, never the token or what would do in its stead. Errors: as [Client.Suspension]. Spec
// 20 §3.12.
func (c *Client) Waitpoints(ctx context.Context, id flowfabric.ExecutionID) ([]suspend.Waitpoint, error) {
	if err := c.admit("waitpoints of", id); err != nil {
		return nil, err
	}
	s, err := c.store.ReadSuspension(ctx, id)
	if err != nil {
		return nil, signalled("waitpoints of", id, err)
	}
	closed := func(w suspend.Waitpoint) int {
		if w.State.Open() {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(s.Waitpoints, func(a, b suspend.Waitpoint) int {
		return cmp.Or(closed(a)-closed(b), a.CreatedAt.Compare(b.CreatedAt))
	})
	return s.Waitpoints, nil
}

// ReissueToken gives an open waitpoint a new token, because the old one was lost or its key is about to end; the old one is dead
// at once. It needs a key of Config.TokenKeys that is in use. by says who, 1..64 bytes, for the execution's history.
//
// Errors: flowfabric.ErrNoTokenKeys without token keys; ErrKidNotCurrent when none of them is in use; ErrWaitpointNotFound;
// ErrWaitpointNotOpen; ErrNotFound; ErrInvalidInput. Spec 20 S43.
func (c *Client) ReissueToken(ctx context.Context, id flowfabric.ExecutionID, waitpoint uuid.UUID, by string) (suspend.Token, error) {
	if err := c.admit("reissue token of", id); err != nil {
		return suspend.Token{}, err
	}
	token, err := c.reissue(ctx, id, waitpoint, by)
	if err != nil {
		return suspend.Token{}, signalled("reissue token of", id, err)
	}
	return token, nil
}

func (c *Client) reissue(ctx context.Context, id flowfabric.ExecutionID, waitpoint uuid.UUID, by string) (suspend.Token, error) {
	if err := named(by, flowfabric.MaxName); err != nil {
		return suspend.Token{}, err
	}
	s, err := c.store.ReadSuspension(ctx, id)
	if err != nil {
		return suspend.Token{}, err
	}
	i := slices.IndexFunc(s.Waitpoints, func(w suspend.Waitpoint) bool { return w.ID == waitpoint })
	if i < 0 {
		return suspend.Token{}, flowfabric.NewError("ff_reissue_token", flowfabric.CodeOf(flowfabric.ErrWaitpointNotFound), waitpoint.String())
	}
	for again := false; ; again = true {
		m, token, err := c.keyring.Reissue(id, waitpoint, s.Waitpoints[i].Key)
		if err != nil {
			return suspend.Token{}, err
		}
		if _, err = c.store.ReissueToken(ctx, id, m, by); err == nil {
			return token, nil
		}
		if again || !c.learn(id.Partition(), err) {
			return suspend.Token{}, err
		}
	}
}

// learn notes the key that a refusal says is in use, and reports whether it helps to sign again.
func (c *Client) learn(partition uint16, err error) bool {
	refused, ok := errors.AsType[*flowfabric.Error](err)
	if !ok || !errors.Is(err, flowfabric.ErrKidNotCurrent) {
		return false
	}
	if _, ours := c.keyring.Key(refused.Slot(0)); !ours {
		return false
	}
	c.keyring.Use(partition, refused.Slot(0))
	return true
}

// keyFor finds the key to rotate to.
func (c *Client) keyFor(kid string) (engine.TokenKey, error) {
	key, ok := c.keyring.Key(kid)
	switch {
	case ok:
		return key, nil
	case c.keyring == nil:
		return key, fmt.Errorf("%w: this client has none; set Config.TokenKeys or %s", flowfabric.ErrNoTokenKeys, suspend.EnvTokenKeys)
	}
	return key, fmt.Errorf("%w: the key id that was asked for is not among this client's token keys (%s); add it to Config.TokenKeys (%s) of all workers and clients first",
		flowfabric.ErrConfig, strings.Join(c.keyring.Kids(), ","), suspend.EnvTokenKeys)
}
