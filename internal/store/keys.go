package store

import (
	"encoding/binary"
	"hash/crc32"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

func init() {
	for _, name := range []string{"DEL", "UNLINK"} {
		write(name, 2, 0, unlink)
	}
	for name, unit := range map[string]string{"EXPIRE": "EX", "PEXPIRE": "PX", "PEXPIREAT": "PXAT"} {
		write(name, 3, 3, func(c *call) reply { return expire(c, unit) })
	}
	write("FLUSHALL", 1, 2, flush)
	write("PERSIST", 2, 2, persist)
	write("RENAME", 3, 3, rename)
	write("COPY", 3, 0, copyCommand)
	write("RESTORE", 4, 0, restore)
	read("EXISTS", 2, 0, exists)
	read("TYPE", 2, 2, typeCommand)
	read("TTL", 2, 2, func(c *call) reply { return ttl(c, c.s.ms, 1000) })
	read("PTTL", 2, 2, func(c *call) reply { return ttl(c, c.s.ms, 1) })
	read("PEXPIRETIME", 2, 2, func(c *call) reply { return ttl(c, 0, 1) })
	read("KEYS", 2, 2, keysCommand)
	read("SCAN", 2, 0, scanKeys)
	read("DBSIZE", 1, 1, func(c *call) reply { return number(int64(c.s.keys.count)) })
	read("TIME", 1, 1, timeCommand)
	read("DUMP", 2, 2, dump)
}

func unlink(c *call) reply {
	n := int64(0)
	for _, key := range c.args[1:] {
		if c.s.drop(key) {
			n++
		}
	}
	c.changed = n > 0
	return number(n)
}

func flush(c *call) reply {
	if len(c.args) == 2 && !strings.EqualFold(c.args[1], "SYNC") && !strings.EqualFold(c.args[1], "ASYNC") {
		return errSyntax
	}
	for i := range c.s.keys.buckets {
		for key := range c.s.keys.buckets[i] {
			c.s.forget(key)
		}
		c.s.keys.buckets[i] = nil
	}
	c.changed = true
	return ok
}

func exists(c *call) reply {
	n := int64(0)
	for _, key := range c.args[1:] {
		if c.s.find(key) != nil {
			n++
		}
	}
	return number(n)
}

func typeCommand(c *call) reply {
	kind := "none"
	if e := c.s.find(c.args[1]); e != nil {
		kind = e.value.kind()
	}
	return reply{Kind: functions.KindStatus, Text: kind}
}

// expire is EXPIRE and its kin. unit is that of [Store.moment]. Its effect is a PEXPIREAT, or an UNLINK when the time
// has come already.
func expire(c *call, unit string) reply {
	n, whole := integer(c.args[2])
	if !whole {
		return errNotInteger
	}
	when, fits := c.s.moment(n, unit)
	if !fits {
		return functions.Error("ERR invalid expire time in '" + strings.ToLower(c.args[0]) + "' command")
	}
	key := c.args[1]
	e := c.s.edit(key)
	if e == nil {
		return number(0)
	}
	c.changed = true
	if when <= c.s.ms && !c.s.reading() {
		c.s.forget(key)
		c.effect = []string{"UNLINK", key}
		return number(1)
	}
	c.s.until(key, e, when)
	c.effect = []string{"PEXPIREAT", key, itoa(when)}
	return number(1)
}

func persist(c *call) reply {
	e := c.s.edit(c.args[1])
	if e == nil || e.expires == 0 {
		return number(0)
	}
	c.s.until(c.args[1], e, 0)
	c.changed = true
	return number(1)
}

// ttl is how far the time of a key is from another, in some unit.
func ttl(c *call, from, unit int64) reply {
	switch e := c.s.find(c.args[1]); {
	case e == nil:
		return number(-2)
	case e.expires == 0:
		return number(-1)
	default:
		return number((e.expires - from + unit/2) / unit)
	}
}

func rename(c *call) reply {
	from, to := c.args[1], c.args[2]
	e := c.s.find(from)
	switch {
	case e == nil:
		return errNoKey
	case from == to:
		return ok
	}
	v, when := e.value, e.expires
	c.s.forget(from)
	c.s.until(to, c.s.put(to, v), when)
	c.changed = true
	return ok
}

// copyCommand is COPY from to [REPLACE].
func copyCommand(c *call) reply {
	replace := len(c.args) > 3
	for _, word := range c.args[3:] {
		if !strings.EqualFold(word, "REPLACE") {
			return errSyntax
		}
	}
	from, to := c.args[1], c.args[2]
	if from == to {
		return functions.Error("ERR source and destination objects are the same")
	}
	e := c.s.find(from)
	if e == nil || !replace && c.s.find(to) != nil {
		return number(0)
	}
	c.s.until(to, c.s.put(to, e.value.clone()), e.expires)
	c.changed = true
	return number(1)
}

func keysCommand(c *call) reply {
	items, g := c.items(0), newGlob(c.args[1])
	for key := range c.s.all {
		if g.matches(key) {
			items = append(items, text(key))
		}
	}
	return list(items)
}

// scanKeys is SCAN. The cursor is the next bucket: a key never changes its own, so one that is there throughout is
// found.
func scanKeys(c *call) reply {
	q, fault := newScan(c.args[1])
	if fault == nil {
		fault = q.options(c.args[2:], true)
	}
	if fault != nil {
		return *fault
	}
	items, seen := c.items(0), 0
	for ; q.cursor < buckets; q.cursor++ {
		if seen >= q.count {
			return page(q.cursor, items)
		}
		for key, e := range c.s.keys.buckets[q.cursor] {
			seen++
			if !c.s.dead(e) && q.takes(key) && (q.kind == "" || q.kind == e.value.kind()) {
				items = append(items, text(key))
			}
		}
	}
	return page(0, items)
}

func timeCommand(c *call) reply {
	us := c.s.now.UnixMicro()
	return c.texts([]string{itoa(us / 1e6), itoa(us % 1e6)})
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// dump is DUMP. Its form is our own: the commands that build the value, and a checksum.
func dump(c *call) reply {
	e := c.s.find(c.args[1])
	if e == nil {
		return null
	}
	var all []byte
	e.value.dump("", func(args ...string) { all = AppendCommand(all, args...) })
	all = binary.LittleEndian.AppendUint32(all, crc32.Checksum(all, castagnoli))
	return text(string(all))
}

// restore is RESTORE key ttl dump [REPLACE] [ABSTTL]. Its effect has an absolute time.
func restore(c *call) reply {
	key, replace, absolute := c.args[1], false, false
	for args := c.args[4:]; len(args) > 0; args = args[1:] {
		switch strings.ToUpper(args[0]) {
		case "REPLACE":
			replace = true
		case "ABSTTL":
			absolute = true
		default:
			return errSyntax
		}
	}
	if c.s.find(key) != nil && !replace {
		return functions.Error("BUSYKEY Target key name already exists.")
	}
	when, whole := integer(c.args[2])
	switch {
	case !whole:
		return errNotInteger
	case when < 0:
		return functions.Error("ERR Invalid TTL value, must be >= 0")
	case when > 0 && !absolute:
		if when, whole = plus(when, c.s.ms); !whole {
			return functions.Error("ERR Invalid TTL value, must be >= 0")
		}
	}
	text, sound := unsealed(c.args[3])
	if !sound {
		return functions.Error("ERR DUMP payload version or checksum are wrong")
	}
	c.s.drop(key)
	c.changed = true
	c.effect = []string{"RESTORE", key, itoa(when), c.args[3], "REPLACE", "ABSTTL"}
	if !c.s.build(key, text) {
		c.s.forget(key)
		c.effect = []string{"UNLINK", key}
		return functions.Error("ERR Bad data format")
	}
	if when != 0 && when <= c.s.ms && !c.s.reading() {
		c.s.forget(key)
		c.effect = []string{"UNLINK", key}
		return ok
	}
	c.s.until(key, c.s.find(key), when)
	return ok
}

// unsealed is what a dump has before its checksum.
func unsealed(dump string) (text string, sound bool) {
	n := len(dump) - crc32.Size
	if n <= 0 {
		return "", false
	}
	text = dump[:n]
	return text, binary.LittleEndian.Uint32([]byte(dump[n:])) == crc32.Checksum([]byte(text), castagnoli)
}

// build carries out the commands of a dump under a key, and reports whether they make it.
func (s *Store) build(key, dump string) bool {
	r := NewReader(strings.NewReader(dump))
	for {
		args, err := r.Command(nil)
		if err != nil {
			return r.Offset() == int64(len(dump)) && s.find(key) != nil
		}
		if len(args) < 2 || args[1] != "" {
			return false
		}
		args[1] = key
		c := lookup(args[0])
		if c == nil || !c.writes || !c.takes(len(args)) {
			return false
		}
		if reply := c.run(&call{s: s, args: args}); reply.Kind == functions.KindError {
			return false
		}
	}
}
