package webhook

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

var (
	quiet     = slog.New(slog.DiscardHandler)
	tokenKeys = "k1:" + strings.Repeat("ab", 32)
	charge    = handler.Define[string, string]("charge", flowfabric.Retries(0))
	refund    = handler.Define[string, string]("refund", flowfabric.Retries(0))
)

// received is a request that a receiver took.
type received struct {
	id   string
	body struct {
		Type string
		Data map[string]any
	}
}

// inbox is a receiver that checks signatures and keeps what it took.
type inbox struct {
	*httptest.Server
	mu   sync.Mutex
	took []received
	each func(n int, w http.ResponseWriter) // if set, answers the nth request
}

func newInbox(t testing.TB) *inbox {
	in := &inbox{}
	in.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err == nil {
			err = verified(q, body)
		}
		r := received{id: q.Header.Get("webhook-id")}
		if err == nil {
			err = json.Unmarshal(body, &r.body)
		}
		if err != nil {
			t.Errorf("%s: %v", body, err)
		}
		in.mu.Lock()
		in.took = append(in.took, r)
		n := len(in.took)
		in.mu.Unlock()
		if in.each != nil {
			in.each(n, w)
		}
	}))
	t.Cleanup(in.Close)
	return in
}

func (in *inbox) all() []received {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.took)
}

// await waits until so many requests came, and returns them.
func (in *inbox) await(t testing.TB, n int) []received {
	t.Helper()
	testwait.Progress(t, fmt.Sprintf("%d requests", n), func() (bool, any) {
		got := len(in.all())
		return got >= n, got
	})
	return in.all()
}

// env is a store with what serve runs for webhooks.
type env struct {
	t     testing.TB
	ctx   context.Context
	url   string
	c     *client.Client
	admin *admin.Admin
}

func newEnv(t testing.TB) *env {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	e := &env{t: t, ctx: ctx, url: testserver.Redis(t)}
	e.c = connect(t, ctx, e.url)
	e.admin = admin.New(e.c)
	return e
}

func connect(t testing.TB, ctx context.Context, url string) *client.Client {
	t.Helper()
	c, err := client.Connect(ctx, client.Config{URL: url, TokenKeys: tokenKeys, Partitions: 2, Creator: "tests",
		Logger: quiet})
	must.No(t, err)
	t.Cleanup(c.Close)
	return c
}

// work runs a worker until the test or the returned function ends it.
func (e *env) work(cfg runtime.Config, bound ...handler.Binding) (stop func()) {
	e.t.Helper()
	cfg.URL, cfg.Logger, cfg.TokenKeys, cfg.LeaseTTL = e.url, quiet, tokenKeys, 2*time.Second
	cfg.DrainTimeout = time.Second
	worker, err := runtime.New(cfg, bound...)
	must.No(e.t, err)
	ctx, cancel := context.WithCancel(e.ctx)
	var running conc.WaitGroup
	running.Go(func() {
		if err := worker.Run(ctx); err != nil {
			e.t.Errorf("worker: %v", err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	e.t.Cleanup(stop)
	return stop
}

// serve runs webhooks as serve does, with short pauses, once the relay knows its place.
func (e *env) serve(endpoints Endpoints) (stop func()) {
	e.t.Helper()
	ctx, cancel := context.WithCancel(e.ctx)
	w := New(Config{Endpoints: endpoints, Admin: e.admin, Logger: quiet, Stop: ctx})
	w.def = deliveries(flowfabric.RetryPolicy{MaxRetries: 2, Fixed: true, Initial: time.Millisecond})
	w.every, w.most = 10*time.Millisecond, 20
	must.No(e.t, w.keep(ctx))
	drained := e.work(runtime.Config{Namespace: Namespace, Capabilities: endpoints.Capabilities(),
		Concurrency: 2 * atOnce},
		w.Bindings()...)
	relay := e.relay()
	testwait.Until(e.t, "the relay has a place", func() bool {
		s, err := relay.Get(ctx)
		return err == nil && s.Continues > 0
	})
	return sync.OnceFunc(func() { cancel(); drained(); endpoints.Close() })
}

func (e *env) relay() *client.Execution[struct{}] {
	e.t.Helper()
	x, err := client.AttachKey(e.ctx, e.c, relay, "relay", flowfabric.Namespace(Namespace))
	must.No(e.t, err)
	return x
}

func (e *env) submit(def *handler.Definition[string, string], in string,
	opts ...client.SubmitOption) flowfabric.ExecutionID {
	e.t.Helper()
	x, err := client.Submit(e.ctx, e.c, def, in, opts...)
	must.No(e.t, err)
	return x.ID()
}

// users are handlers of an application.
func users() []handler.Binding {
	do := func(ctx context.Context, t *handler.Task, in string) (string, error) {
		switch in {
		case "fail":
			return "", handler.Permanent(errors.New("the card was refused"))
		case "ask":
			a, err := t.Ask(ctx, "release", suspend.Question{Title: "Ship it?", Assignee: "ops"})
			return a.Choice, err
		}
		return in, nil
	}
	return []handler.Binding{handler.Bind(charge, do), handler.Bind(refund, do)}
}

func endpoints(t testing.TB, all map[string]Endpoint) Endpoints {
	t.Helper()
	read, err := Read(all)
	must.No(t, err)
	return read
}

// Ends, failures, waits and budgets are told, to those whose filters they pass, once.
func TestEventsAreTold(t *testing.T) {
	e := newEnv(t)
	failures, mine, everything := newInbox(t), newInbox(t), newInbox(t)
	some := endpointAt(t, failures.URL)
	some.Events, some.Kinds, some.Details = []string{"execution.failed"}, []string{"charge"}, true
	tagged := endpointAt(t, mine.URL)
	tagged.Tags, tagged.Namespaces = map[string]string{"app.team": "pay"}, []string{"default"}
	tagged.Gates = []string{"another"}
	all := endpoints(t, map[string]Endpoint{"failures": some, "mine": tagged,
		"everything": endpointAt(t, everything.URL)})
	stop := e.serve(all)
	e.work(runtime.Config{}, users()...)

	failed := e.submit(charge, "fail")
	e.submit(refund, "fail", flowfabric.Tags(map[string]string{"app.team": "pay"}))
	e.submit(charge, "fine", flowfabric.Tags(map[string]string{"app.team": "play"}))
	asked := e.submit(charge, "ask")
	must.No(t, e.admin.PutGate(e.ctx, admission.Gate{Name: "month",
		Limits: map[string]admission.Limit{"cents": {Hard: 5}}}))
	_, err := e.admin.ReportUsage(e.ctx, admission.Usage{Gate: "month", Key: "k",
		Amounts: map[string]int64{"cents": 5}})
	must.No(t, err)

	got := map[string]received{}
	for _, r := range everything.await(t, 5) {
		got[r.body.Type+" "+fmt.Sprint(r.body.Data["kind"])] = r
	}
	want := []string{"budget.exhausted <nil>", "execution.completed charge", "execution.failed charge",
		"execution.failed refund", "execution.waiting charge"}
	if types := slices.Sorted(maps.Keys(got)); !slices.Equal(types, want) {
		t.Errorf("%q", types)
	}
	data := got["execution.failed charge"].body.Data
	if data["id"] != failed.String() || data["state"] != "failed" || data["category"] != "handler_error" ||
		data["message"] != nil || data["namespace"] != "default" || data["attempt"] != 1.0 {
		t.Errorf("%v", data)
	}
	data = got["execution.waiting charge"].body.Data
	wait, _ := data["wait"].(map[string]any)
	if data["id"] != asked.String() || wait["name"] != "release" || wait["assignee"] != "ops" || wait["title"] != nil {
		t.Errorf("%v", data)
	}
	data = got["budget.exhausted <nil>"].body.Data
	if data["gate"] != "month" || data["dimension"] != "cents" || data["used"] != 5.0 || data["limit"] != 5.0 {
		t.Errorf("%v", data)
	}
	if r := failures.await(t, 1)[0]; r.body.Data["message"] != "the card was refused" {
		t.Errorf("%v", r.body)
	}
	mine.await(t, 1)
	if _, err := e.c.Execution(asked).Approve(e.ctx, "release", suspend.Answer{Choice: "approve"}); err != nil {
		t.Fatal(err)
	}
	everything.await(t, 6)
	stop()
	for name, n := range map[*inbox]int{failures: 1, mine: 1, everything: 6} {
		if took := name.all(); len(took) != n {
			t.Errorf("%d requests, want %d: %+v", len(took), n, took)
		}
	}
}

// A receiver that fails is asked again with the same id, and then the delivery is a dead letter, which a replay sends.
func TestRetriesAndDeadLetters(t *testing.T) {
	e := newEnv(t)
	in := newInbox(t)
	in.each = func(n int, w http.ResponseWriter) {
		if n <= 3 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}
	stop := e.serve(endpoints(t, map[string]Endpoint{"one": endpointAt(t, in.URL)}))
	defer stop()
	e.work(runtime.Config{}, users()...)
	e.submit(charge, "fail")
	in.await(t, 3)
	var dead []admin.Listed
	testwait.Until(t, "the delivery is a dead letter", func() bool {
		page, err := e.admin.ListPage(e.ctx, admin.Filter{Namespace: Namespace,
			States: []flowfabric.PublicState{flowfabric.Failed}}, "", 10)
		must.No(t, err)
		dead = page.Items
		return len(dead) == 1
	})
	s, err := e.c.Execution(dead[0].ID).Get(e.ctx)
	if err != nil || s.Failure.Message != "the receiver answered 502 Bad Gateway" ||
		s.Tags["webhook.endpoint"] != "one" {
		t.Errorf("%+v, %v", s, err)
	}
	must.No(t, e.admin.Replay(e.ctx, dead[0].ID, admin.Replay{}))
	for _, r := range in.await(t, 4) {
		if r.id != in.all()[0].id {
			t.Errorf("another id: %+v", r)
		}
	}
	stop()
	if n := len(in.all()); n != 4 {
		t.Errorf("%d requests", n)
	}
}

// The relay saves its place many times and tells of each end once.
func TestManyEvents(t *testing.T) {
	e := newEnv(t)
	in := newInbox(t)
	stop := e.serve(endpoints(t, map[string]Endpoint{"one": endpointAt(t, in.URL)}))
	defer stop()
	e.work(runtime.Config{}, users()...)
	const n = 300
	all, err := client.SubmitMany(e.ctx, e.c, charge, make([]string, n))
	must.No(t, err)
	want := map[string]bool{}
	for _, x := range all {
		want[x.ID().String()] = true
	}
	for _, r := range in.await(t, n) {
		id, _ := r.body.Data["id"].(string)
		if !want[id] {
			t.Errorf("%s comes twice, or is none of these", id)
		}
		delete(want, id)
	}
	s, err := e.relay().Get(e.ctx)
	must.No(t, err)
	if s.Continues < 5 {
		t.Errorf("the place was saved %d times", s.Continues)
	}
}

// A receiver that does not answer keeps no messages from another one.
func TestSlowReceiver(t *testing.T) {
	e := newEnv(t)
	slow, quick := newInbox(t), newInbox(t)
	hold := make(chan struct{})
	slow.each = func(int, http.ResponseWriter) { <-hold }
	stop := e.serve(endpoints(t, map[string]Endpoint{"slow": endpointAt(t, slow.URL),
		"quick": endpointAt(t, quick.URL)}))
	e.work(runtime.Config{}, users()...)
	const n = 4 * atOnce
	_, err := client.SubmitMany(e.ctx, e.c, charge, make([]string, n))
	must.No(t, err)
	quick.await(t, n)
	close(hold)
	slow.await(t, n)
	stop()
}

// child is a process that runs a part of webhooks until it is killed.
func child(url string) int {
	ctx := context.Background()
	c, err := client.Connect(ctx, client.Config{URL: url, TokenKeys: tokenKeys, Logger: quiet})
	if err != nil {
		return 2
	}
	var config map[string]Endpoint
	if err := json.NewDecoder(os.Stdin).Decode(&config); err != nil {
		return 3
	}
	all, err := Read(config)
	if err != nil {
		return 4
	}
	w := New(Config{Endpoints: all, Admin: admin.New(c), Logger: quiet, Stop: ctx})
	bound := w.Bindings()
	if os.Getenv("WEBHOOK_TEST_DIES") == "between" {
		dies := func(ctx context.Context, _ *handler.Task, from place) (struct{}, error) {
			feed, err := w.Admin.Subscribe(ctx, admin.SubscribeOptions{Ends: true, From: from.Cursor})
			if err != nil {
				return struct{}{}, err
			}
			for e, err := range feed.Events(ctx) {
				if h, failed := w.read(ctx, e); err == nil && failed == nil && h != nil {
					fmt.Println("read", h.id)
					_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				}
			}
			return struct{}{}, ctx.Err()
		}
		bound = []handler.Binding{handler.Bind(relay, dies)}
	}
	worker, err := runtime.New(runtime.Config{URL: url, TokenKeys: tokenKeys, Logger: quiet, Namespace: Namespace,
		Capabilities: all.Capabilities(), LeaseTTL: 2 * time.Second}, bound...)
	if err != nil {
		return 5
	}
	fmt.Println("runs")
	_ = worker.Run(ctx)
	return 6
}

// start runs child in a process of its own.
func (e *env) start(config map[string]Endpoint, dies string) (*exec.Cmd, *bufio.Scanner) {
	e.t.Helper()
	self, err := os.Executable()
	must.No(e.t, err)
	text, err := json.Marshal(config)
	must.No(e.t, err)
	cmd := exec.CommandContext(e.ctx, self)
	cmd.Env = append(os.Environ(), "WEBHOOK_TEST_CHILD="+e.url, "WEBHOOK_TEST_DIES="+dies)
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(text)), os.Stderr
	out, err := cmd.StdoutPipe()
	must.No(e.t, err)
	must.No(e.t, cmd.Start())
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "runs" {
		e.t.Fatalf("the child says %q: %v", lines.Text(), cmd.Wait())
	}
	e.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, lines
}

// A process that is killed after it read an event has lost nothing: the next one reads the event again.
func TestKilledBetweenEventAndDelivery(t *testing.T) {
	e := newEnv(t)
	in := newInbox(t)
	config := map[string]Endpoint{"one": endpointAt(t, in.URL)}
	e.serve(endpoints(t, config))() // the relay knows its place
	e.work(runtime.Config{}, users()...)
	cmd, lines := e.start(config, "between")
	id := e.submit(charge, "fine")
	if !lines.Scan() || !strings.Contains(lines.Text(), id.String()) {
		t.Fatalf("the child says %q", lines.Text())
	}
	event := strings.TrimPrefix(lines.Text(), "read ")
	if err := cmd.Wait(); err == nil || len(in.all()) != 0 {
		t.Fatalf("%v, %d requests", err, len(in.all()))
	}
	defer e.serve(endpoints(t, config))()
	if got := in.await(t, 1)[0]; got.id != idOf(event, "one") || got.body.Data["id"] != id.String() {
		t.Errorf("%+v, want %s", got, idOf(event, "one"))
	}
}

// A process that is killed while the receiver works sends again, under the same id.
func TestKilledWhileItSends(t *testing.T) {
	e := newEnv(t)
	in := newInbox(t)
	config := map[string]Endpoint{"one": endpointAt(t, in.URL)}
	e.serve(endpoints(t, config))()
	cmd, _ := e.start(config, "")
	in.each = func(n int, _ http.ResponseWriter) {
		if n == 1 {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	e.work(runtime.Config{}, users()...)
	e.submit(charge, "fine")
	in.await(t, 1)
	defer e.serve(endpoints(t, config))()
	if got := in.await(t, 2); got[0].id != got[1].id || got[0].id == "" {
		t.Errorf("%+v", got)
	}
}

// Two processes and a relay that reads events again make one delivery of each event.
func TestEventsReadTwice(t *testing.T) {
	e := newEnv(t)
	in := newInbox(t)
	all := endpoints(t, map[string]Endpoint{"one": endpointAt(t, in.URL)})
	stop := e.serve(all)
	e.work(runtime.Config{}, users()...)
	id := e.submit(charge, "fail")
	in.await(t, 1)
	stop()
	feed, err := e.admin.Subscribe(e.ctx, admin.SubscribeOptions{Ends: true, Oldest: true})
	must.No(t, err)
	for event, err := range feed.Events(e.ctx) {
		must.No(t, err)
		if event.Execution != id {
			continue
		}
		for range 3 {
			must.No(t, New(Config{Endpoints: all, Admin: e.admin, Logger: quiet}).tell(e.ctx, event))
		}
		break
	}
	n, err := e.admin.ListPage(e.ctx, admin.Filter{Namespace: Namespace, Kind: "ff.webhook"}, "", 10)
	must.No(t, err)
	if len(n.Items) != 1 {
		t.Errorf("%d deliveries", len(n.Items))
	}
}

// A relay that somebody cancelled goes on where it was.
func TestRelayEnds(t *testing.T) {
	e := newEnv(t)
	in := newInbox(t)
	config := map[string]Endpoint{"one": endpointAt(t, in.URL)}
	e.serve(endpoints(t, config))()
	must.No(t, e.relay().Cancel(e.ctx))
	e.work(runtime.Config{}, users()...)
	e.submit(charge, "fine") // while there is no relay
	defer e.serve(endpoints(t, config))()
	in.await(t, 1)
}
