package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

func open(t testing.TB, cfg Config) *Engine {
	t.Helper()
	e, err := Open(t.Context(), cfg)
	must.No(t, err)
	t.Cleanup(e.Close)
	return e
}

// do runs a raw command on the engine's own connection.
func do(t testing.TB, e *Engine, args ...string) rueidis.RedisResult {
	t.Helper()
	return e.client.Do(context.Background(), e.client.B().Arbitrary(args[0]).Args(args[1:]...).Build())
}

func answered(t testing.TB, e *Engine, args ...string) string {
	t.Helper()
	resp := do(t, e, args...)
	if err := resp.Error(); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	m, _ := resp.ToMessage()
	s, _ := m.ToString()
	return s
}

// oneLine judges an error as a newcomer meets it: one line, with the hint, of a class.
func oneLine(t *testing.T, what string, err, sentinel error, hint string) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Errorf("%s: %v, want %v", what, err, sentinel)
		return
	}
	if text := err.Error(); !strings.Contains(text, hint) || strings.ContainsAny(text, "\r\n") {
		t.Errorf("%s: %q does not say %q in one line", what, text, hint)
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.No(t, err)
	address := l.Addr().String()
	_ = l.Close()
	for _, url := range []string{"redis://" + address, "unix://" + filepath.Join(t.TempDir(), "s.sock")} {
		_, err := Open(t.Context(), Config{URL: url})
		oneLine(t, url, err, flowfabric.ErrTransport, "is a Valkey, Redis or FlowFabric server listening there?")
		if !strings.Contains(err.Error(), strings.SplitN(url, "://", 2)[1]) {
			t.Errorf("%q does not name the address", err)
		}
	}
}

func TestServerVersions(t *testing.T) {
	for _, c := range []struct {
		hello string
		ok    bool
	}{
		{helloReply("redis", "7.0.0", "standalone"), true}, {helloReply("redis", "8.2.1", "standalone"), true},
		{helloReply("redis", "10.0.0", "standalone"), true}, {helloReply("redis", "6.2.14", "standalone"), false},
		{helloReply("redis", "5.0.7", "standalone"), false}, {helloReply("redis", "", "standalone"), false},
		{helloReply("valkey", "7.2.0", "standalone"), true}, {helloReply("valkey", "8.0.1", "standalone"), true},
		{helloReply("valkey", "7.1.9", "standalone"), false}, {helloReply("other", "7.4.0", "standalone"), true},
		{"-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n", false},
	} {
		f := startFake(t)
		f.hello = c.hello
		e, err := Open(t.Context(), Config{URL: f.url()})
		if c.ok {
			if err != nil {
				t.Errorf("%q: %v", c.hello, err)
				continue
			}
			e.Close()
			continue
		}
		oneLine(t, c.hello, err, denied.ServerVersion, "Valkey 7.2 or newer, or Redis 7.0 or newer, is required")
	}
}

func TestAuth(t *testing.T) {
	for name, option := range map[string][]testserver.Option{"unix": nil, "tcp": {testserver.TCP()}} {
		url := testserver.Redis(t, option...)
		admin := open(t, Config{URL: url})
		answered(t, admin, "ACL", "SETUSER", "limited", "on", ">pw", "~*", "&*", "+@all", "-@scripting")
		answered(t, admin, "CONFIG", "SET", "requirepass", "s3cret")
		for what, cfg := range map[string]Config{
			"no password":    {URL: url},
			"wrong password": {URL: url, Password: "wrong"},
			"unknown user":   {URL: url, Username: "nobody", Password: "s3cret"},
			"no rights":      {URL: url, Username: "limited", Password: "pw"},
		} {
			e, err := Open(t.Context(), cfg)
			if e != nil {
				t.Errorf("%s %s: opened", name, what)
				e.Close()
			}
			oneLine(t, name+" "+what, err, flowfabric.ErrAuth, "the server refused user name, password or permission")
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s %s shows the password: %v", name, what, err)
			}
		}
		e := open(t, Config{URL: url, Password: "s3cret"})
		if err := e.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		if name == "tcp" {
			e := open(t, Config{URL: strings.Replace(url, "://", "://default:s3cret@", 1)})
			if err := e.Ping(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestDatabase(t *testing.T) {
	url := testserver.Redis(t)
	a, b := open(t, Config{URL: url + "?db=1", Partitions: 2}), open(t, Config{URL: url + "?db=2", Partitions: 3})
	if a.Partitions() != 2 || b.Partitions() != 3 {
		t.Errorf("databases share their configuration: %d, %d", a.Partitions(), b.Partitions())
	}
	_, err := Open(t.Context(), Config{URL: url + "?db=16"}) // the server has 16
	if err == nil || strings.ContainsAny(err.Error(), "\r\n") || denied.ClassOf(err) == 0 {
		t.Errorf("database 16: %v", err)
	}
}

// The process that boots first fixes the partition counts.
func TestPartitionsAreFixedOnce(t *testing.T) {
	for _, url := range []string{testserver.Redis(t), testserver.Embedded(t)} {
		no := false
		_, err := Open(t.Context(), Config{URL: url, CreateConfig: &no})
		oneLine(t, "an empty store", err, flowfabric.ErrConfig, "CreateConfig is false")
		first := open(t, Config{URL: url, Partitions: 5})
		if n, err := do(t, first, "EXISTS", keys.Root(4), keys.Root(5)).AsInt64(); n != 1 || err != nil {
			t.Errorf("roots of partitions 4 and 5: %d, %v; want just the first", n, err)
		}
		second := open(t, Config{URL: url, Partitions: 9, CreateConfig: &no})
		if first.Partitions() != 5 || second.Partitions() != 5 {
			t.Errorf("%d and %d partitions, want 5", first.Partitions(), second.Partitions())
		}
		for p := range uint16(5) {
			if got := answered(t, first, "HGET", keys.Root(p), "protocol"); got != protocol {
				t.Errorf("partition %d has protocol %q", p, got)
			}
		}
		answered(t, first, "HSET", keys.Config, "num_flow_partitions", "many")
		if _, err := Open(t.Context(), Config{URL: url}); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("a corrupt partition count: %v", err)
		}
	}
}

func TestFrozenPartition(t *testing.T) {
	e := open(t, Config{URL: testserver.Redis(t), Partitions: 4})
	answered(t, e, "HSET", keys.Root(3), "frozen", "1")
	_, err := e.ReadExecution(t.Context(), sampleID)
	oneLine(t, "frozen", err, flowfabric.ErrPartitionFrozen, keys.Root(3))
	answered(t, e, "HDEL", keys.Root(3), "frozen")
}

// A store of another protocol number is refused, when it is opened and by every later call, and the error names both
// numbers and says what to do. Its library stays, or stays away: the processes of that store go on.
func TestStoreOfAnotherProtocol(t *testing.T) {
	for _, url := range []string{testserver.Redis(t), testserver.Embedded(t)} {
		for theirs, advice := range map[int]string{
			limits.Protocol + 1: "upgrade this application",
			limits.Protocol - 1: "it holds an older layout, which this version cannot read: let the older version finish its work, then use an empty store",
		} {
			e := open(t, Config{URL: url, Partitions: 4})
			for p := range uint16(4) {
				answered(t, e, "HSET", keys.Root(p), "protocol", strconv.Itoa(theirs))
			}
			want := fmt.Sprintf("the store has protocol %d, this application %d; %s", theirs, limits.Protocol, advice)
			_, err := e.ReadExecution(t.Context(), sampleID)
			oneLine(t, "a call", err, flowfabric.ErrProtocol, want)
			_, _, err = e.Poll(t.Context(), []uint16{0, 1, 2, 3})
			oneLine(t, "a poll", err, flowfabric.ErrProtocol, want)
			oneLine(t, "boot", e.boot(t.Context()), flowfabric.ErrProtocol, want)
			if !e.Embedded() {
				answered(t, e, "FUNCTION", "FLUSH", "SYNC")
			}
			_, err = Open(t.Context(), Config{URL: url})
			oneLine(t, "open", err, flowfabric.ErrProtocol, want)
			if list, err := do(t, e, "FUNCTION", "LIST").ToArray(); !e.Embedded() && (err != nil || len(list) != 0) {
				t.Errorf("%d libraries were loaded (%v)", len(list), err)
			}
			answered(t, e, "FLUSHALL")
		}
	}
}

func version(t testing.TB, e *Engine) []string {
	t.Helper()
	v, err := do(t, e, "FCALL", "ff_version", "0").ToArray()
	if err != nil || len(v) != 5 {
		t.Fatalf("ff_version: %v, %v", v, err)
	}
	var out []string
	for _, m := range v[2:] {
		s, _ := m.ToString()
		out = append(out, s)
	}
	return out
}

// A library is replaced only by a newer one.
func TestLibraries(t *testing.T) {
	text, revision := library.Library(library.Variant{Sharded: true}), strconv.Itoa(library.Revision)
	with := func(protocol, revision, hash string) string {
		return text + "\nredis.register_function{function_name='ff_replaced', callback=function() return 1 end}\n" +
			"redis.register_function{function_name='ff_version2', callback=function() return {1,'OK','" + protocol +
			"','" + revision + "','" + hash + "'} end, flags={'no-writes'}}\n"
	}
	as := func(protocol, revision, hash string) string { // the library, but of another version
		return strings.NewReplacer("function_name='ff_version',", "function_name='ff_version1',",
			"function_name='ff_version2',", "function_name='ff_version',").
			Replace(with(protocol, revision, hash))
	}
	for _, c := range []struct {
		name, text string
		kept       bool
		refusal    string
	}{
		{"newer protocol", as("999", "1", "x"), true,
			"the library has protocol 999, this application " + protocol + "; upgrade this application"},
		{"older protocol", as("0", "999", "x"), true, "the library has protocol 0, this application " + protocol +
			"; stop the processes of the older version, then run FUNCTION DELETE"},
		{"newer revision", as(protocol, "999", "x"), true, ""},
		{"the same revision, other content", as(protocol, revision, "x"), false, ""},
		{"older revision", as(protocol, "0", "x"), false, ""},
		{"the same", as(protocol, revision, library.Hash()), true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := testserver.Redis(t)
			e := open(t, Config{URL: url, Partitions: 1})
			if got := version(t, e); got[0] != protocol || got[2] != library.Hash() {
				t.Fatalf("a fresh server has version %v", got)
			}
			answered(t, e, "FUNCTION", "LOAD", "REPLACE", c.text)
			before := version(t, e)
			other, err := Open(t.Context(), Config{URL: url})
			if c.refusal != "" {
				oneLine(t, c.name, err, flowfabric.ErrProtocol, c.refusal)
			} else if err != nil {
				t.Fatal(err)
			} else {
				other.Close()
			}
			if after := version(t, e); (strings.Join(after, " ") == strings.Join(before, " ")) != c.kept {
				t.Errorf("version %v became %v, kept should be %v", before, after, c.kept)
			}
		})
	}
	t.Run("protocol 999 that shares nothing", func(t *testing.T) {
		url := testserver.Redis(t)
		e := open(t, Config{URL: url, Partitions: 1})
		answered(t, e, "FUNCTION", "LOAD", "REPLACE",
			"#!lua name=flowfabric\nredis.register_function{function_name='ff_version', "+
				"callback=function() return {1,'OK','999','1','x'} end, flags={'no-writes'}}")
		_, err := Open(t.Context(), Config{URL: url})
		oneLine(t, "newer", err, flowfabric.ErrProtocol, "protocol 999")
		_, _, err = e.Poll(t.Context(), []uint16{0})
		oneLine(t, "running engine", err, flowfabric.ErrProtocol, "protocol 999")
	})
	t.Run("protocol 999 under an engine that runs", func(t *testing.T) {
		e := open(t, Config{URL: testserver.Redis(t), Partitions: 1})
		answered(t, e, "FUNCTION", "LOAD", "REPLACE", strings.ReplaceAll(text, "'"+protocol+"'", "'999'"))
		answered(t, e, "DEL", keys.Root(0))
		_, err := e.callKeys(t.Context(), fnBoot, []string{keys.Root(0)}, protocol)
		oneLine(t, "boot", err, flowfabric.ErrProtocol,
			"the library has protocol 999, this application "+protocol+"; upgrade this application")
		answered(t, e, "HSET", keys.Root(0), "protocol", protocol)
		_, _, err = e.Poll(t.Context(), []uint16{0})
		oneLine(t, "poll", err, flowfabric.ErrProtocol, "the library has protocol 999")
		_, err = e.Tick(t.Context(), 0, "w", false)
		oneLine(t, "tick", err, flowfabric.ErrProtocol, "the library has protocol 999")
	})
}

// Functions may vanish at any time (FUNCTION FLUSH, a failover to an empty node): calls in flight load
// them again and go on.
func TestReload(t *testing.T) {
	for name, url := range map[string]string{"redis": testserver.Redis(t), "embedded": testserver.Embedded(t)} {
		t.Run(name, func(t *testing.T) {
			e := open(t, Config{URL: url, Partitions: 4})
			for range 20 {
				answered(t, e, "FUNCTION", "FLUSH", "SYNC")
				p := pool.New().WithErrors()
				for i := range 8 {
					p.Go(func() error {
						if i%2 == 0 {
							_, _, err := e.Poll(context.Background(), []uint16{0, 1, 2, 3})
							return err
						}
						_, err := e.Tick(context.Background(), uint16(i%4), "w", false)
						return err
					})
				}
				must.No(t, p.Wait())
			}
		})
	}
}

// A server that restarts without its data, as a crashed cache does, is booted again; what was in it is gone.
func TestRestart(t *testing.T) {
	durable := testserver.Start(t, testserver.ServerRedis, testserver.AOF())
	e := open(t, Config{URL: durable.URL(), Partitions: 4})
	created, err := e.CreateExecutions(t.Context(), 3,
		[]NewExecution{{ID: sampleID, Start: flowfabric.Start{Namespace: "n", Lane: "l", Kind: "k"}}})
	if err != nil || created[0].Err != nil {
		t.Fatal(created, err)
	}
	durable.Kill()
	if _, err := e.ReadExecution(t.Context(), sampleID); !errors.Is(err, flowfabric.ErrTransport) {
		t.Errorf("without a server: %v", err)
	}
	durable.Restart()
	if s, err := e.ReadExecution(t.Context(), sampleID); err != nil || s.State.Public != flowfabric.Waiting {
		t.Errorf("after the restart: %+v, %v", s, err)
	}
	volatile := testserver.Start(t, testserver.ServerRedis)
	lost := open(t, Config{URL: volatile.URL(), Partitions: 4})
	volatile.Restart()
	if _, err := lost.ReadExecution(t.Context(), sampleID); !errors.Is(err, flowfabric.ErrNotFound) {
		t.Errorf("a server that lost everything: %v", err)
	}
}

func TestClose(t *testing.T) {
	e := open(t, Config{URL: testserver.Redis(t), Partitions: 2})
	must.No(t, e.Ping(t.Context()))
	e.Close()
	e.Close()
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	for name, err := range map[string]error{
		"ping":      e.Ping(ctx),
		"call":      func() error { _, _, err := e.Poll(ctx, []uint16{0}); return err }(),
		"renew":     func() error { _, err := e.RenewSession(ctx, 0, "w~1", time.Minute, 0); return err }(),
		"subscribe": e.Subscribe(ctx, 0, []string{"c"}, nil, nil),
	} {
		if !errors.Is(err, flowfabric.ErrTransport) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
}

// An ended context is told apart from a server that does not answer.
func TestContext(t *testing.T) {
	e := open(t, Config{URL: testserver.Redis(t), Partitions: 2})
	cause := errors.New("the caller left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, _, err := e.Poll(ctx, []uint16{0}); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
}

func TestServerName(t *testing.T) {
	if e := open(t, Config{URL: testserver.Redis(t)}); !strings.HasPrefix(e.Server(), "redis 7") &&
		!strings.HasPrefix(e.Server(), "redis 8") || e.Embedded() || e.Cluster() {
		t.Errorf("server %q, embedded %v, cluster %v", e.Server(), e.Embedded(), e.Cluster())
	}
	if e := open(t, Config{URL: testserver.Embedded(t)}); !e.Embedded() || e.Cluster() {
		t.Errorf("server %q, embedded %v, cluster %v", e.Server(), e.Embedded(), e.Cluster())
	}
}
