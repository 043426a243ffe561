package ledger_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/ledger"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// errLost is what a caller hears of a call that did not arrive, or whose reply did not.
var errLost = fmt.Errorf("%w: lost", flowfabric.ErrTransport)

// dying is a process whose call number at is lost, before the server acts or after it. It dies with it, or survives.
type dying struct {
	*engine.Engine
	at       int
	executed bool
	survives bool

	calls int
	dead  bool
}

func (d *dying) around(call func() error) error {
	if d.dead {
		return errLost
	}
	if d.calls++; d.calls != d.at {
		return call()
	}
	if d.executed {
		_ = call() // nobody hears of it
	}
	d.dead = !d.survives
	return errLost
}

func (d *dying) Reserve(ctx context.Context, x engine.Reservation) (r admission.Reported, w []engine.Waiter,
	err error) {
	err = d.around(func() (e error) { r, w, e = d.Engine.Reserve(ctx, x); return e })
	if err != nil {
		return admission.Reported{}, nil, err
	}
	return r, w, nil
}

func (d *dying) Settle(ctx context.Context, x engine.Reservation) (r admission.Reported, w []engine.Waiter,
	err error) {
	err = d.around(func() (e error) { r, w, e = d.Engine.Settle(ctx, x); return e })
	if err != nil {
		return admission.Reported{}, nil, err
	}
	return r, w, nil
}

func (d *dying) Unreserve(ctx context.Context, x engine.Reservation) (r admission.Reported, w []engine.Waiter,
	err error) {
	err = d.around(func() (e error) { r, w, e = d.Engine.Unreserve(ctx, x); return e })
	return r, w, err
}

func (d *dying) AboveGate(ctx context.Context, gate string) (parent string, counts bool, err error) {
	err = d.around(func() (e error) { parent, counts, e = d.Engine.AboveGate(ctx, gate); return e })
	return parent, counts, err
}

func (d *dying) Suspects(ctx context.Context, p uint16) (list []engine.SuspectReservation, err error) {
	err = d.around(func() (e error) { list, e = d.Engine.Suspects(ctx, p); return e })
	if err != nil {
		return nil, err
	}
	return list, nil
}

func (d *dying) CheckHolds(ctx context.Context, p uint16, holds []engine.Hold) (answers []string, err error) {
	err = d.around(func() (e error) { answers, e = d.Engine.CheckHolds(ctx, p, holds); return e })
	if err != nil {
		return nil, err
	}
	return answers, nil
}

func (d *dying) Resolve(ctx context.Context, x engine.SuspectReservation) (w []engine.Waiter, err error) {
	err = d.around(func() (e error) { w, e = d.Engine.Resolve(ctx, x); return e })
	return w, err
}

const upTo, really = 10, 4 // what is reserved, and what the call uses

// world is a server whose clock the test moves.
type world struct {
	*testing.T
	ctx  context.Context
	e    *engine.Engine
	s    *embedded.Server
	now  time.Time
	made int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := testwait.Context(t, context.Background())
	t.Cleanup(cancel)
	s, err := embedded.Start(ctx, embedded.Config{Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	t.Cleanup(func() { s.Close() })
	e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: s.URL(), Partitions: 1,
		Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	t.Cleanup(e.Close)
	return &world{T: t, ctx: ctx, e: e, s: s, now: time.Now()}
}

// gates makes the gates of a case, those above first: names of its own, which no process has heard of yet.
func (w *world) gates(list ...admission.Gate) (names map[string]string) {
	w.Helper()
	w.made++
	names = map[string]string{}
	for _, g := range list {
		names[g.Name] = fmt.Sprintf("%s-%d", g.Name, w.made)
		g.Name = names[g.Name]
		if g.Parent != "" {
			g.Parent = names[g.Parent]
		}
		_, _, _, err := w.e.PutGate(w.ctx, g, 0)
		must.No(w, err)
	}
	return names
}

// reckon ends what is reserved a minute and more later, by a process that is lost at its call number at, and then by
// others.
func (w *world) reckon(names []string, at int, executed bool) (calls int) {
	w.Helper()
	w.now = w.now.Add(2 * time.Minute)
	w.s.SetTime(w.now)
	d := &dying{Engine: w.e, at: at, executed: executed}
	for _, process := range []*dying{d, {Engine: w.e}} {
		for ended := 1; ended > 0; {
			ended = 0
			for _, name := range names {
				n, err := admit.Reckon(w.ctx, process, ids.GatePartition(name, w.e.GatePartitions()))
				if err != nil && !process.dead {
					w.Fatal(err)
				}
				ended += n
			}
		}
	}
	return d.calls
}

// used is what is used of the gates that count amounts, which must all say the same, and that nothing is reserved.
func (w *world) used(names map[string]string) (used int64) {
	w.Helper()
	said, cents := map[string]int64{}, int64(-1)
	for _, name := range names {
		g, err := w.e.ReadGate(w.ctx, name, 0, 0, 0)
		must.No(w, err)
		if g.Reserved["tokens"] != 0 || g.Reserved["cents"] != 0 {
			w.Errorf("%s: %v are reserved", name, g.Reserved)
		}
		if g.CountsAmounts() {
			said[name], used = g.Used["tokens"], g.Used["tokens"]
			if !g.StrictDimensions {
				cents = g.Used["cents"]
			}
		}
	}
	for _, n := range said {
		if n != used || cents != used {
			w.Errorf("the gates do not agree: %v, %d cents", said, cents)
			break
		}
	}
	return used
}

// shape is a way in which three gates that count amounts stand to each other.
type shape struct {
	name  string
	gates []admission.Gate
	own   []string
	deep  bool // who ends what was left dies at every call, too
}

func shapes() []shape {
	limit := map[string]admission.Limit{"tokens": {Hard: 1000}}
	return []shape{
		{"above each other", []admission.Gate{{Name: "org", Limits: limit}, {Name: "team", Parent: "org"},
			{Name: "user", Parent: "team", Limits: limit}}, []string{"user"}, true},
		{"beside each other", []admission.Gate{{Name: "a"}, {Name: "b", Limits: limit}, {Name: "c"}},
			[]string{"a", "b", "c"}, false},
		{"two own ones with one above", []admission.Gate{{Name: "org", Limits: limit}, {Name: "a", Parent: "org"},
			{Name: "b", Parent: "org"}}, []string{"a", "b"}, false},
		{"the first one counts no amounts", []admission.Gate{{Name: "org", Limits: limit}, {Name: "a", Rate: 100,
			Window: flowfabric.Millis(time.Second)}, {Name: "b", Parent: "org"}, {Name: "c"}},
			[]string{"a", "b", "c"}, false},
		{"the one that decides does not know all dimensions", []admission.Gate{{Name: "org"},
			{Name: "team", Parent: "org"}, {Name: "user", Parent: "team", Limits: limit, StrictDimensions: true}},
			[]string{"user"}, false},
		{"only those above count amounts", []admission.Gate{{Name: "c", Limits: limit}, {Name: "b", Parent: "c"},
			{Name: "d", Parent: "b"}, {Name: "a", Concurrency: 1, Parent: "d"}}, []string{"a"}, false},
	}
}

// deaths is a case of TestDeathAtEveryCall.
type deaths struct {
	shape    shape
	known    bool // the process has heard of the gates before
	release  bool // the call is not made
	survives bool
	executed bool
	once     bool // what has failed is not tried again
}

func (c deaths) String() string {
	return fmt.Sprintf("%s known=%t release=%t survives=%t executed=%t once=%t", c.shape.name, c.known, c.release,
		c.survives, c.executed, c.once)
}

// live reserves, calls and settles once, with the call number at lost. It returns what the call used, and whether all
// that was to be said has been said.
func (c deaths) live(w *world, names map[string]string, d *dying) (tokens int64, said bool) {
	w.Helper()
	x := &ledger.Entry{Fence: flowfabric.Fence{Execution: mint.ID(0), Epoch: 1}, Number: 1,
		Amounts: map[string]int64{"tokens": upTo, "cents": upTo}}
	for _, name := range c.shape.own {
		x.Own = append(x.Own, names[name])
	}
	refused, err := ledger.Reserve(w.ctx, d, x)
	if refused != nil {
		w.Fatalf("refused: %+v", refused)
	}
	if err != nil {
		return 0, d.survives
	}
	end := func() error { return ledger.Release(w.ctx, d, x) }
	if !c.release {
		tokens = really
		end = func() error {
			_, err := ledger.Settle(w.ctx, d, x, map[string]int64{"tokens": really, "cents": really})
			return err
		}
	}
	err = end()
	switch {
	case err != nil && d.survives && c.once && c.release: // as a task does when its handler returns
		_, _ = ledger.Settle(w.ctx, d, x, x.Amounts)
	case err != nil && d.survives && !c.once:
		err = end()
	}
	return tokens, err == nil
}

// A process dies at every call that a reservation in three gates makes, before the server acts or after it, or goes on
// without having heard of it; and so does the one that ends what it has left. Afterwards all gates agree, nothing is
// reserved, what was called is counted, and nothing is counted that was given back.
func TestDeathAtEveryCall(t *testing.T) {
	cases := 0
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) { // on a server of its own: what is left of others costs time
			w := newWorld(t)
			for bits := range 32 {
				c := deaths{s, bits&1 > 0, bits&2 > 0, bits&4 > 0, bits&8 > 0, bits&16 > 0}
				if c.once && !c.survives || c.known && !s.deep {
					continue
				}
				calls, _ := w.die(c, 0, 0, false)
				if calls < 6 {
					t.Fatalf("%s: only %d calls: nothing was proved", c, calls)
				}
				for at := 1; at <= calls; at++ {
					_, reckoned := w.die(c, at, 0, false)
					cases++
					for n := 1; n <= reckoned && s.deep && bits&^8 == 0; n++ { // and who ends it dies, too
						w.die(c, at, n, false)
						w.die(c, at, n, true)
						cases += 2
					}
				}
			}
		})
	}
	t.Logf("%d cases", cases)
}

// die runs a case whose call number at is lost, and the call number reckonAt of who ends what is left. It returns how
// many calls both made.
func (w *world) die(c deaths, at, reckonAt int, executed bool) (calls, reckoned int) {
	w.Helper()
	names := w.gates(c.shape.gates...)
	if c.known {
		plain := deaths{shape: c.shape, release: true}
		if _, said := plain.live(w, names, &dying{Engine: w.e}); !said {
			w.Fatal("it could not be given back")
		}
	}
	d := &dying{Engine: w.e, at: at, executed: c.executed, survives: c.survives}
	tokens, said := c.live(w, names, d)
	reckoned = w.reckon(slices.Sorted(maps.Values(names)), reckonAt, executed)
	switch used := w.used(names); {
	case said && used != tokens:
		w.Errorf("%d are used, want %d", used, tokens)
	case used != tokens && used != upTo && used != 0, used < tokens:
		w.Errorf("%d are used of %d, the call used %d", used, upTo, tokens)
	}
	if w.Failed() {
		w.Fatalf("%s: lost at call %d, at call %d of the reckoning, executed=%t", c, at, reckonAt, executed)
	}
	return d.calls, reckoned
}
