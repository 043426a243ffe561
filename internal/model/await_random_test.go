package model_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// TestAwaiting lets executions of two partitions wait for each other, for children and for signals, while the outbox
// is delivered late, twice, in part or not at all. After every call each state and each mark is the one that follows;
// every end is told once; and whenever the outboxes are empty nobody waits for one that has ended, and each awaited
// execution knows exactly who waits, but for leftovers that a notice which comes late makes. 16 runs, or
// FLOWFABRIC_SOAK/10; FLOWFABRIC_SEED runs one.
func TestAwaiting(t *testing.T) {
	t.Parallel()
	s := redisOf(t, 2)
	did := map[string]int{}
	for seed := range seeds(max(16, soak()/10)) {
		newAwaits(t, s, seed, did).run()
	}
	t.Log(did)
	happened(t, did, "wait", "told", "told again", "in vain", "lost", "repeated", "elsewhere", "ended before",
		"ended meanwhile", "purged meanwhile", "several waiters", "cancelled", "replayed", "timed out", "fails",
		"signalled", "child", "satisfied at once", "result_purged", "cycle_detected")
}

// awaiter is an execution as the oracle sees it: it waits, or is waited for, or both.
type awaiter struct {
	id    flowfabric.ExecutionID
	code  string // "" once it was purged
	fence flowfabric.Fence
	ends  []string // mark and attempt of each
	waits int      // so far
	again bool     // it was replayed: a notice that comes twice may register a waiter once more that was told already
	list  *awaitList
	past  map[string]map[string]flowfabric.PublicState // what its waits came to, by name
}

func (m *awaiter) full() string { return fmt.Sprintf("%d.%s", m.id.Partition(), ids.UUID(m.id)) }

// awaitList is the list of a wait; it stays until the next.
type awaitList struct {
	name, token string
	mode        engine.WaitMode
	marks       map[*awaiter]byte // as in oracle
	kids        map[*awaiter]bool
	suspended   bool // else it is being made
	over        bool
	met         bool // enough have ended
	point       flowfabric.UUID
	need        int // parts of the condition: of the children and, with a point, of its signal
	signalled   bool
	until       int64
	behaviour   string
}

// decided tells whether enough have ended.
func (l *awaitList) decided() bool {
	won, lost := 0, 0
	for _, mark := range l.marks {
		if mark == 's' {
			won++
		} else if mark != '.' {
			lost++
		}
	}
	return won+lost == len(l.marks) || l.mode == "first" && won+lost > 0 || l.mode == "success" && won > 0 ||
		l.mode == "fast" && lost > 0
}

type awaits struct {
	*bounds
	checker [2]*invariant.Checker
	all     []*awaiter
	by      map[string]*awaiter // by full id
	numbers [2]uint64
	digest  [2]string
	points  int
}

func newAwaits(t *testing.T, s *server, seed uint64, did map[string]int) *awaits {
	x := &awaits{by: map[string]*awaiter{}}
	roots := []string{keys.Root(0), keys.Root(1)}
	x.bounds = newBounds(t, s, seed, did, roots...)
	for p, root := range roots {
		for _, c := range [][]string{{"ff_boot", strconv.Itoa(limits.Protocol)},
			{"ff_set_token_keys", strconv.Itoa(limits.Protocol), "seed", "k1", "0123456789abcdef", "0", "0"}} {
			_, code, _, err := s.fcall(x.ctx, s.raw, root, c[0], c[1:]...)
			x.no(err)
			x.same(code, "OK")
		}
		var err error
		x.digest[p], err = s.e.SetSubscription(x.ctx, uint16(p), engine.Subscription{Classes: []uint64{1, 2, 3, 4}})
		x.no(err)
		x.checker[p] = invariant.NewChecker()
	}
	return x
}

func (x *awaits) run() {
	for range 3 + x.r.IntN(4) {
		x.create()
	}
	for range 120 {
		x.do()
		x.check()
	}
	for range 40 { // everything ends, and so does every wait that can
		x.deliver(false)
		x.quiet()
		x.claim(0)
		x.claim(1)
		if m := x.any(func(m *awaiter) bool { return m.code == "A1" }); m != nil {
			x.complete(m, x.chance(50))
		}
		x.check()
	}
}

func (x *awaits) any(fits func(*awaiter) bool) *awaiter {
	list := slices.DeleteFunc(slices.Clone(x.all), func(m *awaiter) bool { return !fits(m) })
	if len(list) == 0 {
		return nil
	}
	return list[x.r.IntN(len(list))]
}

func (x *awaits) add(id flowfabric.ExecutionID) *awaiter {
	m := &awaiter{id: id, code: "R1f", past: map[string]map[string]flowfabric.PublicState{}}
	x.all = append(x.all, m)
	x.by[m.full()] = m
	return m
}

func (x *awaits) create() {
	x.t.Helper()
	id := mint.Join(uint16(x.r.IntN(2)), ids.UUID(x.id()))
	out, err := x.s.e.CreateExecutions(x.ctx, id.Partition(),
		[]engine.NewExecution{{ID: id, Start: flowfabric.Start{Namespace: "default", Lane: "default", Kind: "k"}}})
	x.no(err)
	x.no(out[0].Err)
	x.add(id)
}

// do makes one random call, or some.
func (x *awaits) do() {
	x.t.Helper()
	held := func(m *awaiter) bool { return m.code == "A1" }
	done := func(m *awaiter) bool { return m.code != "" && m.code[0] == 'T' }
	switch x.r.IntN(14) {
	case 0:
		if len(x.all) < 14 {
			x.create()
		}
	case 1, 2:
		x.claim(uint16(x.r.IntN(2)))
	case 3, 4, 5:
		if m := x.any(held); m != nil {
			x.wait(m)
		}
	case 6, 7:
		if m := x.any(held); m != nil {
			x.complete(m, x.chance(50))
		}
	case 8, 9:
		x.deliver(true)
	case 10:
		x.pass(int64(x.r.IntN(4000)))
		x.tick()
	case 11:
		if m := x.any(func(m *awaiter) bool {
			return m.code == "S8" && !m.list.point.IsZero() && !m.list.signalled
		}); m != nil {
			x.signal(m)
		}
	case 12:
		if m := x.any(func(m *awaiter) bool { return m.code != "" && !done(m) }); m != nil && x.chance(50) {
			_, err := x.s.e.CancelExecution(x.ctx, m.id,
				engine.Cancellation{Source: engine.CancelOperator})
			x.no(err)
			x.say("cancel %s (%s)", m.full(), m.code)
			x.did["cancelled"] += bool01(m.code == "S8")
			x.end(m, map[bool]string{true: "T3", false: "T3n"}[m.fence.Epoch != 0])
		}
	case 13:
		if m := x.any(done); m != nil && x.chance(60) {
			x.replay(m)
		} else if m != nil {
			x.purge(m)
		}
	}
}

func (x *awaits) claim(p uint16) {
	x.t.Helper()
	q := engine.ClaimRequest{Partition: p, Session: "w0~1", Number: x.numbers[p] + 1, TTL: time.Hour,
		Max: 1 + x.r.IntN(3), Subscription: x.digest[p], Wait: true}
	out, err := x.s.e.ClaimNext(x.ctx, q)
	x.no(err)
	if len(out.Claims) > 0 {
		x.numbers[p]++
	}
	for _, c := range out.Claims {
		m := x.by[(&awaiter{id: c.Fence.Execution}).full()]
		if m == nil || m.code[:2] != "R1" {
			x.fatal("%s was claimed", c.Fence.Execution)
		}
		m.code, m.fence = "A1", c.Fence
		x.say("claimed %s", m.full())
		for name, want := range m.past {
			kids, err := engine.DecodeChildren(p, c.Steps[engine.StepChildren+name])
			x.no(err)
			got := map[string]flowfabric.PublicState{}
			for _, kid := range kids {
				got[(&awaiter{id: kid.ID}).full()] = kid.Outcome
			}
			x.same(got, want)
		}
	}
}

func (x *awaits) complete(m *awaiter, good bool) {
	x.t.Helper()
	x.say("complete %s: %t", m.full(), good)
	if good {
		out, _, err := x.s.e.CompleteExecutions(x.ctx, m.id.Partition(), []engine.Completion{{Fence: m.fence}}, nil)
		x.no(err)
		x.no(out[0].Err)
		x.end(m, "T1")
		return
	}
	_, err := x.s.e.FailExecution(x.ctx, m.fence, engine.Failure{Category: "broken", Permanent: true})
	x.no(err)
	x.end(m, "T2")
}

// end is an execution's end: its parent is told in the same call, all others by the outbox.
func (x *awaits) end(m *awaiter, code string) {
	if m.list != nil {
		m.list.over = true
	}
	m.code = code
	last := "0"
	if m.fence.Epoch != 0 {
		last = strconv.Itoa(int(m.fence.Attempt))
	}
	m.ends = append(m.ends, string(class(code))+","+last)
	for _, parent := range x.all {
		if parent.list != nil && parent.list.kids[m] && parent.list.marks[m] == '.' {
			x.told(parent, m, class(code))
		}
	}
}

// told is what a waiter makes of an end.
func (x *awaits) told(m, of *awaiter, mark byte) {
	l := m.list
	l.marks[of] = mark
	if l.suspended && !l.over && !l.met && l.decided() {
		l.met = true
		x.resume(m)
	}
}

// resume lets a waiter go on if its condition is met.
func (x *awaits) resume(m *awaiter) {
	if bool01(m.list.met)+bool01(m.list.signalled) >= m.list.need {
		x.over(m)
		m.code = "R1i"
	}
}

var outcomes = map[byte]flowfabric.PublicState{'s': flowfabric.Completed, 'f': flowfabric.Failed,
	'c': flowfabric.Cancelled, 'e': flowfabric.Expired}

// over remembers what a wait came to.
func (x *awaits) over(m *awaiter) {
	m.list.over = true
	m.past[m.list.name] = map[string]flowfabric.PublicState{}
	for of, mark := range m.list.marks {
		m.past[m.list.name][of.full()] = outcomes[mark]
	}
}

// wait lets a holder wait for others, maybe with a child and with a signal. Others may end between the look and the
// list, and calls come twice.
func (x *awaits) wait(m *awaiter) {
	x.t.Helper()
	m.waits++
	l := &awaitList{name: fmt.Sprint("wait", m.waits),
		mode: engine.WaitMode([]string{"all", "first", "success", "fast"}[x.r.IntN(4)]), marks: map[*awaiter]byte{},
		kids: map[*awaiter]bool{}, need: 1, behaviour: []string{"fail", "auto_resume"}[x.r.IntN(2)]}
	q := engine.ChildWait{Name: l.name, Mode: l.mode, Leave: true}
	var others []flowfabric.ExecutionID
	refused := []string{}
	again, most := m.list != nil && x.chance(60), 1+x.r.IntN(3)
	for _, n := range x.r.Perm(len(x.all)) {
		of := x.all[n]
		if of == m || len(others) == most || again && m.list.marks[of] == 0 {
			continue
		}
		others = append(others, of.id)
		if of.code == "" {
			refused = append(refused, "result_purged")
		} else if o := of.list; of.code == "S8" && !o.met && o.marks[m] == '.' {
			refused = append(refused, "cycle_detected")
		}
	}
	if len(others) == 0 {
		return
	}
	var err error
	q.Others, err = x.s.e.CheckOthers(x.ctx, m.id, others)
	if code := x.code(err); code != "" || len(refused) > 0 {
		if !slices.Contains(refused, code) {
			x.fatal("refused %q, want one of %q", code, refused)
		}
		return
	}
	x.say("%s waits (%s) for %v", m.full(), l.mode, others)
	for i := range q.Others {
		of := x.by[(&awaiter{id: q.Others[i].ID}).full()]
		q.Others[i].Node = fmt.Sprint("o", i)
		l.marks[of] = '.'
		if of.code[0] == 'T' {
			l.marks[of] = class(of.code)
			x.did["ended before"]++
		}
		x.same(q.Others[i].Outcome, outcomes[l.marks[of]])
		x.did["several waiters"] += bool01(l.marks[of] == '.' && x.any(func(o *awaiter) bool {
			return o != m && o.list != nil && !o.list.over && o.list.marks[of] == '.'
		}) != nil)
		x.did["elsewhere"] += bool01(of.id.Partition() != m.id.Partition())
	}
	for _, of := range x.all {
		if l.marks[of] == '.' && of.code == "A1" && x.chance(20) {
			x.complete(of, x.chance(50))
			x.did["ended meanwhile"]++
			if x.chance(50) {
				x.did["purged meanwhile"] += bool01(x.purge(of))
			}
		}
	}
	x.no(x.s.e.WaitForOthers(x.ctx, m.fence, q))
	if x.chance(20) {
		x.no(x.s.e.WaitForOthers(x.ctx, m.fence, q))
	}
	token, err := x.s.raw.Do(x.ctx, x.s.raw.B().Hget().Key(keys.Root(m.id.Partition())+":fc:"+
		ids.UUID(m.id).String()).Field("others").Build()).ToString()
	x.no(err)
	l.token, m.list = token, l
	if x.chance(30) {
		x.child(m, q)
	}
	if x.chance(15) { // it dies, or does something else, before it waits
		return
	}
	x.suspend(m)
}

func (x *awaits) child(m *awaiter, q engine.ChildWait) {
	x.t.Helper()
	kid := m.id.Child(q.Name, "c")
	q.Children = []engine.FlowMember{{NewExecution: engine.NewExecution{ID: kid,
		Start: flowfabric.Start{Namespace: "default", Lane: "default",
			Kind: "k"}}, Node: "c" + q.Name}}
	q.Others = nil
	_, err := x.s.e.MakeChildren(x.ctx, m.fence, q)
	x.no(err)
	of := x.add(kid)
	m.list.marks[of], m.list.kids[of] = '.', true
	x.did["child"]++
}

func (x *awaits) suspend(m *awaiter) {
	x.t.Helper()
	l := m.list
	q := engine.Suspension{ID: flowfabric.UUID(ids.UUID(x.id())), Request: l.name, Name: l.name,
		Reason:    "waiting_for_children",
		Behaviour: l.behaviour, Condition: "K"}
	if x.chance(40) {
		q.Timeout = time.Duration(1+x.r.IntN(6000)) * time.Millisecond
		l.until = x.now + q.Timeout.Milliseconds()
	}
	if x.chance(50) {
		x.points++
		w := point(x.points)
		l.point, l.need = flowfabric.UUID(uuid.MustParse(w.ID)), 1+x.r.IntN(2)
		q.Condition = fmt.Sprintf("L\x1f1\x1f1\x1fgo\x1eK\x1eG\x1f%d\x1f1\x1f2", l.need)
		q.Bindings = []engine.Binding{
			{Minted: engine.Minted{ID: l.point, Key: "go", Kid: w.Kid, Digest: w.Digest, Nonce: w.Nonce}}}
	}
	out, err := x.s.e.SuspendExecution(x.ctx, m.fence, q)
	x.no(err)
	l.suspended, l.met = true, l.decided()
	x.say("%s is suspended, satisfied %t", m.full(), out.Satisfied)
	x.did["wait"]++
	if l.met && l.need == 1 {
		x.over(m)
		x.did["satisfied at once"]++
	} else {
		m.code = "S8"
	}
	x.same(out.Satisfied, m.code == "A1")
}

func (x *awaits) signal(m *awaiter) {
	x.t.Helper()
	n, err := strconv.ParseUint(m.list.point.String()[24:], 16, 64)
	x.no(err)
	_, err = x.s.e.DeliverSignal(x.ctx, m.id, m.list.point, point(int(n)).Digest,
		suspend.SentSignal{ID: flowfabric.UUID(ids.UUID(x.id())), Name: "go"})
	x.no(err)
	x.say("signal %s", m.full())
	x.did["signalled"]++
	m.list.signalled = true
	x.resume(m)
}

func (x *awaits) tick() {
	x.t.Helper()
	for p := range uint16(2) {
		for more := true; more; {
			out, err := x.s.e.Tick(x.ctx, p, "ticker", false)
			x.no(err)
			more = out.More
		}
	}
	x.say("tick")
	for _, m := range x.all {
		if m.code != "S8" || m.list.until == 0 || m.list.until > x.now {
			continue
		}
		x.did["timed out"]++
		if m.list.behaviour == "auto_resume" {
			x.over(m)
			m.code = "R1i"
		} else {
			x.did["fails"]++
			x.end(m, "T2")
		}
	}
}

func (x *awaits) replay(m *awaiter) {
	x.t.Helper()
	_, err := x.s.e.ReplayExecution(x.ctx, m.id, engine.Replay{Request: flowfabric.UUID(ids.UUID(x.id())),
		Force: true})
	if x.code(err) != "" {
		return // it was replayed often
	}
	x.say("replay %s", m.full())
	x.did["replayed"]++
	m.code, m.list, m.again = "R1p", nil, true
	clear(m.past)
}

// purge removes an execution that is in no flow.
func (x *awaits) purge(m *awaiter) bool {
	x.t.Helper()
	_, err := x.s.e.PurgeExecution(x.ctx, m.id, 0)
	if x.code(err) != "" {
		return false
	}
	x.say("purge %s", m.full())
	m.code, m.list = "", nil
	return true
}

// faulty delivers as the engine does, but calls are lost, before or after they were made, and are made twice.
type faulty struct {
	*engine.Engine
	x *awaits
	// whether there are faults
	on bool
}

// lossy: in every second run a partition may not answer. Its entries are delivered again after later ones of others,
// and may register a waiter again that waits no longer. Such a one is told in vain.
func (x *awaits) lossy() bool { return x.seed%2 == 1 }

var errLost = errors.New("lost")

func (f faulty) times() (n int) {
	switch {
	case !f.on || f.x.chance(70):
		return 1
	case f.x.chance(50) && f.x.lossy():
		f.x.did["lost"]++
		return 0
	}
	f.x.did["repeated"]++
	return 2
}

func (f faulty) NoteWaiters(ctx context.Context, p uint16, items []engine.Awaiting,
	look bool) (out []engine.Awaited, err error) {
	err = errLost
	for range f.times() {
		out, err = f.Engine.NoteWaiters(ctx, p, items, look)
	}
	if f.on && f.x.lossy() && f.x.chance(15) {
		return nil, errLost
	}
	return out, err
}

func (f faulty) TrimOutbox(ctx context.Context, p uint16, ids []string) (int, error) {
	if f.on && f.x.chance(20) {
		return 0, errLost
	}
	return f.Engine.TrimOutbox(ctx, p, ids)
}

// TellWaiters tells one by one, and holds each against the oracle.
func (f faulty) TellWaiters(ctx context.Context, p uint16, items []engine.AwaitedEnd) (told int, err error) {
	f.x.t.Helper()
	n := f.times()
	if n == 0 {
		return 0, errLost
	}
	for range n {
		for _, e := range items {
			got, err := f.Engine.TellWaiters(ctx, p, []engine.AwaitedEnd{e})
			f.x.no(err)
			f.x.same(got, f.x.tells(e))
			told += got
		}
	}
	return told, nil
}

// tells takes over one end that a waiter is told of; it counts what is new to it.
func (x *awaits) tells(e engine.AwaitedEnd) int {
	x.t.Helper()
	m, of := x.by[(&awaiter{id: e.Waiter}).full()], x.by[(&awaiter{id: e.Awaited}).full()]
	x.say("tell %s that %s ended: %s,%d", m.full(), of.full(), e.Mark, e.Attempt)
	if !slices.ContainsFunc(of.ends, func(end string) bool {
		return end == fmt.Sprintf("%s,%d", e.Mark, e.Attempt) || of.code == "" && end[:2] == e.Mark+","
	}) {
		x.fatal("%s ended with %q", of.full(), of.ends)
	}
	if m.list == nil || m.list.token != e.Token {
		x.did["in vain"]++
		return 0
	}
	if m.list.marks[of] != '.' {
		x.did["told again"]++
		return 0
	}
	x.did["told"]++
	x.told(m, of, e.Mark[0])
	return 1
}

// deliver delivers both outboxes, with faults once each, else until they are empty.
func (x *awaits) deliver(faults bool) {
	x.t.Helper()
	for again := true; again; {
		again = false
		for p := range uint16(2) {
			n, err := admit.Deliver(x.ctx, faulty{x.s.e, x, faults}, p)
			if !errors.Is(err, errLost) {
				x.no(err)
			}
			again = again || n > 0 && !faults
		}
	}
	x.say("delivered, faults %t", faults)
}

// check holds both partitions against the oracle.
func (x *awaits) check() {
	x.t.Helper()
	for p := range uint16(2) {
		d := x.dump(p)
		for _, m := range x.all {
			if m.id.Partition() != p {
				continue
			}
			if code := d.Hashes[":x:"+ids.UUID(m.id).String()]["s"]; code != m.code {
				x.fatal("%s is %q, and has to be %q", m.full(), code, m.code)
			}
			for of, mark := range x.marks(m) {
				name := of.full()
				if m.list.kids[of] {
					name = ids.UUID(of.id).String()
				}
				if got := d.Hashes[":fc:"+ids.UUID(m.id).String()][name]; !strings.HasPrefix(got, string(mark)) {
					x.fatal("%s was told %q of %s, which is %s; %q is right", m.full(), got, of.full(), of.code, mark)
				}
			}
		}
	}
}

func (x *awaits) marks(m *awaiter) map[*awaiter]byte {
	if m.list == nil {
		return nil
	}
	return m.list.marks
}

func (x *awaits) dump(p uint16) *invariant.Dump {
	x.t.Helper()
	d, err := invariant.Read(x.ctx, x.s.raw, p)
	x.no(err)
	d.Now = x.now
	if bad := x.checker[p].Violations(d); len(bad) > 0 {
		x.fatal("not sound: %q", bad)
	}
	return d
}

// quiet: with empty outboxes nobody waits for one that has ended, and each execution knows exactly who waits for it.
func (x *awaits) quiet() {
	x.t.Helper()
	for p := range uint16(2) {
		d := x.dump(p)
		for _, of := range x.all {
			want := map[string]string{}
			for _, m := range x.all {
				if m.list == nil || m.list.over || m.list.kids[of] || m.list.marks[of] != '.' {
					continue
				}
				want[m.full()] = m.list.token
				if of.code == "" || of.code[0] == 'T' {
					x.fatal("%s (%s) waits for %s, which has ended: %q", m.full(), m.code, of.full(), of.ends)
				}
			}
			got := maps.Clone(d.Hashes[":aw:"+ids.UUID(of.id).String()])
			maps.DeleteFunc(got, func(who, _ string) bool { return (of.again || x.lossy()) && want[who] == "" })
			if of.id.Partition() == p && fmt.Sprint(got) != fmt.Sprint(want) {
				x.fatal("%s is awaited by %v, and has to be by %v", of.full(), got, want)
			}
		}
	}
}
