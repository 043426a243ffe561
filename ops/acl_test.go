package ops_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testgate"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/schedule"
	"github.com/flowfabric/flowfabric-go/suspend"
)

var users = []string{"worker", "producer", "loader", "operator"}

// guarded starts a server with the users of acl/, and one more that may do everything but is no example.
func guarded(t *testing.T, kind testserver.Kind, change ...func(user, rules string) string) *testserver.Server {
	t.Helper()
	rules := "user default on nopass ~* &* +@all\n"
	for _, user := range users {
		own := read(t, "acl/"+user+".acl")
		for _, c := range change {
			own = c(user, own)
		}
		rules += own
	}
	file := filepath.Join(t.TempDir(), "users.acl")
	must.No(t, os.WriteFile(file, []byte(rules), 0o600))
	return testserver.Start(t, kind, testserver.TCP(), testserver.Args("--aclfile", file))
}

func as(user string, s *testserver.Server) string {
	return fmt.Sprintf("redis://%s:change-me-%s@%s", user, user, s.Address())
}

var quiet = slog.New(slog.DiscardHandler)

// open dials as a user.
func open(t *testing.T, ctx context.Context, user string, s *testserver.Server) (*engine.Engine, error) {
	t.Helper()
	e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: as(user, s), Partitions: 2, Logger: quiet})
	if err == nil {
		t.Cleanup(e.Close)
	}
	return e, err
}

func kinds(t *testing.T, f func(t *testing.T, kind testserver.Kind)) {
	for _, kind := range []testserver.Kind{testserver.ServerRedis, testserver.ServerValkey} {
		t.Run(string(kind), func(t *testing.T) { f(t, kind) })
	}
}

// Each of the users can do its whole job: the loader loads, a worker works, a producer submits, signals and reads, an
// operator operates.
func TestUsersCanDoTheirJob(t *testing.T) {
	kinds(t, func(t *testing.T, kind testserver.Kind) {
		s := guarded(t, kind)
		ctx, cancel := testwait.Context(t, t.Context())
		defer cancel()

		if _, err := open(t, ctx, "worker", s); !errors.Is(err, flowfabric.ErrAuth) || !strings.Contains(err.Error(),
			"FUNCTION LOAD") {
			t.Fatalf("a worker that finds no library: %v", err)
		}
		if _, err := open(t, ctx, "loader", s); err != nil {
			t.Fatalf("loader: %v", err)
		}
		keys := "a:" + strings.Repeat("a1", 32)
		ran := work(t, ctx, runtime.Config{URL: as("worker", s), TokenKeys: keys, LeaseTTL: time.Second, Logger: quiet,
			Registerer: prometheus.NewRegistry()})

		p, err := client.Connect(ctx,
			client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: as("producer", s), Logger: quiet})
		if err != nil {
			t.Fatalf("producer: %v", err)
		}
		t.Cleanup(p.Close)
		x, err := client.Submit(ctx, p, job, "everything", flowfabric.IdempotencyKey("once"))
		if err != nil {
			t.Fatalf("submit: %v", err)
		}
		frames := 0
		for event, err := range x.Tail(ctx) {
			if err != nil {
				t.Fatalf("tail: %v", err)
			}
			if event.Frame.Type != "" {
				if frames++; event.Frame.Type == "token" {
					token, err := suspend.ParseToken(string(event.Frame.Payload))
					must.No(t, err)
					if _, err := p.Signal(ctx, token, "on"); err != nil {
						t.Fatalf("signal: %v", err)
					}
					if _, err := x.Send(ctx, "user", "hello"); err != nil {
						t.Fatalf("send: %v", err)
					}
				}
			}
		}
		if out, err := x.Result(ctx); err != nil || out != "on" || frames == 0 {
			t.Fatalf("result %q with %d frames, %v", out, frames, err)
		}
		if _, err := admin.New(p).History(ctx, x.ID()); err != nil {
			t.Errorf("history: %v", err)
		}
		for _, what := range []string{"fail", "delay", "cancel", "panic"} {
			x, err := client.Submit(ctx, p, job, what)
			must.No(t, err)
			_, err = x.Result(ctx)
			if ok := err == nil; ok != (what == "delay") || errors.Is(err, flowfabric.ErrAuth) {
				t.Errorf("%s: %v", what, err)
			}
		}

		flows(t, ctx, s)
		gates(t, ctx, s)
		schedules(t, ctx, s)

		operator, err := client.Connect(ctx,
			client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: as("operator", s), Logger: quiet})
		if err != nil {
			t.Fatalf("operator: %v", err)
		}
		t.Cleanup(operator.Close)
		o := admin.New(operator)
		for what, err := range map[string]error{
			"replay": o.Replay(ctx, x.ID(), admin.Replay{Force: true}),
			"lane":   o.SetLane(ctx, "other", admin.LaneChange{State: flowfabric.LanePaused}),
			"tags":   o.SetTags(ctx, x.ID(), map[string]string{"a.b": "c"}, nil),
		} {
			if err != nil {
				t.Errorf("operator: %s: %v", what, err)
			}
		}
		if _, err := o.Queues(ctx, ""); err != nil {
			t.Errorf("operator: queues: %v", err)
		}
		if _, err := o.Why(ctx, x.ID()); err != nil {
			t.Errorf("operator: why: %v", err)
		}
		if _, err := o.Schedules(ctx); err != nil {
			t.Errorf("operator: schedules: %v", err)
		}
		if _, err := o.Workers(ctx); err != nil {
			t.Errorf("operator: workers: %v", err)
		}
		if _, err := o.Subscribe(ctx, admin.SubscribeOptions{}); err != nil {
			t.Errorf("operator: subscribe: %v", err)
		}
		e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: as("operator", s), Logger: quiet})
		if err != nil {
			t.Fatalf("operator: %v", err)
		}
		t.Cleanup(e.Close)
		if report, err := maintain.Audit(ctx, maintain.AuditConfig{Engine: e, Repair: true}); err != nil ||
			!report.Sound {
			t.Errorf("operator: audit: %+v, %v", report, err)
		}
		if err := ran(); err != nil {
			t.Errorf("the worker ended with %v", err)
		}
	})
}

// flows: a producer submits flows, workers resolve one, beyond what fits into a call, and an operator cancels the
// other.
func flows(t *testing.T, ctx context.Context, s *testserver.Server) {
	t.Helper()
	p, err := open(t, ctx, "producer", s)
	must.No(t, err)
	o, err := open(t, ctx, "operator", s)
	must.No(t, err)
	submit := func(delay time.Duration) flowfabric.FlowID {
		t.Helper()
		id := flowfabric.FlowID(mint.ID(1))
		node := func(name, in string, after ...engine.FlowEdge) engine.FlowMember {
			return engine.FlowMember{Node: name, Edges: after,
				NewExecution: engine.NewExecution{ID: id.Member(name), Payload: []byte(`"` + in + `"`),
					Start: flowfabric.Start{Namespace: "default", Lane: "default",
						Kind: "job", Delay: flowfabric.Millis(delay)}}}
		}
		members := []engine.FlowMember{node("first", "delay"),
			node("second", "delay", engine.FlowEdge{From: id.Member("first"), Input: "in"}), node("bad", "fail")}
		for i := range 90 {
			members = append(members, node(fmt.Sprint("n", i), "delay", engine.FlowEdge{From: id.Member("bad")}))
		}
		_, create := p.CreateFlow(ctx,
			engine.NewFlow{ID: id, Namespace: "default", Kind: "f", Tags: map[string]string{"a.b": "c"}})
		_, stage := p.StageFlow(ctx, id, nil, members)
		_, _, seal := p.SealFlow(ctx, id, engine.SealClosed, 93, 91)
		_, list := p.FlowMembers(ctx, id, 0, 10, true)
		_, drain := p.DrainFlows(ctx, id.Partition())
		if err := errors.Join(create, stage, seal, list, drain); err != nil {
			t.Fatalf("producer: %v", err)
		}
		return id
	}
	ends := func(id flowfabric.FlowID, want flowfabric.FlowState) {
		t.Helper()
		for {
			f, err := p.DescribeFlow(ctx, id)
			if err != nil {
				t.Fatalf("producer: %v", err)
			}
			if !f.EndedAt.IsZero() {
				if f.State != want || want == flowfabric.FlowFailed && (f.Count[flowfabric.Skipped] != 90 ||
					f.Count[flowfabric.Completed] != 2) {
					t.Errorf("%+v", f)
				}
				return
			}
			select {
			case <-ctx.Done():
				t.Fatalf("it never ended: %+v", f)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	ends(submit(0), flowfabric.FlowFailed)
	late := submit(time.Hour)
	if _, err := p.CancelFlow(ctx, late, flowfabric.CancelAll); !errors.Is(err, flowfabric.ErrAuth) {
		t.Errorf("a producer cancels: %v", err)
	}
	if _, err := o.CancelFlow(ctx, late, flowfabric.CancelAll); err != nil {
		t.Fatalf("operator: %v", err)
	}
	ends(late, flowfabric.FlowCancelled)
}

// gates: an operator makes a gate of amounts and one of slots, a producer submits work that has both, workers ask them,
// one execution after the other.
func gates(t *testing.T, ctx context.Context, s *testserver.Server) {
	t.Helper()
	p, err := open(t, ctx, "producer", s)
	must.No(t, err)
	o, err := open(t, ctx, "operator", s)
	must.No(t, err)
	_, _, _, amounts := o.PutGate(ctx, admission.Gate{Name: "acme", Refund: []string{"failed"},
		Limits: map[string]admission.Limit{"tokens": {Hard: 5}}}, 0)
	_, _, _, slots := o.PutGate(ctx, admission.Gate{Name: "api", Concurrency: 1}, 0)
	attached := o.ChangeAttached(ctx, admission.Scope{Namespace: "default"}, engine.AttachSet,
		[]flowfabric.Gate{flowfabric.Gate("api")})
	if err := errors.Join(amounts, slots, attached[0].Err, attached[1].Err); err != nil {
		t.Fatalf("operator: %v", err)
	}
	var items []engine.NewExecution
	for i := range 6 {
		in := []string{"delay", "fail"}[i/3]
		items = append(items, engine.NewExecution{ID: mint.ID(1), Payload: []byte(`"` + in + `"`),
			Start: testgate.Asks(flowfabric.Start{Namespace: "default",
				Lane: "default", Kind: "job"}, flowfabric.Gate("acme"))})
	}
	created, err := p.CreateExecutions(ctx, 1, items)
	if err != nil || created[0].Err != nil {
		t.Fatalf("producer: %v, %+v", err, created)
	}
	o.ChangeAttached(ctx, admission.Scope{Namespace: "default"}, engine.AttachSet, nil)
	for _, x := range items {
		for {
			f, err := o.Explain(ctx, x.ID)
			if err != nil {
				t.Fatalf("operator: %v", err)
			}
			if f.State.Terminal() {
				break
			}
			select {
			case <-ctx.Done():
				t.Fatalf("it never ended: %s", f.ClosedWhy)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	_, first := p.ReportUsage(ctx, admission.Usage{Gate: "acme", Key: "k", Amounts: map[string]int64{"tokens": 5}})
	if !errors.Is(first, flowfabric.ErrAuth) {
		t.Errorf("a producer reports usage: %v", first)
	}
	_, second := o.ReportUsage(ctx, admission.Usage{Gate: "acme", Key: "k", Amounts: map[string]int64{"tokens": 5}})
	_, _, adjust := o.AdjustUsage(ctx, "acme", map[string]int64{"tokens": -1})
	_, read := o.ReadGate(ctx, "acme", 10, 10, 10)
	_, list := o.GateNames(ctx)
	_, holds := o.ReadGate(ctx, "api", 10, 10, 10)
	if err := errors.Join(second, adjust, read, list, holds,
		o.ChangeAttached(ctx, admission.Scope{Namespace: "default"}, engine.AttachSet, nil)[0].Err,
		o.Gates(ctx)[1].Err); err != nil {
		t.Errorf("operator: %v", err)
	}
}

var job = handler.Define[string, string]("job", handler.Retry(1, time.Millisecond, time.Millisecond))

// work runs a worker with a handler that uses all there is, until the function returned is called.
func work(t *testing.T, ctx context.Context, cfg runtime.Config) (stop func() error) {
	t.Helper()
	w, err := runtime.New(cfg, handler.Bind(job, do))
	must.No(t, err)
	return serve(t, ctx, w)
}

// serve runs a worker until the function returned is called, or the test ends.
func serve(t *testing.T, ctx context.Context, w *runtime.Worker) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var running conc.WaitGroup
	var result error
	running.Go(func() { result = w.Run(ctx) })
	stop = func() error { cancel(); running.Wait(); return result }
	t.Cleanup(func() { _ = stop() })
	return stop
}

func do(ctx context.Context, task *handler.Task, in string) (string, error) {
	switch in {
	case "fail":
		return "", handler.Permanent(errors.New("broken"))
	case "spend":
		r, err := task.ReserveEstimate(ctx, "call", map[string]int64{"tokens": 1})
		if err != nil {
			return in, err
		}
		return in, errors.Join(task.Spend(ctx, "tokens", 1), r.Settle(ctx, map[string]int64{"tokens": 1}))
	case "panic":
		panic("broken")
	case "cancel":
		return "", handler.Cancel("enough")
	case "delay":
		if task.AttemptType() == flowfabric.AttemptInitial {
			return "", handler.Delay(time.Millisecond)
		}
		return in, nil
	}
	token, err := task.Pending(ctx, "go", time.Minute)
	if err != nil {
		return "", err
	}
	if _, err := handler.Step(ctx, task, "tell", func(ctx context.Context) (string, error) {
		return "told", errors.Join(task.Frame(ctx, "log", "hello"), task.Summary(ctx, map[string]any{"n": 1}),
			task.Live(ctx, "log", "now", time.Second), task.Progress(ctx, 50, "half"),
			task.Frame(ctx, "token", token.Reveal()))
	}); err != nil {
		return "", err
	}
	out, err := handler.Await[string](ctx, task, "go")
	if err == nil {
		_, err = handler.Receive[string](ctx, task, "user")
	}
	return out, err
}

// A worker that leaves maintenance to another process needs no right to start work.
func TestAWorkerWithoutMaintenanceStartsNothing(t *testing.T) {
	s := guarded(t, testserver.ServerRedis, func(user, rules string) string {
		if user == "worker" {
			for _, function := range []string{"create_execution", "flow_create", "flow_stage", "fire_schedule"} {
				right := " +fcall|ff_" + function
				if !strings.Contains(rules, right) {
					t.Errorf("a worker does not have%s", right)
				}
				rules = strings.Replace(rules, right, "", 1)
			}
		}
		return rules
	})
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	if _, err := open(t, ctx, "loader", s); err != nil {
		t.Fatal(err)
	}
	other, err := runtime.New(runtime.Config{URL: as("operator", s), Logger: quiet},
		handler.Bind(handler.Define[string, string]("other"), do))
	must.No(t, err)
	serve(t, ctx, other)
	work(t, ctx, runtime.Config{URL: as("worker", s), Logger: quiet, DisableMaintenance: true})
	p, err := client.Connect(ctx, client.Config{URL: as("producer", s), Logger: quiet})
	must.No(t, err)
	t.Cleanup(p.Close)
	for _, in := range []string{"delay", "fail", "cancel"} {
		x, err := client.Submit(ctx, p, job, in)
		must.No(t, err)
		if _, err := x.Result(ctx); (err == nil) != (in == "delay") || errors.Is(err, flowfabric.ErrAuth) {
			t.Errorf("%s: %v", in, err)
		}
	}
	if answer := ask(t, s, "worker", "FCALL ff_create_execution 1 ff:{fp:0}"); !strings.HasPrefix(answer, "-NOPERM") {
		t.Errorf("the worker may create executions: %q", answer)
	}
}

// What is not a user's job is refused, by the server and not by good manners.
func TestUsersAreRefusedTheRest(t *testing.T) {
	everybody := []string{"FLUSHALL", "FLUSHDB", "KEYS *", "CONFIG SET maxmemory 1", "FUNCTION DELETE flowfabric",
		"FUNCTION FLUSH", "SET other:key x", "GET other:key", "PUBLISH other:channel x", "ACL LIST",
		"ACL SETUSER worker +@all", "SHUTDOWN NOSAVE", "REPLICAOF NO ONE",
		"MONITOR", "EVAL return(1) 0", "CLIENT KILL TYPE normal", "SUBSCRIBE other:channel", "SAVE", "SWAPDB 0 1"}
	refused := map[string][]string{
		"worker": {"SCAN 0", "FUNCTION LOAD x", "FCALL ff_put_schedule 1 ff:{fp:0}",
			"FCALL ff_purge_execution 1 ff:{fp:0}", "FCALL ff_set_lane 1 ff:{fp:0}",
			"FCALL ff_freeze_partition 1 ff:{fp:0}"},
		"producer": {"SCAN 0", "FUNCTION LOAD x", "FCALL ff_claim_next 1 ff:{fp:0}", "FCALL ff_tick 1 ff:{fp:0}",
			"FCALL ff_approve_waitpoint 1 ff:{fp:0}", "FCALL ff_set_token_keys 1 ff:{fp:0}",
			"FCALL ff_cancel_execution 1 ff:{fp:0}"},
		"loader": {"SCAN 0", "FCALL ff_create_execution 1 ff:{fp:0}", "FCALL ff_claim_next 1 ff:{fp:0}",
			"DEL ff:{fp:0}", "SUBSCRIBE ff:{fp:0}:feed"},
		"operator": {"FUNCTION LOAD x"},
	}
	kinds(t, func(t *testing.T, kind testserver.Kind) {
		s := guarded(t, kind)
		for _, user := range users {
			for _, command := range slices.Concat(everybody, refused[user]) {
				if answer := ask(t, s, user, command); !strings.HasPrefix(answer, "-NOPERM") {
					t.Errorf("%s may %s: %q", user, command, answer)
				}
			}
		}
	})
	ctx := t.Context()
	s := guarded(t, testserver.ServerRedis)
	if _, err := open(t, ctx, "loader", s); err != nil {
		t.Fatal(err)
	}
	e, err := open(t, ctx, "producer", s)
	must.No(t, err)
	if err := e.FreezePartition(trail.As(ctx, "", "x"), 0); !errors.Is(err, flowfabric.ErrAuth) ||
		!strings.Contains(err.Error(), "ff_freeze_partition") {
		t.Errorf("a producer freezes: %v", err)
	}
	if _, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: "redis://worker:wrong@" + s.Address(),
		Logger: quiet}); !errors.Is(err, flowfabric.ErrAuth) {
		t.Errorf("a wrong password: %v", err)
	}
}

// A right that is missing inside a function is ErrAuth, too, and not a defect of the library.
func TestMissingRightInsideAFunction(t *testing.T) {
	kinds(t, func(t *testing.T, kind testserver.Kind) {
		s := guarded(t, kind, func(user, rules string) string {
			if user == "producer" {
				return strings.Replace(rules, " +zadd", "", 1)
			}
			return rules
		})
		if _, err := open(t, t.Context(), "loader", s); err != nil {
			t.Fatal(err)
		}
		e, err := open(t, t.Context(), "producer", s)
		must.No(t, err)
		_, err = e.CreateExecutions(t.Context(), 0,
			[]engine.NewExecution{{ID: mint.ID(0), Start: flowfabric.Start{Namespace: "n",
				Lane: "l", Kind: "k"}}})
		if !errors.Is(err, flowfabric.ErrAuth) {
			t.Errorf("%v", err)
		}
	})
}

// schedules has an operator schedule an execution and a flow that needs several calls, and the worker fire both.
func schedules(t *testing.T, ctx context.Context, s *testserver.Server) {
	t.Helper()
	c, err := client.Connect(ctx,
		client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: as("operator", s), Logger: quiet})
	must.No(t, err)
	t.Cleanup(c.Close)
	f := flow.New("scheduled")
	for i := range 101 {
		flow.Add(f, fmt.Sprint("n", i), idle, "in")
	}
	hourly := schedule.Every(time.Hour, time.Time{})
	_, err = c.SyncSchedules(ctx, "ops", client.DeclareSchedule("one", hourly, idle, "in", client.FirstRunNow()),
		client.DeclareFlowSchedule("all", hourly, f, client.FirstRunNow()))
	must.No(t, err)
	for _, name := range []string{"one", "all"} {
		for {
			info, err := admin.New(c).GetSchedule(ctx, name)
			if err != nil {
				t.Fatalf("schedule %s was not fired: %v", name, err)
			}
			if info.Fired > 0 {
				break
			}
			<-time.After(20 * time.Millisecond)
		}
	}
}

// A function runs with the rights of its caller, so who may call some may run every command that one of them uses,
// however rarely.
func TestUsersMayRunWhatFunctionsRun(t *testing.T) {
	files, err := filepath.Glob("../lua/*/*.lua")
	if err != nil || len(files) < 80 {
		t.Fatal(len(files), err)
	}
	used := map[string]string{}
	for _, f := range files {
		for _, m := range regexp.MustCompile(`redis\.call\(\s*'([A-Z]+)'`).FindAllStringSubmatch(read(t, f), -1) {
			used[strings.ToLower(m[1])] = f
		}
	}
	if len(used) < 50 {
		t.Fatalf("only %d commands were found", len(used))
	}
	for _, user := range []string{"worker", "producer", "operator"} {
		rules := strings.Fields(read(t, "acl/"+user+".acl"))
		for command, file := range used {
			if user == "producer" && command == "xrevrange" { // only ff_append_log, of workers; it reads the trail
				continue
			}
			if !slices.ContainsFunc(rules, func(rule string) bool {
				return rule == "+"+command || strings.HasPrefix(rule, "+"+command+"|")
			}) {
				t.Errorf("%s may not run %s, which %s uses", user, command, file)
			}
		}
	}
}

// Somebody has decided who may call each function of the library.
func TestEveryFunctionIsSomebodysJob(t *testing.T) {
	operators := []string{"ff_change_priority", "ff_set_delay", "ff_purge_execution", "ff_replay_execution",
		"ff_rewind_execution", "ff_fork_execution",
		"ff_set_tags", "ff_list_executions", "ff_list_lanes", "ff_set_lane", "ff_approve_waitpoint", "ff_reissue_token",
		"ff_resume_execution", "ff_freeze_partition", "ff_mark_dead", "ff_audit_executions", "ff_audit_index",
		"ff_audit_keys", "ff_audit_flows", "ff_audit_routes", "ff_flow_cancel", "ff_flow_replay", "ff_flow_list",
		"ff_put_schedule", "ff_pause_schedule", "ff_remove_schedule", "ff_put_trigger",
		"ff_remove_trigger", "ff_list_triggers", "ff_list_expected", "ff_list_workers", "ff_list_versions",
		"ff_list_sessions", "ff_read_times", "ff_explain_execution", "ff_set_feed",
		"ff_put_gate", "ff_list_gates", "ff_change_usage", "ff_remove_gate", "ff_attach", "ff_read_gates",
		"ff_hold_execution",
		"ff_set_share", "ff_set_index", "ff_read_index", "ff_index_executions",
		"ff_count_executions"}
	files, err := filepath.Glob("../lua/*/ff_*.lua")
	if err != nil || len(files) < 40 {
		t.Fatal(len(files), err)
	}
	var all []string
	for _, f := range files {
		all = append(all, strings.TrimSuffix(filepath.Base(f), ".lua"))
	}
	granted := operators
	for _, user := range users {
		for _, m := range regexp.MustCompile(`\+fcall\|(\S+)`).FindAllStringSubmatch(read(t, "acl/"+user+".acl"), -1) {
			granted = append(granted, m[1])
		}
	}
	for _, name := range all {
		if !slices.Contains(granted, name) {
			t.Errorf("%s: add it to the files of those who may call it, or to the operators' here", name)
		}
	}
	for _, name := range granted {
		if !slices.Contains(all, name) {
			t.Errorf("%s is granted and does not exist", name)
		}
	}
}

// ask sends one command as a user and returns the first line of the answer.
func ask(t *testing.T, s *testserver.Server, user, command string) string {
	t.Helper()
	conn, err := net.Dial("tcp", s.Address())
	must.No(t, err)
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	for _, line := range []string{"AUTH " + user + " change-me-" + user, command} {
		if _, err := io.WriteString(conn, line+"\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := r.ReadString('\n')
		must.No(t, err)
		if line == command {
			return answer
		}
		if !strings.HasPrefix(answer, "+OK") {
			t.Fatalf("%s: %s", line, answer)
		}
	}
	return ""
}
