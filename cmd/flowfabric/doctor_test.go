package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/doctor"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

// What doctor says of real servers: it loads nothing, and judges as an operator should.
func TestDoctor(t *testing.T) {
	examined := func(w *env, line string) (int, map[string]doctor.Check) {
		t.Helper()
		code, out, errOut := w.run(line, "")
		var c doctor.Checkup
		if err := json.Unmarshal([]byte(out), &c); err != nil {
			t.Fatalf("%v: %s%s", err, out, errOut)
		}
		if c.Healthy != (code == exitOK) {
			t.Errorf("healthy %v, exit %d", c.Healthy, code)
		}
		byName := map[string]doctor.Check{}
		for _, k := range c.Checks {
			if was, known := byName[k.Name]; !known || was.Status == doctor.OK {
				byName[k.Name] = k
			}
		}
		return code, byName
	}
	want := func(checks map[string]doctor.Check, wants map[string]doctor.Status) {
		t.Helper()
		for name, s := range wants {
			if checks[name].Status != s {
				t.Errorf("%s: %+v, want %s", name, checks[name], s)
			}
		}
	}
	fresh := &env{T: t, ctx: t.Context()}
	t.Setenv("FLOWFABRIC_URL", testserver.Redis(t, testserver.Args("--maxmemory", "200mb")))
	code, checks := examined(fresh, "doctor --json --indexes")
	want(checks, map[string]doctor.Status{"version": doctor.OK, "library": doctor.Warn, "partitions": doctor.Warn,
		"drift": doctor.Skip, "rights": doctor.OK, "eviction": doctor.OK, "memory": doctor.OK})
	if code != exitOK {
		t.Errorf("a fresh server: exit %d", code)
	}
	for name, kind := range map[string]testserver.Kind{"redis": testserver.ServerRedis,
		"valkey": testserver.ServerValkey} {
		t.Run(name, func(t *testing.T) {
			srv := testserver.Start(t, kind, testserver.AOF(),
				testserver.Args("--maxmemory", "200mb", "--maxmemory-policy", "volatile-lru"))
			w := newEnv(t, srv.URL())
			must.No(t, w.engine.FreezePartition(trail.As(w.ctx, "", "slot move"), 2))
			code, checks := examined(w, "doctor --json")
			want(checks, map[string]doctor.Status{"version": doctor.OK, "library": doctor.OK, "partitions": doctor.OK,
				"frozen": doctor.Warn, "persistence": doctor.OK,
				"eviction": doctor.Fail, "clock": doctor.OK, "rights": doctor.OK})
			if code != exitFailed {
				t.Errorf("exit %d", code)
			}
			must.No(t, w.engine.ThawPartition(w.ctx, 2))
			_, checks = examined(w, "doctor --json --indexes")
			want(checks, map[string]doctor.Status{"drift": doctor.OK})
			_, out, _ := w.run("doctor", "")
			if !strings.Contains(out, "CONFIG SET maxmemory-policy noeviction") || !strings.Contains(out, "CHECK") {
				t.Errorf("for people: %s", out)
			}
		})
	}
	t.Run("replica", func(t *testing.T) {
		primary := testserver.Start(t, testserver.ServerValkey, testserver.TCP())
		host, port, _ := net.SplitHostPort(primary.Address())
		t.Setenv("FLOWFABRIC_URL", testserver.Valkey(t, testserver.Args("--replicaof", host, port)))
		code, checks := examined(fresh, "doctor --json")
		want(checks, map[string]doctor.Status{"role": doctor.Fail})
		if found := checks["role"].Found; code != exitFailed ||
			!strings.Contains(found, "read-only replica of "+primary.Address()) {
			t.Errorf("exit %d: %s", code, found)
		}
	})
	t.Run("renamed", func(t *testing.T) {
		t.Setenv("FLOWFABRIC_URL",
			testserver.Redis(t, testserver.Args("--rename-command", "FUNCTION", "F", "--rename-command", "INFO", "I")))
		code, checks := examined(fresh, "doctor --json")
		want(checks, map[string]doctor.Status{"commands": doctor.Fail, "library": doctor.Fail, "info": doctor.Fail})
		if found := checks["commands"].Found; code != exitFailed || !strings.Contains(found, "FUNCTION, INFO") {
			t.Errorf("exit %d: %s", code, found)
		}
		_, out, errOut := fresh.run("doctor", "")
		if all := out + errOut; strings.Contains(all, "internal_script_error") ||
			!strings.Contains(all, "rename-command") {
			t.Errorf("for people: %s", all)
		}
		if code, _, errOut := fresh.run("ls", ""); code != exitUsage || !strings.Contains(errOut, "the command INFO") {
			t.Errorf("another command: exit %d, %s", code, errOut)
		}
	})
	// What the check sees, the doctor sees; and neither needs a sound store to say so.
	t.Run("damaged", func(t *testing.T) {
		srv := testserver.Start(t, testserver.ServerRedis,
			testserver.Args("--maxmemory", "200mb", "--maxmemory-policy", "noeviction"))
		w := newEnv(t, srv.URL())
		for _, tc := range []struct {
			check, says string
			damage      []string
		}{
			{"drift", "2 repairable", []string{"DEL", "ff:{fp:0}:done", "ff:{fp:1}:done"}},
			{"keys", "3 repairable", []string{"SET", "ff:{fp:1}:feed", "x"}},
			{"keys", "gates were not checked", []string{"SET", "ff:{g:1}", "x"}},
			{"partitions", "partition 2 was not checked: corrupt", []string{"SET", "ff:{fp:2}", "x"}},
			{"partitions", "roots of 4 partitions are there", []string{"DEL", "ff:config:partitions"}},
			{"partitions", "ff_configure: ", []string{"SET", "ff:config:partitions", "x"}},
		} {
			srv.Do(tc.damage...)
			code, checks := examined(w, "doctor --json")
			if want(checks, map[string]doctor.Status{tc.check: doctor.Fail}); code != exitFailed {
				t.Errorf("%v: doctor exits with %d", tc.damage, code)
			}
			if code, out, errOut := w.run("check", ""); code != exitFailed {
				t.Errorf("%v: check exits with %d: %s%s", tc.damage, code, out, errOut)
			} else if !strings.Contains(out+errOut, tc.says) {
				t.Errorf("%v: check does not say %q: %s%s", tc.damage, tc.says, out, errOut)
			}
		}
	})
	// What was not checked is not called sound: the check says so, and --json how many keys were checked.
	t.Run("unchecked", func(t *testing.T) {
		srv := testserver.Start(t, testserver.ServerRedis,
			testserver.Args("--maxmemory", "200mb", "--maxmemory-policy", "noeviction"))
		t.Setenv("FLOWFABRIC_URL", srv.URL())
		w := fresh
		c, err := client.Connect(t.Context(), client.Config{CallTimeout: time.Hour, URL: srv.URL(), Partitions: 2,
			Logger: slog.New(slog.DiscardHandler)}) // boots the store, without work that somebody must maintain
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		checked := func(line string, exit int, s doctor.Status, all bool) {
			t.Helper()
			code, checks := examined(w, line+" --json")
			_, out, _ := w.run(line+" --json", "")
			var c doctor.Checkup
			if err := json.Unmarshal([]byte(out), &c); err != nil || c.Keys == 0 {
				t.Fatalf("%v: %s", err, out)
			}
			if want(checks, map[string]doctor.Status{doctor.Drift: s}); code != exit {
				t.Errorf("%s: exit %d, want %d", line, code, exit)
			}
			number := 0
			if all {
				number = c.Keys
			}
			if c.CheckedKeys != number {
				t.Errorf("%s: %d of %d keys checked, want %d", line, c.CheckedKeys, c.Keys, number)
			}
			_, text, _ := w.run(line, "")
			if said := strings.Contains(text, fmt.Sprintf("0 of %d keys were checked", c.Keys)) &&
				strings.Contains(text, "doctor --indexes"); said == all {
				t.Errorf("%s, for people: %s", line, text)
			}
		}
		checked("doctor", exitOK, doctor.OK, true)
		srv.Do("ZADD", "ff:{fp:0}:done", "1", ids.UUID(mint.ID(0)).String())
		checked("doctor", exitFailed, doctor.Fail, true)
		checked("doctor --indexes=false", exitOK, doctor.Skip, false)
		srv.Do("EVAL", "for i = 1, 10001 do redis.call('SET', 'other:' .. i, '1') end", "0")
		checked("doctor", exitOK, doctor.Skip, false)
		checked("doctor --indexes", exitFailed, doctor.Fail, true)
	})
	t.Run("embedded", func(t *testing.T) {
		_, checks := examined(newEnv(t, testserver.Embedded(t)), "doctor --json --indexes")
		want(checks, map[string]doctor.Status{"version": doctor.Warn, "partitions": doctor.OK, "drift": doctor.OK,
			"routes": doctor.OK, "served": doctor.Warn})
	})
	t.Run("folder", func(t *testing.T) {
		_, checks := examined(newEnv(t, serveFolder(t, t.TempDir()).URL()), "doctor --json")
		want(checks, map[string]doctor.Status{"version": doctor.OK, "partitions": doctor.OK})
	})
}

// A probe says of each ability whether it is there, to people and as JSON, and is no check of the store.
func TestProbe(t *testing.T) {
	srv := testserver.Start(t, testserver.ServerRedis, testserver.TCP())
	w := &env{T: t, ctx: t.Context()}
	srv.Do("ACL", "SETUSER", "reader", "on", ">pass", "~*", "&*", "+@read", "+hello", "+ping", "+info", "+role")
	for _, tc := range []struct {
		url  string
		exit int
		load doctor.Status
		says string
	}{
		{srv.URL(), exitOK, doctor.OK, "1 primary"},
		{"redis://reader:pass@" + srv.Address(), exitFailed, doctor.Skip, "NOPERM"},
	} {
		t.Setenv("FLOWFABRIC_URL", tc.url)
		code, out, errOut := w.run("doctor --probe", "")
		if code != tc.exit || !strings.Contains(out, "FUNCTION LOAD") || !strings.Contains(out, tc.says) {
			t.Errorf("exit %d, want %d and %q: %s%s", code, tc.exit, tc.says, out, errOut)
		}
		code, out, _ = w.run("doctor --probe --json", "")
		var r doctor.Probing
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != tc.exit || r.Able != (code == exitOK) {
			t.Errorf("%v: exit %d, %s", err, code, out)
		}
		for _, a := range r.Abilities {
			if a.Name == "FUNCTION LOAD" && a.Status != tc.load {
				t.Errorf("%+v, want %s", a, tc.load)
			}
		}
	}
	if n := srv.Do("DBSIZE").(int64); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	if code, _, errOut := w.run("doctor --probe --indexes", ""); code != exitUsage {
		t.Errorf("with --indexes: exit %d, %s", code, errOut)
	}
}

// The table of exit codes, by the errors that lead to them.
func TestExitCodeOf(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want int
	}{
		{nil, exitOK}, {errors.New("disk"), exitFailed}, {flowfabric.ErrCorrupt, exitFailed},
		{denied.Reply, exitFailed},
		{usage("x"), exitUsage}, {flowfabric.ErrConfig, exitUsage}, {flowfabric.ErrInvalidInput, exitUsage},
		{flowfabric.ErrPayloadTooLarge, exitUsage},
		{flowfabric.ErrNotFound, exitNotFound}, {denied.NoSchedule, exitNotFound}, {denied.NoWorker, exitNotFound},
		{flowfabric.ErrTerminal, exitRefused}, {flowfabric.ErrLaneClosed, exitRefused},
		{flowfabric.ErrPartitionFrozen, exitRefused},
		{denied.Idempotency, exitRefused}, {denied.ReplaysExhausted, exitRefused},
		{flowfabric.ErrOutOfMemory, exitRefused},
		{flowfabric.ErrTransport, exitUnreachable}, {flowfabric.ErrAuth, exitDenied},
		{flowfabric.ErrFailed, exitOutcome},
		{flowfabric.ErrProtocol, exitFailed}, {errUnhealthy, exitFailed},
		{&commandError{flowfabric.ErrTransport, errTimeout}, exitTimeout},
		{&commandError{flowfabric.ErrTransport, errInterrupted}, exitInterrupted},
		{&client.UnknownOutcomeError{Cause: flowfabric.ErrTransport}, exitUnreachable},
		{errors.Join(errors.New("a"), flowfabric.ErrNotFound), exitNotFound},
	} {
		if got := exitCode(tc.err); got != tc.want {
			t.Errorf("%v: %d, want %d", tc.err, got, tc.want)
		}
	}
}

// late is a context whose deadline has passed without its timer having noticed, as it happens on a busy machine.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Nanosecond), true }

// An attempt to connect that ends at the deadline of its command says so in the words of the network, before the
// context does.
func TestOutOfTimeWhileConnecting(t *testing.T) {
	dial := fmt.Errorf("%w: %w", flowfabric.ErrTransport,
		&net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded})
	if err := marked(late{t.Context()}, dial); exitCode(err) != exitTimeout {
		t.Errorf("past the deadline: %v", err)
	}
	// timed: nothing is waited for
	early, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if err := marked(early, dial); exitCode(err) != exitUnreachable {
		t.Errorf("long before the deadline: %v", err)
	}
	if err := marked(late{t.Context()}, flowfabric.ErrNotFound); exitCode(err) != exitNotFound {
		t.Errorf("another error: %v", err)
	}
}
