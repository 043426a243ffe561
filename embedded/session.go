package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/functions"
	"github.com/flowfabric/flowfabric-go/internal/store"
)

// Bounds of a connection. A client that is not yet known may send little, as on Redis.
const (
	mostUnsent        = 64 << 10 // bytes of replies, before they are sent although more commands wait
	mostKept          = 1 << 20  // bytes of a buffer that is kept for the next replies
	strangerArguments = 10
	strangerBytes     = 16 << 10
)

// session is one connection. A goroutine reads its commands and answers them:
//
//	read ─▶ run ─▶ … while more commands are there already ─▶ wait until their effects are safe ─▶ deliver ─▶ send
type session struct {
	srv  *Server
	conn net.Conn
	in   *store.Reader
	args []string // of the command that runs
	encoder

	position  int64  // replies are sent once the store has kept everything up to here
	published uint64 // and messages up to here have been delivered

	id      int64
	name    string
	known   bool // it needs no password, or has told it
	leaving bool // nothing more is read
	queue   *transaction
	outbox  *outbox // since it first subscribed
	names   [kinds]map[string]bool
}

// transaction is what MULTI began.
type transaction struct {
	commands [][]string
	broken   bool // a command was refused
}

// serve answers commands until the connection ends.
func (c *session) serve() {
	defer c.end()
	for !c.leaving {
		args, err := c.in.Command(c.args)
		switch {
		case errors.Is(err, store.ErrProtocol):
			c.fail("ERR " + err.Error())
			c.leaving = true
		case err != nil:
			return
		case len(args) > 0:
			c.srv.commands.Add(1)
			c.run(args)
		}
		if c.args = args; cap(args) > mostKept/16 {
			c.args = nil
		}
		if c.in.Buffered() == 0 || len(c.out) > mostUnsent || c.leaving {
			if !c.flush() {
				return
			}
		}
	}
}

// flush sends what has been answered. It reports whether the connection goes on.
func (c *session) flush() bool {
	if err := c.srv.store.Wait(c.position); err != nil {
		c.leaving = true // what became of the calls is not known, as when a connection is lost
		return false
	}
	c.srv.hub.deliver(c.published)
	if len(c.out) == 0 {
		return true
	}
	if c.outbox != nil {
		c.outbox.reply(c.out)
	} else if _, err := c.conn.Write(c.out); err != nil {
		c.leaving = true
		return false
	}
	if c.out = c.out[:0]; cap(c.out) > mostKept {
		c.out = nil
	}
	return true
}

// open makes the outbox.
func (c *session) open() {
	if c.outbox == nil {
		c.outbox = newOutbox(c.conn)
		c.srv.loops.Go(c.outbox.send)
	}
}

// end leaves nothing behind.
func (c *session) end() {
	c.srv.hub.leave(c)
	c.srv.forget(c)
	if c.outbox != nil && c.leaving {
		c.outbox.end() // closes the connection once all is sent
		return
	}
	_ = c.conn.Close()
	if c.outbox != nil {
		c.outbox.end()
	}
}

// run answers one command.
func (c *session) run(args []string) {
	name := strings.ToUpper(args[0])
	own, mine := commands[name]
	switch {
	case !c.known && !own.first:
		c.fail("NOAUTH Authentication required.")
	case mine && !own.takes(len(args)):
		c.refuse(store.WrongNumber(name))
	case !mine && !c.srv.store.Known(name):
		c.refuse(unknown(args))
	case !mine && !c.srv.store.Takes(args):
		c.refuse(store.WrongNumber(name))
	case c.listening() && !own.listening && name != "PING":
		c.fail("ERR Can't execute '" + strings.ToLower(name) + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / " +
			"QUIT / RESET are allowed in this context")
	case c.listening() && name == "PING":
		c.pong(args)
	case c.queue != nil && own.alone:
		c.refuse(functions.Error("ERR Command not allowed inside a transaction"))
	case c.queue != nil && !own.ends:
		c.queue.commands = append(c.queue.commands, append([]string(nil), args...))
		c.status("QUEUED")
	case mine && !own.keys:
		own.run(c, args)
	default:
		if own.prepare != nil {
			own.prepare(args)
		}
		c.call(args)
	}
}

// refuse answers an error before a command has run, which breaks a transaction.
func (c *session) refuse(r functions.Reply) {
	if c.queue != nil {
		c.queue.broken = true
	}
	c.reply(&r, asIs)
}

func unknown(args []string) functions.Reply {
	var b strings.Builder
	for _, a := range args[1:] {
		if b.Len() > 128 {
			break
		}
		fmt.Fprintf(&b, "'%.128s' ", a)
	}
	return functions.Error(fmt.Sprintf("ERR unknown command '%.128s', with args beginning with: %s", args[0], &b))
}

// listening reports whether the connection is one of RESP2 that takes messages and little else.
func (c *session) listening() bool {
	return !c.resp3 && c.outbox != nil && c.subscriptions(byName)+c.subscriptions(bySlot) > 0
}

// pong answers PING while the connection is listening.
func (c *session) pong(args []string) {
	c.head('*', 2)
	c.text("pong")
	c.text(append(args, "")[1])
}

// call runs commands that work on keys, alone: one, or those of a transaction.
func (c *session) call(all ...[]string) {
	s := c.srv.store
	begin := len(c.out)
	s.Lock()
	defer func() {
		if defect := recover(); defect != nil {
			c.out = c.out[:begin]
			c.fail(fmt.Sprintf("ERR internal error: %v", defect))
			c.srv.log.Error("flowfabric: a command of the embedded server panicked", "command", all[0][0],
				"error", defect, slog.String("stack", string(debug.Stack())))
		}
		last := c.srv.hub.last
		position := s.Unlock()
		if c.position = max(c.position, position); position > 0 || s.Refuses() == nil {
			c.published = last // else there may be messages of calls that were not written
		}
	}()
	refusal := s.Refuses()
	c.srv.host.refusal = refusal
	if refusal != nil && slices.ContainsFunc(all, func(args []string) bool { return s.Writes(args[0]) }) {
		c.reply(refusal, asIs)
		return
	}
	if c.queue != nil {
		c.head('*', len(all))
	}
	for _, args := range all {
		name := strings.ToUpper(args[0])
		if own, mine := commands[name]; mine {
			own.run(c, args)
			continue
		}
		r := s.Do(args)
		f := asIs
		if c.resp3 {
			f = formOf(name, args)
		}
		c.reply(&r, f)
	}
}
