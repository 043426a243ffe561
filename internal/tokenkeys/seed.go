package tokenkeys

import (
	"context"
	"fmt"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Configured is the keyring for a server: text if there is any (see [Parse]); for an embedded server what its folder
// keeps (see [Kept]), or [Development] if it is in memory; else none (nil).
func Configured(url, text string) (*Keyring, error) {
	if dir := inproc.Folder(url); dir != "" && text == "" {
		kept, err := Kept(dir, "")
		if err != nil {
			return nil, err
		}
		return Parse(kept)
	}
	k, err := Parse(text)
	if k == nil && err == nil && (inproc.IsEmbedded(url) || strings.HasPrefix(url, "inproc://")) {
		return Development(), nil
	}
	return k, err
}

// Seeder makes a key known where none is; *engine.Engine is one.
type Seeder interface {
	SeedTokenKey(ctx context.Context, k suspend.TokenKey) ([]engine.KeySeeded, error)
}

// Seed makes the first key current in every partition that knows none, and learns which key the others use. It may be
// called at every start; the nil keyring does nothing. flowfabric.ErrConfig when a partition uses a key that is not
// in the ring and none of the ring is good there: the configuration is behind a rotation, or ahead of one.
// denied.KidConflict when a kid is in use with another secret.
func (k *Keyring) Seed(ctx context.Context, s Seeder) error {
	first, ok := k.First()
	if !ok {
		return nil
	}
	partitions, err := s.SeedTokenKey(ctx, first)
	if err != nil {
		return fmt.Errorf("token key %q: %w", first.Kid, err)
	}
	for i, p := range partitions {
		if _, has := k.Key(p.Current); !has && !p.Good {
			return fmt.Errorf(
				"%w: partition %d signs tokens with kid %q, which is not among the token keys (%s); add its secret, or rotate with admin.RotateTokenKeys",
				flowfabric.ErrConfig, i, p.Current, strings.Join(k.Kids(), ","))
		}
		k.Use(uint16(i), p.Current)
	}
	return k.compare(ctx, s)
}

// lister tells which keys partitions know; *engine.Engine is one.
type lister interface {
	TokenKeys(ctx context.Context) []suspend.PartitionKeys
}

// compare holds the other keys of the ring against what partitions know: a wrong secret would sign tokens that nobody
// accepts.
func (k *Keyring) compare(ctx context.Context, s Seeder) error {
	l, ok := s.(lister)
	if !ok || len(k.keys) < 2 {
		return nil
	}
	for _, p := range l.TokenKeys(ctx) {
		if p.Err != nil {
			return fmt.Errorf("token keys: %w", p.Err)
		}
		for _, known := range p.Keys {
			if own, has := k.Key(known.Kid); has && own.Fingerprint != known.Fingerprint {
				return fmt.Errorf("token key %q: partition %d: %w", known.Kid, p.Partition, denied.KidConflict)
			}
		}
	}
	return nil
}
