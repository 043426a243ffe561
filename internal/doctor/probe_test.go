package doctor

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// left is what a server has: the number of keys, and its libraries with their code.
func left(t *testing.T, url string) (out string) {
	t.Helper()
	p, err := engine.Dial(t.Context(), engine.Config{URL: url})
	must.No(t, err)
	defer p.Close()
	nodes := p.Nodes()
	for _, address := range slices.Sorted(maps.Keys(nodes)) {
		node := nodes[address]
		if role, _ := node.Role(t.Context()); role == "slave" {
			continue
		}
		size, err := node.Ask(t.Context(), "DBSIZE").AsInt64()
		must.No(t, err)
		libraries, err := node.Ask(t.Context(), "FUNCTION", "LIST", "WITHCODE").ToArray()
		must.No(t, err)
		for _, l := range libraries {
			about, err := l.AsMap()
			must.No(t, err)
			name, code := about["library_name"], about["library_code"]
			out += fmt.Sprintf("%s (%x) ", name.String(), sha256.Sum256([]byte(code.String())))
		}
		out += address + ": " + strings.Repeat("key ", int(size))
	}
	return out
}

// named is an ability that a probe reports.
func named(t *testing.T, r Probing, name string) Ability {
	t.Helper()
	for _, a := range r.Abilities {
		if a.Name == name {
			return a
		}
	}
	t.Errorf("nothing is said of %s: %+v", name, r)
	return Ability{}
}

// Every server that FlowFabric supports can do all of it, and the probe leaves it as it was: a new one empty, one
// with a store with that store's library and keys.
func TestTry(t *testing.T) {
	for name, start := range map[string]func() string{
		"redis": func() string { return testserver.Redis(t) }, "valkey": func() string { return testserver.Valkey(t) },
		"embedded": func() string { return testserver.Embedded(t) },
		"cluster":  func() string { return testserver.Cluster(t, testserver.ServerRedis).URL() },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := engine.Config{URL: start(), Partitions: 3, CallTimeout: time.Hour}
			before := left(t, cfg.URL)
			for range 2 {
				r, err := Try(t.Context(), cfg)
				must.No(t, err)
				if !r.Able {
					t.Errorf("not able: %+v", r)
				}
				for _, a := range r.Abilities {
					if a.Status != OK {
						t.Errorf("%+v", a)
					}
				}
				if after := left(t, cfg.URL); after != before {
					t.Errorf("left behind: %q, before: %q", after, before)
				}
				do(t, open(t, cfg), "HSET", keys.Root(0), "other", "1") // now with a store
				before = left(t, cfg.URL)
			}
		})
	}
}

// What a server or the rights of the user lack is named with the words of the server, what depends on it is not called
// able, and nothing is left of what could be tried.
func TestTryWithout(t *testing.T) {
	for _, tc := range []struct {
		name, rights string // what the user may not do
		config       []string
		ability      string
		status       Status
		said         string
	}{
		{"loading", "-function|load", nil, "FUNCTION LOAD", Fail, "NOPERM"},
		{"unloading", "-function|delete", nil, "FUNCTION LOAD", Skip, "not tried: the user may not FUNCTION DELETE"},
		{"functions", "", []string{"--rename-command", "FUNCTION", "F"}, "FUNCTION LOAD", Skip, "unknown command"},
		{"calling", "-fcall", nil, "FCALL", Fail, "NOPERM"},
		{"removing", "-unlink -del", nil, "commands", Skip, "not UNLINK or DEL"},
		{"one command", "-hincrby -zadd", nil, "commands", Fail, "HINCRBY, ZADD: "},
		{"time", "-time", nil, "server time", Fail, "TIME: "},
		{"publishing", "-spublish", nil, "publishing", Fail, "SPUBLISH: "},
		{"subscribing", "-ssubscribe", nil, "publishing", Fail, "ssubscribe"},
		{"other keys", "resetkeys ~ff:other*", nil, "reads", Fail, "NOPERM"},
		{"other channels", "resetchannels", nil, "publishing", Fail, "channel"},
		{"reading", "-get", nil, "reads", Fail, "GET: "},
		{"memory", "", []string{"--maxmemory", "1"}, "FUNCTION LOAD", Fail, "OOM"},
		{"big calls", "", []string{"--client-query-buffer-limit", "1mb"}, "big calls", Fail, ""},
		{"eviction", "", []string{"--maxmemory-policy", "allkeys-lru"}, "maxmemory-policy", Fail, "allkeys-lru"},
		{"eviction that only INFO tells", "-config", []string{"--maxmemory-policy", "volatile-lru"},
			"maxmemory-policy", Fail, "volatile-lru"},
		{"configuration", "-config", nil, "CONFIG GET", Warn, "NOPERM"},
		{"questions about rights", "-acl", nil, "ACL DRYRUN", Warn, "NOPERM"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			srv := testserver.Start(t, testserver.ServerRedis, testserver.TCP(), testserver.Args(tc.config...))
			user := []string{"ACL", "SETUSER", "some", "on", ">pass", "+@all", "~*", "&*"}
			srv.Do(append(user, strings.Fields(tc.rights)...)...)
			r, err := Try(t.Context(), engine.Config{URL: "redis://some:pass@" + srv.Address(),
				CallTimeout: time.Hour})
			must.No(t, err)
			a := named(t, r, tc.ability)
			if a.Status != tc.status || !strings.Contains(a.Said, tc.said) {
				t.Errorf("%+v, want %s with %q", a, tc.status, tc.said)
			}
			if r.Able != (tc.status == Warn) {
				t.Errorf("able: %v, after %+v", r.Able, a)
			}
			if tc.name == "functions" { // nobody can ask what libraries there are
				return
			}
			if n := srv.Do("DBSIZE").(int64); n != 0 {
				t.Errorf("%d keys are left", n)
			}
			if list := srv.Do("FUNCTION", "LIST").([]any); len(list) != 0 {
				t.Errorf("libraries are left: %v", list)
			}
		})
	}
}

// What was loaded is removed even if the caller gives up.
func TestTryGivenUp(t *testing.T) {
	url := testserver.Redis(t)
	p, err := engine.Dial(t.Context(), engine.Config{URL: url})
	must.No(t, err)
	defer p.Close()
	ctx, cancel := context.WithCancel(t.Context())
	r := prober{Probe: p, name: "ff_probe_given_up"}
	r.load(ctx)
	if !strings.Contains(left(t, url), r.name) {
		t.Fatalf("not loaded: %+v", r.Probing)
	}
	cancel()
	must.No(t, r.unload(ctx))
	if text := left(t, url); strings.Contains(text, r.name) {
		t.Errorf("left behind: %s", text)
	}
}
