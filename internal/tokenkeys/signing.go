package tokenkeys

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

// maxRemints is how often keys may be rotated while one call is made.
const maxRemints = 3

// Signed makes a call whose tokens the call mints itself, and makes it again when the partition signs with another
// key of the ring, at most three times.
func (k *Keyring) Signed(partition uint16, call func() error) error {
	for try := 0; ; try++ {
		err := call()
		if try == maxRemints || !k.learn(partition, err) {
			return err
		}
	}
}

// learn notes the key that a refusal names as the one in use. It reports whether minting again helps.
func (k *Keyring) learn(partition uint16, err error) bool {
	refusal, ok := errors.AsType[*flowfabric.Error](err)
	if !ok || !errors.Is(err, denied.KidNotCurrent) || !k.Has(denied.Slot(refusal, 0)) {
		return false
	}
	k.Use(partition, denied.Slot(refusal, 0))
	return true
}

// Seeds declares token keys to a store that lost them, once for all callers that find that out at the same time. Safe
// for concurrent use.
type Seeds struct {
	Keyring *Keyring // nil: calls are made once
	Store   Seeder

	mu    sync.Mutex    // held while the keys are declared
	count atomic.Uint64 // declarations so far
}

// Known makes a call that needs the partition to know a token key. A store that was flushed knows none: then the keys
// are declared, and the call is made again.
func (s *Seeds) Known(ctx context.Context, call func() error) error {
	count := s.count.Load()
	err := call()
	if s.Keyring == nil || !errors.Is(err, denied.NoTokenKeys) {
		return err
	}
	if again := s.declare(ctx, count); again != nil {
		return again
	}
	return call()
}

// Declare declares the token keys to a store that may have been flushed.
func (s *Seeds) Declare(ctx context.Context) error { return s.declare(ctx, s.count.Load()) }

// declare is Declare, unless it happened since the caller read the count.
func (s *Seeds) declare(ctx context.Context, count uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count.Load() != count {
		return nil
	}
	err := s.Keyring.Seed(ctx, s.Store)
	if err == nil {
		s.count.Add(1)
	}
	return err
}
