package admit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testgate"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	partitions = 2
	leaseTTL   = time.Hour
)

// env is a server whose clock the test moves.
type env struct {
	*testing.T
	ctx     context.Context
	url     string
	e       *engine.Engine
	advance func(time.Duration)
	ids     []flowfabric.ExecutionID
}

// servers runs a test on the embedded server and on a real one.
func servers(t *testing.T, f func(w *env)) {
	t.Run("embedded", func(t *testing.T) { f(newEnv(t)) })
	t.Run("redis", func(t *testing.T) { f(realEnv(t, testserver.Redis(t))) })
}

func newEnv(t *testing.T) *env {
	t.Helper()
	s, err := embedded.Start(t.Context(), embedded.Config{Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	t.Cleanup(func() { s.Close() })
	w := open(t, s.URL(), false)
	now := time.Now()
	w.advance = func(d time.Duration) {
		now = now.Add(d)
		s.SetTime(now)
	}
	w.advance(0)
	return w
}

func realEnv(t *testing.T, url string) *env {
	t.Helper()
	w := open(t, url, true)
	path, local := strings.CutPrefix(url, "unix://")
	if !local {
		t.Fatalf("the address of a private server: %s", url)
	}
	o := rueidis.ClientOption{InitAddress: []string{path}, DisableCache: true, ForceSingleClient: true}
	o.DialCtxFn = func(ctx context.Context, path string, d *net.Dialer, _ *tlsConfig) (net.Conn, error) {
		return d.DialContext(ctx, "unix", path)
	}
	raw, err := rueidis.NewClient(o)
	must.No(t, err)
	t.Cleanup(raw.Close)
	offset := time.Duration(0)
	w.advance = func(d time.Duration) {
		offset += d
		var roots []string
		for i := range uint16(partitions) {
			roots = append(roots, string(keys.Of(i)))
		}
		for i := range w.e.GatePartitions() {
			roots = append(roots, keys.GateRoot(i))
		}
		for _, root := range roots {
			there, err := raw.Do(w.ctx, raw.B().Exists().Key(root).Build()).AsBool()
			if err == nil && there {
				err = raw.Do(w.ctx, raw.B().Hset().Key(root).FieldValue().FieldValue("clock_offset",
					strconv.FormatInt(offset.Milliseconds(), 10)).Build()).Error()
			}
			must.No(t, err)
		}
	}
	return w
}

func open(t *testing.T, url string, testClock bool) *env {
	t.Helper()
	ctx, cancel := testwait.Context(t, context.Background())
	t.Cleanup(cancel)
	e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: url, Partitions: partitions,
		TestClock: testClock, Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	t.Cleanup(e.Close)
	return &env{T: t, ctx: ctx, url: url, e: e}
}

func (w *env) no(err error) {
	w.Helper()
	must.No(w, err)
}

// gate makes a gate.
func (w *env) gate(q admission.Gate) flowfabric.Gate {
	w.Helper()
	_, _, _, err := w.e.PutGate(w.ctx, q, 0)
	w.no(err)
	w.advance(0)
	return flowfabric.Gate(q.Name)
}

// budget makes a gate that counts amounts.
func (w *env) budget(b admission.Gate) flowfabric.Gate {
	w.Helper()
	if b.Limits == nil {
		b.Limits = map[string]admission.Limit{"tokens": {Hard: 100}}
	}
	return w.gate(b)
}

// create makes an execution in a partition.
func (w *env) create(partition uint16, gates ...flowfabric.Gate) flowfabric.ExecutionID {
	w.Helper()
	x := engine.NewExecution{ID: mint.ID(partition), Payload: []byte("{}"),
		Start: testgate.Asks(flowfabric.Start{Namespace: "default", Lane: "default", Kind: "k"}, gates...)}
	created, err := w.e.CreateExecutions(w.ctx, partition, []engine.NewExecution{x})
	w.no(err)
	w.no(created[0].Err)
	w.ids = append(w.ids, x.ID)
	return x.ID
}

func (w *env) code(id flowfabric.ExecutionID) codes.Code {
	w.Helper()
	x, err := w.e.ReadExecution(w.ctx, id)
	w.no(err)
	return x.Code
}

func (w *env) held(gate flowfabric.Gate) int {
	w.Helper()
	q, err := w.e.ReadGate(w.ctx, gate.Name(), 0, 0, 0)
	w.no(err)
	return q.Held
}

func (w *env) started(gate flowfabric.Gate) int {
	w.Helper()
	q, err := w.e.ReadGate(w.ctx, gate.Name(), 0, 0, 0)
	w.no(err)
	return q.Started
}

// why tells why routes of a partition are closed.
func (w *env) why(partition uint16) (list []string) {
	w.Helper()
	for _, p := range w.e.Gates(w.ctx) {
		w.no(p.Err)
		if p.Partition == partition {
			for _, c := range p.Closed {
				list = append(list, c.Why)
			}
		}
	}
	return list
}

// tick lets the time of a partition pass, whichever process owned it.
func (w *env) tick(partition uint16) (outbox int) {
	w.Helper()
	for more := true; more; {
		reply, err := w.e.Tick(w.ctx, partition, "owner", false)
		w.no(err)
		more, outbox = reply.More, reply.Outbox
	}
	return outbox
}

func (w *env) deliver(partition uint16) (n int) {
	w.Helper()
	for {
		some, err := admit.Deliver(w.ctx, w.e, partition)
		w.no(err)
		if n += some; some == 0 {
			return n
		}
	}
}

// store is what a process uses of the engine.
type store interface {
	admit.Engine
	admit.Outbox
}

// worker claims in one partition.
type worker struct {
	*env
	admitter  *admit.Admitter
	partition uint16
	session   string
	number    uint64
	table     uint64
	routes    []uint64
	digest    string
	refusals  []string
	more      bool
}

func (w *env) worker(s store, partition uint16) *worker {
	k := &worker{env: w, partition: partition, session: engine.NewSessionID("w")}
	k.admitter = admit.New(admit.Config{Engine: s, Logger: slog.New(slog.DiscardHandler),
		OnRefused: func(r admit.Refusal, _ int) {
			k.refusals = append(k.refusals, r.Text())
		}})
	return k
}

// try makes one claim, of the same number as before if that was not answered.
func (k *worker) try(max int) ([]engine.Claim, error) {
	reply, err := k.admitter.ClaimNext(k.ctx,
		engine.ClaimRequest{Partition: k.partition, Session: k.session, Number: k.number + 1, TTL: leaseTTL, Max: max,
			Subscription: k.digest, Table: k.table})
	if errors.Is(err, denied.UnknownSubscription) {
		k.digest, err = k.e.SetSubscription(k.ctx, k.partition, engine.Subscription{Classes: k.routes})
		k.no(err)
		return k.try(max)
	}
	if err != nil {
		return nil, err
	}
	if len(reply.Grants) > 0 {
		k.Fatal("grants are not the claimer's business")
	}
	if len(reply.Claims) > 0 || reply.Granted || reply.Duplicate {
		k.number++
	}
	k.more = reply.More
	k.table = reply.Table
	for _, r := range reply.Routes {
		k.routes = append(k.routes, r.ID)
		k.digest = ""
	}
	if k.digest == "" {
		k.digest, err = k.e.SetSubscription(k.ctx, k.partition, engine.Subscription{Classes: k.routes})
		k.no(err)
		if len(reply.Claims) == 0 && !reply.Granted {
			return k.try(max)
		}
	}
	return reply.Claims, nil
}

func (k *worker) claim(max int) []engine.Claim {
	k.Helper()
	claims, err := k.try(max)
	k.no(err)
	return claims
}

// one claims exactly one.
func (k *worker) one() engine.Claim {
	k.Helper()
	claims := k.claim(10)
	if len(claims) != 1 {
		k.Fatalf("%d claims, want 1; closed: %q", len(claims), k.why(k.partition))
	}
	return claims[0]
}

func (k *worker) nothing() {
	k.Helper()
	if claims := k.claim(10); len(claims) != 0 {
		k.Fatalf("%d claims, want none", len(claims))
	}
}

func (w *env) complete(c engine.Claim) {
	w.Helper()
	settled, _, err := w.e.CompleteExecutions(w.ctx, c.Fence.Execution.Partition(),
		[]engine.Completion{{Fence: c.Fence}}, nil)
	w.no(err)
	w.no(settled[0].Err)
}

func same[T comparable](w *env, what string, got, want T) {
	w.Helper()
	if got != want {
		w.Fatalf("%s: %v, want %v", what, got, want)
	}
}

var errLost = fmt.Errorf("%w: lost by the test", flowfabric.ErrTransport)

// process is an engine whose at-th call is not made, or made and not heard of. Then the process is dead, or goes on.
type process struct {
	*engine.Engine
	at       int
	executed bool
	survives bool

	calls int
	dead  bool
	names []string
}

func (p *process) around(name string, call func() error) error {
	if p.dead {
		return errors.Join(errLost, errors.New("dead"))
	}
	p.calls++
	p.names = append(p.names, name)
	if p.calls != p.at {
		return call()
	}
	if p.executed {
		_ = call() // nobody hears of it
	}
	p.dead = !p.survives
	return errLost
}
