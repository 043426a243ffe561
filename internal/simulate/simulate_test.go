package simulate

import (
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"testing"
)

// setting is a number of the environment, or two with a dash between, which are returned as a range.
func setting(t *testing.T, name string) (from, to uint64) {
	text := os.Getenv(name)
	if text == "" {
		return 0, 0
	}
	first, last, ok := strings.Cut(text, "-")
	if !ok {
		first, last = "1", text
	}
	from, err := strconv.ParseUint(first, 10, 64)
	to, wrong := strconv.ParseUint(last, 10, 64)
	if err != nil || wrong != nil || from < 1 || to < from {
		t.Fatalf("%s=%s: want a number, or two as in 1001-2000", name, text)
	}
	return from, to
}

// live runs one seed and returns what is wrong, and a hash of all that happened.
func live(t testing.TB, seed uint64, change func(lua string) string) (*world, string) {
	w := newWorld(t, seed, change)
	defer w.close()
	w.run()
	return w, hex.EncodeToString(w.hash.Sum(nil))
}

// TestSimulate runs FLOWFABRIC_SEED alone and shows its journal, or the seeds 1..FLOWFABRIC_SEEDS, 20 without it.
func TestSimulate(t *testing.T) {
	if _, seed := setting(t, "FLOWFABRIC_SEED"); seed > 0 {
		w, _ := live(t, seed, nil)
		t.Logf("seed %d:\n%s", seed, strings.Join(w.journal, "\n"))
		if len(w.bad) > 0 {
			t.Error(w.report())
		}
		return
	}
	const lanes = 4
	first, last := setting(t, "FLOWFABRIC_SEEDS")
	if last == 0 {
		first, last = 1, 20
	}
	for lane := range uint64(lanes) {
		t.Run(strconv.FormatUint(lane, 10), func(t *testing.T) {
			t.Parallel()
			ends, calls, taken := 0, 0, 0
			for seed := first + lane; seed <= last; seed += lanes {
				w, _ := live(t, seed, nil)
				if len(w.bad) > 0 {
					t.Fatal(w.report())
				}
				ends, calls, taken = ends+w.settled, calls+len(w.journal), taken+w.gone
			}
			t.Logf("%d ends, %d lines of journals, %d leases taken over", ends, calls, taken)
		})
	}
}

// The same seed is the same run, to the last answer.
func TestSeedsRepeat(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		one, first := live(t, seed, nil)
		two, second := live(t, seed, nil)
		if first == second {
			continue
		}
		for i := range min(len(one.journal), len(two.journal)) {
			if one.journal[i] != two.journal[i] {
				t.Errorf("seed %d, line %d:\n%s\n%s", seed, i, one.journal[i], two.journal[i])
				break
			}
		}
	}
}

// A library with a bug is noticed: one that lets anybody write who once held an execution, and one that forgets to
// take an entry out of an index.
func TestBugsAreNoticed(t *testing.T) {
	const seeds = 60
	for name, bug := range map[string][2]string{
		"fence": {"if c.session ~= f.session or c.claim_number ~= f.claim or c.epoch ~= f.epoch or " +
			"core.attempt(c) ~= f.attempt then", "if false then"},
		"index": {"redis.call('ZREM', keys.held(r, sid), unpack(ids))", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := func(lua string) string { return strings.Replace(lua, bug[0], bug[1], 1) }
			for seed := uint64(1); seed <= seeds; seed++ {
				if w, _ := live(t, seed, change); len(w.bad) > 0 {
					t.Logf("seed %d: %s", seed, w.bad[0])
					return
				}
			}
			t.Errorf("%d seeds notice nothing", seeds)
		})
	}
}
