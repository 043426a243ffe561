package functions

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// scriptChunk is the name of every script in error messages, as on Redis.
const scriptChunk = "user_script"

// mostScripts bounds how many compiled scripts are kept.
const mostScripts = 100

// scripts are what EVAL runs, by text. Their state is made with the first.
type scripts struct {
	state *state
	kept  map[string]*function
}

// Eval runs a script with KEYS and ARGV. With readonly it cannot write. Errors have the words of Redis.
func (in *Interpreter) Eval(script string, keys, args []string, readonly bool) Reply {
	s := &in.scripts
	if s.state == nil {
		s.state, s.kept = newState(in.store, scriptChunk, Environment, scriptEnvironment), map[string]*function{}
	}
	f := s.kept[script]
	if f == nil {
		var err error
		if f, err = s.state.compile(script); err != nil {
			return Error("ERR Error compiling script (new function): " + firstLine(err))
		}
		if len(s.kept) == mostScripts {
			clear(s.kept)
		}
		s.kept[strings.Clone(script)] = f
	}
	f.readonly = readonly
	s.state.globals.RawSetString("KEYS", s.state.texts(keys))
	s.state.globals.RawSetString("ARGV", s.state.texts(args))
	reply, broken := s.state.run(f, nil, nil)
	if broken {
		*s = scripts{}
	}
	return reply
}

func (s *state) compile(script string) (*function, error) {
	ast, err := parse.Parse(strings.NewReader(script), scriptChunk)
	if err != nil {
		return nil, err
	}
	proto, err := lua.Compile(ast, scriptChunk)
	if err != nil {
		return nil, err
	}
	return &function{Function: Function{Name: digest(script)}, state: s, call: s.l.NewFunctionFromProto(proto)}, nil
}
