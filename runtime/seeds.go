package runtime

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
)

// tokenSeeds declares the worker's token keys to a store that lost them, once for all who find that out at the same
// time.
type tokenSeeds struct {
	keyring *tokenkeys.Keyring // nil: handlers wait without waitpoints only
	store   tokenkeys.Seeder

	mu    sync.Mutex    // held while the keys are declared
	count atomic.Uint64 // how often that was done since the start
}

// signing makes a call that needs the partition to know a token key. One that knows none was flushed since this
// worker started: then the keys are declared as at the start, and the call is made again.
func (s *tokenSeeds) signing(ctx context.Context, call func() error) error {
	seeds := s.count.Load()
	err := call()
	if s.keyring == nil || !errors.Is(err, denied.NoTokenKeys) {
		return err
	}
	if again := s.again(ctx, seeds); again != nil {
		return again
	}
	return call()
}

// again declares the token keys to a store that may have been flushed, unless that happened since the caller counted
// seeds.
func (s *tokenSeeds) again(ctx context.Context, seeds uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count.Load() != seeds {
		return nil
	}
	err := s.keyring.Seed(ctx, s.store)
	if err == nil {
		s.count.Add(1)
	}
	return err
}
