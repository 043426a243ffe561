package store

import (
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

func init() {
	read("XLEN", 2, 2, xlen)
	read("XRANGE", 4, 6, func(c *call) reply { return xrange(c, c.args[2], c.args[3], false) })
	read("XREVRANGE", 4, 6, func(c *call) reply { return xrange(c, c.args[3], c.args[2], true) })
	read("XREAD", 4, 0, xread)
}

func xlen(c *call) reply {
	v, fault := get[*stream](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case v == nil:
		return number(0)
	}
	return number(int64(len(v.entries)))
}

// bound reads an end of a range: an id, "(id", "-" or "+".
func bound(s string, end bool) (id streamID, fault *reply) {
	switch s {
	case "-":
		return streamID{}, nil
	case "+":
		return lastStreamID, nil
	}
	s, open := strings.CutPrefix(s, "(")
	seq := uint64(0)
	if end {
		seq = lastStreamID.seq
	}
	if id, fault = parseID(s, seq); fault != nil || !open {
		return id, fault
	}
	switch {
	case !end && id == lastStreamID:
		r := functions.Error("ERR invalid start ID for the interval")
		return id, &r
	case end && id == streamID{}:
		r := functions.Error("ERR invalid end ID for the interval")
		return id, &r
	case end:
		return id.previous(), nil
	}
	return id.next(), nil
}

// xrange is XRANGE and XREVRANGE.
func xrange(c *call, from, to string, back bool) reply {
	first, fault := bound(from, false)
	if fault != nil {
		return *fault
	}
	last, fault := bound(to, true)
	if fault != nil {
		return *fault
	}
	count := int64(-1)
	if len(c.args) > 4 {
		if len(c.args) == 5 || !strings.EqualFold(c.args[4], "COUNT") {
			return errSyntax
		}
		n, whole := integer(c.args[5])
		if !whole {
			return errNotInteger
		}
		count = max(n, 0)
	}
	v, fault := get[*stream](c.s, c.args[1])
	switch {
	case fault != nil:
		return *fault
	case v == nil:
		return list(nil)
	case count == 0:
		return null
	}
	found := v.between(first, last)
	n := len(found)
	if count >= 0 {
		n = int(min(count, int64(n)))
	}
	if back {
		found = found[len(found)-n:]
	} else {
		found = found[:n]
	}
	items := c.items(n)
	for i := range found {
		items = append(items, found[i].reply())
	}
	if back {
		slices.Reverse(items)
	}
	return list(items)
}

// between are the entries from first to last.
func (v *stream) between(first, last streamID) []streamEntry {
	begin, end := v.at(first), len(v.entries)
	if last != lastStreamID {
		end = v.at(last.next())
	}
	return v.entries[begin:max(begin, end)]
}

func (e *streamEntry) reply() reply {
	var fields []reply
	for p := e.fields; p != ""; {
		var s string
		s, p = p.next()
		fields = append(fields, text(s))
	}
	return list([]reply{text(e.id.String()), list(fields)})
}

// xread is XREAD [COUNT n] STREAMS key … id …. It does not wait.
func xread(c *call) reply {
	count, rest := 0, c.args[1:]
	for !strings.EqualFold(rest[0], "STREAMS") {
		switch {
		case len(rest) < 3:
			return errSyntax
		case strings.EqualFold(rest[0], "COUNT"):
			n, whole := integer(rest[1])
			if !whole {
				return errNotInteger
			}
			count = int(max(n, 0))
		case strings.EqualFold(rest[0], "BLOCK"):
			return functions.Error("ERR the embedded server does not wait in XREAD")
		default:
			return errSyntax
		}
		rest = rest[2:]
	}
	if rest = rest[1:]; len(rest) == 0 || len(rest)%2 != 0 {
		return functions.Error("ERR Unbalanced 'xread' list of streams: " +
			"for each stream key an ID, '+', or '$' must be specified.")
	}
	var items []reply
	for i, key := range rest[:len(rest)/2] {
		v, fault := get[*stream](c.s, key)
		if fault != nil {
			return *fault
		}
		after := lastStreamID
		if s := rest[len(rest)/2+i]; s != "$" {
			if after, fault = parseID(s, 0); fault != nil {
				return *fault
			}
		}
		if v == nil || after == lastStreamID {
			continue
		}
		found := v.between(after.next(), lastStreamID)
		if count > 0 {
			found = found[:min(count, len(found))]
		}
		entries := make([]reply, len(found))
		for i := range found {
			entries[i] = found[i].reply()
		}
		if len(entries) > 0 {
			items = append(items, list([]reply{text(key), list(entries)}))
		}
	}
	if items == nil {
		return null
	}
	return list(items)
}
