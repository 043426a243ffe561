package embedded

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

// commands are FUNCTION, FCALL and FCALL_RO, which miniredis lacks. A call holds the lock of the server, so that it
// is alone, as on Redis.
type commands struct {
	mini  *miniredis.Miniredis
	inner *inner
	lua   *functions.Interpreter
}

// addFunctions registers the commands on a server that has been started.
func addFunctions(mini *miniredis.Miniredis) error {
	in, err := newInner(mini.Server())
	if err != nil {
		return err
	}
	f := &commands{mini: mini, inner: in, lua: functions.New(in)}
	return errors.Join(
		mini.Server().Register("FCALL",
			func(c *server.Peer, cmd string, args []string) { f.call(c, cmd, args, false) }),
		mini.Server().Register("FCALL_RO",
			func(c *server.Peer, cmd string, args []string) { f.call(c, cmd, args, true) }, server.ReadOnlyOption()),
		mini.Server().Register("FUNCTION", f.function),
	)
}

func wrongNumber(cmd string) string {
	return fmt.Sprintf("ERR wrong number of arguments for '%s' command", strings.ToLower(cmd))
}

// refused answers calls in a place where the server could not carry them out: its lock is held, or it would have to
// queue them.
func refused(c *server.Peer, cmd string) bool {
	switch {
	case c.Ctx == nil:
		return false
	case contextOf(c).FieldByName("nested").Bool():
		c.WriteError("ERR This Redis command is not allowed from script")
	case !contextOf(c).FieldByName("transaction").IsNil():
		c.WriteError("ERR the embedded server does not run " + cmd + " inside MULTI")
	default:
		return false
	}
	return true
}

// contextOf is what miniredis keeps of a connection.
func contextOf(c *server.Peer) reflect.Value { return reflect.ValueOf(c.Ctx).Elem() }

// call is FCALL and FCALL_RO.
func (f *commands) call(c *server.Peer, cmd string, args []string, readonly bool) {
	if len(args) < 2 {
		c.WriteError(wrongNumber(cmd))
		return
	}
	if refused(c, cmd) {
		return
	}
	f.mini.Lock()
	reply := f.run(c, args, readonly)
	f.mini.Unlock()
	c.Block(func(w *server.Writer) { write(w, reply) })
}

func (f *commands) run(c *server.Peer, args []string, readonly bool) functions.Reply {
	if !f.lua.Known(args[0]) {
		return functions.Error("ERR Function not found")
	}
	keys, err := strconv.Atoi(args[1])
	switch rest := args[2:]; {
	case err != nil:
		return functions.Error("ERR Bad number of keys provided")
	case keys < 0:
		return functions.Error("ERR Number of keys can't be negative")
	case keys > len(rest):
		return functions.Error("ERR Number of keys can't be greater than number of args")
	default:
		f.inner.choose(c)
		return f.lua.Call(args[0], rest[:keys], rest[keys:], readonly)
	}
}

// function is FUNCTION LOAD, LIST, DELETE and FLUSH.
func (f *commands) function(c *server.Peer, cmd string, args []string) {
	if len(args) == 0 {
		c.WriteError(wrongNumber(cmd))
		return
	}
	if refused(c, cmd) {
		return
	}
	sub, args := strings.ToUpper(args[0]), args[1:]
	if sub == "LOAD" && (len(args) == 1 || len(args) == 2 && strings.EqualFold(args[0], "REPLACE")) {
		f.load(c, args[len(args)-1], len(args) == 2)
		return
	}
	f.mini.Lock()
	defer f.mini.Unlock()
	switch {
	case sub == "DELETE" && len(args) == 1:
		if !f.lua.Delete(args[0]) {
			c.WriteError("ERR Library not found")
			return
		}
		c.WriteOK()
	case sub == "FLUSH" &&
		(len(args) == 0 || len(args) == 1 && slices.Contains([]string{"SYNC", "ASYNC"}, strings.ToUpper(args[0]))):
		f.lua.Flush()
		c.WriteOK()
	case sub == "LIST":
		f.list(c, args)
	case slices.Contains([]string{"LOAD", "DELETE", "FLUSH"}, sub):
		c.WriteError(wrongNumber(cmd + "|" + sub))
	default:
		c.WriteError("ERR unknown subcommand '" + sub + "'. Try FUNCTION HELP.")
	}
}

// load is FUNCTION LOAD. Others are served while it compiles.
func (f *commands) load(c *server.Peer, code string, replace bool) {
	compiled, err := functions.Compile(code)
	if err == nil {
		f.mini.Lock()
		err = f.lua.Load(compiled, replace)
		f.mini.Unlock()
	}
	if err != nil {
		c.WriteError(err.Error())
		return
	}
	c.WriteBulk(compiled.Name())
}

// list is FUNCTION LIST [LIBRARYNAME pattern] [WITHCODE].
func (f *commands) list(c *server.Peer, args []string) {
	pattern, code := "*", false
	for ; len(args) > 0; args = args[1:] {
		switch {
		case strings.EqualFold(args[0], "WITHCODE"):
			code = true
		case strings.EqualFold(args[0], "LIBRARYNAME") && len(args) > 1:
			pattern, args = args[1], args[1:]
		default:
			c.WriteError("ERR Unknown argument " + args[0])
			return
		}
	}
	libraries := slices.DeleteFunc(f.lua.Libraries(), func(l functions.Library) bool {
		matches, err := path.Match(pattern, l.Name)
		return !matches || err != nil
	})
	c.Block(func(w *server.Writer) {
		w.WriteLen(len(libraries))
		for _, l := range libraries {
			describe(w, l, code)
		}
	})
}

func describe(w *server.Writer, l functions.Library, code bool) {
	fields := 3
	if code {
		fields++
	}
	w.WriteMapLen(fields)
	for _, text := range []string{"library_name", l.Name, "engine", "LUA", "functions"} {
		w.WriteBulk(text)
	}
	w.WriteLen(len(l.Functions))
	for _, f := range l.Functions {
		w.WriteMapLen(3)
		w.WriteBulk("name")
		w.WriteBulk(f.Name)
		w.WriteBulk("description")
		w.WriteNull()
		w.WriteBulk("flags")
		w.WriteSetLen(len(f.Flags))
		for _, flag := range f.Flags {
			w.WriteInline(flag)
		}
	}
	if code {
		w.WriteBulk("library_code")
		w.WriteBulk(l.Code)
	}
}

// write sends a reply.
func write(w *server.Writer, r functions.Reply) {
	switch r.Kind {
	case functions.KindInt:
		w.WriteInt(int(r.Int))
	case functions.KindBulk:
		w.WriteBulk(r.Text)
	case functions.KindStatus:
		w.WriteInline(r.Text)
	case functions.KindError:
		w.WriteError(r.Text)
	case functions.KindList:
		w.WriteLen(len(r.List))
		for _, item := range r.List {
			write(w, item)
		}
	default:
		w.WriteNull()
	}
}

// inner runs the commands of functions on the server, whose lock the caller holds. Only a context that a script has
// tells miniredis so.
type inner struct {
	server *server.Server
	peer   *server.Peer
	out    bytes.Buffer
	list   []functions.Reply // reused
}

// innerName is a command that no server has: a hook takes it away while the context is captured.
const innerName = "FLOWFABRIC.CONTEXT"

func newInner(srv *server.Server) (*inner, error) {
	in := &inner{server: srv}
	in.peer = server.NewPeer(bufio.NewWriter(&in.out))
	var captured any
	srv.SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		if cmd != innerName {
			return false
		}
		captured = c.Ctx
		c.WriteOK()
		return true
	})
	srv.Dispatch(in.peer, []string{"EVAL", "redis.call('" + innerName + "')", "0"})
	srv.SetPreHook(nil)
	in.peer.Flush()
	in.peer.Ctx = captured
	if captured == nil || !contextOf(in.peer).FieldByName("nested").Bool() {
		return nil, fmt.Errorf("this version of miniredis keeps no context of a script: %q", in.out.String())
	}
	return in, nil
}

// choose works on the database that a connection has selected.
func (in *inner) choose(c *server.Peer) {
	db := int64(0)
	if c.Ctx != nil {
		db = contextOf(c).FieldByName("selectedDB").Int()
	}
	if contextOf(in.peer).FieldByName("selectedDB").Int() != db {
		in.run([]string{"SELECT", strconv.FormatInt(db, 10)})
	}
}

// alien are commands that would change the connection all calls share, or wait.
var alien = []string{"AUTH", "BLMOVE", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZMPOP", "BZPOPMAX", "BZPOPMIN", "CLIENT",
	"HELLO", "QUIT", "SELECT", "WAIT", "XREAD", "XREADGROUP"}

// Do implements [functions.Store].
func (in *inner) Do(args []string) functions.Reply {
	if slices.Contains(alien, strings.ToUpper(args[0])) {
		return functions.Error("ERR This Redis command is not allowed from script")
	}
	return in.run(args)
}

// neutral are commands that change nothing, though miniredis does not say so.
var neutral = []string{"ECHO", "MEMORY", "OBJECT", "PING", "PUBSUB", "TIME", "XINFO"}

// Writes implements [functions.Store].
func (in *inner) Writes(command string) bool {
	return in.server.IsRegisteredCommand(command) && !in.server.IsReadOnlyCommand(command) &&
		!slices.Contains(neutral, strings.ToUpper(command))
}

func (in *inner) run(args []string) functions.Reply {
	in.out.Reset()
	in.server.Dispatch(in.peer, args)
	in.peer.Flush()
	r := reader{rest: in.out.Bytes()}
	reply := r.reply(&in.list)
	if reply.Kind == functions.KindError && strings.HasPrefix(reply.Text, "ERR unknown command ") {
		return functions.Error("ERR Unknown Redis command called from script")
	}
	return reply
}

// reader reads a reply as miniredis writes it for RESP2.
type reader struct{ rest []byte }

// reply reads one. Its list is kept in the given one, if there is one.
func (r *reader) reply(reuse *[]functions.Reply) functions.Reply {
	line := r.line()
	if len(line) == 0 {
		return functions.Error("ERR the command has no reply")
	}
	switch text := line[1:]; line[0] {
	case '+':
		return functions.Reply{Kind: functions.KindStatus, Text: string(text)}
	case '-':
		return functions.Error(string(text))
	case ':':
		return functions.Reply{Kind: functions.KindInt, Int: int64(whole(text))}
	case '$':
		n := whole(text)
		if n < 0 {
			return functions.Reply{}
		}
		bulk := r.rest[:n]
		r.rest = r.rest[n+len("\r\n"):]
		return functions.Reply{Kind: functions.KindBulk, Text: string(bulk)}
	default: // '*'
		n := whole(text)
		if n < 0 {
			return functions.Reply{}
		}
		var list []functions.Reply
		if reuse != nil {
			list = (*reuse)[:0]
		}
		list = slices.Grow(list, n)
		for range n {
			list = append(list, r.reply(nil))
		}
		if reuse != nil {
			*reuse = list
		}
		return functions.Reply{Kind: functions.KindList, List: list}
	}
}

func (r *reader) line() []byte {
	line, rest, _ := bytes.Cut(r.rest, []byte("\r\n"))
	r.rest = rest
	return line
}

// whole reads a whole number.
func whole(text []byte) int {
	n, negative := 0, false
	for i, c := range text {
		if i == 0 && c == '-' {
			negative = true
			continue
		}
		n = n*10 + int(c-'0')
	}
	if negative {
		return -n
	}
	return n
}
