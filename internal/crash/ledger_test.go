//go:build unix

package crash_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/crash"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// ledger is what all journals together say, by execution.
type ledger struct {
	entries map[flowfabric.ExecutionID]*entry
	answers map[string]int // "operation answer" → how often
}

type entry struct {
	claims []crash.Claimed
	writes []crash.Written // that were accepted, repeats not counted
}

func readLedger(t *testing.T, journals []string) *ledger {
	t.Helper()
	l := &ledger{entries: map[flowfabric.ExecutionID]*entry{}, answers: map[string]int{}}
	of := func(id flowfabric.ExecutionID) *entry {
		e := l.entries[id]
		if e == nil {
			e = &entry{}
			l.entries[id] = e
		}
		return e
	}
	for _, path := range journals {
		err := crash.ReadJournal(path, func(c crash.Claimed) {
			e := of(c.Fence.Execution)
			e.claims = append(e.claims, c)
			l.answers["claim ok"]++
		}, func(w crash.Written) {
			l.answers[w.Operation+" "+w.Answer]++
			if w.Answer == "ok" {
				e := of(w.Execution)
				e.writes = append(e.writes, w)
			}
		}, nil)
		must.No(t, err)
	}
	return l
}

// verdict tells everything that the acknowledged claims and writes of one execution contradict.
func (e *entry) verdict() (bad []string) {
	newest := uint64(0)
	for i, c := range e.claims {
		newest = max(newest, c.Fence.Epoch)
		for _, d := range e.claims[:i] {
			switch {
			case c.Fence.Epoch == d.Fence.Epoch && c.Fence != d.Fence:
				bad = append(bad, fmt.Sprintf("epoch %d was handed out twice: %+v and %+v", c.Fence.Epoch, c.Fence,
					d.Fence))
			case c.Sent.After(d.At) && c.Fence.Epoch < d.Fence.Epoch,
				d.Sent.After(c.At) && d.Fence.Epoch < c.Fence.Epoch:
				bad = append(bad, fmt.Sprintf("epochs went back between %+v and %+v", c, d))
			}
		}
	}
	settled, ends := map[uint64]string{}, 0
	for _, w := range e.writes {
		for _, c := range e.claims {
			if c.Fence.Epoch > w.Epoch && w.Sent.After(c.At) {
				bad = append(bad, fmt.Sprintf("a stale %s under epoch %d was accepted after epoch %d was handed out",
					w.Operation, w.Epoch, c.Fence.Epoch))
			}
		}
		switch w.Operation {
		case "step", "append":
			continue
		case "complete", "dead":
			ends++
			if w.Epoch < newest {
				bad = append(bad, fmt.Sprintf("%s under epoch %d was accepted, epoch %d was handed out", w.Operation,
					w.Epoch, newest))
			}
		}
		if before := settled[w.Epoch]; before != "" {
			bad = append(bad, fmt.Sprintf("epoch %d was settled twice: %s, %s", w.Epoch, before, w.Operation))
		}
		settled[w.Epoch] = w.Operation
	}
	if ends > 1 {
		bad = append(bad, fmt.Sprintf("it ended %d times", ends))
	}
	return bad
}

// check fails the test for everything that the journals contradict and logs what they hold.
func (l *ledger) check(t *testing.T) {
	t.Helper()
	shown := 0
	for id, e := range l.entries {
		for _, bad := range e.verdict() {
			if shown++; shown <= 20 {
				t.Errorf("%s: %s", id, bad)
			}
		}
	}
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(l.answers)) {
		lines = append(lines, fmt.Sprintf("%s %d", what, l.answers[what]))
	}
	t.Logf("the journals of %d executions: %s", len(l.entries), strings.Join(lines, ", "))
}

// The ledger is a checker, so it is checked: every breach that it knows, and a history that is sound.
func TestLedgerSeesEveryBreach(t *testing.T) {
	id := mint.ID(7)
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	claim := func(ms int, session string, epoch uint64) crash.Claimed {
		return crash.Claimed{Sent: at(ms), At: at(ms + 1),
			Fence: flowfabric.Fence{Execution: id, Session: session, Claim: 1, Epoch: epoch}}
	}
	write := func(ms int, operation string, epoch uint64) crash.Written {
		return crash.Written{Sent: at(ms), Operation: operation, Answer: "ok", Execution: id, Epoch: epoch}
	}
	first, second := claim(10, "a~1", 10), claim(20, "b~1", 20)
	for name, x := range map[string]struct {
		e    entry
		want string
	}{
		"sound": {entry{[]crash.Claimed{first, second},
			[]crash.Written{write(12, "append", 10), write(30, "step", 20), write(31, "complete", 20)}}, ""},
		"in flight while it was claimed": {entry{[]crash.Claimed{first, second},
			[]crash.Written{write(20, "append", 10)}}, ""},
		"one epoch twice": {entry{claims: []crash.Claimed{first, claim(20, "b~1", 10)}},
			"handed out twice"},
		"an epoch that goes back": {entry{claims: []crash.Claimed{first, claim(20, "b~1", 9)}}, "went back"},
		"a stale append": {entry{[]crash.Claimed{first, second},
			[]crash.Written{write(22, "append", 10)}}, "stale append"},
		"a stale end": {entry{[]crash.Claimed{first, second},
			[]crash.Written{write(20, "complete", 10)}}, "under epoch 10"},
		"two ends": {entry{[]crash.Claimed{first},
			[]crash.Written{write(12, "complete", 10), write(13, "dead", 10)}}, "ended 2 times"},
		"two settlements under one epoch": {entry{[]crash.Claimed{first},
			[]crash.Written{write(12, "delay", 10), write(13, "release", 10)}}, "settled twice"},
	} {
		got := strings.Join(x.e.verdict(), "; ")
		if x.want == "" && got != "" || !strings.Contains(got, x.want) {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}
