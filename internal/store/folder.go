package store

import (
	"errors"
	"log/slog"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

// Options say how [Open] keeps a folder.
type Options struct {
	Always bool // every call is synced before it is answered; else once a second
	Clock  func() time.Time
	Logger *slog.Logger
}

// Open reads the store that a folder keeps, or begins one there.
func Open(_ string, _ Options) (*Store, error) { return nil, errors.ErrUnsupported } // TODO(D)

// Close writes and syncs what is not yet written, and gives the folder back.
func (s *Store) Close() error { return nil } // TODO(D)

// Refuses is the answer to every command and function that writes while nothing can be written, nil if all is well. It
// is called during a call.
func (s *Store) Refuses() *functions.Reply { return nil } // TODO(D)
