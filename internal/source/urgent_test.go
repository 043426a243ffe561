package source

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// urgentSource is a source of four partitions, all of them hot in order.
func urgentSource() *Source {
	s := testSource(4, &space{free: true})
	for _, p := range s.partitions {
		s.ring(p)
	}
	return s
}

// take takes the next partition for one execution.
func take(t *testing.T, s *Source) *Partition {
	t.Helper()
	p, _, _ := s.Take(time.Now(), false, one)
	if p == nil {
		t.Fatal("nothing to claim")
	}
	return p
}

// next takes the next partition, and ends its round as if it had brought one execution of a priority, and might bring
// more, or would ring.
func next(t *testing.T, s *Source, priority int, more bool) uint16 {
	t.Helper()
	p := take(t, s)
	s.visited(p, []*engine.Claim{{Priority: priority, Route: 1}}, !more)
	s.Left(p)
	return p.id
}

func TestMarkedPartitionsComeFirst(t *testing.T) {
	s := urgentSource()
	s.urge(s.partitions[2], mark{priority: 5})
	s.urge(s.partitions[3], mark{priority: 9})
	s.urge(s.partitions[3], mark{priority: 3}) // a lower one changes nothing, though it is lower than that of 2
	var got []uint16
	for _, brought := range []int{9, 0, 5, 5, 4} { // the mark of 3 stays while it brings no less, and so does that of 2
		got = append(got, next(t, s, brought, true))
	}
	if got = append(got, next(t, s, 0, true), next(t, s, 0, true)); !slices.Equal(got, []uint16{3, 3, 2, 2, 2, 0, 1}) {
		t.Errorf("order %v", got)
	}
}

func TestMarkEndsWithNothingLeft(t *testing.T) {
	s := urgentSource()
	s.urge(s.partitions[3], mark{priority: 9})
	if got := []uint16{next(t, s, 9, false), next(t, s, 0, true)}; !slices.Equal(got, []uint16{3, 0}) {
		t.Errorf("order %v", got)
	}
	if s.marked != 0 {
		t.Errorf("%d marks are left", s.marked)
	}
}

func TestMarkThatComesDuringARoundIsKept(t *testing.T) {
	s := urgentSource()
	p := take(t, s)
	s.urge(p, mark{priority: 9})
	s.visited(p, nil, true) // the claim was answered before
	s.Left(p)
	if got := next(t, s, 9, false); got != p.id {
		t.Errorf("partition %d comes next", got)
	}
}

func TestMarkEndsAfterSomeRounds(t *testing.T) {
	s := urgentSource()
	s.urge(s.partitions[3], mark{priority: 9})
	rounds := 0
	for next(t, s, 9, true) == 3 {
		if rounds++; rounds > 2*markRounds {
			t.Fatal("it never ends")
		}
		s.recent = newRecent(4) // as if something lower had come elsewhere
	}
	if rounds != markRounds {
		t.Errorf("%d rounds, want %d", rounds, markRounds)
	}
}

// Where all that claims bring has one priority, partitions keep their turns.
func TestUniformPriorityIsNotUrgent(t *testing.T) {
	s := urgentSource()
	for range 8 { // two rooms of recent
		next(t, s, 5, true)
	}
	turn := s.hot[0].id
	s.urge(s.partitions[(turn+1)%4], mark{priority: 5})
	if got := next(t, s, 5, true); got != turn {
		t.Errorf("partition %d comes before %d", got, turn)
	}
	s.urge(s.partitions[turn], mark{priority: 6}) // now last in turn
	if got := next(t, s, 6, false); got != turn {
		t.Errorf("a higher priority does not come next, but %d", got)
	}
}

// A worker that does not serve the class of urgent work, or is registered for what it serves, does nothing about it.
func TestUrgentWorkOfOthers(t *testing.T) {
	s := urgentSource()
	p := s.partitions[3]
	p.table.Learn(engine.ClaimReply{Table: 1, Routes: []engine.Route{{ID: 1}, {ID: 2}}})
	p.subscription = []uint64{1}
	s.urge(p, mark{priority: 9, route: 2_000_000_007})
	if got := next(t, s, 0, true); got != 0 {
		t.Errorf("partition %d comes next for a class that is not served", got)
	}
	p.urgent, s.marked = mark{}, 0
	s.urge(p, mark{priority: 9, route: 1})
	if got := next(t, s, 0, true); got != 3 {
		t.Errorf("partition %d comes next, not the one with a class that is served", got)
	}
	q := s.partitions[2]
	q.registered, q.queued = true, false
	s.hot = slices.DeleteFunc(s.hot, func(p *Partition) bool { return p == q })
	s.urge(q, mark{priority: 9000})
	if got := next(t, s, 0, true); got == 2 {
		t.Error("a partition that would have rung for this worker is claimed from")
	}
}

// Work of another lane or namespace does not end a mark.
func TestMarkOutlivesTurnsOfOtherLanes(t *testing.T) {
	s := urgentSource()
	p := s.partitions[3]
	p.table.Learn(engine.ClaimReply{Table: 1, Routes: []engine.Route{{ID: 1, Lane: "other"}, {ID: 2, Lane: "mine"}}})
	p.subscription = []uint64{1, 2}
	s.urge(p, mark{priority: 9, route: 2})
	if got := []uint16{next(t, s, 0, true), next(t, s, 0, true), next(t, s, 9, false),
		next(t, s, 0, true)}; !slices.Equal(got, []uint16{3, 3, 3, 0}) {
		t.Errorf("order %v", got)
	}
}

// A call that completes members of a flow leaves its slots to urgent work elsewhere.
func TestCompletionsGiveWayToUrgentWork(t *testing.T) {
	s := urgentSource()
	p := s.partitions[0]
	p.digest = "aa"
	s.urge(s.partitions[3], mark{priority: 9})
	if _, joined := s.Join(p, always); joined {
		t.Error("a completion claims although there is urgent work elsewhere")
	}
	s.urge(p, mark{priority: 9})
	if _, joined := s.Join(p, always); !joined {
		t.Error("a completion does not claim where the most urgent work is")
	}
}

// A claim ahead of slots is made of a partition that was dry before its urgent work came.
func TestUrgentWorkIsClaimedAhead(t *testing.T) {
	s := urgentSource()
	p := take(t, s)
	s.urge(p, mark{priority: 9})
	s.dried(p)
	s.Left(p)
	if p.dry {
		t.Error("it is dry")
	}
}

func TestUrgentMessages(t *testing.T) {
	for message, want := range map[string]mark{"9000 12": {priority: 9000, route: 12},
		"1 2000000001": {priority: 1, route: 2_000_000_001}, "": {}, "9": {}, "0 1": {}, "x 1": {}, "5 x": {}} {
		if m, ok := parseUrgent(message); ok != (want.priority > 0) || ok && m != want {
			t.Errorf("%q is %+v, %v", message, m, ok)
		}
	}
}

// A ring that tells a priority marks its partition; any other does not.
func TestARingTellsItsPriority(t *testing.T) {
	s := urgentSource()
	l := NewListener(ListenerConfig{Engine: still(4), Name: "me", Sources: func() []*Source { return []*Source{s} }})
	d := l.bell
	d.ring(engine.BellChannel(0, "me"), "w9000")
	d.ring(engine.BellChannel(1, "me"), "w")
	if got := []int{s.partitions[0].urgent.priority, s.partitions[1].urgent.priority}; !slices.Equal(got,
		[]int{9000, 0}) {
		t.Errorf("marks %v", got)
	}
}

// What was usual is forgotten after as many claims as there is room for, twice.
func TestRecentForgets(t *testing.T) {
	r := newRecent(3)
	for i, x := range []struct{ brought, lowest int }{{9, 0}, {9, 0}, {9, 9}, {4, 4}, {9, 4}, {9, 4}, {9, 4}, {9, 4},
		{9, 9}} {
		if r.add(x.brought); r.lowest() != x.lowest {
			t.Errorf("after %d claims the lowest is %d, want %d", i+1, r.lowest(), x.lowest)
		}
	}
}

func FuzzUrgent(f *testing.F) {
	for _, seed := range []string{"9000 7", "9000", "0 7", "-1 7", "9000 -7", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		m, ok := parseUrgent(message)
		if again, taken := parseUrgent(fmt.Sprint(m.priority, " ", m.route)); ok && (!taken || again != m) {
			t.Errorf("%q: %+v, then %+v", message, m, again)
		}
	})
}
