package conformance

import (
	"crypto/sha1"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// dump is everything a partition holds.
type dump struct {
	now     int64
	root    map[string]string
	hashes  map[string]map[string]string // by key without the root
	zsets   map[string]map[string]float64
	sets    map[string][]string
	texts   map[string]string
	lists   map[string][]string
	streams map[string][]rueidis.XRangeEntry
	expires map[string]bool // keys with a TTL
	strange []string        // keys of no known area, or of the wrong type
}

// areas gives the type of every key after the root; a trailing colon stands for a family.
var areas = map[string]string{
	":routes": "hash", ":routeids": "hash", ":routelog": "zset", ":ready": "set", ":delayed": "zset", ":alarms": "zset",
	":sessions": "zset", ":done": "zset", ":digests": "set",
	":q:": "zset", ":int:": "set", ":w:": "zset", ":s:": "hash", ":h:": "zset", ":l:": "list",
	":x:": "hash", ":i:": "string", ":t:": "hash", ":k:": "hash", ":a:": "hash", ":o:": "string", ":f:": "stream", ":fm:": "hash",
}

// area returns the family of a key (without the root) and its type, "" for a key that should not exist.
func area(rest string) (family, kind string) {
	if k, ok := areas[rest]; ok && !strings.HasSuffix(rest, ":") {
		return rest, k
	}
	if i := strings.IndexByte(strings.TrimPrefix(rest, ":"), ':'); i > 0 {
		return rest[:i+2], areas[rest[:i+2]]
	}
	return "", ""
}

// keys lists the partition's keys in order.
func (w *world) keys() []string {
	w.Helper()
	all, err := w.do("KEYS", string(w.k)+"*").AsStrSlice()
	w.no(err)
	slices.Sort(all)
	return all
}

// listing is a script that answers the server's time and every key of the partition with whether it has a TTL.
const listing = `
local t = redis.call('TIME')
local out = { tostring(t[1]), tostring(t[2]) }
local all = redis.call('KEYS', KEYS[1] .. '*')
for i = 1, #all do
  out[2 * i + 1] = all[i]
  out[2 * i + 2] = redis.call('PTTL', all[i]) >= 0 and '1' or '0'
end
return out`

// dump reads the partition in two round trips.
func (w *world) dump() *dump {
	w.Helper()
	d := &dump{root: map[string]string{}, hashes: map[string]map[string]string{}, zsets: map[string]map[string]float64{},
		sets: map[string][]string{}, texts: map[string]string{}, lists: map[string][]string{},
		streams: map[string][]rueidis.XRangeEntry{}, expires: map[string]bool{}}
	list, err := w.raw.Do(w.ctx, w.raw.B().Eval().Script(listing).Numkeys(1).Key(string(w.k)).Build()).AsStrSlice()
	w.no(err)
	all := make([]string, 0, len(list)/2)
	for i := 2; i < len(list); i += 2 {
		all = append(all, list[i])
		if list[i+1] == "1" {
			d.expires[list[i][len(w.k):]] = true
		}
	}
	b := w.raw.B
	commands := make(rueidis.Commands, 0, len(all))
	for _, key := range all {
		_, kind := area(key[len(w.k):])
		if key == string(w.k) {
			kind = "hash"
		}
		switch kind {
		case "hash":
			commands = append(commands, b().Hgetall().Key(key).Build())
		case "zset":
			commands = append(commands, b().Zrange().Key(key).Min("0").Max("-1").Withscores().Build())
		case "set":
			commands = append(commands, b().Smembers().Key(key).Build())
		case "list":
			commands = append(commands, b().Lrange().Key(key).Start(0).Stop(-1).Build())
		case "stream":
			commands = append(commands, b().Xrange().Key(key).Start("-").End("+").Build())
		default:
			commands = append(commands, b().Get().Key(key).Build())
		}
	}
	replies := w.raw.DoMulti(w.ctx, commands...)
	for i, key := range all {
		rest, r := key[len(w.k):], replies[i]
		_, kind := area(rest)
		var err error
		switch {
		case rest == "":
			d.root, err = r.AsStrMap()
		case kind == "hash":
			d.hashes[rest], err = r.AsStrMap()
		case kind == "zset":
			d.zsets[rest], err = zset(r)
		case kind == "set":
			d.sets[rest], err = r.AsStrSlice()
			slices.Sort(d.sets[rest])
		case kind == "list":
			d.lists[rest], err = r.AsStrSlice()
		case kind == "stream":
			d.streams[rest], err = r.AsXRange()
		case kind == "string":
			d.texts[rest], err = r.ToString()
		default:
			d.strange = append(d.strange, rest)
		}
		if err != nil && !rueidis.IsRedisNil(err) { // nil: expired between the two looks
			d.strange = append(d.strange, rest+": "+err.Error())
		}
	}
	s, _ := strconv.ParseInt(list[0], 10, 64)
	us, _ := strconv.ParseInt(list[1], 10, 64)
	offset, _ := strconv.ParseInt(d.root["clock_offset"], 10, 64)
	d.now = s*1000 + us/1000 + offset
	return d
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

// text is the whole content, one line a fact, in order; two equal texts are two equal partitions. without leaves
// out facts by their prefix.
func (d *dump) text(without ...string) string {
	var lines []string
	add := func(parts ...string) {
		line := strings.Join(parts, " ")
		if !slices.ContainsFunc(without, func(p string) bool { return strings.HasPrefix(line, p) }) {
			lines = append(lines, line)
		}
	}
	for f, v := range d.root {
		add("root", f, "=", show(v))
	}
	for k, h := range d.hashes {
		for f, v := range h {
			add(k, show(f), "=", show(v))
		}
	}
	for k, z := range d.zsets {
		for m, s := range z {
			add(k, show(m), "@", strconv.FormatFloat(s, 'f', -1, 64))
		}
	}
	for k, s := range d.sets {
		add(k, strings.Join(s, " "))
	}
	for k, v := range d.texts {
		add(k, show(v))
	}
	for k, l := range d.lists {
		add(k, strings.Join(l, "; "))
	}
	for k, s := range d.streams {
		for _, x := range s {
			for f, v := range x.FieldValues {
				add(k, x.ID, f, "=", show(v))
			}
		}
	}
	for _, k := range d.strange {
		add("strange", k)
	}
	for k := range d.expires {
		add("expires", k)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// show is a value in one line; a long one stands as its length and hash.
func show(v string) string {
	if len(v) > 200 {
		return fmt.Sprintf("%d bytes %x", len(v), sha1.Sum([]byte(v)))
	}
	return strconv.Quote(v)
}

// digest is the text of the partition now.
func (w *world) digest(without ...string) string {
	w.Helper()
	return w.dump().text(without...)
}

// difference shows the lines that two texts do not share.
func difference(a, b string) string {
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	var out strings.Builder
	for _, l := range left {
		if !slices.Contains(right, l) {
			fmt.Fprintf(&out, "- %.300s\n", l)
		}
	}
	for _, r := range right {
		if !slices.Contains(left, r) {
			fmt.Fprintf(&out, "+ %.300s\n", r)
		}
	}
	return out.String()
}

// fingerprint is a script that hashes all a partition holds on the server: the fast way to see that nothing changed.
const fingerprint = `
local out, all = {}, redis.call('KEYS', KEYS[1] .. '*')
table.sort(all)
local function add(list)
  for i = 1, #list do
    if type(list[i]) == 'table' then add(list[i]) else out[#out + 1] = tostring(list[i]) end
  end
  out[#out + 1] = '.'
end
for _, key in ipairs(all) do
  local kind = redis.call('TYPE', key).ok
  out[#out + 1] = key .. ' ' .. kind .. (redis.call('PTTL', key) >= 0 and ' expires' or '')
  if kind == 'hash' then
    local list, pairs = redis.call('HGETALL', key), {}
    for i = 1, #list, 2 do pairs[#pairs + 1] = list[i] .. '=' .. list[i + 1] end
    table.sort(pairs)
    add(pairs)
  elseif kind == 'set' then
    local list = redis.call('SMEMBERS', key)
    table.sort(list)
    add(list)
  elseif kind == 'zset' then
    add(redis.call('ZRANGE', key, 0, -1, 'WITHSCORES'))
  elseif kind == 'list' then
    add(redis.call('LRANGE', key, 0, -1))
  elseif kind == 'stream' then
    add(redis.call('XRANGE', key, '-', '+'))
  else
    add({ redis.call('GET', key) })
  end
end
return redis.sha1hex(table.concat(out, '\n'))`

// fingerprint is the hash of the partition now.
func (w *world) fingerprint() string {
	w.Helper()
	if !w.srv.Features.Functions {
		return w.digest() // Lua is the slow part there
	}
	h, err := w.raw.Do(w.ctx, w.raw.B().Eval().Script(fingerprint).Numkeys(1).Key(string(w.k)).Build()).ToString()
	w.no(err)
	return h
}
