//go:build unix

package sentinel_test

import (
	"errors"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

var passwords = testserver.Passwords{Data: "data-secret", Sentinel: "sentinel-secret"}

// The primary is killed under load, and then the Sentinels replace a live one by a replica that lacks the function
// library. Workers and clients go on with each new primary by themselves.
func TestPrimaryDies(t *testing.T) {
	t.Parallel()
	w := newEnv(t, testserver.Sentinel(t, testserver.ServerRedis, passwords), "one", "two")
	before := w.done(20)
	l := w.newLoad()
	l.more(10)
	w.set.Crash()
	l.more(10)
	w.listening("one", "two")
	workers, err := admin.New(w.client).Workers(w.ctx)
	if err != nil || len(workers) != 2 {
		t.Errorf("workers after the failover: %v, %v", workers, err)
	}

	replica := w.set.Replicas()[0]
	replica.Do("CONFIG", "SET", "replica-read-only", "no")
	replica.Do("FUNCTION", "FLUSH", "SYNC")
	if now := w.set.Failover(); now != replica {
		t.Fatal("another server took over")
	}
	l.more(10)
	w.listening("one", "two")
	l.judge()
	w.once(before)
	w.sound()
}

// The primary hangs, is replaced, and comes back: for some seconds there are two. Nobody writes to the old one, which
// becomes a replica.
func TestPrimaryHangs(t *testing.T) {
	t.Parallel()
	w := newEnv(t, testserver.Sentinel(t, testserver.ServerValkey, passwords), "one")
	before := w.done(20)
	l := w.newLoad()
	l.more(10)
	old := w.set.Primary()
	w.set.Hang(old)
	l.more(10)
	old.Resume()
	w.set.Settled()
	l.more(10)
	w.listening("one")
	l.judge()
	w.once(before)
	w.sound()
}

// A dead Sentinel is passed over, and what is wrong with a URL is said with the part that is wrong.
func TestURL(t *testing.T) {
	t.Parallel()
	set := testserver.Sentinel(t, testserver.ServerRedis, passwords)
	good := set.URL()
	first := set.Sentinels()[0].Address()
	for url, want := range map[string]struct {
		sentinel error
		hint     string
	}{
		strings.Replace(good, "/store", "/other", 1): {flowfabric.ErrConfig,
			"no primary of the name in the URL"},
		strings.Replace(good, "sentinel-secret", "wrong", 1): {flowfabric.ErrAuth,
			"sentinel_password"},
		strings.Replace(good, "?sentinel_password=sentinel-secret", "", 1): {flowfabric.ErrAuth,
			"sentinel_password"},
		strings.Replace(good, ":data-secret@", "", 1): {flowfabric.ErrAuth,
			"user and password before the hosts are for the primary"},
		"redis://:sentinel-secret@" + first: {flowfabric.ErrConfig,
			"redis+sentinel://"},
		"redis+sentinel://" + set.Primary().Address() + "/store?sentinel_password=data-secret": {flowfabric.ErrConfig,
			"no Sentinel"},
	} {
		c, err := client.Connect(t.Context(), client.Config{URL: url, Logger: quiet})
		if err == nil {
			c.Close()
		}
		if !errors.Is(err, want.sentinel) || !strings.Contains(err.Error(), want.hint) ||
			strings.ContainsAny(err.Error(), "\r\n") {
			t.Errorf("%s: %v, want %v that says %q", url, err, want.sentinel, want.hint)
		}
		if err != nil && strings.Contains(err.Error(), "-secret") {
			t.Errorf("%s: the error shows a password: %v", url, err)
		}
	}
	set.Sentinels()[0].Kill()
	c, err := client.Connect(t.Context(), client.Config{URL: good, Logger: quiet})
	if err != nil {
		t.Fatalf("beside a dead Sentinel: %v", err)
	}
	c.Close()
	for _, s := range set.Sentinels() {
		s.Kill()
	}
	if _, err := client.Connect(t.Context(), client.Config{URL: good, Logger: quiet}); !errors.Is(err,
		flowfabric.ErrTransport) || !strings.Contains(err.Error(), "no answer at") {
		t.Errorf("all Sentinels are dead: %v", err)
	}
}
