package functions_test

import (
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/functions"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// memory is a store of texts. The command BREAK panics, as a defect would.
type memory map[string]string

func (m memory) Do(args []string) functions.Reply {
	switch args[0] {
	case "SET":
		m[args[1]] = args[2]
		return functions.Reply{Kind: functions.KindStatus, Text: "OK"}
	case "GET":
		text, ok := m[args[1]]
		if !ok {
			return functions.Reply{}
		}
		return bulk(text)
	case "ECHO":
		list := make([]functions.Reply, len(args)-1)
		for i := range list {
			list[i] = bulk(args[i+1])
		}
		return functions.Reply{Kind: functions.KindList, List: list}
	case "BREAK":
		panic("broken")
	}
	return functions.Error("WRONGTYPE no")
}

func (m memory) Writes(command string) bool { return command == "SET" }

func bulk(text string) functions.Reply { return functions.Reply{Kind: functions.KindBulk, Text: text} }
func whole(n int64) functions.Reply    { return functions.Reply{Kind: functions.KindInt, Int: n} }
func list(all ...functions.Reply) functions.Reply {
	return functions.Reply{Kind: functions.KindList, List: append([]functions.Reply{}, all...)}
}

// load makes an interpreter with a library whose functions are given by name; head precedes them.
func load(t testing.TB, store functions.Store, head string, bodies map[string]string) *functions.Interpreter {
	t.Helper()
	lua := functions.New(store)
	again(t, lua, head, bodies)
	return lua
}

func again(t testing.TB, lua *functions.Interpreter, head string, bodies map[string]string) {
	t.Helper()
	code := "#!lua name=l\n" + head + "\n"
	for name, body := range bodies {
		flags := ""
		if name == "reader" {
			flags = ", flags={'no-writes'}"
		}
		code += "redis.register_function{function_name='" + name + "', callback=function(k, a) " + body + " end" +
			flags + "}\n"
	}
	c, err := functions.Compile(code)
	if err == nil {
		err = lua.Load(c, true)
	}
	must.No(t, err)
}

func one(t *testing.T, body string, args ...string) functions.Reply {
	t.Helper()
	return load(t, memory{}, "", map[string]string{"f": body}).Call("f", []string{"key"}, args, false)
}

// Nothing that a function does to its environment succeeds, and nothing of it is there for the next call.
func TestEnvironmentIsReadOnly(t *testing.T) {
	const readonly, missing = "Attempt to modify a readonly table",
		"Script attempted to access nonexistent global variable"
	for body, want := range map[string]string{
		"x = 1": readonly, "redis = nil": readonly, "string = {}": readonly, "tonumber = pairs": readonly,
		"redis.call = nil": readonly, "redis.x = 1": readonly, "string.find = nil": readonly, "table.x = 1": readonly,
		"math.floor = 1": readonly, "local s = '' s.x = 1": "", "local s = 'a' return s.sub.x": "",
		"return x": missing, "return _G": missing, "rawset(string, 'x', 1)": missing,
		"setmetatable(redis, {})": missing, "return getmetatable('')": missing, "setfenv(1, {})": missing,
		"os.exit()": missing, "loadstring('x = 1')": missing, "print(1)": missing, "return require('x')": missing,
		"return coroutine": missing, "math.randomseed(1)": "",
		"string.dump(pairs)":                  "",
		"redis.register_function('g', pairs)": "can only be called on FUNCTION LOAD",
	} {
		lua := load(t, memory{}, "", map[string]string{"f": body,
			"g": "return {string.find('ab', 'b'), tonumber('7'), math.floor(1), (('x'):sub(1, 1))}"})
		got := lua.Call("f", nil, nil, false)
		if got.Kind != functions.KindError || !strings.HasPrefix(got.Text, "ERR user_function:") ||
			!strings.Contains(got.Text, want) ||
			!strings.HasSuffix(got.Text, " script: f, on @user_function:"+line(got.Text)+".") {
			t.Errorf("%s: %+v", body, got)
		}
		if got := lua.Call("g", nil, nil, false); !reflect.DeepEqual(got,
			list(whole(2), whole(7), whole(1), bulk("x"))) {
			t.Errorf("after %s: %+v", body, got)
		}
	}
}

// line is the number after the first colon.
func line(text string) string {
	_, rest, _ := strings.Cut(text, ":")
	n, _, _ := strings.Cut(rest, ":")
	return n
}

// A call that raises keeps its writes and leaves nothing else: neither values that closures had, nor a deep stack,
// nor memory.
func TestCallsThatRaiseLeaveNothing(t *testing.T) {
	store := memory{}
	lua := load(t, store,
		"local function deep(n, v) if n == 0 then return v.x.y end local inner = function() return n + v.a end return inner() + deep(n - 1, v) end",
		map[string]string{
			"fail":  "redis.call('SET', k[1], a[1]) local mine = a[1] local get = function() return mine end return deep(tonumber(a[2]), {a = 1}) .. get()",
			"check": "local mine = 'own' local get = function() return mine end return get()",
			"never": "local function f() return f() + 1 end return f()",
			"wide":  "local t = {} for i = 1, 500000 do t[i] = i end return {unpack(t)}",
			"wrong": "return redis.call('NOPE')",
		})
	for i := range 300 {
		text := strconv.Itoa(i)
		if got := lua.Call("fail", []string{"key"}, []string{text, strconv.Itoa(i % 100)},
			false); got.Kind != functions.KindError {
			t.Fatalf("did not raise: %+v", got)
		}
		if store["key"] != text {
			t.Fatalf("the write of call %d is gone: %q", i, store["key"])
		}
		if got := lua.Call("check", nil, nil, false); got.Text != "own" {
			t.Fatalf("after call %d: %+v", i, got)
		}
	}
	for name, want := range map[string]string{"never": "stack overflow", "wide": "overflow",
		"wrong": "WRONGTYPE no script: wrong, on @user_function:"} {
		if got := lua.Call(name, nil, nil, false); got.Kind != functions.KindError ||
			!strings.Contains(got.Text, want) {
			t.Errorf("%s: %.200v", name, got)
		}
		if got := lua.Call("check", nil, nil, false); got.Text != "own" {
			t.Errorf("after %s: %+v", name, got)
		}
	}
}

func TestFlags(t *testing.T) {
	store := memory{"key": "old"}
	lua := load(t, store, "", map[string]string{"reader": "return redis.call(a[1], k[1], 'new')",
		"writer": "return redis.call('SET', k[1], 'new')"})
	for _, c := range []struct {
		name, command string
		readonly      bool
		want          string
	}{
		{"reader", "GET", true, "old"},
		{"reader", "GET", false, "old"},
		{"reader", "SET", false,
			"ERR Write commands are not allowed from read-only scripts. script: reader, on @user_function:"},
		{"reader", "SET", true,
			"ERR Write commands are not allowed from read-only scripts. script: reader, on @user_function:"},
		{"writer", "SET", true, "ERR Can not execute a script with write flag using *_ro command."},
		{"nobody", "SET", false, "ERR Function not found"},
	} {
		if got := lua.Call(c.name, []string{"key"}, []string{c.command}, c.readonly); !strings.HasPrefix(got.Text,
			c.want) {
			t.Errorf("%+v: %+v", c, got)
		}
		if store["key"] != "old" {
			t.Fatalf("%+v wrote", c)
		}
	}
	if got := lua.Call("writer", []string{"key"}, nil, false); got.Text != "OK" || store["key"] != "new" {
		t.Errorf("a write: %+v, %v", got, store)
	}
}

func TestReplies(t *testing.T) {
	for body, want := range map[string]functions.Reply{
		"return 3.99": whole(3), "return -3.99": whole(-3), "return 9007199254740992": whole(1 << 53),
		"return 1 / 0": whole(-1 << 63), "return true": whole(1), "return false": {}, "return nil": {}, "": {},
		"return pairs": {}, "return 'a\\0b'": bulk("a\x00b"), "return {}": list(),
		"return {1, 'x', {2, {}}, nil, 4}":             list(whole(1), bulk("x"), list(whole(2), list())),
		"return {1, false, true, x = 2}":               list(whole(1), functions.Reply{}, whole(1)),
		"return {ok = 'FINE'}":                         {Kind: functions.KindStatus, Text: "FINE"},
		"return {err = 'MY own'}":                      functions.Error("MY own"),
		"return {1, {err = 'MY own'}}":                 list(whole(1), functions.Error("MY own")),
		"return redis.call('GET', 'nothing')":          {},
		"return redis.call('SET', 'x', 'y')":           {Kind: functions.KindStatus, Text: "OK"},
		"return redis.call('SET', 'x', 'y').ok":        bulk("OK"),
		"return redis.pcall('NOPE')":                   functions.Error("WRONGTYPE no"),
		"return {redis.pcall('NOPE').err, 1}":          list(bulk("WRONGTYPE no"), whole(1)),
		"return redis.call('GET', 'nothing') == false": whole(1),
		"return redis.call('ECHO', 1, 2.5, -0.1, 10000000000000000, 'x')": list(bulk("1"), bulk("2.5"),
			bulk("-0.10000000000000001"), bulk("10000000000000000"), bulk("x")),
		"return redis.sha1hex('abc')": bulk(
			"a9993e364706816aba3e25717850c26c9cd0d89d"),
		"local t = {} t.t = t t[1] = t return #t": whole(1),
		"return k": list(bulk("key")), "return #a": whole(0),
	} {
		if got := one(t, body); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
	if got := one(t, "local t = {} t[1] = t return t"); !strings.Contains(flat(got), "reached lua stack limit") {
		t.Errorf("a table in itself: %.200v", got)
	}
}

// flat is the innermost text of a list of lists.
func flat(r functions.Reply) string {
	for len(r.List) > 0 {
		r = r.List[0]
	}
	return r.Text
}

// What gopher-lua reads and writes otherwise than Lua 5.1 does is as in Lua 5.1.
func TestNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"7": "7", "017": "17", "0x1F": "31", "-0x10": "-16", " 5 ": "5", "1e3": "1000", "-2": "-2", "+2": "2",
		"1_0": "", "0b1": "", "0o7": "", "5x": "", "": "", "-": "", "0x": "", "1.5": "1.5",
		"9007199254740993": "9007199254740992", "\t8\n": "8", "--1": "",
	} {
		got := one(t, "local n = tonumber(a[1]) return n and redis.call('ECHO', n)[1] or ''", text)
		if got.Text != want {
			t.Errorf("tonumber(%q) is %q, want %q", text, got.Text, want)
		}
	}
	for expr, want := range map[string]string{
		"string.format('%d', 3.7)": "3", "string.format('%d', -3.7)": "-3",
		"string.format('%d', 9007199254740992)": "9007199254740992", "string.format('%.0f', 2.5)": "2",
		"string.format('%.0f', 1000000000000000000000)": "1000000000000000000000", "string.format('%d', '12')": "12",
		"tonumber('ff', 16) .. ''": "255",
	} {
		if got := one(t, "return "+expr); got.Text != want {
			t.Errorf("%s is %+v, want %q", expr, got, want)
		}
	}
}

// A library that is replaced leaves nothing of its state; one that cannot be loaded changes nothing.
func TestReplace(t *testing.T) {
	const head, body = "local n = 0", "n = n + 1 return n"
	lua := load(t, memory{}, head, map[string]string{"f": body, "old": body})
	lua.Call("f", nil, nil, false)
	if got := lua.Call("old", nil, nil, false); got.Int != 2 {
		t.Fatalf("two functions of a library count to %+v", got)
	}
	for code, want := range map[string]string{
		"":                           "ERR Missing library metadata",
		"#!py name=l\n":              "ERR Engine 'py' not found",
		"#!lua\n":                    "ERR Library name was not given",
		"#!lua name=a-b\n":           "ERR Library names can only contain",
		"#!lua name=l x=1\n":         "ERR Invalid metadata value given: x=1",
		"#!lua name=l\nlocal x = ":   "ERR Error compiling function: user_function",
		"#!lua name=l\nlocal x = 1":  "ERR No functions registered",
		"#!lua name=l\nx = 1":        "ERR Error registering functions: ERR user_function:2: Attempt to modify a readonly table",
		"#!lua name=l\nredis.call()": "ERR Error registering functions: ERR user_function:2:",
		"#!lua name=l\nredis.register_function('f', 1)":                                                "ERR Error registering functions: ",
		"#!lua name=l\nredis.register_function('a b', pairs)":                                          "ERR Error registering functions: ",
		"#!lua name=l\nredis.register_function('f', pairs) redis.register_function('f', pairs)":        "ERR Error registering functions: ",
		"#!lua name=l\nredis.register_function{function_name='f', callback=pairs, flags={'x'}}":        "ERR Error registering functions: ",
		"#!lua name=l\nredis.register_function{function_name='f', callback=pairs, flag={'no-writes'}}": "ERR Error registering functions: ",
		"#!lua name=other\nredis.register_function('f', pairs)":                                        "ERR Function f already exists",
	} {
		c, err := functions.Compile(code)
		if err == nil {
			err = lua.Load(c, true)
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", code, err, want)
		}
	}
	if got := lua.Call("f", nil, nil, false); got.Int != 3 {
		t.Errorf("a library that was not replaced counts to %+v", got)
	}
	again(t, lua, head, map[string]string{"f": body})
	if got := lua.Call("f", nil, nil, false); got.Int != 1 {
		t.Errorf("a library that replaced another counts to %+v", got)
	}
	if got := lua.Call("old", nil, nil, false); got.Text != "ERR Function not found" {
		t.Errorf("a function of the former library: %+v", got)
	}
	if !lua.Delete("l") || lua.Delete("l") || lua.Known("f") || len(lua.Libraries()) != 0 {
		t.Error("a deleted library is there, or was deleted twice")
	}
}

// After a defect of the store the library has a state that nothing has touched.
func TestStateIsRenewedAfterAPanic(t *testing.T) {
	lua := load(t, memory{}, "local n = 0", map[string]string{"count": "n = n + 1 return n",
		"burst": "local x = function() return k end redis.call('BREAK') return x"})
	lua.Call("count", nil, nil, false)
	if got := lua.Call("burst", nil, nil, false); got.Kind != functions.KindError ||
		!strings.Contains(got.Text, "broken") {
		t.Errorf("a panic answers %+v", got)
	}
	if got := lua.Call("count", nil, nil, false); got.Int != 1 {
		t.Errorf("the state after a panic counts to %+v", got)
	}
}

// What a process compiled once is shared by its servers, up to a bound.
func TestCompilationsAreShared(t *testing.T) {
	text := func(i int) string { return "#!lua name=shared\nlocal n = " + strconv.Itoa(i) }
	compile := func(i int) *functions.Compiled {
		c, err := functions.Compile(text(i))
		must.No(t, err)
		return c
	}
	first := compile(0)
	if compile(0) != first {
		t.Error("a library is compiled twice")
	}
	for i := range 100 {
		compile(i + 1)
	}
	if compile(0) == first {
		t.Error("a hundred other libraries are kept")
	}
}

// The interpreter takes no more memory after many calls, of which a tenth raises. FLOWFABRIC_SOAK says how many; make
// soak makes a million.
func TestMemoryIsFlat(t *testing.T) {
	calls, err := strconv.Atoi(os.Getenv("FLOWFABRIC_SOAK"))
	if err != nil {
		calls = 50_000
	}
	store := memory{}
	lua := load(t, store,
		"local function own(t) local sum = 0 for i = 1, #t do sum = sum + #t[i] end return function() return sum end end",
		map[string]string{
			"f": "redis.call('SET', k[1], a[1]) local get = own(redis.call('ECHO', unpack(a))) if tonumber(a[1]) % 10 == 0 then return get().x end return {get(), a[1]}",
		})
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	args := make([]string, 40)
	work := func(n int) {
		for i := range n {
			for j := range args {
				args[j] = strconv.Itoa(i + j)
			}
			lua.Call("f", []string{"key"}, args, false)
		}
	}
	work(1000)
	before := heap()
	work(calls)
	if grown := heap() - before; grown > 256<<10 {
		t.Errorf("%d calls left %d bytes", calls, grown)
	}
	runtime.KeepAlive(lua)
}
