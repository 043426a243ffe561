package conformance

import (
	"context"
	"crypto/sha1"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/record"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

type tlsConfig = tls.Config

// proto is the first argument of every function that is called by hand.
var proto = strconv.Itoa(limits.Protocol)

// ttl is the lease of a test worker; it is moved past with advance, never waited for.
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
	roots   []string           // partitions of budgets and quotas that belong to the scenario, see beside
	stepped bool               // its clock was set back
	gated   bool               // budgets and quotas belong to the scenario: they are audited at its end
}

func newEnv(t *testing.T, s *Server, e *engine.Engine, raw rueidis.Client, partition uint16) *env {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute+time.Duration(number("FLOWFABRIC_SOAK", 0))*20*time.Millisecond)
	t.Cleanup(cancel)
	w := &env{T: t, srv: s, e: e, raw: raw, ctx: ctx, p: partition, k: keys.Of(partition)}
	w.reset()
	t.Cleanup(func() {
		if t.Failed() && s.Share >= slowest {
			t.Logf("FLOWFABRIC_SEED=%d tries the same parts of enumerations again", turn())
		}
	})
	t.Cleanup(func() { // later looks at the keyspace are cheaper; the test's own context has ended
		after, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		w.ctx = after
		w.reset()
	})
	return w
}

// slowest is the Share of a server that interprets functions so slowly that a run enumerates only a part.
const slowest = 10

var turn = sync.OnceValue(func() uint64 { return uint64(number("FLOWFABRIC_SEED", time.Now().UnixNano())) })

// mine tells whether this run has step i of an enumeration: each run has all of them, but of the slowest server one of four, others with another seed.
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

// words joins values with single spaces, strings too.
func words(values ...any) string { return strings.TrimSuffix(fmt.Sprintln(values...), "\n") }

// do runs a raw command.
func (w *env) do(args ...string) rueidis.RedisResult {
	return w.raw.Do(w.ctx, w.raw.B().Arbitrary(args...).Build())
}

// set runs a raw command that must succeed.
func (w *env) set(args ...string) {
	w.Helper()
	if w.editLinks(args) {
		return
	}
	if len(args) > 2 && strings.HasPrefix(args[0], "H") {
		switch key := args[1]; {
		case strings.Contains(key, ":x:"):
			w.edit(key, args[0], args[2:])
			return
		case strings.Contains(key, ":u:"):
			w.editWaits(key, func(x record.Waits) { w.alter(x.Suspension, args[0], args[2:]) })
			return
		case strings.Contains(key, ":wp:"):
			w.editWaits(strings.Replace(key, ":wp:", ":u:", 1), func(x record.Waits) { w.alter(x.Waitpoints, args[0], args[2:]) })
			return
		}
	}
	if err := w.do(args...).Error(); err != nil && !rueidis.IsRedisNil(err) {
		w.Fatalf("%v: %v", args, err)
	}
}

// edit changes fields of a record as if it were a hash: HSET, HDEL or HINCRBY. One that is not there is made.
func (w *env) edit(key, command string, args []string) {
	w.Helper()
	r := record.Record{Fields: map[string]string{}}
	text, err := w.do("GET", key).ToString()
	if err == nil {
		r, err = record.Decode(text)
	}
	if !rueidis.IsRedisNil(err) {
		w.no(err)
	}
	w.alter(r.Fields, command, args)
	if n, _ := strconv.Atoi(r.Fields["in"]); n > record.Inline {
		r.Input = ""
	}
	w.set("SET", key, r.Encode())
}

// alter does to fields what a command does to a hash.
func (w *env) alter(fields map[string]string, command string, args []string) {
	w.Helper()
	switch command {
	case "HSET":
		for i := 0; i < len(args); i += 2 {
			fields[args[i]] = args[i+1]
		}
	case "HDEL":
		for _, field := range args {
			delete(fields, field)
		}
	case "HINCRBY":
		n, _ := strconv.Atoi(fields[args[0]])
		change, err := strconv.Atoi(args[1])
		w.no(err)
		fields[args[0]] = strconv.Itoa(n + change)
	default:
		w.Fatalf("no edit %s of a record", command)
	}
}

// editLinks changes the group, the edges or the dependants of a member as if they had keys of their own: field g of the execution, hash
// fi and list fo. It returns false if the command is about something else, or if they have such keys.
func (w *env) editLinks(args []string) bool {
	w.Helper()
	if len(args) < 2 {
		return false
	}
	area, id, ok := linked(args[1])
	if !ok || area == ":x:" && (args[0] != "HSET" || !slices.Contains(args, "g")) {
		return false
	}
	key := strings.Replace(args[1], area, ":m:", 1)
	text, err := w.do("GET", key).ToString()
	if err != nil {
		return false
	}
	l, err := record.DecodeLinks(text)
	w.no(err)
	switch command := args[0]; {
	case area == ":x:":
		i := slices.Index(args, "g")
		l.Group = args[i+1]
		if rest := slices.Concat(args[:i], args[i+2:]); len(rest) > 2 {
			w.set(rest...)
		}
	case area == ":fi:" && (len(l.Edges) > 0 || l.Group == ""):
		if command == "DEL" {
			clear(l.Edges)
		} else {
			w.alter(l.Edges, command, args[2:])
		}
	case area == ":fo:" && l.Leads <= record.Near:
		switch command {
		case "DEL":
			l.To = nil
		case "RPUSH":
			l.To = append(l.To, args[2:]...)
		case "LREM":
			if i := slices.Index(l.To, args[3]); i >= 0 {
				l.To = slices.Delete(l.To, i, i+1)
			}
		default:
			w.Fatalf("no edit %s of dependants of %s", command, id)
		}
		l.Leads, l.Aside = len(l.To), strings.Count(" "+strings.Join(l.To, " "), " o")
	default:
		return false
	}
	w.no(w.do("SET", key, l.Encode()).Error())
	if more := args[2:]; args[0] == "DEL" && len(more) > 0 {
		w.set(slices.Concat([]string{"DEL"}, more)...)
	}
	return true
}

// linked tells whether a key is one of those that links stand for: its area and whose.
func linked(key string) (area, id string, ok bool) {
	for _, area := range []string{":x:", ":fi:", ":fo:"} {
		if _, id, ok := strings.Cut(key, area); ok {
			return area, id, true
		}
	}
	return "", "", false
}

// waits is what an execution waits for, as it is stored.
func (w *env) waits(id flowfabric.ExecutionID) record.Waits {
	w.Helper()
	text, err := w.do("GET", w.k.Waits(id.UUID())).ToString()
	if !rueidis.IsRedisNil(err) {
		w.no(err)
	}
	return record.DecodeWaits(text)
}

func (w *env) editWaits(key string, edit func(record.Waits)) {
	w.Helper()
	text, err := w.do("GET", key).ToString()
	if !rueidis.IsRedisNil(err) {
		w.no(err)
	}
	x := record.DecodeWaits(text)
	edit(x)
	w.set("SET", key, x.Encode())
}

// answer is a reply as it came over the wire.
type answer struct {
	status int64
	code   string
	slots  []string
}

// fcall calls a function with arguments the engine would never send. A reply outside the envelope fails: it would
// be a script that raised.
func (w *env) fcall(name string, args ...string) answer {
	w.Helper()
	return w.fcallOn([]string{w.seat(name)}, name, args...)
}

func (w *env) fcallOn(roots []string, name string, args ...string) answer {
	w.Helper()
	var resp rueidis.RedisResult
	if w.srv.Features.Functions {
		resp = w.raw.Do(w.ctx, w.raw.B().Fcall().Function(name).Numkeys(int64(len(roots))).Key(roots...).Arg(args...).Build())
	} else {
		resp = w.raw.Do(w.ctx, w.raw.B().Evalsha().Sha1(w.script(name)).Numkeys(int64(len(roots))).Key(roots...).Arg(args...).Build())
	}
	msgs, err := resp.ToArray()
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

// scripts are the hashes of the functions as scripts, for servers that know no functions.
var scripts = map[string]func() (sha, text string){}

func init() {
	for _, h := range library.Functions() {
		scripts[h.Name] = sync.OnceValues(func() (string, string) {
			text := library.Script(h.Name, library.Variant{TestClock: true})
			return fmt.Sprintf("%x", sha1.Sum([]byte(text))), text
		})
	}
}

// script makes sure that the server has a script, and returns its hash.
func (w *env) script(name string) string {
	w.Helper()
	sha, text := scripts[name]()
	if known, err := w.do("SCRIPT", "EXISTS", sha).AsIntSlice(); err != nil || known[0] == 0 {
		w.set("SCRIPT", "LOAD", text)
	}
	return sha
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

// advance moves the server's clock of this partition, also back.
func (w *env) advance(d time.Duration) {
	w.Helper()
	w.stepped = w.stepped || d < 0
	w.set("HINCRBY", string(w.k), "clock_offset", strconv.FormatInt(d.Milliseconds(), 10))
}

// now is the server's clock in this partition, ms.
func (w *env) now() int64 {
	w.Helper()
	t, err := w.do("TIME").AsStrSlice()
	w.no(err)
	s, _ := strconv.ParseInt(t[0], 10, 64)
	us, _ := strconv.ParseInt(t[1], 10, 64)
	offset, _ := strconv.ParseInt(w.root()["clock_offset"], 10, 64)
	return s*1000 + us/1000 + offset
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
	text, err := w.do("GET", w.k.Core(id.UUID())).ToString()
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
func (w *env) code(id flowfabric.ExecutionID, want flowfabric.Code) engine.Snapshot {
	w.Helper()
	s := w.read(id)
	if s.State.Code != want {
		w.Fatalf("%s is %s, want %s", id, s.State.Code, want)
	}
	return s
}

type option func(*engine.NewExecution)

func (w *env) item(opts ...option) engine.NewExecution {
	x := engine.NewExecution{ID: flowfabric.NewExecutionID(w.p), Namespace: "default", Lane: "default", Kind: "k", Payload: []byte("in")}
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
	}
	w.check()
	return ids
}

func priority(n int) option           { return func(x *engine.NewExecution) { x.Priority = n } }
func kind(name string) option         { return func(x *engine.NewExecution) { x.Kind = name } }
func lane(name string) option         { return func(x *engine.NewExecution) { x.Lane = name } }
func payload(b []byte) option         { return func(x *engine.NewExecution) { x.Payload = b } }
func delay(d time.Duration) option    { return func(x *engine.NewExecution) { x.Delay = d } }
func deadline(d time.Duration) option { return func(x *engine.NewExecution) { x.Deadline = d } }
func timeout(d time.Duration) option {
	return func(x *engine.NewExecution) { x.Policy.AttemptTimeout = d }
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
