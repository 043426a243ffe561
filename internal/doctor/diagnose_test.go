package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// What Diagnose tells of a healthy server of each kind, and that it changes nothing.
func TestDiagnose(t *testing.T) {
	for name, start := range map[string]func(testing.TB, ...testserver.Option) string{"redis": testserver.Redis,
		"valkey": testserver.Valkey} {
		t.Run(name, func(t *testing.T) {
			cfg := engine.Config{Partitions: 3,
				URL: start(t, testserver.Args("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"))}
			fresh, err := Diagnose(t.Context(), cfg)
			must.No(t, err)
			n := fresh.Nodes[0]
			if fresh.Store.Booted || !n.Library.Missing || len(fresh.Nodes) != 1 || fresh.Cluster || fresh.Embedded ||
				fresh.Supported != nil {
				t.Errorf("before anybody came: %+v", fresh)
			}
			if n.Role != "master" || !strings.HasPrefix(n.Server, name+" ") || n.Policy != "allkeys-lru" ||
				n.MaxMemory != 100<<20 || n.UsedMemory == 0 || n.AOF || !n.SaveKnown || n.Save != "" || n.Err != nil ||
				n.Skew.Abs() > time.Minute {
				t.Errorf("node: %+v", n)
			}
			if r := fresh.Rights; r.User != "default" || !r.Checked || len(r.Denied) > 0 || r.Err != nil {
				t.Errorf("rights: %+v", r)
			}
			e, err := engine.Open(t.Context(), cfg)
			must.No(t, err)
			defer e.Close()
			must.No(t, e.FreezePartition(trail.As(t.Context(), "", "moving"), 1))
			d, err := Diagnose(t.Context(), cfg)
			if err != nil || d.Nodes[0].Library != OwnLibrary() {
				t.Errorf("library %+v, want %+v, %v", d.Nodes[0].Library, OwnLibrary(), err)
			}
			if s := d.Store; !s.Booted || s.Partitions != 3 || len(s.Roots) != 3 || !s.Roots[1].Frozen ||
				s.Roots[1].FrozenReason != "moving" || s.Roots[0].Frozen || s.Roots[2].Missing ||
				s.Roots[2].Protocol != limits.Protocol {
				t.Errorf("store: %+v", s)
			}
			if own := DiagnoseOpen(t.Context(), e); !alike(own, d) {
				t.Errorf("over an open connection: %+v, want %+v", own, d)
			}
		})
	}
}

// alike tells whether two diagnoses differ only in what changes from one reading to the next.
func alike(a, b Diagnosis) bool {
	for _, d := range []*Diagnosis{&a, &b} {
		d.Store.At = time.Time{}
		d.Nodes = slices.Clone(d.Nodes)
		for i := range d.Nodes {
			d.Nodes[i].Time, d.Nodes[i].Skew, d.Nodes[i].RoundTrip, d.Nodes[i].UsedMemory = time.Time{}, 0, 0, 0
		}
	}
	return reflect.DeepEqual(a, b)
}

// A user who lacks a command is told which, and one who may not even ask is told that.
func TestDiagnoseRights(t *testing.T) {
	srv := testserver.Start(t, testserver.ServerValkey)
	cfg := engine.Config{URL: srv.URL()}
	e, err := engine.Open(t.Context(), cfg)
	must.No(t, err)
	defer e.Close()
	user := func(name string, rules ...string) engine.Config {
		args := append([]string{"ACL", "SETUSER", name, "on", ">secret"}, rules...)
		do(t, e, args...)
		c := cfg
		c.Username, c.Password = name, "secret"
		return c
	}
	d, err := Diagnose(t.Context(), user("poor", "~ff:*", "&ff:*", "+@all", "-zadd", "-spublish"))
	if got := strings.Join(d.Rights.Denied, " "); err != nil || got != "SPUBLISH ZADD" || !d.Rights.Checked ||
		d.Rights.User != "poor" {
		t.Errorf("denied %q of %+v, %v", got, d.Rights, err)
	}
	d, err = Diagnose(t.Context(), user("elsewhere", "~other:*", "&other:*", "+@all"))
	if err != nil || len(d.Rights.Denied) < 20 || d.Store.Err == nil {
		t.Errorf("%+v, %v", d.Rights, err)
	}
	d, err = Diagnose(t.Context(), user("mute", "~ff:*", "&ff:*", "+@all", "-@admin", "-@dangerous", "+info"))
	if err != nil || d.Rights.Checked || d.Rights.Err == nil || d.Rights.User != "mute" || d.Nodes[0].SaveKnown ||
		d.Nodes[0].Policy == "" {
		t.Errorf("%+v, %+v, %v", d.Rights, d.Nodes, err)
	}
}

// In a cluster every node is asked, also one that was not known when the store was opened, and no slot is missing.
func TestDiagnoseCluster(t *testing.T) {
	nodes := testserver.Cluster(t, testserver.ServerValkey)
	e, err := engine.Open(t.Context(), engine.Config{URL: nodes.URL()})
	must.No(t, err)
	defer e.Close()
	var d, own Diagnosis
	testwait.Progress(t, "all replicas are known", func() (bool, any) {
		// nodes of a new cluster do not know all of them at once
		if d, err = Diagnose(t.Context(), engine.Config{URL: nodes.URL()}); err != nil {
			t.Fatal(err)
		}
		own = DiagnoseOpen(t.Context(), e)
		known := [2]int{len(d.Nodes), len(own.Nodes)}
		return known == [2]int{6, 6}, known
	})
	primaries := 0
	for _, n := range d.Nodes {
		if n.Err != nil {
			t.Errorf("%s: %v", n.Address, n.Err)
		}
		if n.Primary() {
			primaries++
		}
	}
	if own.Slots != d.Slots || !own.Store.Booted || len(own.Rights.Denied) > 0 {
		t.Errorf("from an open store: %+v", own)
	}
	if !d.Cluster || primaries != 3 || d.Slots.State != "ok" || d.Slots.Assigned != 16384 || d.Slots.OK != 16384 {
		t.Errorf("%d primaries of %d, slots %+v", primaries, len(d.Nodes), d.Slots)
	}
}

// A server of the embedded kind has little to tell, which is no error.
func TestDiagnoseEmbedded(t *testing.T) {
	d, err := Diagnose(t.Context(), engine.Config{URL: testserver.Embedded(t)})
	if err != nil || !d.Embedded || len(d.Nodes) != 1 || d.Nodes[0].Err != nil ||
		!strings.HasPrefix(d.Nodes[0].Server, "flowfabric") {
		t.Errorf("%+v, %v", d, err)
	}
	e, err := engine.Open(t.Context(), engine.Config{URL: testserver.Embedded(t)})
	must.No(t, err)
	defer e.Close()
	if d = DiagnoseOpen(t.Context(), e); !d.Embedded || len(d.Nodes) != 1 || d.Nodes[0].Err != nil || !d.Store.Booted {
		t.Errorf("over an open connection: %+v", d)
	}
}

// A server that is gone is a finding.
func TestDiagnoseGone(t *testing.T) {
	srv := testserver.Start(t, testserver.ServerValkey)
	e, err := engine.Open(t.Context(), engine.Config{URL: srv.URL()})
	must.No(t, err)
	defer e.Close()
	srv.Kill()
	if d := DiagnoseOpen(t.Context(), e); len(d.Nodes) != 1 || !errors.Is(d.Nodes[0].Err, flowfabric.ErrTransport) ||
		!errors.Is(d.Store.Err, flowfabric.ErrTransport) || d.Nodes[0].Address == "" {
		t.Errorf("%+v", d)
	}
}

func TestOverdue(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	for _, tc := range []struct {
		owner string
		wake  time.Duration
		want  bool
	}{{"", time.Second, false}, {"", 0, true}, {"w1", 0, false}, {"w1", -2 * time.Second, false},
		{"w1", -2001 * time.Millisecond, true}} {
		if got := (RootReport{Owner: tc.owner, Wake: now.Add(tc.wake)}).Overdue(now); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
	if (RootReport{}).Overdue(now) {
		t.Error("nothing to wait for")
	}
}

// Every command that the library runs has sample arguments.
func TestRightsCoverTheLibrary(t *testing.T) {
	for _, name := range needed() {
		if _, known := samples[name]; !known {
			t.Errorf("rights.go has no sample arguments for %s", name)
		}
	}
}

// What a server renamed or switched off is named, wherever it is met first, and is no defect of the library.
func TestRenamedCommands(t *testing.T) {
	for name, kind := range map[string]testserver.Kind{"redis": testserver.ServerRedis,
		"valkey": testserver.ServerValkey} {
		for _, command := range []string{"INFO", "FUNCTION", "FCALL", "HGETALL"} {
			t.Run(name+" "+command, func(t *testing.T) {
				cfg := engine.Config{URL: testserver.Start(t, kind,
					testserver.Args("--rename-command", command, "HIDDEN"+command)).URL(), Partitions: 1}
				d, err := Diagnose(t.Context(), cfg)
				must.No(t, err)
				if got := strings.Join(d.Rights.Unknown, " "); got != command || d.Rights.Err != nil ||
					len(d.Rights.Denied) > 0 {
					t.Errorf("unknown %q, %+v", got, d.Rights)
				}
				n := d.Nodes[0]
				at := map[string]error{"INFO": n.InfoErr, "FUNCTION": n.Library.Err, "FCALL": n.Library.Err}
				if n.Role != "master" {
					t.Errorf("role %q", n.Role)
				}
				e, openErr := engine.Open(t.Context(), cfg)
				if openErr == nil {
					defer e.Close()
				}
				at["open"] = openErr
				for _, where := range []string{command, "open"} {
					if command == "HGETALL" { // the functions that connect do without it
						continue
					}
					oneLine(t, where, at[where], flowfabric.ErrConfig, "the server does not know the command "+command)
				}
				if command != "HGETALL" {
					return
				}
				_, err = e.ReadGate(t.Context(), "b", 0, 0, 0)
				if errors.Is(err, denied.PartitionMissing) || errors.Is(err, denied.NoGate) {
					_, _, _, err = e.PutGate(t.Context(),
						admission.Gate{Name: "b", Limits: map[string]admission.Limit{"tokens": {Hard: 1}}}, 0)
				}
				oneLine(t, "a function that needs it", err, flowfabric.ErrConfig,
					"the server does not know a command of the function library")
			})
		}
	}
}

// A replica is told from the primary, also where it does not answer INFO.
func TestDiagnoseReplica(t *testing.T) {
	for name, args := range map[string][]string{"with INFO": nil, "without": {"--rename-command", "INFO", "HIDDEN"}} {
		t.Run(name, func(t *testing.T) {
			primary := testserver.Start(t, testserver.ServerValkey, testserver.TCP())
			host, port, _ := net.SplitHostPort(primary.Address())
			replica := testserver.Start(t, testserver.ServerValkey, testserver.Args("--replicaof", host, port),
				testserver.Args(args...))
			d, err := Diagnose(t.Context(), engine.Config{URL: replica.URL()})
			must.No(t, err)
			n := d.Nodes[0]
			if d.Cluster || n.Primary() || n.Role != "slave" || (n.PrimaryAt != "") != (args == nil) ||
				args == nil && n.PrimaryAt != primary.Address() {
				t.Errorf("%+v", n)
			}
		})
	}
}

// Waiting work without a worker is found, as long as nobody takes it, and so is how full the table of routes is.
func TestDiagnoseWork(t *testing.T) {
	for name, url := range map[string]string{"redis": testserver.Redis(t), "embedded": testserver.Embedded(t)} {
		t.Run(name, func(t *testing.T) {
			cfg := engine.Config{URL: url, Partitions: 2}
			e := open(t, cfg)
			submit := func(partition uint16, lane, kind string, caps ...string) {
				t.Helper()
				made, err := e.CreateExecutions(t.Context(), partition,
					[]engine.NewExecution{{ID: mint.ID(partition),
						Start: flowfabric.Start{Namespace: "shop", Lane: lane,
							Kind: kind, Capabilities: caps, Policy: flowfabric.Policy{Retry: valid.DefaultRetry()}}}})
				must.No(t, cmp.Or(err, made[0].Err))
			}
			submit(0, "default", "mail")
			submit(1, "default", "mail")
			submit(1, "default", "render", "gpu")
			submit(1, "off", "mail")
			for _, p := range e.SetLane(t.Context(), wire.SetLane{Namespace: "shop", Lane: "off", State: "paused"}) {
				if p.Err != nil {
					t.Fatal(p.Err)
				}
			}
			unserved := func(want ...UnservedRoute) {
				t.Helper()
				d, err := Diagnose(t.Context(), cfg)
				if err != nil || d.Store.WorkErr != nil || !reflect.DeepEqual(d.Store.Unserved, want) {
					t.Errorf("unserved %+v, want %+v, %v %v", d.Store.Unserved, want, err, d.Store.WorkErr)
				}
				if d.Store.Roots[0].Routes != 1 || d.Store.Roots[1].Routes != 3 {
					t.Errorf("routes: %+v", d.Store.Roots)
				}
			}
			mail := UnservedRoute{Namespace: "shop", Lane: "default", Kind: "mail", Waiting: 2}
			render := UnservedRoute{Namespace: "shop", Lane: "default", Kind: "render", Capabilities: []string{"gpu"},
				Waiting: 1}
			unserved(mail, render)
			register := func(instance string, info flowfabric.WorkerInfo) {
				t.Helper()
				if _, err := e.RegisterWorker(t.Context(),
					engine.Registration{Instance: instance, Token: instance, TTL: time.Minute,
						Info: info}); err != nil {
					t.Fatal(err)
				}
			}
			register("elsewhere",
				flowfabric.WorkerInfo{Namespaces: []string{"other"}, Lanes: []string{"default"},
					Kinds: []string{"mail", "render"}})
			unserved(mail, render)
			register("weak", flowfabric.WorkerInfo{Namespaces: []string{"shop"}, Lanes: []string{"default"},
				Kinds: []string{"mail", "render"}})
			unserved(render)
			register("able", flowfabric.WorkerInfo{Namespaces: []string{"other", "*"}, Lanes: []string{"default"},
				Kinds: []string{"render"}, Capabilities: []string{"gpu"}})
			unserved()
			if _, err := e.MarkWorkerDead(trail.As(t.Context(), "", "gone"), "weak"); err != nil {
				t.Fatal(err)
			}
			unserved(mail)
		})
	}
}

// The doctor is told what a namespace may make before the library refuses it more.
func TestMaxClasses(t *testing.T) {
	e := open(t, engine.Config{URL: testserver.Redis(t), Partitions: 1})
	make := func(first, n int) error {
		items := []engine.NewExecution{}
		for i := range n {
			items = append(items, engine.NewExecution{ID: mint.ID(0),
				Start: flowfabric.Start{Namespace: "shop", Lane: "default",
					Kind:   "k" + strconv.Itoa(first+i),
					Policy: flowfabric.Policy{Retry: valid.DefaultRetry()}}})
		}
		made, err := e.CreateExecutions(t.Context(), 0, items)
		for _, m := range made {
			err = cmp.Or(err, m.Err)
		}
		return err
	}
	for first := 0; first < limits.MaxOwnClasses; first += 64 {
		must.No(t, make(first, 64))
	}
	r := DiagnoseOpen(t.Context(), e).Store.Roots[0]
	if r.Maker != "shop" || r.Made != r.Routes || r.Made != limits.MaxOwnClasses || r.Share() != r.Made {
		t.Errorf("%+v, of a share of %d", r, r.Share())
	}
	if err := make(limits.MaxOwnClasses, 1); !errors.Is(err, denied.TooManyRoutes) {
		t.Errorf("one more: %v", err)
	}
	if err := make(0, 64); err != nil {
		t.Errorf("of routes that exist: %v", err)
	}
}

// After the server's clock stepped back, what bears a time of before is named; before that, and of what is as it
// should be, nothing is.
func TestDiagnoseClockSteps(t *testing.T) {
	for name, url := range map[string]string{"redis": testserver.Redis(t), "embedded": testserver.Embedded(t)} {
		t.Run(name, func(t *testing.T) {
			cfg := engine.Config{URL: url, Partitions: 2}
			e := open(t, cfg)
			diagnose := func(want string) StoreReport {
				t.Helper()
				d, err := Diagnose(t.Context(), cfg)
				if err != nil || d.Store.AheadErr != nil {
					t.Fatal(err, d.Store.AheadErr)
				}
				got := ""
				for _, a := range d.Store.Ahead {
					if a.By < 58*time.Minute || a.By > time.Hour {
						t.Errorf("%+v", a)
					}
					got += fmt.Sprint(a.Partition, a.Session, a.Gate, " ")
				}
				if got != want {
					t.Errorf("ahead %q, want %q", got, want)
				}
				return d.Store
			}
			const partition = 1
			x := engine.NewExecution{ID: mint.ID(partition), Start: flowfabric.Start{Namespace: "n",
				Lane: "l", Kind: "k",
				Policy: flowfabric.Policy{Retry: valid.DefaultRetry()}}}
			if made, err := e.CreateExecutions(t.Context(), partition, []engine.NewExecution{x}); err != nil ||
				made[0].Err != nil {
				t.Fatal(err, made)
			}
			subscription, err := e.SetSubscription(t.Context(), partition, engine.Subscription{Classes: []uint64{1}})
			must.No(t, err)
			session := engine.NewSessionID("w1")
			if r, err := e.ClaimNext(t.Context(), engine.ClaimRequest{Partition: partition, Session: session, Number: 1,
				TTL: time.Minute, Max: 1, Subscription: subscription}); err != nil || len(r.Claims) != 1 {
				t.Fatal(err, r)
			}
			if _, _, _, err := e.PutGate(t.Context(), admission.Gate{Name: "calls", Rate: 5,
				Window: flowfabric.Millis(time.Minute)}, 0); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Admit(t.Context(), "calls", engine.Waiter{Partition: partition, Route: 1}, time.Second,
				false,
				[]engine.Hold{{Execution: x.ID, Epoch: 1}}); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Tick(t.Context(), partition, "w1", false); err != nil {
				t.Fatal(err)
			}
			s := diagnose("")
			if s.Roots[partition].Back(s.At) != 0 || s.Roots[partition].Ticked.IsZero() ||
				s.Roots[partition].Overdue(s.At) {
				t.Errorf("%+v", s.Roots)
			}
			// The times are moved on, which to the store is the same as a clock that is moved back.
			later := strconv.FormatInt(s.At.Add(time.Hour).UnixMilli(), 10)
			expiry := strconv.FormatInt(s.At.Add(time.Hour+time.Minute).UnixMilli(), 10)
			p := keys.Of(partition)
			do(t, e, "HSET", string(p), "ticked", later, "wake", later)
			do(t, e, "HSET", p.Session(session), "exp", expiry)
			do(t, e, "ZADD", p.Sessions(), expiry, session)
			gates := ids.GatePartition("calls", limits.DefaultGatePartitions)
			do(t, e, "ZADD", keys.Partition(keys.GateRoot(gates)).Window("calls"), later, "1.x:1")
			s = diagnose(fmt.Sprint(partition, session, "", " ", gates, "", "calls", " "))
			if back := s.Roots[partition].Back(s.At); back < 58*time.Minute || back > time.Hour ||
				!s.Roots[partition].Overdue(s.At) {
				t.Errorf("back %s: %+v", back, s.Roots)
			}
			// A tick and the gate's next start put it right.
			if _, err := e.Tick(t.Context(), partition, "w2", false); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Admit(t.Context(), "calls", engine.Waiter{Partition: partition, Route: 1}, time.Second,
				false, nil); err != nil {
				t.Fatal(err)
			}
			diagnose("")
		})
	}
}
