package model_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/flowfabric/flowfabric-go/internal/model"
)

// unbounded lets a check take as long as it takes: it follows one order, or searches a handful of calls.
const unbounded = 0

// patience is how long the search for another order may take. It bounds memory, and ends no test that would pass: the
// order that is known has failed already. A verdict that takes longer is unknown, and that fails, too.
const patience = time.Minute

// TestLinearizable runs histories of concurrent workers, operators and a ticker against Redis, with replies lost and
// calls repeated while they are still on their way, and asks of each whether some order of its calls explains every
// answer. 200, or FLOWFABRIC_SOAK.
//
// The server counts each call in the transaction that makes it, so one order that the clients could have seen is
// known, and to check it takes no time. Only if it does not explain the answers are the others searched: a search can
// take longer than anybody waits, also for a history that is legal.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	seed, _ := strconv.ParseUint(os.Getenv("FLOWFABRIC_SEED"), 10, 64)
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	s := redisServer(t)
	clients := make([]*client, 7)
	for i := range clients {
		clients[i] = &client{id: i, raw: s.more(), other: s.more()}
	}
	var verdicts tally
	histories := max(200, soak())
	var checkers sync.WaitGroup
	turn := make(chan struct{}, 4)
	for n := range histories {
		h := record(t, s, clients, seed, uint64(n))
		turn <- struct{}{}
		checkers.Go(func() {
			defer func() { <-turn }()
			verdicts.add(t, n, h)
		})
		if verdicts.failed() {
			break
		}
	}
	checkers.Wait()
	verdicts.verify(t, seed)
}

// record makes one history. Its decisions follow from seed and number; how they interleave does not.
func record(t *testing.T, s *server, clients []*client, seed, number uint64) *history {
	t.Helper()
	s.reset(t.Context(), t)
	for i, c := range clients {
		c.r = rand.New(rand.NewPCG(seed, number<<8|uint64(i)))
	}
	h := &history{s: s, ctx: t.Context(), zero: time.Now()}
	h.run(clients)
	if h.err != nil {
		t.Fatalf("seed %d history %d: %v", seed, number, h.err)
	}
	return h
}

// tally counts verdicts and what the histories held.
type tally struct {
	mu                   sync.Mutex
	ok, illegal, unknown int
	calls, lost, overlap int
	purged, taken        int // executions by ticks; ticks of one replica after those of the other
	kinds                map[string]int
	answers              map[string]int
	slowest              time.Duration
	searched             int // histories that the server's own order does not explain
	owner                string
}

func (y *tally) add(t *testing.T, n int, h *history) {
	began := time.Now()
	// The order in which the server made the calls explains them, unless something is wrong, or they were counted
	// wrongly: then any other may.
	verdict := porcupine.CheckOperationsTimeout(sequential(model.New(begin)), h.asServed(), unbounded)
	searched := verdict != porcupine.Ok
	if searched {
		verdict = porcupine.CheckOperationsTimeout(sequential(model.New(begin)), h.ops, patience)
	}
	took := time.Since(began)
	y.mu.Lock()
	defer y.mu.Unlock()
	y.slowest = max(y.slowest, took)
	if searched {
		y.searched++
		t.Logf("history %d is not legal in the order in which the server made its calls; the first that is not:\n%s", n,
			h.astray())
	}
	switch verdict {
	case porcupine.Ok:
		y.ok++
	case porcupine.Illegal:
		if y.illegal++; y.illegal == 1 {
			t.Logf("history %d has no order that explains it:\n%s", n, tell(h.ops))
		}
	default:
		y.unknown++
	}
	y.count(h.ops)
}

func (y *tally) count(ops []porcupine.Operation) {
	if y.kinds == nil {
		y.kinds, y.answers = map[string]int{}, map[string]int{}
	}
	y.owner = ""
	for i, op := range ops {
		y.calls++
		y.kinds[op.Input.(call).Kind]++
		o := op.Output.(*outcome)
		if o == nil {
			y.lost++
			continue
		}
		y.answers[o.reply.Code]++
		if c := op.Input.(call); c.Kind == "tick" && o.reply.Code == model.OK {
			n, _ := strconv.Atoi(o.reply.Slots[11])
			y.purged += n
			if y.owner != "" && y.owner != c.Name {
				y.taken++
			}
			y.owner = c.Name
		}
		for _, other := range ops[:i] {
			if other.Return > op.Call && op.Return > other.Call {
				y.overlap++
				break
			}
		}
	}
}

func (y *tally) failed() bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.illegal+y.unknown > 0
}

// verify fails for every history that is not known to be legal, and when histories did not hold what they are for.
func (y *tally) verify(t *testing.T, seed uint64) {
	t.Helper()
	t.Logf(
		"seed %d: %d histories legal, %d illegal, %d unknown; %d calls, %d of them overlapping, %d replies lost, %d purged, %d times the other ticked; %d searched; slowest check %s; %v; %v",
		seed, y.ok, y.illegal, y.unknown, y.calls, y.overlap, y.lost, y.purged, y.taken, y.searched,
		y.slowest.Round(time.Millisecond), y.kinds, y.answers)
	if y.illegal+y.unknown > 0 {
		t.Fatalf("%d illegal, %d unknown", y.illegal, y.unknown)
	}
	for kind := range kinds {
		if y.kinds[kind] == 0 {
			t.Errorf("no history had a %q", kind)
		}
	}
	for _, code := range []string{model.Already, "stale_lease", "lease_expired", "lease_revoked",
		"execution_not_active", "execution_not_terminal", "lane_closed"} {
		if y.answers[code] == 0 {
			t.Errorf("no call of a history was answered %s", code)
		}
	}
	if y.purged < y.ok/10 || y.taken < y.ok/4 {
		t.Errorf("in %d histories ticks purged %d executions, and %d times the other replica ticked", y.ok, y.purged,
			y.taken)
	}
	if y.overlap < y.calls/10 || y.lost < y.calls/200 {
		t.Errorf("of %d calls only %d overlapped and %d were lost", y.calls, y.overlap, y.lost)
	}
}
