package embedded

import (
	"crypto/sha256"
	"crypto/subtle"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/functions"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
	"github.com/flowfabric/flowfabric-go/internal/store"
)

// command is one that the store does not know: it is about the connection, the server or its functions.
type command struct {
	run         func(c *session, args []string) // args has the name
	least, most int                             // arguments, with the name; most 0: any number

	prepare   func(args []string) // what can be done before the call of the store begins; may be nil
	keys      bool                // it works on keys: run is called during a call of the store
	first     bool                // before the password, too
	listening bool                // while the connection takes messages in RESP2, too
	alone     bool                // not in a transaction
	ends      bool                // in a transaction it is not queued
}

func (c *command) takes(n int) bool { return n >= c.least && (c.most == 0 || n <= c.most) }

// commands by name. No function can call one.
var commands map[string]command

func init() {
	commands = map[string]command{
		"HELLO":  {run: hello, least: 1, first: true, alone: true},
		"AUTH":   {run: auth, least: 2, most: 3, first: true, alone: true},
		"QUIT":   {run: quit, least: 1, first: true, listening: true, ends: true},
		"RESET":  {run: reset, least: 1, most: 1, first: true, listening: true, ends: true},
		"SELECT": {run: selectDB, least: 2, most: 2},

		"MULTI":   {run: multi, least: 1, most: 1, ends: true},
		"EXEC":    {run: exec, least: 1, most: 1, ends: true},
		"DISCARD": {run: discard, least: 1, most: 1, ends: true},
		"WATCH":   {run: watch, least: 2, ends: true},
		"UNWATCH": {run: okay, least: 1, most: 1},

		"CLIENT":  {run: client, least: 2},
		"COMMAND": {run: listNothing, least: 1},
		"CONFIG":  {run: config, least: 2},
		"CLUSTER": {run: cluster, least: 2},
		"INFO":    {run: info, least: 1, keys: true},
		"ROLE":    {run: role, least: 1, most: 1},
		"WAIT":    {run: wait, least: 3, most: 3},

		"FCALL":    {run: func(c *session, args []string) { fcall(c, args, false) }, least: 3, keys: true},
		"FCALL_RO": {run: func(c *session, args []string) { fcall(c, args, true) }, least: 3, keys: true},
		"EVAL":     {run: func(c *session, args []string) { eval(c, args, false) }, least: 3, keys: true},
		"EVAL_RO":  {run: func(c *session, args []string) { eval(c, args, true) }, least: 3, keys: true},
		"FUNCTION": {run: function, least: 2, keys: true, prepare: compile},
	}
	for k, w := range words {
		commands[strings.ToUpper(w.subscribe)] = command{least: 2, listening: true, alone: true,
			run: func(c *session, args []string) { c.subscribeTo(kind(k), args) }}
		commands[strings.ToUpper(w.unsubscribe)] = command{least: 1, listening: true, alone: true,
			run: func(c *session, args []string) { c.unsubscribeFrom(kind(k), args) }}
	}
}

func okay(c *session, _ []string) { c.status("OK") }

// version of the server whose commands this one answers: clients decide by it what they use.
const version = "7.4.0"

// hello is HELLO [2 | 3 [AUTH user password] [SETNAME name]].
func hello(c *session, args []string) {
	resp3, name, known := c.resp3, c.name, c.known
	if len(args) > 1 {
		if args[1] != "2" && args[1] != "3" {
			c.fail("NOPROTO unsupported protocol version")
			return
		}
		resp3 = args[1] == "3"
	}
	for rest := args[min(2, len(args)):]; len(rest) > 0; {
		switch option := strings.ToUpper(rest[0]); {
		case option == "AUTH" && len(rest) > 2:
			if known = c.srv.knows(rest[1], rest[2]); !known {
				c.fail(wrongPassword)
				return
			}
			rest = rest[3:]
		case option == "SETNAME" && len(rest) > 1:
			name, rest = strings.Clone(rest[1]), rest[2:]
		default:
			c.fail("ERR Syntax error in HELLO option '" + rest[0] + "'")
			return
		}
	}
	if !known {
		c.fail("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH " +
			"<user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	c.name, c.resp3 = name, resp3
	c.welcome()
	c.entries(7)
	for _, pair := range [][2]string{{"server", inproc.ServerName}, {"version", version}} {
		c.text(pair[0])
		c.text(pair[1])
	}
	c.text("proto")
	if c.resp3 {
		c.number(3)
	} else {
		c.number(2)
	}
	c.text("id")
	c.number(c.id)
	for _, pair := range [][2]string{{"mode", "standalone"}, {"role", "master"}} {
		c.text(pair[0])
		c.text(pair[1])
	}
	c.text("modules")
	c.head('*', 0)
}

const wrongPassword = "WRONGPASS invalid username-password pair or user is disabled."

// knows checks a password. The only user is the default one. It takes as long for a wrong password as for the right.
func (s *Server) knows(user, password string) bool {
	want, got := sha256.Sum256([]byte(s.password)), sha256.Sum256([]byte(password))
	same := subtle.ConstantTimeCompare(want[:], got[:]) == 1
	return user == "default" && (same || s.password == "")
}

// welcome lifts what a stranger is bound by.
func (c *session) welcome() {
	c.known = true
	c.in.Limit(0, 0)
}

// auth is AUTH [user] password.
func auth(c *session, args []string) {
	user, password := "default", args[len(args)-1]
	switch {
	case len(args) == 3:
		user = args[1]
	case c.srv.password == "":
		c.fail("ERR AUTH <password> called without any password configured for the default user. " +
			"Are you sure your configuration is correct?")
		return
	}
	if !c.srv.knows(user, password) {
		c.fail(wrongPassword)
		return
	}
	c.welcome()
	c.status("OK")
}

func quit(c *session, _ []string) {
	c.status("OK")
	c.leaving = true
}

func reset(c *session, _ []string) {
	c.srv.hub.leave(c)
	c.queue, c.name, c.resp3 = nil, "", false
	if c.srv.password != "" {
		c.known = false
		c.in.Limit(strangerArguments, strangerBytes)
	}
	c.status("RESET")
}

func selectDB(c *session, args []string) {
	if n, err := strconv.Atoi(args[1]); err != nil {
		c.fail("ERR value is not an integer or out of range")
	} else if n != 0 {
		c.fail("ERR DB index is out of range")
	} else {
		c.status("OK")
	}
}

func multi(c *session, _ []string) {
	if c.queue != nil {
		c.fail("ERR MULTI calls can not be nested")
		return
	}
	c.queue = &transaction{}
	c.status("OK")
}

// exec runs what was queued as one call.
func exec(c *session, _ []string) {
	queue := c.queue
	switch {
	case queue == nil:
		c.fail("ERR EXEC without MULTI")
		return
	case queue.broken:
		c.fail("EXECABORT Transaction discarded because of previous errors.")
	case len(queue.commands) == 0:
		c.head('*', 0)
	default:
		c.call(queue.commands...)
	}
	c.queue = nil
}

func discard(c *session, _ []string) {
	if c.queue == nil {
		c.fail("ERR DISCARD without MULTI")
		return
	}
	c.queue = nil
	c.status("OK")
}

// watch refuses, because nothing of ours watches keys: a function decides and writes in one call.
func watch(c *session, _ []string) {
	c.refuse(functions.Error("ERR the embedded server has no WATCH; use a function, which is alone while it runs"))
}

// client is what clients tell of themselves when they connect.
func client(c *session, args []string) {
	sub := strings.ToUpper(args[1])
	switch {
	case sub == "SETNAME" && len(args) == 3:
		if strings.ContainsFunc(args[2], func(r rune) bool { return r < '!' || r > '~' }) {
			c.fail("ERR Client names cannot contain spaces, newlines or special characters.")
			return
		}
		c.name = strings.Clone(args[2])
		c.status("OK")
	case sub == "GETNAME" && len(args) == 2:
		if c.name == "" {
			c.null()
		} else {
			c.text(c.name)
		}
	case sub == "ID" && len(args) == 2:
		c.number(c.id)
	case sub == "SETINFO" && len(args) == 4, (sub == "NO-EVICT" || sub == "NO-TOUCH") && len(args) == 3:
		c.status("OK")
	case sub == "UNBLOCK" && len(args) >= 3: // no command waits
		c.number(0)
	case sub == "TRACKING":
		c.fail("ERR the embedded server does not track what clients keep; switch client-side caching off")
	default:
		c.fail("ERR unknown subcommand or wrong number of arguments for '" + args[1] + "'. Try CLIENT HELP.")
	}
}

func listNothing(c *session, _ []string) { c.head('*', 0) }

func cluster(c *session, _ []string) { c.fail("ERR This instance has cluster support disabled") }

// role says that this is a primary without replicas.
func role(c *session, _ []string) {
	c.head('*', 3)
	c.text("master")
	c.number(0)
	c.head('*', 0)
}

// wait is WAIT: there are no replicas.
func wait(c *session, _ []string) { c.number(0) }

// config is CONFIG GET with the settings that say what the server keeps.
func config(c *session, args []string) {
	if !strings.EqualFold(args[1], "GET") || len(args) < 3 {
		c.fail("ERR the embedded server has only CONFIG GET")
		return
	}
	var found [][2]string
	for _, setting := range c.srv.settings() {
		for _, pattern := range args[2:] {
			if store.Match(strings.ToLower(pattern), setting[0]) {
				found = append(found, setting)
				break
			}
		}
	}
	c.entries(len(found))
	for _, setting := range found {
		c.text(setting[0])
		c.text(setting[1])
	}
}
