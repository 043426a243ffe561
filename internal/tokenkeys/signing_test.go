package tokenkeys

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/suspend"
)

func TestSigned(t *testing.T) {
	stale := func(kid string) error { return denied.New("fake", "kid_not_current", kid) }
	for what, x := range map[string]struct {
		replies []error
		want    error
		kids    string
	}{
		"changes twice": {[]error{stale("k2"), stale("k1")}, nil, "k1 k2 k1"},
		"for ever": {[]error{stale("k2"), stale("k1"), stale("k2"), stale("k1")}, denied.KidNotCurrent,
			"k1 k2 k1 k2"},
		"a key not ours":  {[]error{stale("k9")}, denied.KidNotCurrent, "k1"},
		"another refusal": {[]error{denied.New("fake", "invalid_input", "k2")}, flowfabric.ErrInvalidInput, "k1"},
		"no connection":   {[]error{flowfabric.ErrTransport}, flowfabric.ErrTransport, "k1"},
	} {
		k := keyring(t, "k1:"+secretA+",k2:"+secretB)
		var kids []string
		err := k.Signed(1, func() error {
			kids = append(kids, k.signer(1).kid)
			if len(kids) > len(x.replies) {
				return nil
			}
			return x.replies[len(kids)-1]
		})
		if !errors.Is(err, x.want) || strings.Join(kids, " ") != x.kids {
			t.Errorf("%s: %v, signed with %v", what, err, kids)
		}
	}
	calls := 0
	if err := (*Keyring)(nil).Signed(1, func() error { calls++; return stale("k1") }); err == nil || calls != 1 {
		t.Errorf("without keys: %v after %d calls", err, calls)
	}
}

// counted counts how often keys are declared; each time they are known from then on.
type counted struct {
	sync.Mutex
	seeds int
	err   error
}

func (c *counted) SeedTokenKey(context.Context, suspend.TokenKey) ([]engine.KeySeeded, error) {
	c.Lock()
	defer c.Unlock()
	c.seeds++
	return []engine.KeySeeded{{Current: "k1", Good: true}}, c.err
}

func TestKnownDeclaresOnceForAllWhoWait(t *testing.T) {
	store, unknown := &counted{}, denied.New("fake", "hmac_secret_not_initialized")
	s := &Seeds{Keyring: keyring(t, "k1:"+secretA), Store: store}
	var all, refused sync.WaitGroup
	refused.Add(10)
	for range 10 {
		all.Go(func() {
			calls := 0
			err := s.Known(t.Context(), func() error {
				if calls++; calls == 1 {
					refused.Done()
					refused.Wait() // every caller has read the count and is refused
					return unknown
				}
				return nil
			})
			if err != nil || calls != 2 {
				t.Errorf("%v after %d calls", err, calls)
			}
		})
	}
	all.Wait()
	if store.seeds != 1 {
		t.Errorf("declared %d times", store.seeds)
	}
	must.No(t, s.Declare(t.Context()))
	if store.err = flowfabric.ErrTransport; store.seeds != 2 {
		t.Errorf("declared %d times", store.seeds)
	}
	if err := s.Known(t.Context(), func() error { return unknown }); !errors.Is(err, flowfabric.ErrTransport) {
		t.Errorf("refused declaration: %v", err)
	}
	if err := (&Seeds{}).Known(t.Context(), func() error { return unknown }); !errors.Is(err, denied.NoTokenKeys) {
		t.Errorf("without keys: %v", err)
	}
}
