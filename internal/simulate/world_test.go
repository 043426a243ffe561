package simulate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/suspend"
)

const (
	partitions = 2
	begin      = int64(1_799_123_456_789) // ms, when every world starts
	tail       = 30                       // lines of the journal that a failure shows
	kid        = "simulated"              // of the token key
)

// world is one deployment: its store, its clock, its actors, and what is known to have happened.
type world struct {
	seed  uint64
	r     *rand.Rand
	ctx   context.Context
	srv   *embedded.Server
	e     *engine.Engine
	raw   rueidis.Client
	now   time.Time
	steps int

	calls // faults, the journal
	truth // what really happened
	gates // of a world with slots
	heard

	checker *invariant.Checker
	touched [partitions]bool
	open    [partitions][]flowfabric.ExecutionID // had not ended when it was looked at
	stepped [partitions]bool                     // its clock was set back
	bad     []string                             // what is wrong; the run ends with the first
	actors  []actor
	names   int // given out
}

// actor makes one move when it is its turn.
type actor interface{ turn() }

// newWorld starts a deployment. change rewrites the library, to see that the simulation notices; nil leaves it alone.
func newWorld(t testing.TB, seed uint64, change func(lua string) string) *world {
	t.Helper()
	no := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	srv, err := embedded.Start(t.Context(), embedded.Config{InProcess: true})
	no(err)
	w := &world{seed: seed, r: rand.New(rand.NewPCG(seed, 0)), ctx: t.Context(), srv: srv, now: time.UnixMilli(begin),
		checker: invariant.NewChecker(), calls: calls{hash: sha256.New()},
		heard: heard{map[string]engine.PublishedNow{}, map[flowfabric.UUID]bool{}}}
	srv.SetTime(w.now)
	w.e, err = engine.Open(t.Context(), engine.Config{URL: srv.URL(), Partitions: partitions, TestClock: true,
		Logger: slog.New(slog.DiscardHandler), CallTimeout: time.Hour})
	no(err)
	w.raw, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{strings.TrimPrefix(srv.URL(),
		inproc.Scheme+"://")}, DisableCache: true, AlwaysPipelining: true, ForceSingleClient: true,
		PipelineMultiplex: -1, ConnWriteTimeout: time.Hour, Dialer: net.Dialer{KeepAlive: -1},
		DialCtxFn: func(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return inproc.Dial(ctx, address)
		}})
	no(err)
	if change != nil {
		old := library.Library(library.Variant{TestClock: true})
		text := change(old)
		if text == old {
			t.Fatal("the library was to be changed and is the same")
		}
		no(w.raw.Do(w.ctx, w.raw.B().FunctionLoad().Replace().FunctionCode(text).Build()).Error())
	}
	_, err = w.e.SeedTokenKey(w.ctx, suspend.TokenKey{Kid: kid, Fingerprint: digest("secret")[:16]})
	no(err)
	w.people()
	return w
}

// people makes the actors.
func (w *world) people() {
	for _, name := range []string{"p1", "p2"} {
		w.actors = append(w.actors, &producer{party: party{world: w, name: name}})
	}
	for _, name := range []string{"w1", "w2", "w3"} {
		w.actors = append(w.actors, newWorker(w, name, false))
	}
	for _, name := range []string{"g1", "g2"} {
		w.actors = append(w.actors, newWorker(w, name, true))
	}
	for _, name := range []string{"m1", "m2"} {
		w.actors = append(w.actors, &maintainer{party: party{world: w, name: name}})
	}
	w.actors = append(w.actors, &operator{party: party{world: w, name: "o1"}},
		&publisher{party: party{world: w, name: "e1"}})
}

func (w *world) close() {
	w.e.Close()
	w.raw.Close()
	w.srv.Close()
}

// run lives through the seed, and returns what is wrong.
func (w *world) run() []string {
	w.faults = 1 + w.r.IntN(6) // how much goes wrong
	backwards := w.r.IntN(4) == 0
	for range 100 + w.r.IntN(100) {
		w.move(backwards)
		if len(w.bad) > 0 {
			return w.bad
		}
	}
	w.drain()
	return w.bad
}

// move lets time pass and an actor make a move.
func (w *world) move(backwards bool) {
	w.steps++
	w.pass(backwards)
	w.actors[w.r.IntN(len(w.actors))].turn()
	w.arrive()
	w.check()
}

// pass lets some time pass, mostly little.
func (w *world) pass(backwards bool) {
	switch n := w.r.IntN(100); {
	case n < 80:
		w.advance(w.between(0, 300*time.Millisecond))
	case n < 95:
		w.advance(w.between(0, 2*time.Second))
	case n < 98:
		w.advance(w.between(0, 20*time.Second))
	case n < 99:
		w.advance(w.between(0, 10*time.Minute))
	case backwards:
		w.stepBack(uint16(w.r.IntN(partitions)), time.Duration(1+w.r.IntN(5000))*time.Millisecond)
	}
}

func (w *world) advance(d time.Duration) {
	w.now = w.now.Add(d)
	w.srv.SetTime(w.now)
}

// stepBack sets the clock of a partition back. The others, and the expiry of keys, go on.
func (w *world) stepBack(p uint16, d time.Duration) {
	w.log("clock of %d back by %s", p, d)
	w.stepped[p] = true
	root := fmt.Sprintf("ff:{fp:%d}", p)
	if err := w.raw.Do(w.ctx, w.raw.B().Hincrby().Key(root).Field("clock_offset").Increment(-d.Milliseconds()).
		Build()).Error(); err != nil {
		w.wrong("set a clock back: %v", err)
	}
}

// check holds what was touched against the rules.
func (w *world) check() {
	for p := range w.touched {
		if !w.touched[p] || len(w.bad) > 0 {
			continue
		}
		w.touched[p] = false
		d, err := invariant.Read(w.ctx, w.raw, uint16(p))
		if err != nil {
			w.wrong("read partition %d: %v", p, err)
			return
		}
		d.Stepped = w.stepped[p]
		w.open[p] = unended(d)
		for _, text := range w.checker.Violations(d) {
			w.wrong("partition %d: %s", p, text)
		}
	}
}

// unended lists the executions of a partition that have not ended.
func unended(d *invariant.Dump) (list []flowfabric.ExecutionID) {
	for key, core := range d.Hashes {
		if text, ok := strings.CutPrefix(key, ":x:"); ok && !strings.HasPrefix(core["s"], "T") {
			if id, err := uuid.Parse(text); err == nil { // the rules judge the others
				list = append(list, mint.Join(d.Partition, id))
			}
		}
	}
	slices.SortFunc(list, func(a, b flowfabric.ExecutionID) int { return bytes.Compare(a[:], b[:]) })
	return list
}

func (w *world) wrong(format string, args ...any) {
	w.bad = append(w.bad, fmt.Sprintf(format, args...))
}

// report says what is wrong, what led to it, and how to see it again.
func (w *world) report() string {
	from := max(0, len(w.journal)-tail)
	return fmt.Sprintf("seed %d, step %d:\n  %s\nThe last of %d lines:\n  %s\nReplay: make simulate SEED=%d",
		w.seed, w.steps, strings.Join(w.bad, "\n  "), len(w.journal), strings.Join(w.journal[from:], "\n  "), w.seed)
}

// chance is true so many times in a hundred.
func (w *world) chance(percent int) bool { return w.r.IntN(100) < percent }

// between is a duration in whole milliseconds.
func (w *world) between(from, to time.Duration) time.Duration {
	return from + time.Duration(w.r.Int64N(int64((to-from)/time.Millisecond)+1))*time.Millisecond
}

// fresh is a name that no other thing has.
func (w *world) fresh(prefix string) string {
	w.names++
	return fmt.Sprintf("%s%d", prefix, w.names)
}

func (w *world) uuid() (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[:], w.r.Uint64())
	binary.BigEndian.PutUint64(id[8:], w.r.Uint64())
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

func (w *world) id(p uint16) flowfabric.ExecutionID { return mint.Join(p, w.uuid()) }

func (w *world) partition() uint16 { return uint16(w.r.IntN(partitions)) }

func (w *world) minted(key string) engine.Minted {
	id := w.uuid()
	return engine.Minted{ID: flowfabric.UUID(id), Key: key, Kid: kid, Digest: digest("token of " + id.String()),
		Nonce: strings.ReplaceAll(w.uuid().String(), "-", "")}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// pick is one of a list, which must not be empty.
func pick[T any](w *world, list ...T) T { return list[w.r.IntN(len(list))] }

// party is what all actors have: a call whose answer they do not know is made again at their next turn.
type party struct {
	*world
	name    string
	pending func() error
}

// try makes a call, or makes it again later if its answer is lost.
func (p *party) try(call func() error) error {
	err := call()
	if p.pending = nil; errors.Is(err, errLost) {
		p.pending = call
	}
	return err
}

// again repeats the call whose answer was lost, and tells whether there was one. Now and then it gives up.
func (p *party) again() bool {
	call := p.pending
	if call == nil {
		return false
	}
	if p.chance(5) {
		p.pending = nil
		return false
	}
	_ = p.try(call)
	return true
}
