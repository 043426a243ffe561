package embedded_test

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/store"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// said sends commands at once and reads the bytes of their answers, up to that of a last ECHO.
func (c *conn) said(commands ...string) string {
	c.t.Helper()
	const last = "$8\r\nthe last\r\n"
	var out []byte
	for _, line := range commands {
		out = store.AppendCommand(out, strings.Fields(line)...)
	}
	_, err := c.Write(store.AppendCommand(out, "ECHO", "the last"))
	must.No(c.t, err)
	var got bytes.Buffer
	for !strings.HasSuffix(got.String(), last) {
		line, err := c.r.ReadString('\n')
		must.No(c.t, err)
		got.WriteString(line)
	}
	return strings.TrimSuffix(got.String(), last)
}

// What goes over the wire is, byte by byte, what a Redis sends, in both versions of the protocol.
func TestWireIsThatOfRedis(t *testing.T) {
	own, redis := dialServer(t, start(t, embedded.Config{}).URL()), dialServer(t, testserver.Redis(t))
	both := func(commands ...string) {
		t.Helper()
		got, want := strings.SplitAfter(own.said(commands...), "\n"), strings.SplitAfter(redis.said(commands...), "\n")
		for i := range want {
			if i >= len(got) || got[i] != want[i] {
				t.Errorf("line %d is %q, Redis says %q", i, got[min(i, len(got)):], want[i:])
				return
			}
		}
	}
	commands := []string{"PING", "PING x", "ECHO", "GET none", "SET k v", "GET k", "GET", "NOSUCH a b",
		"HSET h a 1 b 2",
		"HGETALL h", "HGETALL none", "SMEMBERS none", "SADD s m", "SMEMBERS s", "ZADD z 1.5 m 2 n", "ZSCORE z m",
		"ZSCORE z none", "ZRANGE z 0 -1 WITHSCORES", "ZMSCORE z m none", "ZPOPMIN z", "XADD x 1-1 f v", "XRANGE x - +",
		"LRANGE none 0 -1", "MGET k none", "TYPE k", "HRANDFIELD none 2 WITHVALUES", "ZADD z NX 1 q", "HINCRBY k f 1",
		"SELECT 0", "SELECT x", "MULTI", "SET k w", "NOSUCH", "EXEC", "MULTI", "MULTI", "SET k w", "GET",
		"GET k", "EXEC",
		"MULTI", "INCR k", "GET k", "HGETALL h", "EXEC", "EXEC", "DISCARD", "MULTI", "SET k 1", "DISCARD", "GET k",
		"MULTI", "EXEC", "CLIENT SETNAME me", "CLIENT GETNAME", "WAIT 0 0", "ROLE", "HELLO 4", "HELLO 3 NONE",
		"PUBLISH c m", "PUBSUB NUMSUB c d", "UNWATCH", "AUTH x", "AUTH default x"}
	both(commands...)
	own.said("HELLO 3")
	redis.said("HELLO 3")
	own.said("DEL k h s z x")
	redis.said("DEL k h s z x")
	both(commands...)
	both("SUBSCRIBE a b", "PUBLISH a one", "PSUBSCRIBE [ab]*", "PUBLISH b two", "GET k", "UNSUBSCRIBE a",
		"PUNSUBSCRIBE",
		"UNSUBSCRIBE", "SSUBSCRIBE s", "SPUBLISH s three", "SUNSUBSCRIBE s", "RESET", "GET k")
}

// Without the password nothing but the ways to tell it is answered, and nothing is done.
func TestPassword(t *testing.T) {
	url := start(t, embedded.Config{Password: "a secret of some length"}).URL()
	stranger := dial(t, url)
	for _, line := range []string{"GET k", "SET k v", "PING", "NOSUCH", "FCALL f 0", "EVAL return 0", "INFO",
		"SUBSCRIBE c",
		"MULTI", "HELLO 3", "CLIENT ID", "FUNCTION LIST"} {
		if got := strings.Join(stranger.do(strings.Fields(line)...), " "); !strings.HasPrefix(got, "NOAUTH") {
			t.Errorf("%s: %q", line, got)
		}
	}
	for _, args := range [][]string{{"AUTH", "wrong"}, {"AUTH", "other", "a secret of some length"},
		{"AUTH", "default", ""},
		{"HELLO", "3", "AUTH", "default", "wrong"}} {
		if got := stranger.do(args...); !strings.HasPrefix(got[0], "WRONGPASS") {
			t.Errorf("%q: %q", args, got)
		}
	}
	if got := stranger.do("AUTH", "a secret of some length"); got[0] != "OK" {
		t.Fatalf("the right one: %q", got)
	}
	if got := stranger.do("SET", "k", strings.Repeat("v", 1<<20)); got[0] != "OK" {
		t.Errorf("a long text: %q", got)
	}
	stranger.do("RESET")
	if got := stranger.do("GET", "k"); !strings.HasPrefix(got[0], "NOAUTH") {
		t.Errorf("after RESET: %.20q", got)
	}
	known := dial(t, url)
	if got := known.do("HELLO", "2", "AUTH", "default", "a secret of some length"); got[0] != "server" {
		t.Errorf("HELLO: %q", got)
	}
	// A stranger cannot make the server keep much.
	big := dial(t, url)
	fmt.Fprint(big, "*2\r\n$4\r\nAUTH\r\n$500000000\r\n")
	if line, _ := bufio.NewReader(big).ReadString('\n'); !strings.HasPrefix(line, "-ERR") {
		t.Errorf("a password of 500 MB: %q", line)
	}
}

// A folder keeps what a server had; a folder that is in use is refused with its address.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	first := start(t, embedded.Config{Dir: dir})
	dial(t, first.URL()).do("SET", "k", "kept")
	if _, err := embedded.Start(t.Context(), embedded.Config{Dir: dir, Logger: quiet()}); err == nil ||
		!strings.Contains(err.Error(), strings.TrimPrefix(first.URL(), "redis://")) {
		t.Errorf("a second one: %v", err)
	}
	first.Close()
	t.Setenv("FLOWFABRIC_ENV", "production")
	for range 2 {
		url, release, err := embedded.Resolve(t.Context(), "embedded:"+dir+"?fsync=always", quiet())
		must.No(t, err)
		if got := dial(t, url).do("GET", "k"); got[0] != "kept" {
			t.Errorf("%q", got)
		}
		if _, _, err := embedded.Resolve(t.Context(), "embedded://"+dir, quiet()); err == nil {
			t.Error("one folder with two kinds of fsync")
		}
		again, releaseToo, err := embedded.Resolve(t.Context(), "embedded://"+dir+"?fsync=always", quiet())
		if must.No(t, err); again != url {
			t.Errorf("two servers of one folder: %s and %s", url, again)
		}
		release()
		if got := dial(t, url).do("GET", "k"); got[0] != "kept" {
			t.Errorf("released under a user: %q", got)
		}
		releaseToo()
	}
	for _, url := range []string{"embedded:", "embedded://host/data",
		"embedded:./x?fsync=never", "embedded://?fsync=always"} {
		if _, _, err := embedded.Resolve(t.Context(), url, quiet()); err == nil {
			t.Errorf("%s is taken", url)
		}
	}
}

// A subscriber that reads nothing is closed, and who publishes never waits for it.
func TestASlowSubscriberIsClosed(t *testing.T) {
	url := start(t, embedded.Config{}).URL()
	slow, sender := dial(t, url), dial(t, url)
	slow.do("SUBSCRIBE", "c")
	text := strings.Repeat("x", 1<<20)
	for range 200 {
		if sender.do("PUBLISH", "c", text)[0] == "0" {
			return
		}
	}
	t.Error("it is still subscribed after 200 MiB")
}
