package store

import (
	"strings"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

// Store holds keys. Between Lock and Unlock its other methods belong to the caller.
type Store struct {
	mu    sync.Mutex
	clock func() time.Time
	now   time.Time // stands still during a call
	ms    int64     // now, in Unix milliseconds

	channels Channels
	keys     keyspace
	call     call
	effects  effects
	log      *log // nil: in memory only
	snapshot *snapshot
	position int64 // of the last record in the log

	scratch []reply // see call.items
	buffer  []byte  // in which a packed value is built
}

// New makes a store in memory. clock tells the time that keys expire by; nil is the clock of the machine.
func New(clock func() time.Time) *Store {
	if clock == nil {
		clock = time.Now
	}
	s := &Store{clock: clock, channels: silent{}}
	s.keys.init()
	return s
}

// Lock begins a call: other callers wait, and the clock stands still. Keys whose time has come are gone.
func (s *Store) Lock() {
	s.mu.Lock()
	s.now = s.clock()
	s.ms = s.now.UnixMilli()
	s.expire(duePerCall)
}

// Unlock ends a call. What it changed becomes one record of the log; its position is for [Store.Wait]. A caller that
// waits for several calls at once waits for the greatest of their positions: what a call has read is written before
// it is told, unless nothing can be written, when a call that changes nothing has nothing to wait for.
func (s *Store) Unlock() (position int64) {
	changed := s.effects.count > s.effects.buried
	s.record()
	if position = s.position; !changed && s.Refuses() != nil {
		position = 0
	}
	s.mu.Unlock()
	return position
}

// Now is the time of the call.
func (s *Store) Now() time.Time { return s.now }

// Do implements [functions.Store]: it runs one command of the call. The list of a reply is valid until the next
// command, its texts stay valid. args may be used again afterwards.
func (s *Store) Do(args []string) reply {
	c := lookup(args[0])
	if c == nil {
		return functions.Error("ERR Unknown Redis command called from script")
	}
	if !c.takes(len(args)) {
		return WrongNumber(args[0])
	}
	s.call = call{s: s, args: args}
	reply := c.run(&s.call)
	if s.call.changed {
		effect := s.call.effect
		if effect == nil {
			effect = args
		}
		s.effects.add(effect)
	}
	return reply
}

// WrongNumber is the answer to a command with too few or too many arguments.
func WrongNumber(command string) functions.Reply {
	return functions.Error("ERR wrong number of arguments for '" + strings.ToLower(command) + "' command")
}

// Known reports whether there is such a command, in upper or lower case.
func (s *Store) Known(command string) bool { return lookup(command) != nil }

// Takes reports whether a command that there is takes so many arguments, with its name.
func (s *Store) Takes(args []string) bool { return lookup(args[0]).takes(len(args)) }

// Writes implements [functions.Store].
func (s *Store) Writes(name string) bool {
	c := lookup(name)
	return c != nil && c.writes
}

// Size is how many keys there are, and how many of them expire.
func (s *Store) Size() (keys, expiring int) { return s.keys.count, len(s.keys.queue) }

// call is one command while it runs.
type call struct {
	s       *Store
	args    []string // with the name of the command
	changed bool     // it goes to the log
	effect  []string // nil: args. What repeats the change whenever it is read: times are absolute, ids written out
}

// command is a row of the table of commands.
type command struct {
	run    runner
	least  int // arguments, with the name
	most   int // 0: any number
	writes bool
}

type runner func(c *call) reply

func (c *command) takes(n int) bool { return n >= c.least && (c.most == 0 || n <= c.most) }

// lookup finds a command by its name, in whatever case it is written.
func lookup(name string) *command {
	if c := commands[name]; c != nil {
		return c
	}
	return commands[strings.ToUpper(name)]
}
