package invariant

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/record"
)

// pipeline bounds the commands sent at once.
const pipeline = 1000

// Dump is everything a partition held. Keys stand without the partition root: ":x:<execution>".
type Dump struct {
	Partition  uint16
	Now        int64 // the partition's clock when it was read, ms, test offset included
	Root       map[string]string
	Hashes     map[string]map[string]string
	ZSets      map[string]map[string]float64
	Sets       map[string][]string // sorted
	Texts      map[string]string
	Lists      map[string][]string
	Waitpoints map[string]map[string]string // of executions, by id
	Streams    map[string][]rueidis.XRangeEntry
	Outbox     []rueidis.XRangeSlice // the outbox, whose entries may have several notices of a kind
	Expires    map[string]bool       // keys with a TTL
	Strange    []string              // keys of no known area, or of the wrong type
	Stepped    bool                  // the partition's clock was set back: what happened later may bear an earlier time

	inside map[string]record.Waits // what executions wait for, where signals are part of it
	folded map[string]bool         // logs that are made of those
	leads  map[string]int          // how many dependants a member says that it has
	aside  map[string]int          // and how many of them stand aside

	root  string            // its key
	areas map[string]string // what is known there
}

// areas gives the type of every key after the root; a trailing colon stands for a family.
var areas = map[string]string{
	"": "hash", ":routes": "hash", ":routeids": "hash", ":routelog": "zset", ":ready": "set", ":delayed": "zset",
	":alarms": "zset", ":sessions": "zset", ":done": "zset", ":unsuccessful": "zset", ":digests": "set",
	":q:": "zset", ":sub:": "set", ":w:": "zset", ":s:": "hash", ":h:": "zset", ":l:": "list",
	":x:": "record", ":i:": "string", ":t:": "hash", ":k:": "hash", ":kl:": "hash", ":a:": "hash", ":o:": "string",
	":f:": "stream", ":fm:": "hash", ":e:": "list", ":z:": "string", ":y:": "string",
	":pending": "zset", ":kids": "hash", ":open:": "zset", ":u:": "waits", ":us:": "hash", ":um:": "hash",
	":mb:": "list", ":mk:": "zset", ":g:": "list", ":gd:": "hash",
	":fd:": "stream", ":fl:": "stream", ":fs:": "hash", ":fe:": "stream", ":fk:": "hash", ":lg:": "stream",
	":parked": "zset", ":routeuse": "hash", ":lanes": "hash", ":workers": "zset", ":wk:": "hash", ":sm:": "hash",
	":cr:": "zset", ":ct:": "zset", ":cv:": "set",
	":versions": "zset",
	":triggers": "zset", ":tr:": "hash", ":td:": "hash", ":pb:": "string",
	":expected": "zset", ":ew:": "hash", ":et:": "set",
	":tm:": "hash", ":tk:": "hash", ":tn:": "string",
	":schedules": "zset", ":sc:": "hash", ":feed": "stream", ":trail": "stream",
	":scnames": "zset", ":gready": "set", ":closed": "zset", ":closings": "hash", ":attached": "hash",
	":outbox": "stream", ":paused": "zset", ":shares": "hash", ":weights": "hash", ":makers": "hash",
	":ring:": "zset", ":gring:": "zset",
	":turns:": "zset", ":ins:": "string", ":refused": "zset", ":refusals": "hash", ":blocked": "zset", ":flows": "zset",
	":flowdue": "zset", ":backlog": "zset", ":work": "hash", ":fw:": "hash", ":fx:": "zset", ":fu:": "list",
	":ds:": "hash", ":dl:": "stream", ":dp:": "hash", ":df:": "set", ":dsdue": "zset",
	":ft:": "hash", ":fz:": "string", ":fo:": "list", ":fi:": "hash", ":fc:": "hash", ":aw:": "hash", ":m:": "links",
}

// area returns the family of a key (without the root) and its type, "" for a key that should not exist.
func area(rest string) (family, kind string) { return areaOf(rest, areas) }

func areaOf(rest string, areas map[string]string) (family, kind string) {
	if k, ok := areas[rest]; ok && !strings.HasSuffix(rest, ":") {
		return rest, k
	}
	if i := strings.IndexByte(strings.TrimPrefix(rest, ":"), ':'); i > 0 {
		return rest[:i+2], areas[rest[:i+2]]
	}
	return "", ""
}

// listing is a script that answers every key of the partition with whether it has a TTL.
const listing = `
local out, all = {}, redis.call('KEYS', KEYS[1] .. '*')
for i = 1, #all do
  out[2 * i - 1] = all[i]
  out[2 * i] = redis.call('PTTL', all[i]) >= 0 and '1' or '0'
end
return out`

// clock is a script that answers the time of the server that holds the key.
const clock = `return redis.call('TIME')`

// Read reads one partition in two round trips (more where it holds over 1,000 keys). The first lists its keys with
// KEYS on the partition's own node, whose cost grows with all that node holds: some 100 ms for a million keys.
// For all partitions of a well-filled server use ReadAll.
func Read(ctx context.Context, client rueidis.Client, partition uint16) (*Dump, error) {
	root := keys.Root(partition)
	list, err := client.Do(ctx, client.B().Eval().Script(listing).Numkeys(1).Key(root).Build()).AsStrSlice()
	if err != nil {
		return nil, fmt.Errorf("list partition %d: %w", partition, err)
	}
	d := empty(partition)
	rest := make([]string, 0, len(list)/2)
	var aside []string // executions whose cores an audit set aside, with all they have
	for i := 0; i+1 < len(list); i += 2 {
		if id, ok := strings.CutPrefix(list[i][len(root):], ":bad:x:"); ok {
			aside = append(aside, id)
		}
	}
	for i := 0; i+1 < len(list); i += 2 {
		key := list[i][len(root):]
		if strings.HasPrefix(key, ":bad:") ||
			slices.ContainsFunc(aside, func(id string) bool { return strings.Contains(key, id) }) {
			continue
		}
		rest = append(rest, key)
		if list[i+1] == "1" {
			d.Expires[key] = true
		}
	}
	return d, d.fill(ctx, client, rest)
}

func empty(partition uint16) *Dump {
	return &Dump{Partition: partition, root: keys.Root(partition), areas: areas, Root: map[string]string{},
		Hashes: map[string]map[string]string{}, ZSets: map[string]map[string]float64{}, Sets: map[string][]string{},
		Texts: map[string]string{}, Lists: map[string][]string{}, Waitpoints: map[string]map[string]string{},
		Streams: map[string][]rueidis.XRangeEntry{}, Expires: map[string]bool{},
		inside: map[string]record.Waits{}, folded: map[string]bool{}, leads: map[string]int{}, aside: map[string]int{}}
}

// fill reads the listed keys, and the clock with the last of them, so that nothing read is from after it.
func (d *Dump) fill(ctx context.Context, client rueidis.Client, rest []string) error {
	root := d.root
	var last rueidis.RedisResult
	for done := 0; done <= len(rest); done += pipeline {
		batch := rest[done:min(done+pipeline, len(rest))]
		commands := make(rueidis.Commands, 0, len(batch)+1)
		for _, key := range batch {
			_, kind := areaOf(key, d.areas)
			commands = append(commands, command(client.B(), kind, root+key))
		}
		commands = append(commands, client.B().Eval().Script(clock).Numkeys(1).Key(root).Build())
		replies := client.DoMulti(ctx, commands...)
		for i, key := range batch {
			if err := d.add(key, replies[i]); err != nil {
				return fmt.Errorf("read %s%s: %w", root, key, err)
			}
		}
		last = replies[len(batch)]
	}
	t, err := last.AsStrSlice()
	if err != nil {
		return fmt.Errorf("read the time of partition %d: %w", d.Partition, err)
	}
	s, _ := strconv.ParseInt(t[0], 10, 64)
	us, _ := strconv.ParseInt(t[1], 10, 64)
	offset, _ := strconv.ParseInt(d.Root["clock_offset"], 10, 64)
	d.Now = s*1000 + us/1000 + offset
	if pinned, err := strconv.ParseInt(d.Root["clock_pin"], 10, 64); err == nil {
		d.Now = pinned
	}
	d.unfold()
	slices.Sort(d.Strange)
	return nil
}

// command reads a whole key of a kind.
func command(b rueidis.Builder, kind, key string) rueidis.Completed {
	switch kind {
	case "hash":
		return b.Hgetall().Key(key).Build()
	case "zset":
		return b.Zrange().Key(key).Min("0").Max("-1").Withscores().Build()
	case "set":
		return b.Smembers().Key(key).Build()
	case "list":
		return b.Lrange().Key(key).Start(0).Stop(-1).Build()
	case "stream":
		return b.Xrange().Key(key).Start("-").End("+").Build()
	case "string", "record", "waits", "links":
		return b.Get().Key(key).Build()
	}
	return b.Type().Key(key).Build()
}

// add files one reply. A key that vanished since it was listed is left out; one of the wrong type is strange.
func (d *Dump) add(rest string, r rueidis.RedisResult) (err error) {
	switch _, kind := areaOf(rest, d.areas); {
	case rest == "":
		d.Root, err = r.AsStrMap()
	case kind == "hash":
		v, e := r.AsStrMap()
		err = file(d.Hashes, rest, v, len(v), e)
	case kind == "record":
		v, e := r.ToString()
		if err = e; err == nil {
			d.record(rest, v)
		}
	case kind == "waits":
		v, e := r.ToString()
		if err = e; err == nil {
			d.waits(rest, v)
		}
	case kind == "links":
		v, e := r.ToString()
		if err = e; err == nil {
			d.links(rest, v)
		}
	case kind == "zset":
		v, e := zset(r)
		err = file(d.ZSets, rest, v, len(v), e)
	case kind == "set":
		v, e := r.AsStrSlice()
		slices.Sort(v)
		err = file(d.Sets, rest, v, len(v), e)
	case kind == "list":
		v, e := r.AsStrSlice()
		err = file(d.Lists, rest, v, len(v), e)
	case rest == ":outbox":
		d.Outbox, err = r.AsXRangeSlices()
	case kind == "stream":
		v, e := r.AsXRangeSlices()
		err = file(d.Streams, rest, single(v), 1, e) // a stream may be empty
	case kind == "string":
		v, e := r.ToString()
		err = file(d.Texts, rest, v, 1, e) // and so may a string
	default:
		if err = r.Error(); err == nil {
			d.Strange = append(d.Strange, rest)
		}
	}
	if rueidis.IsRedisNil(err) {
		delete(d.Expires, rest)
		return nil
	}
	if refused, ok := rueidis.IsRedisErr(err); ok {
		d.Strange = append(d.Strange, rest+": "+refused.Error())
		return nil
	}
	return err
}

// record files an execution: its fields as a hash, and the input and result that it holds as if they had keys of
// their own, as larger ones have.
func (d *Dump) record(rest, text string) {
	v, err := record.Decode(text)
	if err != nil {
		d.Strange = append(d.Strange, rest+": "+err.Error())
		d.Hashes[rest] = map[string]string{"s": "?"}
		return
	}
	d.Hashes[rest] = v.Fields
	id := strings.TrimPrefix(rest, ":x:")
	if v.Input != "" {
		d.Texts[":i:"+id] = v.Input
	}
	if attempt := v.Attempt(); attempt > 0 && v.Result != "" {
		d.Texts[":o:"+id+":"+strconv.FormatUint(uint64(attempt), 10)] = v.Result
	}
}

// inboxInline is how many bytes the signals may have that are part of the waits of an execution. Evaluating them
// renames their effect, which adds a few bytes.
const inboxInline = 1024 + 100

// waits files what an execution waits for: the suspension as a hash, and the waitpoints.
func (d *Dump) waits(rest, text string) {
	w, id := record.DecodeWaits(text), strings.TrimPrefix(rest, ":u:")
	if len(w.Suspension)+len(w.Waitpoints) == 0 {
		d.Strange = append(d.Strange, rest+" holds no suspension and no waitpoint")
	}
	if len(w.Suspension) > 0 {
		d.Hashes[rest] = w.Suspension
	}
	if len(w.Waitpoints) > 0 {
		d.Waitpoints[id] = w.Waitpoints
	}
	if len(w.Signals) > 0 || len(w.Steps) > 0 || w.Suspension["ts"] != "" {
		d.inside[id] = w
	}
}

// unfold files the signals that executions have in their waits as if they had keys of their own, as more or larger
// ones have, and the steps that record waitpoints among the others.
func (d *Dump) unfold() {
	put := func(key, field, value string) {
		if d.Hashes[key] == nil {
			d.Hashes[key] = map[string]string{}
		}
		d.Hashes[key][field] = value
	}
	for id, w := range d.inside {
		u, size := w.Suspension, 0
		if text := u["ts"]; text != "" {
			put(":um:"+id, u["id"], text)
		}
		for waitpoint := range w.Steps {
			name, value, log, ok := w.Step(waitpoint)
			if _, twice := d.Hashes[":k:"+id][name]; !ok || twice {
				d.Strange = append(d.Strange, ":u:"+id+" has a step "+name+" of waitpoint "+waitpoint)
				continue
			}
			put(":k:"+id, name, value)
			put(":kl:"+id, name, log)
		}
		for _, s := range w.Signals {
			size += len(s.Text)
			g, ok := parseSignal(s.Text)
			log := ":g:" + id + ":" + g.waitpoint
			if !ok || len(d.Lists[log]) > 0 && !d.folded[log] {
				d.Strange = append(d.Strange, ":u:"+id+" holds a signal that does not belong there")
				continue
			}
			taken := g.effect == "appended_to_waitpoint" || g.effect == "resume_condition_satisfied"
			current := strings.Contains(","+u["wp"]+",", ","+g.waitpoint+",")
			switch {
			case taken && current && atoi(u["gm"]) > 0 && u["ts"] == "":
				put(":um:"+id, g.id, s.Text)
			case g.payload != "" && g.effect != "buffered_for_pending_waitpoint":
				d.Strange = append(d.Strange, ":u:"+id+" keeps the payload of signal "+g.id)
			}
			entry := s.Text
			if g.effect != "buffered_for_pending_waitpoint" {
				entry = strings.TrimSuffix(s.Text, g.payload)
			}
			d.Lists[log], d.folded[log] = append(d.Lists[log], entry), true
			put(":gd:"+id+":"+g.waitpoint, g.mark(), g.id+" "+g.effect+" "+s.Expiry)
		}
		if size > inboxInline {
			d.Strange = append(d.Strange, ":u:"+id+" holds too many bytes of signals")
		}
	}
}

// links files what a member depends on and who depends on it, as if all of it had keys of its own, as much of it has:
// the edges as a hash, the dependants as a list. The group is a text.
func (d *Dump) links(rest, text string) {
	l, err := record.DecodeLinks(text)
	if err != nil {
		d.Strange = append(d.Strange, rest+": "+err.Error())
		return
	}
	id := strings.TrimPrefix(rest, ":m:")
	d.Texts[rest] = l.Group
	if len(l.Edges) > 0 {
		d.Hashes[":fi:"+id] = l.Edges
	}
	if len(l.To) > 0 {
		d.Lists[":fo:"+id] = l.To
	}
	d.leads[id], d.aside[id] = l.Leads, l.Aside
}

// file keeps a value, unless nothing of it is left.
func file[T any](into map[string]T, rest string, value T, size int, err error) error {
	if err == nil && size == 0 {
		return rueidis.Nil
	}
	if err == nil {
		into[rest] = value
	}
	return err
}

func zset(r rueidis.RedisResult) (map[string]float64, error) {
	list, err := r.AsZScores()
	if err != nil {
		return nil, err
	}
	m := make(map[string]float64, len(list))
	for _, x := range list {
		m[x.Member] = x.Score
	}
	return m, nil
}
