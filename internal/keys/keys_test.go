package keys_test

import (
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	lua "github.com/yuin/gopher-lua"

	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// twin runs lua/lib/keys.lua itself, so that the comparison is with what servers execute and not with a copy.
type twin struct {
	state     *lua.LState
	functions []luaFunction
}

type luaFunction struct {
	name   string   // as in Lua, "route_ids"
	method string   // the Go method of the same meaning, "RouteIDs"
	params []string // after the root
}

var definition = regexp.MustCompile(`(?m)^function keys\.(\w+)\(r((?:, \w+)*)\)`)

func loadTwin(t testing.TB) *twin {
	t.Helper()
	source, err := os.ReadFile("../../lua/lib/keys.lua")
	must.No(t, err)
	w := &twin{state: lua.NewState()}
	t.Cleanup(w.state.Close)
	if err := w.state.DoString(string(source) + "\nkeys_under_test = keys"); err != nil {
		t.Fatalf("keys.lua does not run: %v", err)
	}
	for _, m := range definition.FindAllStringSubmatch(string(source), -1) {
		f := luaFunction{name: m[1], method: camel(m[1])}
		for p := range strings.SplitSeq(strings.TrimPrefix(m[2], ", "), ", ") {
			if p != "" {
				f.params = append(f.params, p)
			}
		}
		w.functions = append(w.functions, f)
	}
	if all, found := strings.Count(string(source), "function keys."), len(w.functions); all != found || found == 0 {
		t.Fatalf("keys.lua defines %d functions, the test understands %d", all, found)
	}
	return w
}

// camel turns route_ids into RouteIDs.
func camel(snake string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(snake, "_") {
		switch word {
		case "id", "ids":
			b.WriteString("ID" + strings.TrimPrefix(word, "id"))
		default:
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// arguments are one value for each parameter name that key functions use.
type arguments struct {
	name    string // route, digest, session or instance
	id      uuid.UUID
	attempt uint32
}

func (a arguments) text(param string) string {
	switch param {
	case "id", "waitpoint":
		return a.id.String()
	case "attempt":
		return strconv.FormatUint(uint64(a.attempt), 10)
	}
	return a.name
}

func (a arguments) value(param string) reflect.Value {
	switch param {
	case "id", "waitpoint":
		return reflect.ValueOf(a.id)
	case "attempt":
		return reflect.ValueOf(a.attempt)
	}
	return reflect.ValueOf(a.name)
}

func (w *twin) lua(t testing.TB, f luaFunction, root string, a arguments) string {
	t.Helper()
	table := w.state.GetGlobal("keys_under_test").(*lua.LTable)
	args := []lua.LValue{lua.LString(root)}
	for _, p := range f.params {
		args = append(args, lua.LString(a.text(p)))
	}
	if err := w.state.CallByParam(lua.P{Fn: table.RawGetString(f.name), NRet: 1, Protect: true}, args...); err != nil {
		t.Fatalf("keys.%s: %v", f.name, err)
	}
	defer w.state.Pop(1)
	return lua.LVAsString(w.state.Get(-1))
}

func (w *twin) golang(t testing.TB, f luaFunction, partition uint16, a arguments) string {
	t.Helper()
	method := reflect.ValueOf(keys.Of(partition)).MethodByName(f.method)
	if !method.IsValid() {
		t.Fatalf("keys.lua has keys.%s, package keys has no method %s", f.name, f.method)
	}
	var args []reflect.Value
	for _, p := range f.params {
		args = append(args, a.value(p))
	}
	if n := method.Type().NumIn(); n != len(args) {
		t.Fatalf("%s takes %d arguments, keys.%s %d besides the root", f.method, n, f.name, len(args))
	}
	return method.Call(args)[0].String()
}

// check compares both sides over every function of the key space and returns the keys by function.
func (w *twin) check(t testing.TB, partition uint16, a arguments) map[string]string {
	t.Helper()
	root := keys.Root(partition)
	all := map[string]string{}
	for _, f := range w.functions {
		inLua, inGo := w.lua(t, f, root, a), w.golang(t, f, partition, a)
		if inLua != inGo {
			t.Errorf("%s: Lua %q, Go %q", f.name, inLua, inGo)
		}
		if !strings.HasPrefix(inGo, root+":") {
			t.Errorf("%s: %q does not start with the root %q", f.name, inGo, root)
		}
		if tag := hashTag(inGo); tag != "fp:"+strconv.Itoa(int(partition)) {
			t.Errorf("%s: %q hashes by %q, so it may live in another slot", f.name, inGo, tag)
		}
		all[f.name] = inGo
	}
	return all
}

// hashTag is the part of a key that Valkey Cluster hashes: between the first { and the next }.
func hashTag(key string) string {
	_, rest, ok := strings.Cut(key, "{")
	if !ok {
		return key
	}
	tag, _, ok := strings.Cut(rest, "}")
	if !ok || tag == "" {
		return key
	}
	return tag
}

func TestTwins(t *testing.T) {
	w := loadTwin(t)
	known := map[string]bool{}
	for _, f := range w.functions {
		known[f.method] = true
	}
	methods := reflect.TypeFor[keys.Partition]()
	for m := range methods.Methods() {
		if !known[m.Name] {
			t.Errorf("package keys has %s, keys.lua has no function for it", m.Name)
		}
	}
	samples := []arguments{
		{name: "1"}, {name: "9007199254740991", id: uuid.Max, attempt: 1<<32 - 1},
		{name: "worker-7~0f3c9a", id: uuid.New(), attempt: 17}, {name: "a b:c", id: uuid.New(), attempt: 1},
	}
	for _, partition := range []uint16{0, 3, 63, 1023, 65535} {
		for _, a := range samples {
			w.check(t, partition, a)
		}
	}
}

// Two meanings must never share a name: the area after the root decides, whatever the arguments are.
func TestAreasAreDistinct(t *testing.T) {
	w := loadTwin(t)
	areas := map[string]string{}
	for function, key := range w.check(t, 3, arguments{name: "n", id: uuid.New()}) {
		area, _, _ := strings.Cut(strings.TrimPrefix(key, keys.Root(3)+":"), ":")
		if other, taken := areas[area]; taken {
			t.Errorf("%s and %s share the area %q", function, other, area)
		}
		areas[area] = function
	}
}

func TestRoot(t *testing.T) {
	for partition, want := range map[uint16]string{0: "ff:{fp:0}", 7: "ff:{fp:7}", 65535: "ff:{fp:65535}"} {
		if got := keys.Root(partition); got != want {
			t.Errorf("Root(%d) = %q, want %q", partition, got, want)
		}
		if string(keys.Of(partition)) != want {
			t.Errorf("Of(%d) is not its root", partition)
		}
	}
	for root, want := range map[string]string{keys.GateRoot(0): "g:0", keys.GateRoot(65535): "g:65535",
		keys.GateRoot(7): "g:7"} {
		if key := keys.Partition(root).Report("a", "}{"); hashTag(key) != want ||
			!strings.HasPrefix(key, "ff:{"+want+"}:") {
			t.Errorf("%q hashes by %q, want %q", key, hashTag(key), want)
		}
	}
	if strings.ContainsAny(keys.Config, "{}") {
		t.Errorf("%q must not claim a partition's slot", keys.Config)
	}
}

func FuzzKeys(f *testing.F) {
	f.Add(uint16(3), "w~1", []byte("0123456789abcdef"), uint32(0))
	f.Add(uint16(65535), "{fp:4}", []byte{}, uint32(1<<32-1))
	f.Add(uint16(0), "}{\x00\xff", []byte("ffffffffffffffff"), uint32(9))
	w := loadTwin(f)
	f.Fuzz(func(t *testing.T, partition uint16, name string, raw []byte, attempt uint32) {
		a := arguments{name: name, attempt: attempt}
		copy(a.id[:], raw)
		w.check(t, partition, a)
	})
}
