package suspend

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// Condition says which signals and messages a wait needs. Build it with [Signal], [Signals], [Count], [Mailbox],
// [AllOf], [AnyOf], [Operator] or [Timeout]; it is checked where it is used. Immutable.
type Condition struct {
	// 'L' list, 'C' count, 'G' group, 'O' operator, 'T' timeout, 'M' message of the mailbox keys[0]; 0: nothing was
	// built
	op      byte
	need    int
	keys    []string
	names   []string
	by      Distinct
	members []Condition
	all     bool // of a group: every member
	narrow  bool // Named was called
}

// Distinct says what [Count] counts.
type Distinct string

const (
	// Waitpoints counts waitpoints that were signalled: the way to ask several parties, each with its own token.
	Waitpoints Distinct = "w"
	// SignalCount counts signals. One with an idempotency key counts once, however often it is sent; one without
	// counts by its own id, so that a sender who repeats it is counted again.
	SignalCount Distinct = "s"
	// Sources counts senders by source type and source. These are claims of the holder of the token, so this is no
	// protection among parties that share one; give each its own waitpoint and count Waitpoints.
	Sources Distinct = "c"
)

// Signal waits for one signal of any name on the waitpoint of this key.
func Signal(key string) Condition {
	return Condition{op: 'L', need: 1, keys: []string{key}, names: []string{""}}
}

// Signals waits for need of the named signals on one waitpoint. Each name is a slot of its own: the same name twice
// wants two such signals, and "" is a slot for any name.
func Signals(key string, need int, names ...string) Condition {
	return Condition{op: 'L', need: need, keys: []string{key}, names: names}
}

// Count waits for n distinct waitpoints, signals or sources among the waitpoints of these keys. Condition depth and
// size: at most n = 1,000, 16 waitpoints, 32 parts, four levels.
func Count(n int, by Distinct, keys ...string) Condition {
	return Condition{op: 'C', need: n, by: by, keys: keys, names: []string{""}}
}

// AllOf waits for every member, in any order.
func AllOf(members ...Condition) Condition { return Condition{op: 'G', members: members, all: true} }

// AnyOf waits for one member.
func AnyOf(members ...Condition) Condition { return Condition{op: 'G', need: 1, members: members} }

// Operator waits for an operator to resume the execution; no signal does.
func Operator() Condition { return Condition{op: 'O'} }

// Timeout waits until [Within] has passed, or an operator resumes the execution; no signal does.
func Timeout() Condition { return Condition{op: 'T'} }

// Mailbox waits for a message in a mailbox, of which no receipt has been taken. The message stays there: take it with
// handler.Receive or handler.Task.Drain when the wait is over.
func Mailbox(name string) Condition { return Condition{op: 'M', keys: []string{name}} }

// Named narrows Signal and Count to signals of one name, 1..128 bytes.
func (c Condition) Named(signal string) Condition {
	c.names, c.narrow = []string{signal}, true
	return c
}

// compiled is a condition as the server reads it, with the waitpoint keys it numbers.
type compiled struct {
	lines []string
	keys  []string
	slots int
}

const (
	unitSeparator   = "\x1f"
	recordSeparator = "\x1e"
	maxCondition    = 16 << 10
	maxNames        = 64
	maxSlots        = 256 // names of all lists together
)

// Compile checks the condition and writes it as the server reads it, with the keys of the waitpoints that it numbers.
// flowfabric.ErrInvalidInput names the part that is wrong by its path. Waits call it.
func (c Condition) Compile() (text string, keys []string, err error) {
	if c.op == 'O' || c.op == 'T' {
		return string(c.op), nil, nil
	}
	var out compiled
	if _, err := out.add(c, "condition", 1); err != nil {
		return "", nil, err
	}
	text = strings.Join(out.lines, recordSeparator)
	switch {
	case len(out.lines) > limits.MaxConditionNodes:
		return "", nil, bad("condition", "%d parts, want at most %d", len(out.lines), limits.MaxConditionNodes)
	case len(out.keys) > limits.MaxBoundWaitpoints:
		return "", nil, bad("condition", "%d waitpoints, want at most %d", len(out.keys), limits.MaxBoundWaitpoints)
	case len(text) > maxCondition:
		return "", nil, bad("condition", "%d bytes, want at most %d", len(text), maxCondition)
	}
	return text, out.keys, nil
}

func bad(path, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", denied.Condition, path, fmt.Sprintf(format, args...))
}

// add writes one part after its members and returns its number.
func (o *compiled) add(c Condition, path string, depth int) (int, error) {
	if depth > limits.MaxConditionDepth {
		return 0, bad(path, "depth %d, want at most %d", depth, limits.MaxConditionDepth)
	}
	if len(o.lines) > limits.MaxConditionNodes { // enough to say so
		return 0, bad(path, "more than %d parts", limits.MaxConditionNodes)
	}
	var parts []string
	var err error
	switch c.op {
	case 'L':
		parts, err = o.list(c, path)
	case 'C':
		parts, err = o.count(c, path)
	case 'G':
		parts, err = o.group(c, path, depth)
	case 'M':
		if err = waitwords.CheckMailbox(c.keys[0]); err != nil {
			err = bad(path, "%v", err)
		}
		parts = []string{"M", c.keys[0]}
	case 'O', 'T':
		return 0, bad(path, "Operator and Timeout stand alone")
	default:
		return 0, bad(path, "it is empty; build it with Signal, Count, Mailbox, AllOf or AnyOf")
	}
	if err != nil {
		return 0, err
	}
	o.lines = append(o.lines, strings.Join(parts, unitSeparator))
	return len(o.lines), nil
}

func (o *compiled) list(c Condition, path string) ([]string, error) {
	w, err := o.waitpoint(c.keys[0], path)
	if err != nil {
		return nil, err
	}
	if len(c.names) == 0 || len(c.names) > maxNames {
		return nil, bad(path, "%d names, want 1..%d", len(c.names), maxNames)
	}
	if c.need < 1 || c.need > len(c.names) {
		return nil, bad(path, "needs %d of %d signals, so it can never be met", c.need, len(c.names))
	}
	if err := c.checkNames(path); err != nil {
		return nil, err
	}
	if o.slots += len(c.names); o.slots > maxSlots {
		return nil, bad(path, "%d names in all, want at most %d", o.slots, maxSlots)
	}
	return append([]string{"L", w, strconv.Itoa(c.need)}, c.names...), nil
}

func (o *compiled) count(c Condition, path string) ([]string, error) {
	switch {
	case c.need < 1:
		return nil, bad(path, "count_n_zero: n is %d, want 1..%d", c.need, limits.MaxConditionCount)
	case c.need > limits.MaxConditionCount:
		return nil, bad(path, "n is %d, want 1..%d", c.need, limits.MaxConditionCount)
	case len(c.keys) == 0:
		return nil, bad(path, "count_waitpoints_empty: no waitpoint is named")
	case c.by == Waitpoints && c.need > len(c.keys):
		return nil, bad(path, "count_exceeds_waitpoint_set: needs %d of %d waitpoints", c.need, len(c.keys))
	case c.by != Waitpoints && c.by != SignalCount && c.by != Sources:
		return nil, bad(path, "counts %q, want Waitpoints, SignalCount or Sources", string(c.by))
	}
	if err := c.checkNames(path); err != nil {
		return nil, err
	}
	parts := []string{"C", strconv.Itoa(c.need), string(c.by), c.names[0]}
	for i, key := range c.keys {
		if slices.Contains(c.keys[:i], key) {
			return nil, bad(path, "waitpoint %q is named twice", key)
		}
		w, err := o.waitpoint(key, path)
		if err != nil {
			return nil, err
		}
		parts = append(parts, w)
	}
	return parts, nil
}

func (o *compiled) group(c Condition, path string, depth int) ([]string, error) {
	if len(c.members) == 0 {
		return nil, bad(path, "allof_empty_members: it has no members")
	}
	if c.narrow {
		return nil, bad(path, "Named narrows Signal and Count, not a group")
	}
	need := c.need
	if c.all {
		need = len(c.members)
	}
	parts := []string{"G", strconv.Itoa(need)}
	for i, m := range c.members {
		n, err := o.add(m, fmt.Sprintf("%s.members[%d]", path, i), depth+1)
		if err != nil {
			return nil, err
		}
		parts = append(parts, strconv.Itoa(n))
	}
	return parts, nil
}

// waitpoint numbers a key.
func (o *compiled) waitpoint(key, path string) (string, error) {
	if err := checkKey(key); err != nil {
		return "", bad(path, "%v", err)
	}
	i := slices.Index(o.keys, key)
	if i < 0 {
		o.keys = append(o.keys, key)
		i = len(o.keys) - 1
	}
	return strconv.Itoa(i + 1), nil
}

// checkNames refuses names that no signal can have. An empty one is any name, unless Named was given it.
func (c Condition) checkNames(path string) error {
	for _, name := range c.names {
		if name == "" && !c.narrow {
			continue
		}
		if err := waitwords.CheckSignalName(name); err != nil {
			return bad(path, "%v", err)
		}
	}
	return nil
}

func checkKey(key string) error {
	if err := waitwords.CheckText("waitpoint key", key, limits.MaxWaitpointKey); err != nil {
		return err
	}
	if key == "" {
		return fmt.Errorf("%w: the waitpoint key is empty, want 1..%d bytes", flowfabric.ErrInvalidInput,
			limits.MaxWaitpointKey)
	}
	return nil
}
