package store

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

// streamID is the id of an entry, "ms-seq".
type streamID struct{ ms, seq uint64 }

var lastStreamID = streamID{^uint64(0), ^uint64(0)}

func (id streamID) String() string {
	return strconv.FormatUint(id.ms, 10) + "-" + strconv.FormatUint(id.seq, 10)
}

func (id streamID) compare(other streamID) int {
	return cmp.Or(cmp.Compare(id.ms, other.ms), cmp.Compare(id.seq, other.seq))
}

func (id streamID) next() streamID {
	if id.seq++; id.seq == 0 {
		id.ms++
	}
	return id
}

func (id streamID) previous() streamID {
	if id.seq--; id.seq == ^uint64(0) {
		id.ms--
	}
	return id
}

// streamEntry is one entry: fields with their values.
type streamEntry struct {
	id     streamID
	fields packed
}

// stream is entries in the order of their ids. A clone has the same array: its length ends before what is appended
// later, and its capacity too, so that what it appends itself goes elsewhere. Entries in the array are only changed
// while no clone has it.
type stream struct {
	entries       []streamEntry
	shared        bool
	last, deleted streamID
	added         uint64
}

func (*stream) kind() string { return "stream" }

func (v *stream) clone() value {
	v.shared = true
	other := *v
	other.entries = slices.Clip(v.entries)
	return &other
}

func (v *stream) dump(key string, emit func(args ...string)) {
	if len(v.entries) == 0 { // it exists all the same
		first := v.last
		if first == (streamID{}) {
			first.seq = 1
		}
		emit("XADD", key, "MAXLEN", "0", first.String(), "", "")
	}
	for _, e := range v.entries {
		args := []string{"XADD", key, e.id.String()}
		for p := e.fields; p != ""; {
			var text string
			text, p = p.next()
			args = append(args, text)
		}
		emit(args...)
	}
	emit("XSETID", key, v.last.String(), "ENTRIESADDED", strconv.FormatUint(v.added, 10), "MAXDELETEDID",
		v.deleted.String())
}

// at is where the first entry at or behind an id stands.
func (v *stream) at(id streamID) int {
	i, _ := slices.BinarySearchFunc(v.entries, id, func(e streamEntry, id streamID) int { return e.id.compare(id) })
	return i
}

func (v *stream) append(id streamID, fields []string) {
	var text []byte
	for _, f := range fields {
		text = pack(text, f)
	}
	if len(v.entries) == cap(v.entries) {
		v.shared = false // it moves to an array of its own
	}
	v.entries = append(v.entries, streamEntry{id, packed(text)})
	v.last = id
	v.added = min(v.added+1, math.MaxInt64) // XSETID takes no more
}

// cut removes the first n entries.
func (v *stream) cut(n int) {
	if n > 0 && !v.shared {
		clear(v.entries[:n])
	}
	v.entries = v.entries[n:]
}

// remove removes an entry, and reports whether it was there.
func (v *stream) remove(id streamID) bool {
	i := v.at(id)
	if i == len(v.entries) || v.entries[i].id != id {
		return false
	}
	if id.compare(v.deleted) > 0 {
		v.deleted = id
	}
	if i == 0 {
		v.cut(1)
		return true
	}
	if v.shared {
		v.entries, v.shared = slices.Clone(v.entries), false
	}
	v.entries = slices.Delete(v.entries, i, i+1)
	return true
}

// trimming is MAXLEN or MINID. About ("~") is taken exactly.
type trimming struct {
	most  int // MAXLEN; -1: none
	least streamID
}

// apply trims, and counts what it removed.
func (t *trimming) apply(v *stream) int {
	n := v.at(t.least)
	if t.most >= 0 {
		n = max(n, len(v.entries)-t.most)
	}
	v.cut(n)
	return n
}

// trimmed reads MAXLEN | MINID [= | ~] threshold at the head of arguments.
func trimmed(args []string) (t trimming, rest []string, fault *reply) {
	what, rest := strings.ToUpper(args[0]), args[1:]
	if len(rest) > 0 && (rest[0] == "~" || rest[0] == "=") {
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return t, nil, &errSyntax
	}
	t.most = -1
	if what == "MAXLEN" {
		n, whole := integer(rest[0])
		switch {
		case !whole:
			return t, nil, &errNotInteger
		case n < 0:
			return t, nil, &errMaxLen
		}
		t.most = int(min(n, 1<<62))
	} else if t.least, fault = parseID(rest[0], 0); fault != nil {
		return t, nil, fault
	}
	return t, rest[1:], nil
}

var (
	errStreamID = functions.Error("ERR Invalid stream ID specified as stream command argument")
	errMaxLen   = functions.Error("ERR The MAXLEN argument must be >= 0.")
	errZeroID   = functions.Error("ERR The ID specified in XADD must be greater than 0-0")
	errSmallID  = functions.Error("ERR The ID specified in XADD is equal or smaller than the target stream top item")
	errFull     = functions.Error("ERR The stream has exhausted the last possible ID, unable to add more items")
)

// parseID reads "ms-seq", or "ms" with the given seq.
func parseID(s string, seq uint64) (id streamID, fault *reply) {
	ms, rest, both := strings.Cut(s, "-")
	var err error
	if id.ms, err = strconv.ParseUint(ms, 10, 64); err != nil {
		return id, &errStreamID
	}
	if id.seq = seq; both {
		if id.seq, err = strconv.ParseUint(rest, 10, 64); err != nil {
			return id, &errStreamID
		}
	}
	return id, nil
}

func init() {
	write("XADD", 5, 0, xadd)
	write("XTRIM", 4, 0, xtrim)
	write("XDEL", 3, 0, xdel)
	write("XSETID", 3, 0, xsetid)
}

// xadd is XADD key [trimming] id field value …. Its effect has the id.
func xadd(c *call) reply {
	rest := c.args[2:]
	trim := trimming{most: -1}
	if word := strings.ToUpper(rest[0]); word == "MAXLEN" || word == "MINID" {
		var fault *reply
		if trim, rest, fault = trimmed(rest); fault != nil {
			return *fault
		}
	}
	if len(rest) < 3 || len(rest)%2 == 0 {
		return WrongNumber("xadd")
	}
	place := len(c.args) - len(rest) // of the id
	var none stream
	if _, fault := none.choose(rest[0], uint64(c.s.ms)); fault != nil && fault != &errFull { // nothing takes it
		return *fault
	}
	v, fault := change[*stream](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case v == nil:
		v = &none
	}
	id, fault := v.choose(rest[0], uint64(c.s.ms))
	if fault != nil {
		return *fault
	}
	if v == &none {
		v = &stream{}
		c.s.put(c.args[1], v)
	}
	v.append(id, rest[1:])
	trim.apply(v)
	c.changed, c.effect = true, slices.Clone(c.args)
	c.effect[place] = id.String()
	return text(c.effect[place])
}

// choose is the id of a new entry: as it is written, "*", or "ms-*".
func (v *stream) choose(s string, now uint64) (id streamID, fault *reply) {
	if s == "*" {
		if v.last == lastStreamID {
			return id, &errFull
		}
		if now > v.last.ms {
			return streamID{now, 0}, nil
		}
		return v.last.next(), nil
	}
	if ms, open := strings.CutSuffix(s, "-*"); open {
		if id, fault = parseID(ms, 0); fault != nil || strings.Contains(ms, "-") {
			return id, &errStreamID
		}
		if id.ms == v.last.ms {
			if v.last.seq == ^uint64(0) {
				return id, &errSmallID
			}
			id.seq = v.last.seq + 1
		}
	} else if id, fault = parseID(s, 0); fault != nil {
		return id, fault
	}
	switch {
	case id == streamID{} && s[len(s)-1] != '*':
		return id, &errZeroID
	case v.last == lastStreamID:
		return id, &errFull
	case id.compare(v.last) <= 0:
		return id, &errSmallID
	}
	return id, nil
}

// xtrim is XTRIM key trimming.
func xtrim(c *call) reply {
	if word := strings.ToUpper(c.args[2]); word != "MAXLEN" && word != "MINID" {
		return errSyntax
	}
	trim, rest, fault := trimmed(c.args[2:])
	if fault != nil {
		return *fault
	}
	if len(rest) > 0 {
		return errSyntax
	}
	v, fault := change[*stream](c.s, c.args[1])
	if fault != nil {
		return *fault
	}
	if v == nil {
		return number(0)
	}
	n := trim.apply(v)
	c.changed = n > 0
	return number(int64(n))
}

func xdel(c *call) reply {
	v, fault := change[*stream](c.s, c.args[1])
	if fault != nil {
		return *fault
	}
	if v == nil {
		return number(0)
	}
	ids := make([]streamID, len(c.args)-2)
	for i, s := range c.args[2:] {
		if ids[i], fault = parseID(s, 0); fault != nil {
			return *fault
		}
	}
	n := 0
	for _, id := range ids {
		if v.remove(id) {
			n++
		}
	}
	c.changed = n > 0
	return number(int64(n))
}

// xsetid is XSETID key id [ENTRIESADDED n] [MAXDELETEDID id].
func xsetid(c *call) reply {
	id, fault := parseID(c.args[2], 0)
	if fault != nil {
		return *fault
	}
	added, deleted := int64(-1), (*streamID)(nil)
	rest := c.args[3:]
	for ; len(rest) > 1; rest = rest[2:] {
		switch strings.ToUpper(rest[0]) {
		case "ENTRIESADDED":
			n, whole := integer(rest[1])
			if !whole {
				return errNotInteger
			}
			if n < 0 {
				return functions.Error("ERR entries_added must be positive")
			}
			added = n
		case "MAXDELETEDID":
			d, fault := parseID(rest[1], 0)
			if fault != nil {
				return *fault
			}
			if id.compare(d) < 0 {
				return functions.Error(
					"ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id")
			}
			deleted = &d
		default:
			return errSyntax
		}
	}
	if len(rest) > 0 {
		return errSyntax
	}
	v, fault := change[*stream](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case v == nil:
		return errNoKey
	case id.compare(v.deleted) < 0 && deleted == nil:
		return functions.Error("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id")
	case len(v.entries) > 0 && id.compare(v.entries[len(v.entries)-1].id) < 0:
		return functions.Error("ERR The ID specified in XSETID is smaller than the target stream top item")
	case len(v.entries) > 0 && added >= 0 && int(added) < len(v.entries):
		return functions.Error("ERR The entries_added specified in XSETID is smaller than the target stream length")
	}
	if v.last = id; added >= 0 {
		v.added = uint64(added)
	}
	if deleted != nil {
		v.deleted = *deleted
	}
	c.changed = true
	return ok
}
