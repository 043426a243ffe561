package store

import (
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

func init() {
	read("XLEN", 2, 2, reads(number(0), func(_ *call, v *stream) reply { return number(int64(len(v.entries))) }))
	read("XRANGE", 4, 6, func(c *call) reply { return xrange(c, c.args[2], c.args[3], false) })
	read("XREVRANGE", 4, 6, func(c *call) reply { return xrange(c, c.args[3], c.args[2], true) })
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
		return id, &errStartID
	case end && id == streamID{}:
		return id, &errEndID
	case end:
		return id.previous(), nil
	}
	return id.next(), nil
}

var (
	errStartID = functions.Error("ERR invalid start ID for the interval")
	errEndID   = functions.Error("ERR invalid end ID for the interval")
)

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
