package store

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

// A real Redis and the store answer random commands in the same way and hold the same. What the store tells the log
// builds the same again, and so does what it exports. FLOWFABRIC_SOAK says how many commands; make soak sends a
// million.
func TestAnswersAreThoseOfRedis(t *testing.T) {
	total, seed := 20_000, int64(52)
	if n, err := strconv.Atoi(os.Getenv("FLOWFABRIC_SOAK")); err == nil {
		total, seed = n, time.Now().UnixNano()
	}
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewSource(seed))
	d := &duel{t: t, r: r, redis: dialRedis(t), ours: New(nil), again: New(nil)}
	d.again.log = &log{reading: true}
	const together = 500
	for sent := 0; sent < total; sent += together {
		d.rounds = d.rounds[:0]
		for range together {
			d.fight(shapes[r.Intn(len(shapes))](r))
		}
		d.judge()
		if r.Intn(5) == 0 {
			d.compareContent()
		}
	}
	d.compareContent()
}

// duel compares the store with a Redis.
type duel struct {
	t      *testing.T
	r      *rand.Rand
	redis  *peer
	ours   *Store
	again  *Store // what the effects of ours build
	rounds []round
	clones []frozen
}

// round is a command, what Redis is asked for it, and how its answer is held against ours.
type round struct {
	args, asked []string
	answer      reply
	same        func(ours, theirs reply) bool
}

// frozen is a clone, and what was in it when it was made.
type frozen struct {
	value value
	was   []string
}

// run runs a command on the store, and its effects on the other one.
func (d *duel) run(args []string) reply {
	defer d.lock()()
	return deep(d.ours.Do(args))
}

// lock begins a call. Its end repeats what the call changed, keys that it found expired included.
func (d *duel) lock() (unlock func()) {
	d.ours.Lock()
	return func() {
		d.repeat(d.ours.effects.text)
		d.ours.Unlock()
	}
}

func (d *duel) repeat(effects []byte) {
	for r := NewReader(bytes.NewReader(effects)); ; {
		args, err := r.Command(nil)
		if err != nil {
			return
		}
		d.again.Lock()
		if got := d.again.Do(args); got.Kind == functions.KindError {
			d.t.Fatalf("the effect %.200q: %q", args, got.Text)
		}
		d.again.Unlock()
	}
}

// deep copies a reply, whose list is used again.
func deep(r reply) reply {
	r.List = slices.Clone(r.List)
	for i := range r.List {
		r.List[i] = deep(r.List[i])
	}
	return r
}

func (d *duel) fight(args []string) {
	if d.r.Intn(100) == 0 {
		d.freeze()
	}
	name := strings.ToUpper(args[0])
	if strings.Contains(strings.ToUpper(strings.Join(args, " ")), "LEX") && d.mixed(args) {
		return // Redis does not say what such a range is
	}
	if at := cursorAt(name); at > 0 && at < len(args) {
		args[at] = oneOf(d.r, "0", "0", "0", "x") // Redis reads cursors more freely, and others of its own only
	}
	f := round{args: args, asked: args, same: equal}
	f.answer = d.run(slices.Clone(args))
	bad := f.answer.Kind == functions.KindError
	switch {
	case bad && f.answer.Text == errNegative.Text:
		return
	case bad && len(args) > lookup(name).least && !lookup(name).takes(len(args)):
		return // Redis may have an option there
	case bad:
	case name == "SMEMBERS" || name == "SINTER" || name == "KEYS" || name == "HKEYS" || name == "HVALS":
		f.same = func(ours, theirs reply) bool { return equal(ordered(ours, 1), ordered(theirs, 1)) }
	case name == "HGETALL":
		f.same = func(ours, theirs reply) bool { return equal(ordered(ours, 2), ordered(theirs, 2)) }
	case name == "DBSIZE": // Redis counts keys whose time has come until it finds them
		f.asked = []string{"KEYS", "*"}
		f.same = func(ours, theirs reply) bool { return ours.Int == int64(len(theirs.List)) }
	case name == "TTL" || name == "PTTL" || name == "PEXPIRETIME":
		f.same = near
	case name == "HRANDFIELD":
		f.asked, f.same = []string{"HGETALL", args[1]}, drawn(args)
	case strings.HasSuffix(name, "SCAN"):
		f.asked, f.same = d.pages(name, args, &f.answer)
	}
	d.rounds = append(d.rounds, f)
}

// mixed reports whether a command names a sorted set whose members have different scores.
func (d *duel) mixed(args []string) bool {
	defer d.lock()()
	for _, key := range args[1:] {
		z, fault := get[*zset](d.ours, key)
		if fault == nil && z != nil && z.at(0).score != z.at(z.len()-1).score {
			return true
		}
	}
	return false
}

// drawn is how the answer of HRANDFIELD is checked.
func drawn(args []string) (same func(ours, theirs reply) bool) {
	return func(ours, theirs reply) bool {
		all, step := map[string]string{}, len(args)-2 // 1: fields, 2: also values
		for i := 0; i < len(theirs.List); i += 2 {
			all[theirs.List[i].Text] = theirs.List[i+1].Text
		}
		if step == 0 {
			_, there := all[ours.Text]
			return there == (ours.Kind == functions.KindBulk) && there == (len(all) > 0)
		}
		seen := map[string]bool{}
		for i := 0; i < len(ours.List); i += step {
			s, there := all[ours.List[i].Text]
			if !there || step == 2 && s != ours.List[i+1].Text {
				return false
			}
			seen[ours.List[i].Text] = true
		}
		n, _ := strconv.Atoi(args[2])
		return len(seen) == min(n, len(all)) && len(ours.List) == len(seen)*step
	}
}

// cursorAt is where the cursor of a command is, 0 if it has none.
func cursorAt(name string) int {
	switch {
	case name == "SCAN":
		return 1
	case strings.HasSuffix(name, "SCAN"):
		return 2
	default:
		return 0
	}
}

// pages reads all pages and asks Redis for everything at once.
func (d *duel) pages(name string, args []string, answer *reply) (asked []string, same func(ours, theirs reply) bool) {
	at := cursorAt(name)
	var all []reply
	page := *answer
	for range 10_000 {
		all = append(all, page.List[1].List...)
		if page.List[0].Text == "0" {
			break
		}
		next := slices.Clone(args)
		next[at] = page.List[0].Text
		page = d.run(next)
	}
	if page.List[0].Text != "0" {
		d.t.Fatalf("%q does not end", args)
	}
	step := 1
	if name == "HSCAN" {
		step = 2
	}
	*answer = ordered(list(all), step)
	asked = append(slices.Clone(args), "COUNT", "1000000") // Redis has all in one page
	return asked, func(ours, theirs reply) bool {
		return len(theirs.List) == 2 && theirs.List[0].Text == "0" && equal(ours, ordered(theirs.List[1], step))
	}
}

// ordered is a list in some order of its rows.
func ordered(r reply, step int) reply {
	rows := slices.Collect(slices.Chunk(r.List, step))
	slices.SortFunc(rows, func(a, b []reply) int { return strings.Compare(a[0].Text, b[0].Text) })
	r.List = slices.Concat(rows...)
	return r
}

func shown(r reply) string { return fmt.Sprintf("%+v", r) }

func equal(a, b reply) bool {
	return a.Kind == b.Kind && a.Int == b.Int && a.Text == b.Text && slices.EqualFunc(a.List, b.List, equal)
}

// near is equal for two clocks.
func near(a, b reply) bool {
	d := a.Int - b.Int
	return a.Kind == b.Kind && (a.Int < 0) == (b.Int < 0) && -20_000 < d && d < 20_000
}

// judge asks Redis what the store was asked.
func (d *duel) judge() {
	d.t.Helper()
	all := make([][]string, len(d.rounds))
	for i := range all {
		all[i] = d.rounds[i].asked
	}
	for i, theirs := range d.redis.do(all) {
		if f := d.rounds[i]; !f.same(f.answer, theirs) {
			d.t.Fatalf("%.200q: the store answers\n%.500s,\nRedis\n%.500s", f.args, shown(f.answer), shown(theirs))
		}
	}
}

// readAll is how a value of each type is read.
var readAll = map[string][]string{"string": {"GET", ""}, "hash": {"HGETALL", ""}, "list": {"LRANGE", "", "0", "-1"},
	"set": {"SMEMBERS", ""}, "zset": {"ZRANGE", "", "0", "-1", "WITHSCORES"}, "stream": {"XRANGE", "", "-", "+"}}

func (d *duel) compareContent() {
	d.t.Helper()
	d.rounds = d.rounds[:0]
	d.fight([]string{"KEYS", "*"})
	for _, key := range deep(d.rounds[0].answer).List {
		d.fight([]string{"TYPE", key.Text})
		read := slices.Clone(readAll[d.rounds[len(d.rounds)-1].answer.Text])
		read[1] = key.Text
		d.fight(read)
		d.fight([]string{"PEXPIRETIME", key.Text})
	}
	d.judge()

	d.ours.Lock()
	d.repeat(d.ours.effects.text)
	copied := New(nil)
	copied.log = &log{reading: true}
	d.ours.Export(func(args ...string) {
		if answer := copied.Do(args); answer.Kind == functions.KindError {
			d.t.Fatalf("%.200q: %q", args, answer.Text)
		}
	})
	have := content(d.ours)
	d.ours.Unlock()
	d.compare("what is exported", have, content(copied))
	d.compare("what the effects build", have, content(d.again))
	for _, f := range d.clones {
		if now := dumpedKey(f.value); !slices.Equal(now, f.was) {
			d.t.Fatalf("a clone has changed from\n%.500q to\n%.500q", f.was, now)
		}
	}
	d.clones = nil
}

func (d *duel) compare(what string, ours, others map[string][]string) {
	d.t.Helper()
	if maps.EqualFunc(ours, others, slices.Equal) {
		return
	}
	for key := range ours {
		if !slices.Equal(ours[key], others[key]) {
			d.t.Fatalf("%s: %q is\n%.500q instead of\n%.500q", what, key, others[key], ours[key])
		}
	}
	d.t.Fatalf("%s: more keys than there are: %q", what, slices.Collect(maps.Keys(others)))
}

// content is all that a store holds, in a form in which equal values are equal.
func content(s *Store) map[string][]string {
	all := map[string][]string{}
	for key, e := range s.all {
		all[key] = append(dumpedKey(e.value), itoa(e.expires))
	}
	return all
}

// dumped is what a value holds, in order if it has one.
func dumpedKey(v value) (all []string) {
	v.dump("", func(args ...string) { all = append(all, args[2:]...) })
	switch v := v.(type) {
	case *hash:
		rows := slices.Collect(slices.Chunk(all, 2))
		slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
		all = slices.Concat(rows...)
	case *members:
		slices.Sort(all)
	default:
		return append(all, v.kind())
	}
	return append(all, v.kind())
}

// freeze takes a clone of some key.
func (d *duel) freeze() {
	defer d.lock()()
	var all []*entry
	for _, e := range d.ours.all {
		all = append(all, e)
	}
	if len(all) == 0 {
		return
	}
	e := all[d.r.Intn(len(all))]
	c := e.value.clone()
	if d.r.Intn(2) == 0 { // the clone stays in the store, which must not change the value that is kept
		c, e.value = e.value, c
	}
	d.clones = append(d.clones, frozen{c, dumpedKey(c)})
}
