// Package functions runs libraries of Lua functions as Valkey and Redis do (FUNCTION LOAD, FCALL), on a store behind
// the interface [Store]. The embedded server puts internal/store there.
//
//	Load ─▶ compile, once a process ─▶ a Lua state of the library ─▶ top level runs: register_function
//	Call ─▶ the function, in that state ─▶ redis.call ─▶ Store.Do ─▶ Reply ─▶ Lua value
//	                                    └─▶ its result ─▶ Reply
//
// A library has one Lua state, from Load until it is replaced or deleted. As on Redis:
//
//   - Globals and the tables of the standard library are read-only. What does not exist cannot be read either.
//   - A call that raises leaves nothing on the stack of the state. Writes that it made stay.
//   - A function with the flag no-writes cannot write.
//
// [Interpreter.Eval] runs a script, which tests of this repository send to whatever server they are given. All scripts
// share a state of their own.
//
// The environment of a library is the portable subset that ours use; [Environment] lists it. Where gopher-lua differs
// from Lua 5.1 in these functions (formats, text to number), this package has its own (strings.go). Two differences
// stay: a number that is concatenated with a text is written as Go writes it, and a text that is used as a number may
// have Go's prefixes and underscores.
package functions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// Store is where functions keep their data.
type Store interface {
	// Do runs a command. The reply is valid until the next call; its texts stay valid. args belongs to the store.
	Do(args []string) Reply
	// Writes reports whether a function with the flag no-writes may not call a command.
	Writes(command string) bool
}

// Interpreter holds libraries. Its methods must not be called concurrently.
type Interpreter struct {
	store     Store
	libraries map[string]*library
	functions map[string]*function
	scripts   scripts
}

// Library says what a library holds.
type Library struct {
	Name, Code string
	Functions  []Function // by name
}

// Function is one function of a library.
type Function struct {
	Name  string
	Flags []string
}

type library struct {
	Library
	compiled *Compiled
	state    *state
}

type function struct {
	Function
	state    *state
	call     *lua.LFunction
	readonly bool
}

// New makes an interpreter without libraries.
func New(store Store) *Interpreter {
	return &Interpreter{store: store, libraries: map[string]*library{}, functions: map[string]*function{}}
}

// flags are what a function may be registered with. Only no-writes means something here.
var flags = []string{"no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"}

// Load runs the top level of a library in a state of its own. With replace the library takes the place of one of the
// same name. After an error everything is as it was. The errors have the words of Redis.
func (in *Interpreter) Load(c *Compiled, replace bool) error {
	old := in.libraries[c.name]
	if old != nil && !replace {
		return fmt.Errorf("ERR Library '%s' already exists", c.name)
	}
	s := newState(in.store, chunk, Environment)
	if err := s.load(c.proto); err != nil {
		return fmt.Errorf("ERR Error registering functions: %s", firstLine(err))
	}
	if len(s.registered) == 0 {
		return errors.New("ERR No functions registered")
	}
	l := &library{Library: Library{Name: c.name, Code: c.code}, compiled: c, state: s}
	for _, f := range s.registered {
		if other := in.functions[f.Name]; other != nil && (old == nil || other.state != old.state) {
			return fmt.Errorf("ERR Function %s already exists", f.Name)
		}
		l.Functions = append(l.Functions, f.Function)
	}
	slices.SortFunc(l.Functions, func(a, b Function) int { return strings.Compare(a.Name, b.Name) })
	in.drop(old)
	in.libraries[c.name] = l
	for _, f := range s.registered {
		in.functions[f.Name] = f
	}
	return nil
}

// Delete removes a library, and reports whether it was there.
func (in *Interpreter) Delete(name string) bool {
	l := in.libraries[name]
	in.drop(l)
	return l != nil
}

// Flush removes all libraries.
func (in *Interpreter) Flush() {
	clear(in.libraries)
	clear(in.functions)
}

// Libraries lists the libraries by name.
func (in *Interpreter) Libraries() []Library {
	var out []Library
	for _, l := range in.libraries {
		out = append(out, l.Library)
	}
	slices.SortFunc(out, func(a, b Library) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Known reports whether there is a function of that name.
func (in *Interpreter) Known(name string) bool { return in.functions[name] != nil }

// Call runs a function. With readonly only one with the flag no-writes is run. An unknown function and one that
// raises answer an error with the words of Redis.
func (in *Interpreter) Call(name string, keys, args []string, readonly bool) Reply {
	f := in.functions[name]
	switch {
	case f == nil:
		return Error("ERR Function not found")
	case readonly && !f.readonly:
		return Error("ERR Can not execute a script with write flag using *_ro command.")
	}
	reply, broken := f.state.run(f, keys, args)
	if broken { // by a defect of the interpreter itself: its stack may hold anything
		in.renew(f.state)
	}
	return reply
}

// renew gives the library of a broken state a fresh one.
func (in *Interpreter) renew(broken *state) {
	for name, l := range in.libraries {
		if l.state != broken {
			continue
		}
		if err := in.Load(l.compiled, true); err != nil { // it did load before
			panic(fmt.Sprintf("functions: load %s again: %v", name, err))
		}
		return
	}
}

func (in *Interpreter) drop(l *library) {
	if l == nil {
		return
	}
	delete(in.libraries, l.Name)
	for _, f := range l.Functions {
		delete(in.functions, f.Name)
	}
}

// metadata reads the first line, "#!lua name=flowfabric".
func metadata(code string) (name string, err error) {
	first, _, _ := strings.Cut(code, "\n")
	meta, ok := strings.CutPrefix(first, "#!")
	if !ok {
		return "", errors.New("ERR Missing library metadata")
	}
	engine, rest, _ := strings.Cut(meta, " ")
	if !strings.EqualFold(engine, "lua") {
		return "", fmt.Errorf("ERR Engine '%s' not found", engine)
	}
	for part := range strings.FieldsSeq(rest) {
		value, ok := strings.CutPrefix(part, "name=")
		if !ok {
			return "", fmt.Errorf("ERR Invalid metadata value given: %s", part)
		}
		name = value
	}
	if name == "" {
		return "", errors.New("ERR Library name was not given")
	}
	if !word(name) {
		return "", fmt.Errorf("ERR Library names %s", wordRule)
	}
	return name, nil
}

// word reports whether a library or a function may be named so.
func word(name string) bool {
	return name != "" && strings.Trim(name, "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

const wordRule = "can only contain letters, numbers, or underscores(_) and must be at least one character long"

// chunk is the name of every library in error messages, as on Redis.
const chunk = "user_function"

// Compiled is a library that can be loaded. It does not change, so the servers of a process share it.
type Compiled struct {
	name, code string
	proto      *lua.FunctionProto
}

// Name of the library.
func (c *Compiled) Name() string { return c.name }

// compilations keeps what was compiled, which takes a tenth of a second for a large library.
var compilations struct {
	sync.Mutex
	kept []*Compiled
}

// mostCompiled bounds what is kept: a process needs a variant or two of one library, a test a few more.
const mostCompiled = 8

// Compile compiles a library, once a process. The errors have the words of Redis. It may be called concurrently.
func Compile(code string) (*Compiled, error) {
	name, err := metadata(code)
	if err != nil {
		return nil, err
	}
	compilations.Lock()
	defer compilations.Unlock()
	if at := slices.IndexFunc(compilations.kept, func(c *Compiled) bool { return c.code == code }); at >= 0 {
		return compilations.kept[at], nil
	}
	ast, err := parse.Parse(strings.NewReader("--"+code), chunk) // the first line is none of Lua
	if err != nil {
		return nil, fmt.Errorf("ERR Error compiling function: %s", firstLine(err))
	}
	proto, err := lua.Compile(ast, chunk)
	if err != nil {
		return nil, fmt.Errorf("ERR Error compiling function: %s", firstLine(err))
	}
	c := &Compiled{name, code, proto}
	compilations.kept = append(compilations.kept, c)
	if len(compilations.kept) > mostCompiled {
		compilations.kept = slices.Delete(compilations.kept, 0, 1)
	}
	return c, nil
}

func firstLine(err error) string {
	text, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return text
}
