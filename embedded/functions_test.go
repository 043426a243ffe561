package embedded_test

import (
	"bufio"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

const sample = `#!lua name=sample
local function deep(v)
  return v.x.y
end
redis.register_function('get', function(k) return redis.call('GET', k[1]) end)
redis.register_function('set', function(k, a) return redis.call('SET', k[1], a[1]) end)
redis.register_function('add', function(k, a)
  local n = tonumber(redis.call('GET', k[1]) or '0') + a[1]
  redis.call('SET', k[1], n)
  return n
end)
redis.register_function{function_name='read', callback=function(k, a) return redis.call(unpack(a)) end, flags={'no-writes'}}
redis.register_function('run', function(k, a) return redis.call(unpack(a)) end)
redis.register_function('try', function(k, a) return redis.pcall(unpack(a)) end)
redis.register_function('global', function() x = 1 end)
redis.register_function('field', function() string.x = 1 end)
redis.register_function('unknown', function() return x end)
redis.register_function('table', function() return redis.call('GET', {}) end)
redis.register_function('nothing', function() return redis.call() end)
redis.register_function('values', function() return {3.99, -3.99, 'x', true, false, {1, {2}}, nil, 5} end)
redis.register_function('status', function() return {ok='FINE'} end)
redis.register_function('failed', function() return {err='MY own'} end)
redis.register_function('numbers', function() return redis.call('MSET', 'a', 0.1, 'b', 1000000000000000, 'c', -0.5) end)
`

// dialServer opens a connection to a server of a test.
func dialServer(t *testing.T, url string) *conn {
	t.Helper()
	path, ok := strings.CutPrefix(url, "unix://")
	if !ok {
		return dial(t, url)
	}
	c, err := net.Dial("unix", path)
	must.No(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return &conn{t: t, Conn: c, r: bufio.NewReader(c)}
}

// Whatever the answer of Redis is, the embedded server gives the same.
func TestFunctionsAnswerAsOnRedis(t *testing.T) {
	redis, own := dialServer(t, testserver.Redis(t)), dialServer(t, start(t, embedded.Config{}).URL())
	for _, command := range [][]string{
		{"FCALL", "get", "1", "k"},
		{"FUNCTION", "LOAD", sample},
		{"FUNCTION", "LOAD", sample},
		{"FUNCTION", "LOAD", "REPLACE", sample},
		{"FUNCTION", "LOAD", "x"},
		{"FUNCTION", "LOAD", "#!lua name=a-b\nlocal x"},
		{"FUNCTION", "LOAD", "#!lua name=other\nredis.register_function('get', function() end)"},
		{"FUNCTION", "LOAD", "#!lua name=other\nx = 1"},
		{"FUNCTION", "LOAD", "#!lua name=other\nlocal x = 1"},
		{"FUNCTION", "DELETE", "other"},
		{"FUNCTION", "LIST", "LIBRARYNAME", "oth*"},
		{"FUNCTION"},
		{"FUNCTION", "NONE"},
		{"FCALL", "nobody", "0"},
		{"FCALL", "get"},
		{"FCALL", "get", "x"},
		{"FCALL", "get", "-1"},
		{"FCALL", "get", "2", "k"},
		{"FCALL", "get", "1", "k"},
		{"FCALL", "set", "1", "k", "text\r\n\x00"},
		{"FCALL", "get", "1", "k"},
		{"FCALL_RO", "get", "1", "k"},
		{"FCALL_RO", "read", "1", "k", "GET", "k"},
		{"FCALL", "read", "1", "k", "GET", "k"},
		{"FCALL", "read", "1", "k", "SET", "k", "v"},
		{"FCALL", "read", "1", "k", "PUBLISH", "k", "v"},
		{"FCALL", "read", "1", "k", "PING"},
		{"FCALL", "read", "1", "k", "PUBSUB", "NUMSUB", "x"},
		{"FCALL", "run", "1", "k", "HGET", "k", "f"},
		{"FCALL", "try", "1", "k", "HGET", "k", "f"},
		{"FCALL", "run", "1", "k", "NOSUCH", "k", "f"},
		{"FCALL", "run", "1", "k", "RPUSH", "l", "1", "", "2"},
		{"FCALL", "run", "1", "k", "LRANGE", "l", "0", "-1"},
		{"FCALL", "run", "1", "k", "LRANGE", "none", "0", "-1"},
		{"FCALL", "run", "1", "k", "MGET", "k", "none"},
		{"FCALL", "run", "1", "k", "FCALL", "get", "1", "k"},
		{"FCALL", "run", "1", "k", "HELLO", "3"},
		{"FCALL", "run", "1", "k", "AUTH", "x"},
		{"FCALL", "global", "0"},
		{"FCALL", "field", "0"},
		{"FCALL", "unknown", "0"},
		{"FCALL", "table", "0"},
		{"FCALL", "nothing", "0"},
		{"FCALL", "values", "0"},
		{"FCALL", "status", "0"},
		{"FCALL", "failed", "0"},
		{"FCALL", "numbers", "0"},
		{"MGET", "a", "b", "c"},
		{"FUNCTION", "DELETE", "sample"},
		{"FCALL", "get", "1", "k"},
		{"FUNCTION", "LOAD",
			"#!lua name=one\nredis.register_function{function_name='f', callback=function() end, flags={'no-writes'}}"},
		{"FUNCTION", "LIST"},
		{"FUNCTION", "LIST", "WITHCODE"},
		{"FUNCTION", "FLUSH", "SYNC"},
		{"FUNCTION", "LIST"},
	} {
		if want, got := redis.do(command...), own.do(command...); !slices.Equal(got, want) {
			t.Errorf("%q: %q, on Redis %q", command, got, want)
		}
	}
}

// There is one database, and a function cannot select another.
func TestFunctionsAndDatabases(t *testing.T) {
	c := dial(t, start(t, embedded.Config{}).URL())
	c.do("FUNCTION", "LOAD", sample)
	if got := append(c.do("SELECT", "0"), c.do("SELECT", "3")...); got[0] != "OK" ||
		got[1] != "ERR DB index is out of range" {
		t.Errorf("SELECT: %q", got)
	}
	if got := c.do("FCALL", "run", "0", "SELECT", "3"); !strings.Contains(got[0], "not allowed from script") {
		t.Errorf("SELECT in a function: %q", got)
	}
}

// A function runs in a transaction, but not in a script.
func TestFunctionsInside(t *testing.T) {
	c := dial(t, start(t, embedded.Config{}).URL())
	c.do("FUNCTION", "LOAD", sample)
	if got := c.do("EVAL", "return redis.call('FCALL', 'get', '1', 'k')", "0"); !strings.Contains(got[0],
		"not allowed from script") {
		t.Errorf("in a script: %q", got)
	}
	c.do("MULTI")
	for _, command := range [][]string{{"FCALL", "add", "1", "k", "1"}, {"FCALL", "run", "1", "k", "HGET", "k", "f"},
		{"FUNCTION", "LIST", "LIBRARYNAME", "none"}, {"FCALL", "add", "1", "k", "1"}} {
		if got := c.do(command...); got[0] != "QUEUED" {
			t.Errorf("%q in a transaction: %q", command, got)
		}
	}
	if got := c.do("EXEC"); len(got) != 3 || got[0] != "1" || !strings.HasPrefix(got[1], "WRONGTYPE") || got[2] != "2" {
		t.Errorf("the transaction: %q", got)
	}
}

// A call is alone: what it reads is still so when it writes, whatever other connections do, a library that is loaded
// again included.
func TestFunctionsRunOneAtATime(t *testing.T) {
	const clients, calls = 8, 200
	s := start(t, embedded.Config{})
	dial(t, s.URL()).do("FUNCTION", "LOAD", sample)
	conns := make([]*conn, clients)
	for i := range conns {
		conns[i] = dial(t, s.URL())
	}
	var wg sync.WaitGroup
	for i, c := range conns {
		wg.Go(func() {
			for n := range calls {
				c.do("FCALL", "add", "1", "sum", "1")
				c.do("INCRBY", "sum", "1")
				if i == 0 && n%50 == 0 {
					c.do("FUNCTION", "LOAD", "REPLACE", sample)
				}
			}
		})
	}
	wg.Wait()
	if got := conns[0].do("GET", "sum"); got[0] != strconv.Itoa(2*clients*calls) {
		t.Errorf("%q after %d calls that add 1", got, 2*clients*calls)
	}
}
