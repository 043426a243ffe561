package cluster_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// In a cluster the library is on every node that may serve, and wherever it is missing the next call
// loads it: on that node, and on no other.
func TestLibrary(t *testing.T) {
	t.Parallel()
	for _, kind := range []testserver.Kind{testserver.ServerRedis, testserver.ServerValkey} {
		t.Run(string(kind), func(t *testing.T) {
			w := newEnv(t, testserver.Cluster(t, kind))
			w.until("the library is on every primary and replica", func() bool {
				for _, s := range w.nodes.All() {
					if !w.hasLibrary(s) {
						return false
					}
				}
				return true
			})
			ids := map[uint16]flowfabric.ExecutionID{}
			for _, p := range everywhere() {
				ids[p] = w.create(p)
			}
			read := func() {
				t.Helper()
				for _, p := range everywhere() {
					if _, err := w.engine.ReadExecution(w.ctx, ids[p]); err != nil {
						t.Errorf("partition %d: %v", p, err)
					}
				}
			}

			one := w.onEach()[0]
			before := w.loads()
			w.no(w.at(w.primary(one), "FUNCTION", "FLUSH", "SYNC").Error())
			read()
			w.loadedOn(before, w.primary(one))

			// A failover finds the library on the replica: nothing is loaded.
			before = w.loads()
			w.nodes.Failover(w.slot(one))
			read()
			w.loadedOn(before, nil)

			// A replica that lacks it (a node that was added) gets it when it takes over.
			replica := w.nodes.ReplicaOf(w.primary(one))
			w.no(w.at(replica, "CONFIG", "SET", "replica-read-only", "no").Error())
			w.no(w.at(replica, "FUNCTION", "FLUSH", "SYNC").Error())
			before = w.loads()
			if now := w.nodes.Failover(w.slot(one)); now != replica {
				t.Fatalf("another node took over")
			}
			// Redis 7.0 does not tell drivers of a fresh replica: it may take the driver a second to find the node.
			w.until("the library is where the partition is", func() bool {
				_, err := w.engine.ReadExecution(w.ctx, ids[one])
				if err != nil && !errors.Is(err, flowfabric.ErrTransport) {
					t.Fatal(err)
				}
				return err == nil
			})
			read()
			w.loadedOn(before, replica)
		})
	}
}

// A dead node is none of the others' business: the library is loaded where it is missing, and a new process starts,
// although the cluster has not noticed yet and everybody is still told of the node.
func TestLibraryBesideADeadNode(t *testing.T) {
	t.Parallel()
	w := newEnv(t, testserver.Cluster(t, testserver.ServerRedis))
	one := w.onEach()[0]
	var dead *testserver.Server
	for _, s := range w.nodes.Primaries() {
		if s != w.primary(one) {
			dead = w.nodes.ReplicaOf(s)
		}
	}
	e := w.open() // knows the node
	dead.Kill()
	w.no(w.at(w.primary(one), "FUNCTION", "FLUSH", "SYNC").Error())
	x := engine.NewExecution{ID: mint.ID(one), Start: flowfabric.Start{Namespace: "default",
		Lane: "default", Kind: "k"}}
	if _, err := e.CreateExecutions(w.ctx, one, []engine.NewExecution{x}); err != nil {
		t.Errorf("beside a dead replica: %v", err)
	}
	w.open()
}

// Any live node is as good a seed as another.
func TestDeadSeed(t *testing.T) {
	t.Parallel()
	nodes := testserver.Cluster(t, testserver.ServerRedis)
	newEnv(t, nodes)
	first, _, _ := strings.Cut(strings.TrimPrefix(nodes.URL(), "redis://"), ",")
	nodes.Elections(true)
	slot := 0
	if nodes.Crash(slot).Address() != first {
		t.Fatal("the first seed should serve the first slot")
	}
	newEnv(t, nodes)
}

// Providers switch ROLE off; then INFO tells the primaries, which get the library.
func TestNoRole(t *testing.T) {
	t.Parallel()
	w := newEnv(t, testserver.Cluster(t, testserver.ServerRedis, testserver.Args("--rename-command", "ROLE", "R")))
	for p := range uint16(partitions) {
		if _, err := w.engine.ReadExecution(w.ctx, mint.ID(p)); !errors.Is(err, flowfabric.ErrNotFound) {
			t.Errorf("partition %d: %v", p, err)
		}
	}
	if list, err := w.engine.Primaries(w.ctx); err != nil || len(list) != 3 {
		t.Errorf("%d primaries, %v", len(list), err)
	}
}

// Every process has few connections to each node, one of which carries all its doorbells there.
func TestConnections(t *testing.T) {
	t.Parallel()
	w := newEnv(t, testserver.Cluster(t, testserver.ServerRedis))
	w.start("one", 30*time.Second)
	w.listening("one")
	l := w.newLoad()
	l.more(5, everywhere()...)
	l.once()
	for _, s := range w.nodes.Primaries() {
		mine := 0
		for p := range uint16(partitions) {
			if w.primary(p) == s {
				mine++
			}
		}
		all, carrying := 0, 0
		for _, c := range w.clients(s, "flowfabric-worker") {
			all++
			if n, _ := strconv.Atoi(c["ssub"]); n > 0 {
				if carrying++; n != 2*mine { // of each partition a doorbell, and the channel of urgent work
					t.Errorf("%s: a connection carries %d channels of %d partitions", s.Address(), n, mine)
				}
			}
		}
		// Calls, renewals, subscriptions, reads.
		if all < 2 || all > 4 || carrying != 1 {
			t.Errorf("%s: %d connections, %d of them with subscriptions; want at most 4 and 1", s.Address(), all,
				carrying)
		}
	}
}

// clients lists the connections of a name at a node, as CLIENT LIST shows them.
func (w *env) clients(s *testserver.Server, name string) (list []map[string]string) {
	w.Helper()
	text, err := w.at(s, "CLIENT", "LIST").ToString()
	w.no(err)
	for line := range strings.Lines(text) {
		c := map[string]string{}
		for field := range strings.FieldsSeq(line) {
			k, v, _ := strings.Cut(field, "=")
			c[k] = v
		}
		if c["name"] == name {
			list = append(list, c)
		}
	}
	return list
}

func (w *env) create(p uint16) flowfabric.ExecutionID {
	w.Helper()
	id := mint.ID(p)
	created, err := w.engine.CreateExecutions(w.ctx, p,
		[]engine.NewExecution{{ID: id, Start: flowfabric.Start{Namespace: "default", Lane: "default", Kind: "k"}}})
	w.no(err)
	w.no(created[0].Err)
	return id
}

func (w *env) hasLibrary(s *testserver.Server) bool {
	w.Helper()
	list, err := w.at(s, "FUNCTION", "LIST", "LIBRARYNAME", library.Name).ToArray()
	w.no(err)
	return len(list) == 1
}

// loads counts the libraries that a node was told to load, by whomever.
func (w *env) loads() map[*testserver.Server]int {
	w.Helper()
	counts := map[*testserver.Server]int{}
	for _, s := range w.nodes.All() {
		text, err := w.at(s, "INFO", "commandstats").ToString()
		w.no(err)
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(line, "cmdstat_function|load:calls="); ok {
				rest, _, _ = strings.Cut(rest, ",")
				counts[s], _ = strconv.Atoi(rest)
			}
		}
	}
	return counts
}

// loadedOn fails unless the library was loaded since, once, on the given primary alone; nil means on none. Its replica
// is told by it, at some time.
func (w *env) loadedOn(before map[*testserver.Server]int, where *testserver.Server) {
	w.Helper()
	after := w.loads()
	for _, s := range w.nodes.All() {
		want := before[s]
		if s == where {
			want++
		}
		if after[s] != want && (where == nil || s != w.nodes.ReplicaOf(where)) {
			w.Errorf("%s: library loaded %d times, want %d", s.Address(), after[s], want)
		}
	}
}
