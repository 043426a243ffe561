package conformance

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/record"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

type tlsConfig = tls.Config

// proto is the first argument of every function that is called by hand.
var proto = strconv.Itoa(limits.Protocol)

// protoOf is proto with a note of who asks and why, which no trail keeps.
func protoOf(by, why string) string {
	return proto + trail.Of(trail.As(context.Background(), by, why))
}

// unnoted are arguments without the note behind the protocol number.
func unnoted(args []string) []string {
	if len(args) == 0 {
		return args
	}
	number, _, _ := strings.Cut(args[0], "\x1f")
	return append([]string{number}, args[1:]...)
}

// ttl is the lease of a test worker. The clock of a scenario stands still until advance moves it, so no lease runs
// out on a slow machine.
const ttl = 30 * time.Second

// env is one scenario's partition, empty at the start.
type env struct {
	*testing.T
	srv     *Server
	e       *engine.Engine
	raw     rueidis.Client
	ctx     context.Context
	p       uint16
	k       keys.Partition
	checker *invariant.Checker // remembers what it saw since the reset
	hostile bool               // calls may have arguments that no header knows
	quiet   bool               // no checks: the same steps were checked before
	hands   bool               // what state makes has handed out a waitpoint, if it was ever held
	members bool               // what state makes is a member of a flow
	moving  map[string]bool    // roots of gates whose clocks move along, see follow
	roots   []string           // partitions of gates that belong to the scenario, see beside
	stepped bool               // its clock was set back
	unheard [][]string         // subject, execution and waitpoint of what staged calls register, see forgetExpected
	gated   bool               // gates belong to the scenario: they are audited at its end
	meters  map[string]string  // what they measure, by name: a claim of what they let pass tells it
}

func newEnv(t *testing.T, s *Server, e *engine.Engine, raw rueidis.Client, partition uint16) *env {
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	w := &env{T: t, srv: s, e: e, raw: raw, ctx: ctx, p: partition, k: keys.Of(partition), moving: map[string]bool{},
		meters: map[string]string{}}
	if os.Getenv("FLOWFABRIC_ANNOUNCE") != "" {
		// internal/mutants reads in the log what a scenario runs, and has ff_boot begin anew
		w.no(w.do("EVAL", "redis.log(redis.LOG_WARNING, ARGV[1]) return 1", "0", "scenario "+t.Name()).Error())
		w.no(w.do("FCALL", "ff_boot", "1", string(w.k), "scenario").Error())
	}
	w.reset()
	t.Cleanup(func() {
		if t.Failed() && s.Share >= slowest {
			t.Logf("FLOWFABRIC_SEED=%d tries the same parts of enumerations again", turn())
		}
	})
	t.Cleanup(func() { // later looks at the keyspace are cheaper; the test's own context has ended
		after, cancel := testwait.Context(t, context.Background())
		defer cancel()
		w.ctx = after
		w.reset()
	})
	return w
}

// slowest is the Share of a server that interprets functions so slowly that a run enumerates only a part.
const slowest = 10

var turn = sync.OnceValue(func() uint64 { return uint64(number("FLOWFABRIC_SEED", time.Now().UnixNano())) })

// mine tells whether this run has step i of an enumeration: each run has all of them, but of the slowest server one
// of four, others with another seed.
func (w *env) mine(i int) bool {
	return w.srv.Share < slowest || os.Getenv("FLOWFABRIC_SOAK") != "" || (uint64(i)+turn())%4 == 0
}

// reset empties the partition and boots it again.
func (w *env) reset() {
	w.Helper()
	w.checker = invariant.NewChecker()
	if all := w.keys(); len(all) > 0 {
		w.no(w.raw.Do(w.ctx, w.raw.B().Del().Key(all...).Build()).Error())
	}
	w.clear(w.roots...)
	w.roots = nil
	w.must("ff_boot", proto)
	w.set("HSET", string(w.k), "clock_pin", strconv.FormatInt(w.wall(), 10))
}

// no fails on an error.
func (w *env) no(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// is fails unless err is the wanted sentinel.
func (w *env) is(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("got error %v, want %v", err, want)
	}
}

func same[T comparable](w *env, what string, got, want T) {
	w.Helper()
	if got != want {
		w.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// sameList is same for lists; none and an empty one are alike.
func sameList[T comparable](w *env, what string, got []T, want ...T) {
	w.Helper()
	w.all(what, eqList(got, want...))
}

// sameDeep is same for what == cannot compare.
func sameDeep[T any](w *env, what string, got, want T) {
	w.Helper()
	w.all(what, eqDeep(got, want))
}

// inequality says how a value differs from the one that is wanted; it is "" if they are equal.
type inequality string

func eq[T comparable](got, want T) inequality {
	if got == want {
		return ""
	}
	return unequal(got, want)
}

func eqList[T comparable](got []T, want ...T) inequality {
	if slices.Equal(got, want) {
		return ""
	}
	return unequal(got, want)
}

func eqDeep[T any](got, want T) inequality {
	if reflect.DeepEqual(got, want) {
		return ""
	}
	return unequal(got, want)
}

func unequal[T any](got, want T) inequality {
	return inequality(fmt.Sprintf("got %#v, want %#v", got, want))
}

// all fails unless all values are equal to those that are wanted. It names the first that is not.
func (w *env) all(what string, values ...inequality) {
	w.Helper()
	for i, v := range values {
		if v != "" {
			w.Fatalf("%s: value %d of %d: %s", what, i+1, len(values), v)
		}
	}
}

// do runs a raw command.
func (w *env) do(args ...string) rueidis.RedisResult {
	return w.raw.Do(w.ctx, w.raw.B().Arbitrary(args...).Build())
}

// set runs a raw command that must succeed.
func (w *env) set(args ...string) {
	w.Helper()
	if err := w.do(args...).Error(); err != nil && !rueidis.IsRedisNil(err) {
		w.Fatalf("%v: %v", args, err)
	}
}

// text is the value of a key, "" if there is none.
func (w *env) text(key string) string {
	w.Helper()
	text, err := w.do("GET", key).ToString()
	if !rueidis.IsRedisNil(err) {
		w.no(err)
	}
	return text
}

type fields = map[string]string

// editRecord changes fields of a record. One that is not there is made.
func (w *env) editRecord(id uuid.UUID, edit func(fields)) {
	w.Helper()
	r, key := record.Record{Fields: fields{}}, w.k.Core(id)
	if text := w.text(key); text != "" {
		var err error
		r, err = record.Decode(text)
		w.no(err)
	}
	edit(r.Fields)
	if n, _ := strconv.Atoi(r.Fields["in"]); n > record.Inline {
		r.Input = ""
	}
	w.set("SET", key, r.Encode())
}

// editLinks changes the group, the near edges or the near dependants of a member.
func (w *env) editLinks(id uuid.UUID, edit func(*record.Links)) {
	w.Helper()
	l, err := record.DecodeLinks(w.text(w.k.Links(id)))
	w.no(err)
	edit(&l)
	if l.Leads <= record.Near {
		l.Leads, l.Aside = len(l.To), strings.Count(" "+strings.Join(l.To, " "), " o")
	}
	w.set("SET", w.k.Links(id), l.Encode())
}

// editWaits changes the suspension, the waitpoints or the signals of an execution. Those that are not there are made.
func (w *env) editWaits(id uuid.UUID, edit func(record.Waits)) {
	w.Helper()
	x := record.DecodeWaits(w.text(w.k.Waits(id)))
	edit(x)
	w.set("SET", w.k.Waits(id), x.Encode())
}

// waits is what an execution waits for, as it is stored.
func (w *env) waits(id flowfabric.ExecutionID) record.Waits {
	w.Helper()
	return record.DecodeWaits(w.text(w.k.Waits(ids.UUID(id))))
}

// answer is a reply as it came over the wire.
type answer struct {
	status int64
	code   string
	slots  []string
}

// fcall calls a function with arguments the engine would never send. A reply outside the envelope fails: it would
// be a function that raised.
func (w *env) fcall(name string, args ...string) answer {
	w.Helper()
	return w.fcallOn([]string{w.seat(name)}, name, args...)
}

func (w *env) fcallOn(roots []string, name string, args ...string) answer {
	w.Helper()
	msgs, err := w.raw.Do(w.ctx,
		w.raw.B().Fcall().Function(name).Numkeys(int64(len(roots))).Key(roots...).Arg(args...).Build()).ToArray()
	if err != nil {
		w.Fatalf("%s %.300q: no envelope: %v", name, args, err)
	}
	var a answer
	if a.status, err = msgs[0].AsInt64(); err != nil || len(msgs) < 2 {
		w.Fatalf("%s: status: %v", name, err)
	}
	for i, m := range msgs[1:] {
		text, err := m.ToString()
		if err != nil {
			w.Fatalf("%s: slot %d is not a string: %v", name, i, err)
		}
		a.slots = append(a.slots, text)
	}
	a.code, a.slots = a.slots[0], a.slots[1:]
	w.shaped(name, args, a)
	return a
}

// must is an fcall that answers OK.
func (w *env) must(name string, args ...string) answer {
	w.Helper()
	a := w.fcall(name, args...)
	if a.code != "OK" {
		w.Fatalf("%s: %+v", name, a)
	}
	return a
}

// advance moves the clock of this partition, also back, and those that move along.
func (w *env) advance(d time.Duration) {
	w.Helper()
	w.stepped = w.stepped || d < 0
	for _, root := range append(slices.Collect(maps.Keys(w.moving)), string(w.k)) {
		w.set("HINCRBY", root, "clock_pin", strconv.FormatInt(d.Milliseconds(), 10))
	}
}

// clockAt sets the clock of this partition, ms.
func (w *env) clockAt(ms int64) {
	w.Helper()
	w.advance(time.Duration(ms-w.now()) * time.Millisecond)
}

// age lets a millisecond pass, so that what comes later is younger.
func (w *env) age() {
	w.Helper()
	w.advance(time.Millisecond)
}

// followServer lets the clock of this partition follow the server's, for what needs time that passes by itself.
func (w *env) followServer() {
	w.Helper()
	w.set("HDEL", string(w.k), "clock_pin")
}

// now is the clock of this partition, ms.
func (w *env) now() int64 {
	w.Helper()
	pin, err := strconv.ParseInt(w.root()["clock_pin"], 10, 64)
	if err != nil {
		return w.wall()
	}
	return pin
}

// wall is the server's own clock, ms.
func (w *env) wall() int64 {
	w.Helper()
	t, err := w.do("TIME").AsStrSlice()
	w.no(err)
	s, _ := strconv.ParseInt(t[0], 10, 64)
	us, _ := strconv.ParseInt(t[1], 10, 64)
	return s*1000 + us/1000
}

// ready lists the partition's ready routes.
func (w *env) ready() []string {
	routes, err := w.do("SMEMBERS", w.k.Ready()).AsStrSlice()
	w.no(err)
	return routes
}

func (w *env) root() map[string]string { return w.hash(string(w.k)) }

func (w *env) hash(key string) map[string]string {
	w.Helper()
	m, err := w.do("HGETALL", key).AsStrMap()
	w.no(err)
	return m
}

func (w *env) core(id flowfabric.ExecutionID) map[string]string {
	w.Helper()
	text, err := w.do("GET", w.k.Core(ids.UUID(id))).ToString()
	if rueidis.IsRedisNil(err) {
		return map[string]string{}
	}
	w.no(err)
	r, err := record.Decode(text)
	w.no(err)
	return r.Fields
}

// at reads a number of the core.
func (w *env) at(id flowfabric.ExecutionID, field string) int64 {
	w.Helper()
	n, _ := strconv.ParseInt(w.core(id)[field], 10, 64)
	return n
}

func (w *env) read(id flowfabric.ExecutionID) engine.Snapshot {
	w.Helper()
	s, err := w.e.ReadExecution(w.ctx, id)
	w.no(err)
	return s
}

// code fails unless the execution is (shown) in the wanted state, and returns its snapshot.
func (w *env) code(id flowfabric.ExecutionID, want codes.Code) engine.Snapshot {
	w.Helper()
	s := w.read(id)
	if s.Code != want {
		w.Fatalf("%s is %s, want %s", id, s.Code, want)
	}
	return s
}

type option func(*engine.NewExecution)

func (w *env) item(opts ...option) engine.NewExecution {
	x := engine.NewExecution{ID: mint.ID(w.p), Start: flowfabric.Start{Namespace: "default",
		Lane: "default", Kind: "k"},
		Payload: []byte("in")}
	for _, o := range opts {
		o(&x)
	}
	return x
}

// create admits one execution.
func (w *env) create(opts ...option) flowfabric.ExecutionID {
	w.Helper()
	x := w.item(opts...)
	c, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{x})
	w.no(err)
	w.no(c[0].Err)
	w.check()
	w.age()
	return x.ID
}

// createN admits n in one call.
func (w *env) createN(n int, opts ...option) []flowfabric.ExecutionID {
	w.Helper()
	ids := make([]flowfabric.ExecutionID, n)
	for first := 0; first < n; first += 100 {
		items := make([]engine.NewExecution, min(100, n-first))
		for i := range items {
			items[i] = w.item(opts...)
			ids[first+i] = items[i].ID
		}
		c, err := w.e.CreateExecutions(w.ctx, w.p, items)
		w.no(err)
		for _, x := range c {
			w.no(x.Err)
		}
		w.age()
	}
	w.check()
	return ids
}

func priority(n int) option   { return func(x *engine.NewExecution) { x.Priority = n } }
func kind(name string) option { return func(x *engine.NewExecution) { x.Kind = name } }
func lane(name string) option { return func(x *engine.NewExecution) { x.Lane = name } }
func payload(b []byte) option { return func(x *engine.NewExecution) { x.Payload = b } }
func delay(d time.Duration) option {
	return func(x *engine.NewExecution) { x.Delay = flowfabric.Millis(d) }
}
func deadline(d time.Duration) option {
	return func(x *engine.NewExecution) { x.Deadline = flowfabric.Millis(d) }
}
func timeout(d time.Duration) option {
	return func(x *engine.NewExecution) { x.Policy.AttemptTimeout = flowfabric.Millis(d) }
}
func tags(t map[string]string) option { return func(x *engine.NewExecution) { x.Tags = t } }
func retention(d time.Duration) option {
	return func(x *engine.NewExecution) { x.Policy.Retention = valid.RetainAll(d) }
}
func capabilities(tokens ...string) option {
	return func(x *engine.NewExecution) { x.Capabilities = tokens }
}
func reclaims(n int) option { return func(x *engine.NewExecution) { x.Policy.MaxReclaims = n } }
func retry(p flowfabric.RetryPolicy) option {
	return func(x *engine.NewExecution) { x.Policy.Retry = p }
}
func retries(n int) option {
	return retry(flowfabric.RetryPolicy{MaxRetries: n, Initial: time.Second, Max: time.Minute, Multiplier: 2})
}

// unchanged fails unless run leaves the partition, and those beside it, byte-identical.
func (w *env) unchanged(what string, run func()) {
	w.Helper()
	before := w.digest()
	run()
	if after := w.digest(); after != before {
		w.Fatalf("%s changed the keyspace:\n%s", what, difference(before, after))
	}
}

// sameBut fails unless run leaves the partition as it is, but for facts with the given prefixes.
func (w *env) sameBut(what string, run func(), without ...string) {
	w.Helper()
	before := w.digest(without...)
	run()
	if after := w.digest(without...); after != before {
		w.Fatalf("%s changed the keyspace:\n%s", what, difference(before, after))
	}
	w.check()
}
