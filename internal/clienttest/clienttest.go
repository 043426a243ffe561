// Package clienttest has what the tests of client and admin share: stores with a client and an engine for the
// worker's part, flows, and a store whose clock the test moves.
package clienttest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

type Draft struct{ Topic string }

type Verdict struct{ Text string }

var Write = handler.Define[Draft, Verdict]("write-article", flowfabric.Retries(0))

// Open starts an embedded server of its own with a client and an engine for the worker's part.
func Open(t *testing.T) (context.Context, *client.Client, *engine.Engine) {
	t.Helper()
	return open(t, testserver.Embedded(t))
}

// OpenRedis is Open on Redis, for a test of many executions.
func OpenRedis(t *testing.T) (context.Context, *client.Client, *engine.Engine) {
	t.Helper()
	return open(t, testserver.Redis(t))
}

func open(t *testing.T, url string) (context.Context, *client.Client, *engine.Engine) {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.Connect(ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: url,
		Partitions: 4, Creator: "tests", Logger: quiet})
	must.No(t, err)
	t.Cleanup(c.Close)
	e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: url, Logger: quiet})
	must.No(t, err)
	t.Cleanup(e.Close)
	return ctx, c, e
}

// Claim takes one execution as a worker would.
func Claim(ctx context.Context, t testing.TB, e *engine.Engine, id flowfabric.ExecutionID) engine.Claim {
	t.Helper()
	q := engine.ClaimRequest{Partition: id.Partition(), Session: engine.NewSessionID("tester"), Number: 1,
		TTL: time.Hour, Max: 10}
	table, err := e.ClaimNext(ctx, q)
	must.No(t, err)
	var routes []uint64
	for _, r := range table.Routes {
		routes = append(routes, r.ID)
	}
	if q.Subscription, err = e.SetSubscription(ctx, q.Partition, engine.Subscription{Classes: routes}); err != nil {
		t.Fatal(err)
	}
	q.Table = table.Table
	reply, err := e.ClaimNext(ctx, q)
	must.No(t, err)
	for _, x := range reply.Claims {
		if x.Fence.Execution == id {
			return x
		}
	}
	t.Fatalf("%s was not claimed: %+v", id, reply)
	return engine.Claim{}
}

// OnServers runs a test on the embedded server and on Redis.
func OnServers(t *testing.T, test func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine)) {
	t.Run("embedded", func(t *testing.T) { on(t, testserver.Embedded(t), test) })
	OnRedis(t, test)
}

// OnRedis is OnServers on Redis alone, for a test of many executions.
func OnRedis(t *testing.T, test func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine)) {
	t.Run("redis", func(t *testing.T) { on(t, testserver.Redis(t), test) })
}

func on(t *testing.T, url string, test func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine)) {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.Connect(ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: url,
		Partitions: 2, Creator: "billing", Logger: quiet})
	must.No(t, err)
	defer c.Close()
	e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: url, Logger: quiet})
	must.No(t, err)
	defer e.Close()
	test(ctx, t, c, e)
}

func Submit(ctx context.Context, t testing.TB, c *client.Client, topic string,
	opts ...client.SubmitOption) *client.Execution[Verdict] {
	t.Helper()
	x, err := client.Submit(ctx, c, Write, Draft{topic}, opts...)
	must.No(t, err)
	return x
}

// Finish claims an execution, appends a frame and completes it with text, as a worker would.
func Finish(ctx context.Context, t *testing.T, e *engine.Engine, id flowfabric.ExecutionID, text string) engine.Claim {
	t.Helper()
	held := Claim(ctx, t, e, id)
	if _, err := e.AppendFrames(ctx, held.Fence, 1,
		[]stream.Frame{{Type: "token", Payload: []byte(text)}}); err != nil {
		t.Fatal(err)
	}
	settled, _, err := e.CompleteExecutions(ctx, id.Partition(),
		[]engine.Completion{{Fence: held.Fence, Result: []byte(`{"Text":"` + text + `"}`)}}, nil)
	if err != nil || settled[0].Err != nil {
		t.Fatalf("%v, %+v", err, settled)
	}
	return held
}

// Hands does the work of one partition as a worker would.
type Hands struct {
	ctx       context.Context
	t         *testing.T
	e         *engine.Engine
	partition uint16
}

func NewHands(ctx context.Context, t *testing.T, e *engine.Engine, partition uint16) *Hands {
	return &Hands{ctx, t, e, partition}
}

func (h *Hands) No(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// Claim takes everything that can be claimed, by node, in a session of its own.
func (h *Hands) Claim() map[string]engine.Claim {
	h.t.Helper()
	q := engine.ClaimRequest{Partition: h.partition, Session: engine.NewSessionID("hands"), Number: 1, TTL: time.Hour,
		Max: 100}
	table, err := h.e.ClaimNext(h.ctx, q)
	h.No(err)
	var routes []uint64
	for _, r := range table.Routes {
		routes = append(routes, r.ID)
	}
	q.Subscription, err = h.e.SetSubscription(h.ctx, h.partition, engine.Subscription{Classes: routes})
	h.No(err)
	q.Table = table.Table
	reply, err := h.e.ClaimNext(h.ctx, q)
	h.No(err)
	out := map[string]engine.Claim{}
	for _, c := range reply.Claims {
		out[c.Node] = c
	}
	return out
}

// Complete ends claims with a text; none are all that can be claimed.
func (h *Hands) Complete(text string, claims ...engine.Claim) {
	h.t.Helper()
	for _, c := range claims {
		out, _, err := h.e.CompleteExecutions(h.ctx, h.partition,
			[]engine.Completion{{Fence: c.Fence, Result: []byte(`{"Text":"` + text + `"}`)}}, nil)
		h.No(err)
		h.No(out[0].Err)
	}
}

// Fail ends a claim for good.
func (h *Hands) Fail(c engine.Claim) {
	h.t.Helper()
	_, err := h.e.FailExecution(h.ctx, c.Fence, engine.Failure{Category: "broken", Permanent: true})
	h.No(err)
}

var Left, Right = flow.Input[Verdict]{Name: "left"}, flow.Input[Verdict]{Name: "right"}

// Diamond is a flow of four nodes.
func Diamond(kind string, opts ...flow.Option) (f *flow.Flow, join *flow.Node[Verdict]) {
	f = flow.New(kind, opts...)
	a := flow.Add(f, "a", Write, Draft{"a"})
	b := flow.Add(f, "b", Write, Draft{"b"}, flow.After(a))
	c := flow.Add(f, "c", Write, Draft{"c"}, flow.After(a))
	return f, flow.Add(f, "d", Write, Draft{"d"}, Left.From(b), Right.From(c))
}

// Chain is a flow of n nodes, each after the one before.
func Chain(n int) *flow.Flow {
	f := flow.New("chain")
	var last *flow.Node[Verdict]
	for i := range n {
		var opts []flow.NodeOption
		if last != nil {
			opts = append(opts, flow.After(last))
		}
		last = flow.Add(f, fmt.Sprintf("n%03d", i), Write, Draft{"x"}, opts...)
	}
	return f
}

func SubmitFlow(ctx context.Context, t *testing.T, c *client.Client, f *flow.Flow,
	opts ...client.FlowOption) *client.Flow {
	t.Helper()
	fl, err := client.SubmitFlow(ctx, c, f, opts...)
	must.No(t, err)
	return fl
}

func Snapshot(ctx context.Context, t *testing.T, fl *client.Flow) client.FlowSnapshot {
	t.Helper()
	s, err := fl.Snapshot(ctx)
	must.No(t, err)
	return s
}

// States are the nodes of a flow by state, in order.
func States(s client.FlowSnapshot) string {
	by := map[flowfabric.PublicState][]string{}
	for _, m := range s.Nodes {
		by[m.State.Public] = append(by[m.State.Public], m.Node)
	}
	return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(by), "map["), "]")
}

// Secret is one of the keys a, b, c, d.
func Secret(kid string) string {
	sum := sha256.Sum256([]byte(kid))
	return kid + ":" + hex.EncodeToString(sum[:])
}

// Booth is a store with a clock that the test moves, a client with the keys a to d, and an engine for the worker's
// part.
type Booth struct {
	*testing.T
	Ctx    context.Context
	Server *embedded.Server
	Now    time.Time
	Client *client.Client
	Engine *engine.Engine
	Ring   *tokenkeys.Keyring
}

func NewBooth(t *testing.T) *Booth {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	quiet := slog.New(slog.DiscardHandler)
	server, err := embedded.Start(ctx, embedded.Config{Logger: quiet})
	must.No(t, err)
	t.Cleanup(server.Close)
	b := &Booth{T: t, Ctx: ctx, Server: server, Now: time.UnixMilli(1_800_000_000_000)}
	server.SetTime(b.Now)
	keys := strings.Join([]string{Secret("a"), Secret("b"), Secret("c"), Secret("d")}, ",")
	if b.Ring, err = tokenkeys.Parse(keys); err != nil {
		t.Fatal(err)
	}
	if b.Client, err = client.Connect(ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour,
		URL: server.URL(), Partitions: 2, TokenKeys: keys, Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Client.Close)
	if b.Engine, err = engine.Open(ctx,
		engine.Config{CallTimeout: time.Hour, URL: server.URL(), Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Engine.Close)
	return b
}

// Seed makes key a current.
func (b *Booth) Seed() *Booth {
	b.Helper()
	must.No(b, b.Ring.Seed(b.Ctx, b.Engine))
	return b
}

func (b *Booth) Pass(d time.Duration) {
	b.Now = b.Now.Add(d)
	b.Server.SetTime(b.Now)
}

// Park suspends a new execution until somebody signals its waitpoint "release", for as long as within says (0: for
// ever).
func (b *Booth) Park(within time.Duration) (*client.Execution[Verdict], suspend.Token) {
	b.Helper()
	x := Submit(b.Ctx, b.T, b.Client, "tides")
	held := Claim(b.Ctx, b.T, b.Engine, x.ID())
	m, token, err := b.Ring.Reissue(x.ID(), mint.UUID(), "release")
	must.No(b, err)
	if _, err := b.Engine.SuspendExecution(b.Ctx, held.Fence,
		engine.Suspension{ID: mint.UUID(), Name: "release", Reason: "waiting_for_approval", Timeout: within,
			Behaviour: "fail", Condition: "L\x1f1\x1f1\x1f", Bindings: []engine.Binding{{Minted: m}}}); err != nil {
		b.Fatal(err)
	}
	return x, token
}

// Signal answers with a token and says what came of it.
func (b *Booth) Signal(token suspend.Token) error {
	_, err := b.Client.Signal(b.Ctx, token, true)
	return err
}

// Flip changes the last digit of a token.
func Flip(t *testing.T, token suspend.Token) suspend.Token {
	t.Helper()
	text := []byte(token.Reveal())
	text[len(text)-1] ^= 1
	if text[len(text)-1] > 'f' || text[len(text)-1] == '`' {
		text[len(text)-1] = '0'
	}
	flipped, err := suspend.ParseToken(string(text))
	must.No(t, err)
	return flipped
}
