package embedded

import (
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/functions"
	"github.com/flowfabric/flowfabric-go/internal/store"
)

// host gives functions the store. It implements [functions.Store].
type host struct {
	*store.Store
	lua     *functions.Interpreter
	refusal *functions.Reply // of the store, to all that the call would write; nil if there is none
}

func newHost(s *store.Store) *host {
	h := &host{Store: s}
	h.lua = functions.New(h)
	return h
}

var (
	errNotFromScript = functions.Error("ERR This Redis command is not allowed from script")
	errScriptArgs    = functions.Error("ERR Wrong number of args calling Redis command from script")
)

// Do implements [functions.Store].
func (h *host) Do(args []string) functions.Reply {
	if h.refusal != nil && h.Writes(args[0]) {
		return *h.refusal
	}
	r := h.Store.Do(args)
	if r.Kind != functions.KindError {
		return r
	}
	if !h.Known(args[0]) {
		if _, mine := commands[strings.ToUpper(args[0])]; mine {
			return errNotFromScript
		}
	} else if !h.Takes(args) {
		return errScriptArgs
	}
	return r
}

// keysOf reads the number of keys and parts keys from arguments. fault is "" when that is possible.
func keysOf(args []string) (keys, rest []string, fault string) {
	n, err := strconv.Atoi(args[0])
	switch rest = args[1:]; {
	case err != nil:
		return nil, nil, "ERR Bad number of keys provided"
	case n < 0:
		return nil, nil, "ERR Number of keys can't be negative"
	case n > len(rest):
		return nil, nil, "ERR Number of keys can't be greater than number of args"
	}
	return rest[:n], rest[n:], ""
}

// fcall is FCALL and FCALL_RO.
func fcall(c *session, args []string, readonly bool) {
	if !readonly {
		c.srv.calls.Add(1)
	}
	lua := c.srv.host.lua
	if !lua.Known(args[1]) {
		c.fail("ERR Function not found")
		return
	}
	keys, rest, fault := keysOf(args[2:])
	if fault != "" {
		c.fail(fault)
		return
	}
	c.ran(lua.Call(args[1], keys, rest, readonly))
}

// ran answers with the result of a function. A refused write ends it before it has changed anything.
func (c *session) ran(r functions.Reply) {
	if refusal := c.srv.host.refusal; refusal != nil && strings.HasPrefix(r.Text, refusal.Text) {
		r = *refusal // without the place in the function
	}
	c.reply(&r, asIs)
}

// eval is EVAL and EVAL_RO.
func eval(c *session, args []string, readonly bool) {
	keys, rest, fault := keysOf(args[2:])
	if fault != "" {
		c.fail(fault)
		return
	}
	c.ran(c.srv.host.lua.Eval(args[1], keys, rest, readonly))
}

// function is FUNCTION LOAD, LIST, DELETE and FLUSH. Libraries are not among what a folder keeps: every process that
// uses functions loads its own where they are missing.
func function(c *session, args []string) {
	lua := c.srv.host.lua
	sub, rest := strings.ToUpper(args[1]), args[2:]
	switch {
	case sub == "LOAD" && (len(rest) == 1 || len(rest) == 2 && strings.EqualFold(rest[0], "REPLACE")):
		compiled, err := functions.Compile(rest[len(rest)-1])
		if err == nil {
			err = lua.Load(compiled, len(rest) == 2)
		}
		if err != nil {
			c.fail(err.Error())
			return
		}
		c.text(compiled.Name())
	case sub == "DELETE" && len(rest) == 1:
		if !lua.Delete(rest[0]) {
			c.fail("ERR Library not found")
			return
		}
		c.status("OK")
	case sub == "FLUSH" &&
		(len(rest) == 0 || len(rest) == 1 && slices.Contains([]string{"SYNC", "ASYNC"}, strings.ToUpper(rest[0]))):
		lua.Flush()
		c.status("OK")
	case sub == "LIST":
		list(c, rest)
	case slices.Contains([]string{"LOAD", "DELETE", "FLUSH"}, sub):
		wrong := store.WrongNumber("FUNCTION|" + sub)
		c.reply(&wrong, asIs)
	default:
		c.fail("ERR unknown subcommand '" + sub + "'. Try FUNCTION HELP.")
	}
}

// compile compiles a library before its call begins, so that others are served meanwhile.
func compile(args []string) {
	if strings.EqualFold(args[1], "LOAD") {
		_, _ = functions.Compile(args[len(args)-1]) // FUNCTION LOAD gets it, or the same error
	}
}

// list is FUNCTION LIST [LIBRARYNAME pattern] [WITHCODE].
func list(c *session, args []string) {
	pattern, code := "*", false
	for ; len(args) > 0; args = args[1:] {
		switch {
		case strings.EqualFold(args[0], "WITHCODE"):
			code = true
		case strings.EqualFold(args[0], "LIBRARYNAME") && len(args) > 1:
			pattern, args = args[1], args[1:]
		default:
			c.fail("ERR Unknown argument " + args[0])
			return
		}
	}
	libraries := slices.DeleteFunc(c.srv.host.lua.Libraries(),
		func(l functions.Library) bool { return !store.Match(pattern, l.Name) })
	c.head('*', len(libraries))
	for _, l := range libraries {
		c.library(l, code)
	}
}

func (c *session) library(l functions.Library, code bool) {
	fields := 3
	if code {
		fields++
	}
	c.entries(fields)
	for _, text := range []string{"library_name", l.Name, "engine", "LUA", "functions"} {
		c.text(text)
	}
	c.head('*', len(l.Functions))
	for _, f := range l.Functions {
		c.entries(3)
		c.text("name")
		c.text(f.Name)
		c.text("description")
		c.null()
		c.text("flags")
		c.head(c.kind('~'), len(f.Flags))
		for _, flag := range f.Flags {
			c.status(flag)
		}
	}
	if code {
		c.text("library_code")
		c.text(l.Code)
	}
}
