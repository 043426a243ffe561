package conformance

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/race"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// Features says what a server has. A scenario that needs more is skipped there.
type Features struct {
	Native        bool // a server in C: its Lua is fast, it counts calls and changes, dumps keys and kills clients
	MemoryFigures bool // MEMORY USAGE and OBJECT ENCODING mean something
	OOM           bool // maxmemory refuses writes
	Persistence   bool // data survive a killed server
	Cluster       bool // one slot a call is enforced
	ShardedPubSub bool // SPUBLISH
}

// Server is one server under test.
type Server struct {
	Name     string
	URL      string
	Features Features
	Marked   bool                  // run only the topics that depend on the server, not those that enumerate arguments
	Node     func(p uint16) string // address of the primary that has a partition; in a cluster of several
	Only     []string              // run only these topics; none runs all
	Share    int                   // run one in so many of the random and exhaustive steps; 0 runs all
	Restart  func()                // kills the server and starts it again; with Persistence
	Twin     string                // URL of a second server like this one, to run topics on both at the same time
}

// scenario is one test; needs names the features it cannot do without. One that damages the store on purpose says
// how: what it leaves is not audited.
type scenario struct {
	name    string
	run     func(*env)
	needs   []string
	damaged string
}

// has reports whether the server has a feature by its name, so that skips can name it.
func (f Features) has(name string) bool {
	switch name {
	case "Native":
		return f.Native
	case "MemoryFigures":
		return f.MemoryFigures
	case "OOM":
		return f.OOM
	case "Persistence":
		return f.Persistence
	case "Cluster":
		return f.Cluster
	case "ShardedPubSub":
		return f.ShardedPubSub
	}
	panic("no feature " + name)
}

// topics are the scenarios by file.
func topics() map[string][]scenario {
	return map[string][]scenario{
		"create":        createScenarios,
		"keys":          keyScenarios,
		"debounce":      debounceScenarios,
		"claim":         claimScenarios,
		"lease":         leaseScenarios,
		"settle":        settleScenarios,
		"steps":         slices.Concat(stepScenarios, replayScenarios),
		"stream":        streamScenarios,
		"rewind":        rewindScenarios,
		"time":          timeScenarios,
		"clock":         clockScenarios,
		"cancel":        cancelScenarios,
		"operator":      operatorScenarios,
		"trail":         trailScenarios,
		"golden":        goldenScenarios,
		"lost replies":  lostScenarios,
		"interleavings": interleaveScenarios,
		"bell":          slices.Concat(bellScenarios, urgentScenarios),
		"errors":        slices.Concat(errorScenarios, argumentScenarios),
		"repeat":        repeatScenarios,
		"fuzz":          fuzzScenarios,
		"server":        serverScenarios,
		"edge cases":    edgeCaseScenarios,
		"tick":          tickScenarios,
		"suspend":       suspendScenarios,
		"signal":        signalScenarios,
		"waitpoint":     waitpointScenarios,
		"suspend reuse": reuseScenarios,
		"question":      questionScenarios,
		"mailbox":       mailboxScenarios,
		"talk":          talkScenarios,
		"job log":       jobLogScenarios,
		"children":      childrenScenarios,
		"await":         slices.Concat(awaitScenarios, awaitCancelScenarios),
		"continue":      continueScenarios,
		"fork":          forkScenarios,
		"written":       writtenScenarios,
		"remind":        remindScenarios,
		"totals":        totalScenarios,
		"twins":         twinScenarios,
		"modes":         modeScenarios,
		"runs":          runScenarios,
		"feed":          feedScenarios,
		"workers":       registryScenarios,
		"catalogue":     catalogueScenarios,
		"schemas":       schemaScenarios,
		"times":         timesScenarios,
		"why":           slices.Concat(whyScenarios, whyStateScenarios, whyWorkerScenarios),
		"schedules":     scheduleScenarios,
		"triggers":      triggerScenarios,
		"expectations":  expectScenarios,
		"inspect":       slices.Concat(inspectScenarios, inspectGateScenarios, categoryScenarios),
		"lanes":         laneScenarios,
		"retention":     slices.Concat(retentionScenarios, flowRetentionScenarios),
		"audit":         slices.Concat(auditScenarios, auditFlowScenarios, auditGateScenarios),
		"replicas":      replicaScenarios,
		"counting":      countingScenarios,
		"cleanup":       cleanupScenarios,
		"gates": slices.Concat(gateScenarios, amountScenarios, slotScenarios, meterScenarios, limitScenarios,
			gateLifeScenarios, gateFlowScenarios),
		"spend": slices.Concat(spendScenarios, ledgerScenarios, ledgerRuleScenarios, allowanceScenarios,
			shareScenarios),
		"services": serviceScenarios,
		"fair":     slices.Concat(fairScenarios, turnScenarios, ageingScenarios),
		"flow": slices.Concat(flowScenarios, flowBuildScenarios, flowResolveScenarios, flowCancelScenarios,
			flowReplayScenarios, flowChildrenScenarios, flowOutcomeScenarios, flowEndScenarios, flowPurgeScenarios,
			flowUniqueScenarios),
	}
}

// unmarked are the topics that enumerate arguments, orders and random steps: they exercise the library itself, which
// is the same everywhere. In the others servers differ: data types, expiry, publishing, redirections.
var unmarked = []string{"golden", "twins", "lost replies", "interleavings", "errors", "fuzz"}

var order = []string{
	"create", "claim", "lease", "settle", "steps", "rewind", "stream", "job log", "time", "clock", "cancel",
	"operator", "trail", "golden",
	"lost replies", "interleavings", "bell", "errors", "repeat", "server", "edge cases", "tick", "modes", "runs",
	"suspend", "signal", "waitpoint", "suspend reuse", "question", "mailbox", "talk", "continue", "remind", "totals",
	"twins", "feed", "workers", "schemas", "times", "why", "schedules", "triggers", "expectations", "inspect",
	"catalogue", "lanes",
	"retention", "keys", "debounce",
	"audit", "replicas", "counting", "flow", "cleanup", "children", "await", "gates", "spend", "services", "fair",
	"fork", "written", "fuzz",
}

// partitions of the store under test; scenarios take them in turn.
const partitions = 32

// house is a server with what its scenarios share: one of them runs there at a time.
type house struct {
	Server
	e    *engine.Engine
	look func(p uint16) rueidis.Client
	next uint16
}

func newHouse(t *testing.T, s Server) *house {
	t.Helper()
	e, raw := connect(t, s)
	h := &house{Server: s, e: e, look: func(uint16) rueidis.Client { return raw }}
	if s.Node != nil {
		h.look = lookers(t, s)
	}
	return h
}

// Run runs the suite against one server, or against two by turns.
func Run(t *testing.T, s Server) {
	free := make(chan *house, 2)
	free <- newHouse(t, s)
	if s.Twin != "" {
		twin := s
		twin.URL = s.Twin
		free <- newHouse(t, twin)
	}
	all := topics()
	for _, topic := range order {
		if s.Marked && slices.Contains(unmarked, topic) || len(s.Only) > 0 && !slices.Contains(s.Only, topic) {
			continue
		}
		t.Run(topic, func(t *testing.T) {
			if s.Twin != "" {
				t.Parallel()
			}
			h := <-free
			defer func() { free <- h }()
			for _, sc := range all[topic] {
				t.Run(sc.name, func(t *testing.T) { h.run(t, sc) })
			}
		})
	}
}

func (h *house) run(t *testing.T, sc scenario) {
	for _, f := range sc.needs {
		if !h.Features.has(f) {
			t.Skipf("%s has no %s", h.Name, f)
		}
	}
	w := newEnv(t, &h.Server, h.e, h.look(h.next), h.next)
	h.next = (h.next + 1) % partitions
	sc.run(w)
	if sc.damaged == "" {
		w.audited()
	}
}

// connect opens the engine under test, and a plain client that looks at what the engine did.
func connect(t *testing.T, s Server) (*engine.Engine, rueidis.Client) {
	t.Helper()
	ctx, cancel := testwait.Context(t, context.Background())
	defer cancel()
	quiet := slog.New(slog.DiscardHandler)
	e, err := engine.Open(ctx, engine.Config{URL: s.URL, TestClock: true, Partitions: partitions, Logger: quiet,
		CallTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e, plain(t, s.URL)
}

// plain opens a client that talks to one server and follows no redirection.
func plain(t *testing.T, url string) rueidis.Client {
	t.Helper()
	o := rueidis.ClientOption{DisableCache: true, ForceSingleClient: true, PipelineMultiplex: -1,
		ConnWriteTimeout: time.Hour}
	if path, ok := strings.CutPrefix(url, "unix://"); ok {
		o.InitAddress = []string{path}
		o.DialFn = func(path string, d *net.Dialer, _ *tlsConfig) (net.Conn, error) { return d.Dial("unix", path) }
	} else {
		o.InitAddress = strings.Split(strings.TrimPrefix(url, "redis://"), ",")[:1]
	}
	raw, err := rueidis.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(raw.Close)
	return raw
}

// lookers gives each partition a client of its primary.
func lookers(t *testing.T, s Server) func(uint16) rueidis.Client {
	clients := map[string]rueidis.Client{}
	at := func(address string) rueidis.Client {
		if clients[address] == nil {
			clients[address] = plain(t, "redis://"+address)
		}
		return clients[address]
	}
	return func(p uint16) rueidis.Client { return local{at(s.Node(p)), at} }
}

// local asks one node, also what concerns no key, and goes elsewhere only for a key that lives there.
type local struct {
	rueidis.Client
	at func(address string) rueidis.Client
}

func (l local) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	command = command.Pin()
	reply := l.Client.Do(ctx, command)
	if e, ok := rueidis.IsRedisErr(reply.Error()); ok {
		if address, moved := e.IsMoved(); moved {
			return l.at(address).Do(ctx, command)
		}
	}
	return reply
}

// raced are the topics that servers other than Redis run under the race detector, for which one server is enough, and
// which makes the interpreter of the embedded one ten times slower: one call at a time, several at once, pushed
// messages, and a library that got lost. Without it all of them are run.
func raced() []string {
	if race.Enabled {
		return []string{"create", "claim", "bell", "server"}
	}
	return nil
}

// The embedded server runs all topics with a folder. What is read back from it afterwards is what was in memory.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	cfg := embedded.Config{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}
	s, err := embedded.Start(t.Context(), cfg)
	fine(t, err)
	t.Cleanup(func() {
		had := lasting(t, s.URL())
		s.Close()
		again, err := embedded.Start(context.Background(), cfg)
		fine(t, err)
		defer again.Close()
		has := lasting(t, again.URL())
		if len(had) == 0 || !maps.Equal(had, has) {
			t.Errorf("%d keys became %d", len(had), len(has))
		}
		for key, content := range had {
			if has[key] != content {
				t.Errorf("%q is %.200q and was %.200q", key, has[key], content)
			}
		}
	})
	Run(t, Server{Name: "embedded", URL: s.URL(), Share: 20, Only: raced()})
}

func fine(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lasting are all keys that do not expire, with what they hold.
func lasting(t *testing.T, url string) map[string]string {
	c, ctx := plain(t, url), context.Background()
	keys, err := c.Do(ctx, c.B().Keys().Pattern("*").Build()).AsStrSlice()
	fine(t, err)
	all := map[string]string{}
	for _, key := range keys {
		if left, err := c.Do(ctx, c.B().Pttl().Key(key).Build()).AsInt64(); err != nil || left != -1 {
			continue
		}
		content, err := c.Do(ctx, c.B().Dump().Key(key).Build()).ToString()
		fine(t, err)
		all[key] = content
	}
	return all
}

func TestRedis(t *testing.T) {
	t.Parallel()
	Run(t, Server{Name: "redis", URL: testserver.Redis(t), Twin: testserver.Redis(t), Features: redisFeatures})
}

func TestValkey(t *testing.T) {
	t.Parallel()
	Run(t, Server{Name: "valkey", URL: testserver.Valkey(t), Features: redisFeatures, Marked: true, Only: raced()})
}

// All topics on the library without its straight lines and plain paths: what a partition answers does not depend on
// which of them a call takes.
func TestGeneral(t *testing.T) {
	t.Parallel()
	urls := []string{testserver.Redis(t), testserver.Redis(t)}
	text := strings.ReplaceAll(general(redisFeatures), library.Hash(), library.Hash()+"t") // as the engine calls it
	for _, url := range urls {
		c := plain(t, url)
		if err := c.Do(t.Context(), c.B().FunctionLoad().FunctionCode(text).Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	Run(t, Server{Name: "general", URL: urls[0], Twin: urls[1], Features: redisFeatures})
}

var redisFeatures = Features{Native: true, MemoryFigures: true, OOM: true, ShardedPubSub: true}

// Three primaries with replicas: every call is held to one slot, partitions live on different nodes, and the engine
// goes through its cluster client.
func TestCluster(t *testing.T) {
	t.Parallel()
	nodes := testserver.Cluster(t, testserver.ServerRedis)
	f := redisFeatures
	f.Cluster, f.OOM, f.MemoryFigures = true, false, false
	Run(t, Server{Name: "cluster", URL: nodes.URL(), Share: 5, Features: f, Marked: true, Only: raced(),
		Node: func(p uint16) string {
			return nodes.NodeOf(nodes.SlotOf(string(keys.Of(p)))).Address()
		}})
}

// What needs a server that is killed runs on one of its own, because syncing every write is slow.
func TestPersistence(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t, testserver.ServerRedis, testserver.AOF())
	s := Server{Name: "redis with AOF", URL: srv.URL(),
		Features: Features{Native: true, Persistence: true, ShardedPubSub: true}, Restart: srv.Restart}
	e, raw := connect(t, s)
	for _, sc := range persistenceScenarios {
		t.Run(sc.name, func(t *testing.T) { sc.run(newEnv(t, &s, e, raw, 0)) })
	}
}

// await polls for something that another process does; scenarios themselves never wait.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	testwait.Until(t, what, done)
}

// number reads a count from the environment.
func number(name string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// together runs fn n times at once and waits.
func together(n int, fn func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { fn(i) })
	}
	wg.Wait()
}

// label makes a sub-test name out of a value.
func label(format string, args ...any) string {
	s := fmt.Sprintf(format, args...)
	if len(s) > 60 {
		s = s[:60]
	}
	return strconv.QuoteToASCII(s)
}
