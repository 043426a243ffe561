package tokenkeys

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// store is a fresh embedded store of two partitions.
func store(t *testing.T) (context.Context, *engine.Engine) {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: testserver.Embedded(t), Partitions: 2,
		Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	t.Cleanup(e.Close)
	return ctx, e
}

// current is the key that signs in each partition.
func current(ctx context.Context, t *testing.T, e *engine.Engine) (kids []string) {
	t.Helper()
	for _, p := range e.TokenKeys(ctx) {
		if p.Err != nil {
			t.Fatal(p.Err)
		}
		kids = append(kids, p.Current)
	}
	return kids
}

func signers(k *Keyring) []string { return []string{k.signer(0).kid, k.signer(1).kid} }

func TestSeed(t *testing.T) {
	ctx, e := store(t)
	a := keyring(t, "k1:"+secretA)
	for range 2 { // at every start
		must.No(t, a.Seed(ctx, e))
		if got := current(ctx, t, e); !slices.Equal(got, []string{"k1", "k1"}) {
			t.Errorf("seeded %v", got)
		}
	}
	if err := keyring(t, "k1:"+secretB).Seed(ctx, e); !errors.Is(err, denied.KidConflict) ||
		!strings.Contains(err.Error(), `"k1"`) || strings.Contains(err.Error(), secretB) {
		t.Errorf("another secret under the kid: %v", err)
	}
	if err := keyring(t, "k2:"+secretB).Seed(ctx, e); !errors.Is(err, flowfabric.ErrConfig) ||
		!strings.Contains(err.Error(), `signs tokens with kid "k1", which is not among the token keys (k2)`) {
		t.Errorf("another kid: %v", err)
	}
	if err := (*Keyring)(nil).Seed(ctx, e); err != nil {
		t.Error(err)
	}
	if got := current(ctx, t, e); !slices.Equal(got, []string{"k1", "k1"}) {
		t.Errorf("what was refused has changed something: %v", got)
	}
}

// A ring that is ahead of the rotation, or behind it, signs with what the store uses.
func TestSeedLearnsWhatIsInUse(t *testing.T) {
	ctx, e := store(t)
	first := keyring(t, "k1:"+secretA)
	must.No(t, first.Seed(ctx, e))
	ahead := keyring(t, "k2:"+secretB+",k1:"+secretA)
	if err := ahead.Seed(ctx, e); err != nil || !slices.Equal(signers(ahead), []string{"k1", "k1"}) {
		t.Errorf("%v; signs with %v", err, signers(ahead))
	}
	k2, _ := ahead.Key("k2")
	for _, r := range e.RotateTokenKey(ctx, k2, time.Hour, false) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	behind := keyring(t, "k1:"+secretA+",k2:"+secretB)
	if err := behind.Seed(ctx, e); err != nil || !slices.Equal(signers(behind), []string{"k2", "k2"}) {
		t.Errorf("%v; signs with %v", err, signers(behind))
	}
	// Not configured with k2 yet: k1 is in its grace, so this worker may go on with it.
	if err := first.Seed(ctx, e); err != nil || !slices.Equal(signers(first), []string{"k1", "k1"}) {
		t.Errorf("%v; signs with %v", err, signers(first))
	}
}

// seeder answers as told.
type seeder struct {
	answer []engine.KeySeeded
	err    error
}

func (s seeder) SeedTokenKey(context.Context, suspend.TokenKey) ([]engine.KeySeeded, error) {
	return s.answer, s.err
}

// One partition that was emptied is seeded again, and the others keep what they have.
func TestSeedOfPartitionsThatDiffer(t *testing.T) {
	k := keyring(t, "k1:"+secretA+",k2:"+secretB)
	if err := k.Seed(t.Context(), seeder{answer: []engine.KeySeeded{{Current: "k1", Seeded: true, Good: true},
		{Current: "k2"}}}); err != nil || !slices.Equal(signers(k), []string{"k1", "k2"}) {
		t.Errorf("%v; signs with %v", err, signers(k))
	}
	if err := k.Seed(t.Context(), seeder{answer: []engine.KeySeeded{{Current: "k1", Good: true},
		{Current: "k9"}}}); !errors.Is(err, flowfabric.ErrConfig) || !strings.Contains(err.Error(), "partition 1 ") {
		t.Errorf("%v", err)
	}
	if err := k.Seed(t.Context(), seeder{err: flowfabric.ErrTransport}); !errors.Is(err, flowfabric.ErrTransport) ||
		!strings.Contains(err.Error(), `token key "k1"`) {
		t.Errorf("%v", err)
	}
}

// A wrong secret of a key that is not the first would sign tokens that nobody accepts.
func TestSeedComparesEveryKey(t *testing.T) {
	ctx, e := store(t)
	must.No(t, keyring(t, "k1:"+secretA).Seed(ctx, e))
	if err := keyring(t, "k2:"+secretB+",k1:"+secretB).Seed(ctx, e); !errors.Is(err, denied.KidConflict) {
		t.Error(err)
	}
	if err := keyring(t, "k2:"+secretB+",k1:"+secretA).Seed(ctx, e); err != nil {
		t.Error(err)
	}
}
