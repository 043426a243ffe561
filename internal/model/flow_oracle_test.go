package model_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
)

// oracle is what flows may do and must do, without keys, cursors or backlog (ADR 19). Where the order of events
// decides, it follows what was seen and holds every single change against the rules:
//
//	call ──► library ──► keyspace ──► follow: every mark and every change of state has a reason
//	  └────► applied here ─────────┘  settled: with an empty backlog, nothing that has a reason is left undone
//
// A member is told how its upstreams ended by marks on its edges: . open, ~ open and spared, s f c e k an outcome, l
// a success that came after the decision, n a skip because nothing failed. Its group is p pending, s satisfied or i
// impossible.
type oracle struct {
	now     int64
	ticked  bool // the call was a tick: time may have had its effects
	flows   []*flowTruth
	members []*member // each after those that it depends on
	by      map[string]*member
	pending map[*member]bool // whose groups or waits were pending before the call, or as they came
}

type flowTruth struct {
	id       flowfabric.FlowID
	released bool
	seal     string // as on the header: 1, g or nothing
	policy   flowfabric.CancellationPolicy
	size     int
	edges    int
	backlog  int // as it was seen last
}

func (f *flowTruth) cancelled() bool { return f != nil && f.policy != "" }

// barred: members of the flow must not run, so nobody decides about them any more.
func (f *flowTruth) barred() bool { return f.cancelled() && f.policy != flowfabric.CancelFlow }

type member struct {
	id       flowfabric.ExecutionID
	node     string
	flow     *flowTruth // nil for an execution that is in none
	code     string
	ups      []*member
	names    map[*member]string // of inputs
	marks    map[*member]byte
	group    byte // 0 when it depends on nobody
	need     int  // successes that satisfy the group
	rest     bool // cancel the others once it is decided
	watch    bool // it runs once all have ended; of these
	fault    bool // it runs only if one did not succeed
	spare    bool // its skip may be no failure of the flow: it has fault, or is behind one that has
	needless bool // it was skipped because nothing failed
	downs    []*member
	owed     map[*member]bool // downs and parents that are to be told how it ended
	fresh    map[*member]bool // ups that were replayed, and may be open again

	parents  []*member
	kids     map[*member]byte // of the wait that it was in last
	wait     byte             // 0, m while it makes children, p or d
	waitName string
	waitMode string
	leave    bool
	cancel   bool             // what is open when the wait is over is cancelled
	spent    map[*member]bool // those, of this wait and others, until the backlog is empty
	clears   bool             // a decision or its end cancels what it does not need any more

	delay, due     int64
	span, deadline int64
	timed          bool // its attempts have a time limit
	replays        int
	reclaims       int64 // since the last replay
	holder         *holder
	fence          flowfabric.Fence
	good           uint32 // the attempt that succeeded last
	link           uint32 // the first attempt since it continued last
	kept           uint32 // the first attempt whose result is still there
}

func (m *member) String() string {
	flow := "-"
	if m.flow != nil {
		flow = ids.UUID(m.flow.id).String()[:4]
	}
	return fmt.Sprintf("%s of %s (%s)", m.node, flow, ids.UUID(m.id).String()[:8])
}

func class(code string) byte {
	switch {
	case code[0] == 'T':
		return map[byte]byte{'1': 's', '2': 'f', '3': 'c', '4': 'e', '5': 'k'}[code[1]]
	case code[0] == 'R':
		return map[byte]byte{'1': 'w', '2': 'd', '3': 'b'}[code[1]]
	case code[0] == 'A':
		return 'a'
	}
	return 'u'
}

// mark is what those that depend on a member are told of its end.
func (m *member) mark() byte {
	if m.needless {
		return 'n'
	}
	return class(m.code)
}

// aside: its upstreams count for the flow as if it was not there.
func (m *member) aside() bool { return m.watch && !m.fault || m.spare }

func ended(code string) bool { return code[0] == 'T' }

func newOracle() *oracle { return &oracle{by: map[string]*member{}, pending: map[*member]bool{}} }

// add files a new member; its group knows at once what is known already.
func (o *oracle) add(m *member) {
	m.marks, m.owed = map[*member]byte{}, map[*member]bool{}
	for _, up := range m.ups {
		up.downs = append(up.downs, m)
		m.marks[up] = '.'
		if ended(up.code) {
			m.marks[up] = up.mark()
		}
	}
	if m.flow != nil {
		m.flow.size++
		m.flow.edges += len(m.ups) + len(m.parents)
	}
	if len(m.ups) > 0 {
		m.group = 'p'
		m.decide()
		o.pending[m] = m.group == 'p'
	}
	switch {
	case m.flow != nil && (!m.flow.released || m.group == 'p' || m.group == 'i'):
		m.code = "R3f"
	case m.delay > 0:
		m.code, m.due = "R2af", o.now+m.delay
	default:
		m.code = "R1f"
	}
	if m.span > 0 {
		m.deadline = o.now + m.span
	}
	o.members = append(o.members, m)
	o.by[ids.UUID(m.id).String()] = m
}

// decide evaluates a pending group.
func (m *member) decide() {
	if m.group != 'p' {
		return
	}
	won, lost, idle := 0, 0, 0
	for _, mark := range m.marks {
		switch mark {
		case 's', 'l':
			won++
		case 'f', 'c', 'e', 'k':
			lost++
		case 'n':
			idle++
		}
	}
	if m.watch {
		if won+lost+idle == len(m.ups) {
			m.group = map[bool]byte{true: 's', false: 'i'}[!m.fault || lost > 0]
		}
		return
	}
	if lost += idle; won >= m.need {
		m.group = 's'
	} else if lost > len(m.ups)-m.need {
		m.group = 'i'
	}
	if m.group != 'p' && m.rest {
		m.clears = true
	}
}

// end is a member's end; its dependants are owed the outcome, unless the flow was cancelled.
func (m *member) end(code string) {
	m.code, m.holder = code, nil
	if !m.flow.barred() {
		for _, down := range m.downs {
			if mark := down.marks[m]; class(code) == 's' || mark != 's' && mark != 'l' ||
				down.watch && down.group == 'p' {
				m.owed[down] = true
			}
		}
		for _, parent := range m.parents {
			if mark, waited := parent.kids[m]; waited && (mark == '.' || mark == '~') {
				m.owed[parent] = true
			}
		}
	}
	if m.waits() && !m.leave {
		m.clears = true
	}
}

// waits tells whether it asks for children, or is about to.
func (m *member) waits() bool { return m.wait == 'p' || m.wait == 'm' }

// tally decides a wait.
func (m *member) tally() {
	if m.wait != 'p' {
		return
	}
	won, lost := 0, 0
	for _, mark := range m.kids {
		if mark == 's' {
			won++
		} else if mark != '.' && mark != '~' {
			lost++
		}
	}
	if won+lost == len(m.kids) || m.waitMode == "first" && won+lost > 0 || m.waitMode == "success" && won > 0 ||
		m.waitMode == "fast" && lost > 0 {
		m.wait = 'd'
		if !ended(m.code) && !m.flow.barred() {
			m.over()
		}
	}
}

// over ends a wait: the children that are open may be cancelled.
func (m *member) over() {
	m.wait = 'd'
	for kid, mark := range m.kids {
		if m.cancel && (mark == '.' || mark == '~') {
			if m.spent == nil {
				m.spent = map[*member]bool{}
			}
			m.spent[kid] = true
		}
	}
}

// replay makes an ended member ready to run again: a group that watches or was satisfied is judged anew, and an
// impossible one forgets what did not succeed.
func (m *member) replay(now int64) {
	anew := m.watch || m.group == 's'
	for up, mark := range m.marks {
		won := mark == 's' || mark == 'l'
		switch {
		case anew && !ended(up.code):
			m.marks[up] = '.'
		case anew && won && class(up.code) == 'k': // it was replayed, and skipped
			m.marks[up] = up.mark()
		case won:
			m.marks[up] = 's'
		case !anew && m.group == 'i':
			m.marks[up] = '.'
		}
	}
	m.needless = false
	if m.group == 'i' || anew {
		m.group = 'p'
		m.decide()
		m.clears = false // members that it did not need may be needed again
	}
	m.kids, m.wait, m.waitName = nil, 0, "" // a wait that is asked for again looks at the children anew
	m.code = "R1p"
	if m.group == 'p' || m.group == 'i' || m.flow != nil && !m.flow.released {
		m.code = "R3p"
	}
	if m.span > 0 {
		m.deadline = now + m.span
	}
	for _, down := range m.downs {
		if mark := down.marks[m]; down.group == 'p' && (mark != 's' && mark != 'l' || down.watch) {
			if down.fresh == nil {
				down.fresh = map[*member]bool{}
			}
			down.fresh[m] = true
		}
	}
	m.replays++
	m.reclaims = 0
	m.due = 0
}

// follow explains everything that a call changed beyond its own effect, or fails.
func (o *oracle) follow(d *invariant.Dump) error {
	for again := true; again; {
		again = o.tell(d, "s")
		again = o.moves(d) || again
		again = o.tell(d, "fcekn") || again
		again = o.tell(d, "l~.") || again
	}
	for _, m := range o.members {
		id := ids.UUID(m.id).String()
		if code := d.Hashes[":x:"+id]["s"]; code != m.code {
			return fmt.Errorf("%s is %s, and has no reason not to be %s: %s", m.node, code, m.code, m.tell())
		}
		for up, mark := range m.marks {
			if got := seen(d, ":fi:", m, up); got != mark {
				return fmt.Errorf("%s (%s) was told %q of %s, which is %s; %q is right: %s", m.node, m.code, got,
					up.node, up.code, mark, m.tell())
			}
		}
		for kid, mark := range m.kids {
			if got := seen(d, ":fc:", m, kid); got != mark {
				return fmt.Errorf("%s was told %q of its child %s, which is %s; %q is right", m.node, got, kid.node,
					kid.code, mark)
			}
		}
	}
	return nil
}

// tell is what a message says of a member.
func (m *member) tell() string {
	s := fmt.Sprintf("group %q, needs %d of", string(m.group), m.need)
	for _, up := range m.ups {
		s += fmt.Sprintf(" %s:%c:%s", up.node, m.marks[up], up.code)
	}
	if m.wait != 0 {
		s += fmt.Sprintf(", waits %c %s", m.wait, m.waitMode)
		for kid, mark := range m.kids {
			s += fmt.Sprintf(" %s:%c:%s", kid.node, mark, kid.code)
		}
	}
	return s + fmt.Sprintf(", deadline %d, due %d", m.deadline, m.due)
}

// seen is the mark that stands beside a member for another.
func seen(d *invariant.Dump, hash string, m, of *member) byte {
	text := d.Hashes[hash+ids.UUID(m.id).String()][ids.UUID(of.id).String()]
	if text == "" {
		return 0
	}
	return text[0]
}

// tell takes over the marks of the given kinds that there are reasons for.
func (o *oracle) tell(d *invariant.Dump, kinds string) (some bool) {
	for _, m := range o.members {
		for _, up := range m.ups {
			mark := seen(d, ":fi:", m, up)
			if mark == m.marks[up] || !strings.ContainsRune(kinds, rune(mark)) || !o.told(d, m, up, mark) {
				continue
			}
			m.marks[up], some = mark, true
			if mark != '~' {
				delete(up.owed, m)
				if !m.flow.barred() {
					m.decide()
				}
			}
		}
		for kid, old := range m.kids {
			mark := seen(d, ":fc:", m, kid)
			if mark == old || !strings.ContainsRune(kinds, rune(mark)) {
				continue
			}
			if mark == '~' && (m.clears || m.spent[kid]) && o.needed(d, kid, m, false) ||
				mark != '~' && kid.owed[m] && ended(kid.code) && kid.mark() == mark {
				m.kids[kid], some = mark, true
				if mark != '~' {
					delete(kid.owed, m)
					m.tally()
				}
			}
		}
	}
	return some
}

// told tells whether a member may be told this of an upstream.
func (o *oracle) told(d *invariant.Dump, m, up *member, mark byte) bool {
	switch mark {
	case '.':
		return m.fresh[up] && !ended(up.code) && m.group == 'p'
	case '~':
		return m.marks[up] == '.' && m.clears && o.needed(d, up, m, false)
	case 's':
		return up.owed[m] && class(up.code) == 's' && m.group == 'p'
	case 'l':
		return up.owed[m] && class(up.code) == 's' && m.group != 'p'
	}
	// A decided group that cancels an upstream which nobody else depends on notes that at once, also in a cancelled
	// flow.
	alone := m.flow.barred() && m.clears && len(up.downs) == 1 && len(up.parents) == 0
	return (up.owed[m] || alone) && up.mark() == mark
}

// needed tells whether somebody other than m may have needed up during this call, or, with all along, still does.
func (o *oracle) needed(d *invariant.Dump, up, m *member, along bool) bool {
	for _, w := range slices.Concat(up.downs, up.parents) {
		if w == m || w.watch && !slices.Contains(up.parents, w) {
			continue
		}
		core := d.Hashes[":x:"+ids.UUID(w.id).String()]
		text, waits := d.Texts[":m:"+ids.UUID(w.id).String()], false
		if slices.Contains(up.parents, w) {
			text, waits = core["wt"], true
		}
		still := !ended(core["s"]) && (strings.Contains(" "+text+" ", " p ") || strings.Contains(text, " m "))
		if still && o.pending[w] || !along && (still || o.pending[w]) ||
			!along && !ended(w.code) && (w.group == 'p' || waits && w.waits()) {
			return true
		}
	}
	return false
}

// moves takes over the changes of state that there are reasons for.
func (o *oracle) moves(d *invariant.Dump) (some bool) {
	for _, m := range o.members {
		core := d.Hashes[":x:"+ids.UUID(m.id).String()]
		if core["s"] == "" || core["s"] == m.code || !o.may(d, m, core["s"]) {
			continue
		}
		some = true
		switch {
		case ended(core["s"]):
			m.needless = core["fc"] == "not_needed"
			m.end(core["s"])
		case core["s"] == "R2af":
			m.code, m.due = "R2af", o.now+m.delay
		case core["s"] == "R2b":
			m.code, m.due, m.holder = "R2b", o.now+2000, nil
		case core["s"] == "R2r":
			m.code, m.due, m.holder = "R2r", o.now+min(60_000, int64(1000)<<min(m.reclaims-1, 6)), nil
			m.reclaims++
		case core["s"] == "R1r" && m.code != "R2r":
			m.code, m.holder = "R1r", nil
			m.reclaims++
		default:
			m.code, m.holder = core["s"], nil
		}
	}
	return some
}

var comesDue = map[string]string{"R2af": "R1f", "R2ai": "R1i", "R2b": "R1t", "R2r": "R1r"}

// may tells whether there is a reason for a member to get another state.
func (o *oracle) may(d *invariant.Dump, m *member, to string) bool {
	if ended(m.code) {
		return false
	}
	from := class(m.code)
	ran := m.fence.Epoch != 0 // an end without an attempt has another code
	switch to {
	case "T5", "T5n":
		return ran == (to == "T5") && from == 'b' && m.group == 'i' && !m.flow.barred() && m.skips(d)
	case "T3", "T3n":
		return ran == (to == "T3") && (m.covered() || m.flow.barred() && o.lost(m) || o.unneeded(d, m))
	case "T4", "T4n":
		slow := m.timed && m.code == "A1"
		return o.ticked && ran == (to == "T4") && (slow || m.deadline > 0 && m.deadline <= o.now)
	case "R2b":
		return o.ticked && m.timed && m.code == "A1"
	case "R2r":
		return o.lost(m) && m.code == "A1" && m.reclaims > 0 && (!m.timed || m.holder.doubtful(o.now))
	case "R1r":
		if m.code == "R2r" {
			break
		}
		return o.lost(m) && (m.code == "A3" || m.reclaims == 0 && (!m.timed || m.holder.doubtful(o.now)))
	case "T2":
		return o.lost(m) && (!m.timed || m.code == "A3" || m.holder.doubtful(o.now))
	}
	if from == 'b' {
		return m.unblocks(to)
	}
	if m.code == "S8" {
		return m.wait == 'd' && to == "R1i" && !m.flow.barred()
	}
	return o.ticked && from == 'd' && m.due <= o.now && to == comesDue[m.code]
}

// lost tells whether a member may have been taken from its holder: it is dead, or told to give it back, or was too
// slow.
func (o *oracle) lost(m *member) bool {
	return o.ticked && (m.code == "A3" || m.code == "A1" && (m.timed || m.holder.doubtful(o.now)))
}

// unblocks tells whether a blocked member may go on, and so.
func (m *member) unblocks(to string) bool {
	if m.flow.barred() || !m.flow.released {
		return false
	}
	if m.group != 0 && m.group != 's' {
		return false
	}
	if m.code == "R3p" {
		return to == "R1p"
	}
	return m.delay == 0 && to == "R1f" || m.delay > 0 && to == "R2af"
}

// skips tells whether a member may say of its skip what it says.
func (m *member) skips(d *invariant.Dump) bool {
	failed := false
	for _, mark := range m.marks {
		failed = failed || strings.ContainsRune("fcek", rune(mark))
	}
	if d.Hashes[":x:"+ids.UUID(m.id).String()]["fc"] == "not_needed" {
		return m.spare && !(m.watch && failed)
	}
	return failed
}

// covered tells whether the cancellation of the flow takes the member with it.
func (m *member) covered() bool {
	return m.flow.barred() && (m.flow.policy == flowfabric.CancelAll || class(m.code) != 'a')
}

// unneeded tells whether a decided group, or an ended parent, has no use for the member, and nobody else has.
func (o *oracle) unneeded(d *invariant.Dump, m *member) bool {
	for _, w := range m.downs {
		if w.clears && w.group != 'p' && (w.marks[m] == '.' || w.marks[m] == '~') && !o.needed(d, m, w, true) {
			return true
		}
	}
	for _, w := range m.parents {
		if w.spent[m] && !o.needed(d, m, w, true) {
			return true
		}
		if _, waited := w.kids[m]; waited && w.clears && ended(w.code) && !o.needed(d, m, w, true) {
			return true
		}
	}
	return false
}

// headers holds every header against the members.
func (o *oracle) headers(d *invariant.Dump) error {
	for _, f := range o.flows {
		counts, left, failing := map[byte]int{}, 0, 0
		for _, m := range o.members {
			if m.flow != f {
				continue
			}
			counts[class(m.code)]++
			if !ended(m.code) {
				left++
			} else if class(m.code) != 's' && !m.needless && len(m.parents) == 0 &&
				!slices.ContainsFunc(m.downs, func(down *member) bool { return !down.aside() }) {
				failing++
			}
		}
		state := "F1"
		switch {
		case f.cancelled():
			state = "F4"
		case !f.released:
			state = "F0"
		case f.seal != "" && left == 0 && failing > 0:
			state = "F3"
		case f.seal != "" && left == 0:
			state = "F2"
		}
		h := d.Hashes[":fw:"+ids.UUID(f.id).String()]
		number := func(field string) int {
			n, _ := strconv.Atoi(h[field])
			return n
		}
		if h["st"] != state || number("nn") != f.size || number("ne") != f.edges || number("lv") != failing {
			return fmt.Errorf("flow %s: state %s, %s members, %s edges, %s failing; want %s, %d, %d, %d", f.id, h["st"],
				h["nn"], h["ne"], h["lv"], state, f.size, f.edges, failing)
		}
		for _, c := range "bwdausfcek" {
			if got := number("m" + string(c)); got != counts[byte(c)] {
				return fmt.Errorf("flow %s: counts %d %c, there are %d", f.id, got, c, counts[byte(c)])
			}
		}
		f.backlog = number("bl")
	}
	return nil
}

// settled: with an empty backlog, nothing that has a reason is left undone.
func (o *oracle) settled(d *invariant.Dump) error {
	if len(d.ZSets[":backlog"]) > 0 {
		return nil
	}
	for _, m := range o.members {
		if err := m.idle(); err != nil {
			return fmt.Errorf("%s (%s): %w: %s", m.node, m.code, err, m.tell())
		}
	}
	for _, m := range o.members {
		m.clears, m.spent = false, nil
	}
	return nil
}

func (m *member) idle() error {
	if !ended(m.code) && m.covered() {
		return fmt.Errorf("its flow was cancelled, %s", m.flow.policy)
	}
	if m.flow.barred() {
		return nil
	}
	for down := range m.owed {
		if mark := down.marks[m]; mark == m.mark() || mark == 'l' && class(m.code) == 's' {
			delete(m.owed, down) // the same outcome again
		} else {
			return fmt.Errorf("%s was not told of its end", down.node)
		}
	}
	if class(m.code) == 'b' && m.flow.released && (m.group == 0 || m.group == 's') {
		return fmt.Errorf("it is not released")
	}
	for _, up := range m.ups {
		if m.watch && m.group == 'p' && !ended(m.code) && !ended(up.code) && m.marks[up] != '.' {
			return fmt.Errorf("it does not wait for %s, which runs again", up.node)
		}
	}
	if class(m.code) == 'b' && m.group == 'i' {
		return fmt.Errorf("it is not skipped")
	}
	if m.code == "S8" && m.wait != 'p' {
		return fmt.Errorf("its children have ended")
	}
	for kid := range m.spent {
		if m.kids[kid] == '.' && !ended(kid.code) {
			return fmt.Errorf("its wait is over, and its child %s was not cancelled", kid.node)
		}
	}
	if !m.clears {
		return nil
	}
	if m.group == 's' || m.group == 'i' {
		for _, up := range m.ups {
			if m.rest && m.marks[up] == '.' && !ended(up.code) {
				return fmt.Errorf("%s was not cancelled", up.node)
			}
		}
	}
	for kid, mark := range m.kids {
		if ended(m.code) && m.waits() && !m.leave && mark == '.' && !ended(kid.code) {
			return fmt.Errorf("its child %s was not cancelled", kid.node)
		}
	}
	return nil
}

// before remembers whose groups and waits are pending as the next call begins.
func (o *oracle) before() {
	o.pending = map[*member]bool{}
	for _, m := range o.members {
		if !ended(m.code) && (m.group == 'p' || m.waits()) {
			o.pending[m] = true
		}
	}
}
