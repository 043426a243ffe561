package functions

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
)

// Sizes of a state. The stack of values grows in steps up to its bound, which unpack and long argument lists need; it
// never shrinks.
const (
	stackFirst = 4 << 10
	stackMost  = 256 << 10
	stackStep  = 4 << 10
	callDepth  = 200 // as in Lua 5.1
)

// state is the Lua state of one library, or of the scripts.
type state struct {
	l          *lua.LState
	globals    *lua.LTable
	chunk      string // what the code is called in errors
	store      Store
	registered []*function
	loading    bool
	running    *function // nil: none
}

// Environment lists the globals of a library, and the fields of those that are tables.
var Environment = map[string][]string{
	"redis":    {"call", "pcall", "sha1hex", "register_function"},
	"string":   {"find", "match", "gmatch", "format", "sub", "gsub", "byte", "lower"},
	"table":    {"concat", "sort"},
	"math":     {"min", "max", "floor"},
	"tonumber": nil, "unpack": nil, "pairs": nil,
}

// scriptEnvironment is what scripts find besides, which those of tests use.
var scriptEnvironment = map[string][]string{
	"redis":  {"call", "pcall", "sha1hex"},
	"table":  {"concat", "sort", "insert", "remove"},
	"ipairs": nil, "next": nil, "type": nil, "tostring": nil, "select": nil, "error": nil, "pcall": nil,
}

// standard are the functions of gopher-lua's libraries, by name: those of tables as "string.find". Opening the
// libraries in each state would take as long as all the rest of making one.
var standard = sync.OnceValue(func() map[string]*lua.LFunction {
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	for _, open := range []lua.LGFunction{lua.OpenBase, lua.OpenString, lua.OpenTable, lua.OpenMath} {
		l.Push(l.NewFunction(open))
		l.Call(0, 0)
	}
	found := map[string]*lua.LFunction{}
	for _, environment := range []map[string][]string{Environment, scriptEnvironment} {
		for global, fields := range environment {
			value := l.GetGlobal(global)
			found[global], _ = value.(*lua.LFunction)
			for _, name := range fields {
				if value != lua.LNil {
					found[global+"."+name], _ = l.GetField(value, name).(*lua.LFunction)
				}
			}
		}
	}
	return found
})

// newState makes a state with an environment, of which a later part takes the place of an earlier one.
func newState(store Store, chunk string, environment ...map[string][]string) *state {
	s := &state{store: store, chunk: chunk, l: lua.NewState(lua.Options{SkipOpenLibs: true, CallStackSize: callDepth,
		RegistrySize: stackFirst, RegistryMaxSize: stackMost, RegistryGrowStep: stackStep})}
	own := map[string]lua.LGFunction{"tonumber": toNumber,
		"string.format": format(standard()["string.format"].GFunction),
		"redis.call":    s.call, "redis.pcall": s.protectedCall, "redis.sha1hex": sha1hex,
		"redis.register_function": s.register}
	all := s.l.CreateTable(0, len(Environment))
	for _, part := range environment {
		for global, fields := range part {
			if fields == nil {
				all.RawSetString(global, s.provided(own, global))
				continue
			}
			table := s.l.CreateTable(0, len(fields))
			for _, name := range fields {
				table.RawSetString(name, s.provided(own, global+"."+name))
			}
			all.RawSetString(global, s.readonly(table))
		}
	}
	s.globals = all
	// What a text is indexed with, as in text:sub(1, 2), is looked up in the same read-only table.
	texts := s.l.CreateTable(0, 1)
	texts.RawSetString("__index", all.RawGetString("string"))
	s.l.SetMetatable(lua.LString(""), texts)
	missing := s.l.CreateTable(0, 1)
	missing.RawSetString("__index", s.l.NewFunction(nonexistent))
	all.Metatable = missing
	s.l.Env = s.readonly(all)
	return s
}

// provided is a function of ours, or a copy of a standard one with what it is made of.
func (s *state) provided(own map[string]lua.LGFunction, name string) *lua.LFunction {
	if fn := own[name]; fn != nil {
		return s.l.NewFunction(fn)
	}
	from := standard()[name]
	var parts []lua.LValue
	for _, up := range from.Upvalues {
		parts = append(parts, s.l.NewFunction(up.Value().(*lua.LFunction).GFunction))
	}
	return s.l.NewClosure(from.GFunction, parts...)
}

// readonly is an empty table that shows the entries of another. Its own must stay empty, so that every assignment
// meets its metatable.
func (s *state) readonly(t *lua.LTable) *lua.LTable {
	shown := s.l.CreateTable(0, 0)
	meta := s.l.CreateTable(0, 2)
	meta.RawSetString("__index", t)
	meta.RawSetString("__newindex", s.l.NewFunction(refuse))
	shown.Metatable = meta
	return shown
}

func nonexistent(l *lua.LState) int {
	l.RaiseError("Script attempted to access nonexistent global variable '%s'", lua.LVAsString(l.Get(2)))
	return 0
}

func refuse(l *lua.LState) int {
	l.RaiseError("Attempt to modify a readonly table")
	return 0
}

// load runs the top level of a library.
func (s *state) load(proto *lua.FunctionProto) error {
	s.loading = true
	defer func() { s.loading = false }()
	s.l.Push(s.l.NewFunctionFromProto(proto))
	err := s.l.PCall(0, 0, nil)
	if err == nil {
		return nil
	}
	text, _ := s.raised(err)
	return errors.New(text)
}

// run calls a function. broken says that the state must not be used any more.
func (s *state) run(f *function, keys, args []string) (r Reply, broken bool) {
	s.running = f
	defer func() { s.running = nil }()
	l := s.l
	l.Push(f.call)
	l.Push(s.texts(keys))
	l.Push(s.texts(args))
	if err := l.PCall(2, 1, nil); err != nil {
		text, at := s.raised(err)
		var api *lua.ApiError
		return Error(fmt.Sprintf("%s script: %s, on @%s.", text, f.Name, at)),
			!errors.As(err, &api) || api.Type == lua.ApiErrorPanic
	}
	r = reply(l.Get(-1), 0)
	l.SetTop(0)
	return r, false
}

func (s *state) texts(all []string) *lua.LTable {
	t := s.l.CreateTable(len(all), 0)
	for _, text := range all {
		t.Append(lua.LString(text))
	}
	return t
}

var position = regexp.MustCompile(`^(` + chunk + `|` + scriptChunk + `):\d+`)

// raised is the text of what a function raised, which begins with a code, and where it did.
func (s *state) raised(err error) (text, at string) {
	at = s.chunk + ":0"
	var api *lua.ApiError
	if !errors.As(err, &api) {
		return "ERR " + err.Error(), at
	}
	if t, ok := api.Object.(*lua.LTable); ok {
		if line, ok := t.RawGetString("line").(lua.LString); ok {
			at = s.chunk + ":" + string(line)
		}
		if text, ok := t.RawGetString("err").(lua.LString); ok {
			return string(text), at
		}
		return "ERR unknown error", at
	}
	text = lua.LVAsString(api.Object)
	if found := position.FindString(text); found != "" {
		at = found
	}
	return "ERR " + text, at
}

// call is redis.call: an error that the store answers is raised.
func (s *state) call(l *lua.LState) int {
	r := s.do(l)
	v := s.value(&r)
	if r.Kind == KindError {
		t := v.(*lua.LTable)
		t.RawSetString("source", lua.LString("@"+s.chunk))
		t.RawSetString("line", lua.LString(strings.Trim(strings.TrimPrefix(l.Where(1), s.chunk), ":")))
		l.Error(t, 1)
	}
	l.Push(v)
	return 1
}

// protectedCall is redis.pcall: an error that the store answers is a table.
func (s *state) protectedCall(l *lua.LState) int {
	r := s.do(l)
	l.Push(s.value(&r))
	return 1
}

func (s *state) do(l *lua.LState) Reply {
	if s.running == nil {
		l.RaiseError("redis.call can only be called inside a function")
	}
	n := l.GetTop()
	if n == 0 {
		return Error("ERR Please specify at least one argument for this redis lib call")
	}
	args := make([]string, n)
	for i := range args {
		switch v := l.Get(i + 1).(type) {
		case lua.LString:
			args[i] = string(v)
		case lua.LNumber:
			args[i] = argument(float64(v))
		default:
			return Error("ERR Lua redis lib command arguments must be strings or integers")
		}
	}
	if s.running.readonly && s.store.Writes(args[0]) {
		return Error("ERR Write commands are not allowed from read-only scripts.")
	}
	return s.store.Do(args)
}

// argument writes a number as Redis does in a command: a whole one without an exponent, another with all its digits.
func argument(n float64) string {
	if i := int64(n); float64(i) == n && n >= -1<<63 && n < 1<<63 {
		return strconv.FormatInt(i, 10)
	}
	return exact(n)
}

func sha1hex(l *lua.LState) int {
	l.Push(lua.LString(digest(l.CheckString(1))))
	return 1
}

func digest(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// register is redis.register_function, with a name and a function or with a table of names.
func (s *state) register(l *lua.LState) int {
	if !s.loading {
		l.RaiseError("redis.register_function can only be called on FUNCTION LOAD command")
	}
	f := &function{state: s}
	if t, ok := l.Get(1).(*lua.LTable); ok {
		s.described(t, f)
	} else {
		f.Name = lua.LVAsString(l.Get(1))
		f.call, _ = l.Get(2).(*lua.LFunction)
	}
	switch {
	case !word(f.Name):
		l.RaiseError("Function names %s", wordRule)
	case f.call == nil:
		l.RaiseError("redis.register_function must get a callback")
	case slices.ContainsFunc(s.registered, func(other *function) bool { return other.Name == f.Name }):
		l.RaiseError("Function already exists in the library")
	}
	f.readonly = slices.Contains(f.Flags, "no-writes")
	s.registered = append(s.registered, f)
	return 0
}

func (s *state) described(t *lua.LTable, f *function) {
	t.ForEach(func(k, v lua.LValue) {
		switch lua.LVAsString(k) {
		case "function_name":
			f.Name = lua.LVAsString(v)
		case "callback":
			f.call, _ = v.(*lua.LFunction)
		case "description":
		case "flags":
			list, ok := v.(*lua.LTable)
			if !ok {
				s.l.RaiseError("flags argument to redis.register_function must be a table representing function flags")
			}
			list.ForEach(func(_, flag lua.LValue) {
				if !slices.Contains(flags, lua.LVAsString(flag)) {
					s.l.RaiseError("unknown flag given")
				}
				f.Flags = append(f.Flags, lua.LVAsString(flag))
			})
		default:
			s.l.RaiseError("unknown argument given to redis.register_function")
		}
	})
}
