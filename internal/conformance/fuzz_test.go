package conformance

import (
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

var fuzzScenarios = []scenario{
	{name: "random sequences of calls keep every invariant", run: func(w *env) {
		seed := uint64(number("FLOWFABRIC_SEED", time.Now().UnixNano()))
		ops := int(number("FLOWFABRIC_SOAK", 2000)) / max(1, w.srv.Share)
		f := &fuzzer{env: w, r: rand.New(rand.NewPCG(seed, 0)), seed: seed, states: map[string]int{},
			answers: map[string]int{}}
		for i := 0; i < ops || ops >= 2000 && i < 20*ops && len(f.unseen()) > 0; i++ {
			if i%250 == 0 {
				f.begin()
			}
			f.step()
		}
		w.Logf("seed %d: %d calls, %d states, answers: %v", seed, ops, len(f.states), f.answers)
		if unseen := f.unseen(); ops >= 2000 && len(unseen) > 0 {
			w.Errorf("no execution was ever %v", unseen)
		}
	}},
	{name: "no text of a caller forms a key outside its partition", run: func(w *env) {
		all, err := w.do("KEYS", "*").AsStrSlice()
		w.no(err)
		for _, key := range all {
			if !ownKey.MatchString(key) {
				w.Errorf("the key %q belongs to no partition", key)
			}
		}
	}},
	{name: "the invariant checker sees every kind of damage", damaged: "it damages everything", run: func(w *env) {
		for i, what := range slices.Sorted(maps.Keys(damages)) {
			if !w.mine(i) {
				continue
			}
			w.damage(damages[what])
			if len(w.violations(w.dump())) == 0 {
				w.Errorf("%s goes unnoticed", what)
			}
		}
	}},
}

// damage sets up a partition with something of everything and runs raw commands in it, in the words of the layout.
func (w *env) damage(commands []string) {
	w.Helper()
	w.reset()
	w.quiet = true
	x := w.state("A1", timeout(time.Hour), retries(2))
	waiting, late := w.create(), w.create(delay(time.Hour), deadline(2*time.Hour))
	ended := w.create(priority(5), tags(map[string]string{"a.b": "c"}))
	w.complete(x.worker.one(ended).Fence, "r")
	handed := w.pend(x.fence, "handed")
	large := func(name string) suspend.SentSignal { // in keys of its own
		return suspend.SentSignal{Name: name, Payload: make([]byte, 2000), Encoding: "bytes"}
	}
	w.send(x.id, handed, large("go"), waitwords.EffectBuffered)
	asleep := w.create(priority(6))
	wait := w.stopped(x.worker.one(asleep).Fence, within(time.Hour, "fail"),
		waitFor(conditionOf(names(1, 2, "go", "on")), minted("wait")))
	w.send(asleep, wait, large("go"), waitwords.EffectAppended)
	stopped := w.create()
	w.cancel(stopped)
	token := w.hash(w.k.Satisfied(ids.UUID(asleep)))["1\x1f1"]
	w.quiet = false
	w.check()
	done := w.core(ended)
	names := strings.NewReplacer("ROOT", string(w.k), "ACTIVE", ids.UUID(x.id).String(), "WAITING",
		ids.UUID(waiting).String(), "LATE", ids.UUID(late).String(), "ENDED", ids.UUID(ended).String(), "SESSION",
		x.worker.session, "ROUTE", w.core(waiting)["r"], "STOPPED", ids.UUID(stopped).String(), "ASLEEP",
		ids.UUID(asleep).String(), "WAIT", wait.ID.String(), "HANDED", handed.ID.String(), "SIGNAL", token, "SCORE",
		strconv.FormatInt(w.at(ended, "ct")-5e12, 10), "ROW", strings.Join([]string{"n", "l", "k77", "", ""}, "\x1f"),
		"RECORD", strings.Join([]string{"initial", "1", "2", "ended_success", "", done["ss"], done["e"], done["cl"],
			"1"}, "\x1f"),
		"FOLDED", strings.Join([]string{"initial", "1", "2", "interrupted_reclaimed", "lease_revoked",
			w.core(x.id)["ss"], w.core(x.id)["e"], w.core(x.id)["cl"], "1"}, "\x1f"))
	for _, command := range commands {
		if command == sound {
			w.check()
			continue
		}
		w.inflict(names.Replace(command))
	}
}

// sound stands among the commands of a damage where nothing is wrong yet.
const sound = "sound"

// revoke makes ACTIVE a revoked execution.
func revoke(then ...string) []string {
	return append([]string{"ZREM ROOT:h:SESSION ACTIVE", "record ACTIVE s=A3", "record ACTIVE -ta",
		"HSET ROOT:a:ACTIVE 1 FOLDED", "HSET ROOT:fm:ACTIVE:1 z 1 y lease_revoked", sound}, then...)
}

// replay makes ENDED a replayed execution that waits for its second attempt.
func replay(then ...string) []string {
	return append([]string{"record ENDED s=R1p pc=1 rq=00000000-0000-0000-0000-000000000000", "record ENDED -en",
		"HSET ROOT:a:ENDED 1 RECORD", "ZREM ROOT:done ENDED", "ZADD ROOT:q:ROUTE SCORE ENDED", sound}, then...)
}

// ownKey is every key there may be: all scenarios before this one ran on the same server.
var ownKey = regexp.MustCompile(`^(ff:config:partitions|ff:\{(fp|g):\d+\}(:.*)?)$`)

// damages are what the checker must notice, in the words of inflict, with names for the parts of the partition.
var damages = map[string][]string{
	"an unknown key":            {"SET ROOT:zz:1 x"},
	"a key of the wrong type":   {"DEL ROOT:ready", "SET ROOT:ready x"},
	"an unknown root field":     {"HSET ROOT zz 1"},
	"no wake":                   {"HDEL ROOT wake"},
	"a late wake":               {"HINCRBY ROOT wake 5000000"},
	"a route without id":        {"DEL ROOT:routeids"},
	"a wrong table version":     {"HINCRBY ROOT table -1"},
	"no queue entry":            {"ZREM ROOT:q:ROUTE WAITING"},
	"a wrong score":             {"ZINCRBY ROOT:q:ROUTE 1 WAITING"},
	"a queue that is not ready": {"DEL ROOT:ready"},
	"a ready queue that is not": {"SADD ROOT:ready 77"},
	"two indexes":               {"ZADD ROOT:delayed 5 WAITING"},
	"an entry without core":     {"DEL ROOT:x:WAITING"},
	"a delay without instant":   {"record LATE -du"},
	"a delay at another time":   {"ZINCRBY ROOT:delayed 1 LATE"},
	"no alarm":                  {"ZREM ROOT:alarms LATE"},
	"a wrong alarm":             {"ZINCRBY ROOT:alarms 1 ACTIVE"},
	"an alarm of an ended one":  {"ZADD ROOT:alarms 5 ENDED"},
	"no holder":                 {"ZREM ROOT:h:SESSION ACTIVE"},
	"another claim":             {"ZINCRBY ROOT:h:SESSION 1 ACTIVE"},
	"no session":                {"DEL ROOT:s:SESSION"},
	"no session entry":          {"ZREM ROOT:sessions SESSION"},
	"a session entry too late":  {"ZINCRBY ROOT:sessions 99999999 SESSION"},
	"a notice too many":         {"RPUSH ROOT:l:SESSION x"},
	"an illegal state":          {"record WAITING s=R9"},
	"a state never stored":      {"record ACTIVE s=A2"},
	"another state":             {"record WAITING s=R1i"},
	"an end undone":             {"record ENDED s=A1"},
	"an epoch gone back":        {"record ACTIVE e=1"},
	"an attempt too many":       {"record ACTIVE n+1"},
	"a lost input":              {"record WAITING in=2000"},
	"lost tags":                 {"DEL ROOT:t:ENDED"},
	"a result of an active one": {"SET ROOT:o:ACTIVE:1 x"},
	"a stray blob":              {"SET ROOT:i:00000000-0000-0000-0000-000000000000 x"},
	"a closed stream":           {"HSET ROOT:fm:ACTIVE:1 z 1 y x"},
	"a lost frame":              {"DEL ROOT:f:ACTIVE:1"},
	"a lost count":              {"HINCRBY ROOT:fm:ACTIVE:1 c 1"},
	"a mixed frame uncounted":   {"HINCRBY ROOT:fm:ACTIVE:1 l 1"},
	"a summary of no version":   {"HSET ROOT:fs:ACTIVE:1 d {} v 1 f 1 l 1"},
	"deltas without metadata":   {"XADD ROOT:fd:WAITING:1 1-1 p s1,0 t json c 5 1 {}"},
	"a live log for ever": {"XADD ROOT:fl:ACTIVE:1 1-2 p l5000,1 t json c 5 1 x", "HINCRBY ROOT:fm:ACTIVE:1 l 1",
		"HINCRBY ROOT:fm:ACTIVE:1 q 1", "HSET ROOT:fm:ACTIVE:1 i 1-2"},
	"a TTL":                {"EXPIRE ROOT:x:WAITING 1000"},
	"a fraction":           {"record WAITING ct=1.5"},
	"waiters nobody rings": {"ZADD ROOT:w:abc 5 w1"},

	"a revoked one nobody requeues": revoke("ZREM ROOT:alarms ACTIVE"),
	"a revoked one still held":      revoke("ZADD ROOT:h:SESSION 1 ACTIVE"),
	"a revoked one that waits":      revoke("ZADD ROOT:q:ROUTE 1 ACTIVE"),
	"a revoked one that runs out":   revoke("record ACTIVE ta=5"),
	"a revoked one with a record":   revoke("HSET ROOT:a:ACTIVE 0 RECORD"),
	"a requeue after the deadline":  revoke("record ACTIVE dl=5", "ZADD ROOT:alarms 9999999999999 ACTIVE"),
	"a replay nobody counted":       replay("record ENDED -pc"),
	"a replay of a lost attempt":    replay("HDEL ROOT:a:ENDED 1"),
	"a result of no attempt":        replay("SET ROOT:o:ENDED:2 x"),
	"a short record":                replay("HSET ROOT:a:ENDED 0 initial\x1f1\x1f2\x1fended_success\x1f\x1fw1"),
	"a record of another epoch": replay(
		"HSET ROOT:a:ENDED 0 initial\x1f1\x1f2\x1fended_success\x1f\x1fw1~x\x1f9007199254740991\x1f1\x1f1"),
	"a replay forgotten":    replay("record ENDED s=T1 en=5", "record ENDED -pc -rq", "HDEL ROOT:a:ENDED 1"),
	"a replay by request x": replay("record ENDED rq=x"),
	"a long history": {"RPUSH ROOT:e:WAITING" + strings.Repeat(" x", 1000), sound,
		"RPUSH ROOT:e:WAITING x"},
	"a history of nobody":       {"RPUSH ROOT:e:00000000-0000-0000-0000-000000000000 x"},
	"a tombstone beside a core": {"SET ROOT:z:WAITING x EX 1000"},
	"a tombstone for ever": {"SET ROOT:z:00000000-0000-0000-0000-000000000000 x EX 1000", sound,
		"PERSIST ROOT:z:00000000-0000-0000-0000-000000000000"},
	"progress of no attempt": {"HSET ROOT:a:ACTIVE progress 1\x1f5\x1f50\x1fx", sound,
		"HSET ROOT:a:ACTIVE progress 2\x1f5\x1f50\x1fx"},
	"a purge of a live one": {"record ENDED pu=1", sound, "record ACTIVE pu=1"},
	"a reason to die":       {"HSET ROOT:s:SESSION why x"},

	"a suspended one that waits":         {"ZADD ROOT:q:ROUTE 1 ASLEEP"},
	"a suspended one without record":     {"DEL ROOT:u:ASLEEP"},
	"a suspended one that was resumed":   {"suspension ASLEEP cl=5 cs=resumed ca=operator"},
	"another reason":                     {"suspension ASLEEP rc=manual_pause"},
	"no timeout":                         {"record ASLEEP -tt"},
	"no alarm of a suspension":           {"ZREM ROOT:alarms ASLEEP"},
	"a late alarm of a suspension":       {"ZINCRBY ROOT:alarms 1 ASLEEP"},
	"an open waitpoint too many":         {"record ASLEEP wp+1"},
	"waitpoints forgotten":               {"record ACTIVE -uw"},
	"no expiry":                          {"ZREM ROOT:pending ACTIVE:HANDED"},
	"another expiry":                     {"ZINCRBY ROOT:pending 1 ACTIVE:HANDED"},
	"a pending one that is active":       {"ZADD ROOT:pending 5 ASLEEP:WAIT"},
	"an open one that is not listed":     {"ZREM ROOT:open:k1 ASLEEP:WAIT"},
	"an open one listed at another time": {"ZINCRBY ROOT:open:k1 1 ASLEEP:WAIT"},
	"an open one of another key":         {"ZADD ROOT:open:k9 5 ASLEEP:WAIT"},
	"a lost signal":                      {"DEL ROOT:g:ACTIVE:HANDED"},
	"a signal not known again":           {"DEL ROOT:gd:ACTIVE:HANDED"},
	"a signal of no waitpoint":           {"RPUSH ROOT:g:ACTIVE:WAIT x"},
	"a lost waitpoint":                   {"waitpoint ASLEEP -WAIT"},
	"a broken waitpoint":                 {"waitpoint ASLEEP WAIT=x"},
	"a part that nothing met":            {"HSET ROOT:us:ASLEEP 1\x1f2 SIGNAL"},
	"a part uncounted":                   {"DEL ROOT:us:ASLEEP"},
	"a part of no node":                  {"HSET ROOT:us:ASLEEP 7\x1f2 SIGNAL"},
	"a lost match":                       {"DEL ROOT:um:ASLEEP"},
	"a match uncounted":                  {"suspension ASLEEP gm=0"},
	"signals uncounted":                  {"suspension ASLEEP gn+1"},
	"a broken match":                     {"HSET ROOT:um:ASLEEP SIGNAL x"},
	"a resumption nobody made":           {"record ASLEEP sg=600"},
	"a suspension of nobody":             {"suspension 00000000-0000-0000-0000-000000000000 id=1"},
	"no token key":                       {"HDEL ROOT:kids k:k1"},
	"a token key of no shape":            {"HSET ROOT:kids k:k2 x"},
	"a step of nobody":                   {"HSET ROOT:k:ACTIVE \x1fx y", "record ACTIVE sb+3"},
	"another condition":                  {sound, "suspension ASLEEP c=O"},
	"a ring at no time":                  {"HSET ROOT ring 5", sound, "HSET ROOT ring soon"},

	"a suspended one that is not parked": {"ZREM ROOT:parked ASLEEP"},
	"a suspended one parked at no time":  {"ZINCRBY ROOT:parked 1 ASLEEP"},
	"a parked one that waits":            {"ZADD ROOT:parked 5 WAITING"},
	"a parked one of nobody":             {"ZADD ROOT:parked 5 00000000-0000-0000-0000-000000000000"},
	"a route counted once too often":     {"HINCRBY ROOT:routeuse ROUTE 1"},
	"a route uncounted":                  {"HDEL ROOT:routeuse ROUTE"},
	"a count of no route":                {"HSET ROOT:routeuse 77 1"},
	"a route that nobody uses": {"HSET ROOT:routes 77 ROW", "HSET ROOT:routeids ROW 77",
		"ZADD ROOT:routelog 1 77", "HSET ROOT:routeuse 77 0"},
	"a maker of no class": {"HSET ROOT:makers 77 n"},
	"a lane of no shape":  {"HSET ROOT:lanes n\x1fl x"},
	"a lane in no state": {"HSET ROOT lanes 1", "HSET ROOT:lanes n\x1fl paused\x1e0\x1e0\x1eme", sound,
		"HSET ROOT:lanes n\x1fl closed\x1e0\x1e0\x1eme"},
	"a lane nobody looks at": {"HSET ROOT:lanes n\x1fl paused\x1e0\x1e0\x1eme"},
	"a look at lanes for nothing": {"HSET ROOT:lanes n\x1fl active\x1e0\x1e5\x1eme", sound,
		"HSET ROOT lanes 1"},
	"a queue of a paused lane that waits": {"HSET ROOT lanes 1",
		"HSET ROOT:lanes default\x1fdefault paused\x1e0\x1e0\x1e"},
	"an end kept at another time":       {"ZINCRBY ROOT:done 1 ENDED"},
	"an end kept too short":             {"ZINCRBY ROOT:done -1 ENDED"},
	"a policy that keeps it for longer": {"record ENDED rt=86400", sound, "record ENDED rt=86401"},
	"an end that is not kept":           {"ZREM ROOT:done ENDED"},
	"a live one that is kept":           {"ZADD ROOT:done 5 ACTIVE"},
	"an end that is not listed":         {"ZREM ROOT:unsuccessful STOPPED"},
	"an end listed at another time":     {"ZINCRBY ROOT:unsuccessful 1 STOPPED"},
	"a success among the unsuccessful":  {"ZADD ROOT:unsuccessful 5 ENDED"},
	"a live one among the unsuccessful": {"ZADD ROOT:unsuccessful 5 ACTIVE"},
	"an unsuccessful one of nobody":     {"ZADD ROOT:unsuccessful 5 00000000-0000-0000-0000-000000000000"},
}

// fuzzer makes random calls as several workers, producers and operators would, a part of them with garbage, and
// looks at the whole partition after each. What answers an error must have changed nothing.
type fuzzer struct {
	*env
	r        *rand.Rand
	seed     uint64
	workers  []*worker
	fences   []flowfabric.Fence
	ids      []flowfabric.ExecutionID
	last     string         // fingerprint after the previous step
	text     string         // what a step that changed something left
	states   map[string]int // codes seen, and answers by function
	answers  map[string]int
	log      []string // calls since begin
	requests []string
	grants   []granted
	asking   bool      // the last of them is new
	points   []pointed // waitpoints that were made
}

// pointed is a waitpoint with its execution.
type pointed struct {
	id flowfabric.ExecutionID
	engine.Minted
}

// unseen are the states that no execution was ever in. Those of members that wait for others are for the random flows
// of internal/model; what is paused or granted after it ran is seen in the table of testdata.
func (f *fuzzer) unseen() (list []codes.Code) {
	for _, code := range reachable {
		if code != "A2" && !slices.Contains([]codes.Code{"R3f", "R3p", "T5n", "R4i", "G1i"}, code) &&
			f.states[string(code)] == 0 {
			list = append(list, code)
		}
	}
	return list
}

func (f *fuzzer) begin() {
	f.reset()
	f.workers, f.fences, f.ids, f.log, f.points, f.grants = nil, nil, nil, nil, nil, nil
	f.asking = false
	f.setKey("seed", kid, 0, false)
	f.fcall("ff_set_lane", protoOf("me", ""), "default", "default", "", "", strconv.Itoa(f.r.IntN(2)*5000))
	for i := range 3 {
		f.workers = append(f.workers, f.newWorker(i))
	}
	f.last = f.fingerprint()
}

func (f *fuzzer) newWorker(i int) *worker {
	k := f.worker("w" + strconv.Itoa(i))
	k.can = func(r engine.Route) bool { return i == 0 || len(r.Capabilities) == 0 }
	k.gates = i < 2 // the others are older
	k.nothingYet()
	return k
}

func (f *fuzzer) step() {
	f.Helper()
	c, learn := f.next()
	if c.name == "" {
		f.last = f.fingerprint()
		return
	}
	if f.r.IntN(6) == 0 {
		f.spoil(&c)
		learn = nil
	}
	f.log = append(f.log, c.name+" "+strings.ToValidUTF8(strings.Join(c.args, "|"), "?"))
	f.hostile = true
	a := f.fcall(c.name, c.args...)
	f.hostile = false
	f.answers[strings.TrimPrefix(c.name, "ff_")+" "+outcome(c.name, a)]++
	if now := f.fingerprint(); now != f.last {
		f.last = now
		d := f.dump()
		text := d.Text()
		if bad := f.violations(d); len(bad) > 0 {
			f.Fatalf("seed %d: %s answered %s %.200q and broke:\n%s\nlast calls:\n%s\n%s", f.seed, c.name, a.code,
				a.slots, strings.Join(bad, "\n"), f.tail(), difference(f.text, text))
		}
		if refused(c.name, a) {
			f.Fatalf("seed %d: %s answered %s and changed:\n%s\nlast calls:\n%s", f.seed, c.name, a.code,
				difference(f.text, text), f.tail())
		}
		f.text = text
		for key, h := range d.Hashes {
			if strings.HasPrefix(key, ":x:") {
				f.states[h["s"]]++
			}
		}
	}
	if learn != nil {
		learn(a)
	}
}

func (f *fuzzer) tail() string { return strings.Join(f.log[max(0, len(f.log)-15):], "\n") }

// next draws a call, and what to learn from its answer. The clock moves without a call.
func (f *fuzzer) next() (call, func(answer)) {
	k := f.workers[f.r.IntN(len(f.workers))]
	if f.asking && f.r.IntN(3) > 0 {
		f.asking = false
		return f.answered(f.grants[len(f.grants)-1]), nil
	}
	switch n := f.r.IntN(100); {
	case n < 14 && len(f.ids) < 24:
		return f.submit()
	case n < 24:
		return f.claim(k)
	case n < 32:
		return f.gate(k), nil
	case n < 54:
		if len(f.fences) == 0 {
			return f.claim(k)
		}
		recent := f.fences[max(0, len(f.fences)-12):]
		fence := recent[f.r.IntN(len(recent))]
		if n >= 45 {
			return f.wait(fence)
		}
		calls := fencedCalls(fence)
		c := calls[f.r.IntN(len(calls))]
		if c.name == "ff_append_frames" {
			c.args[6] = strconv.Itoa(1 + f.r.IntN(5))
			if n := len(c.args); n > 15 {
				c.args[n-3] = strconv.Itoa(f.r.IntN(3))
			}
		}
		return c, nil
	case n < 65 && len(f.points) > 0:
		return f.tell(f.points[max(0, len(f.points)-1-f.r.IntN(8))])
	case n < 70 && len(f.ids) > 0:
		id := f.ids[f.r.IntN(len(f.ids))]
		if len(f.fences) > 0 && f.r.IntN(2) > 0 {
			id = f.fences[max(0, len(f.fences)-1-f.r.IntN(3))].Execution
		}
		if n >= 66 {
			return f.operate(k, ids.UUID(id).String()), nil
		}
		return call{"ff_cancel_execution", []string{proto, ids.UUID(id).String(), "", "", "", "",
			"operator_override"}}, nil
	case n < 75:
		return call{"ff_session_renew", []string{proto, k.session, "30000", strconv.Itoa(max(0, f.r.IntN(6)-3))}}, nil
	case n < 77:
		return call{"ff_session_close", []string{proto, k.session}}, nil
	case n < 80:
		return f.setLane(), nil
	case n < 90:
		owner := []string{ticker, ticker, ticker, "other"}[f.r.IntN(4)]
		return call{"ff_tick", []string{proto, owner, []string{"0", "0", "0", "1"}[f.r.IntN(4)]}}, nil
	default:
		f.advance(time.Duration(f.r.IntN(1+[]int{10, 3000, 40000}[f.r.IntN(3)])) * time.Millisecond)
		return call{}, nil
	}
}

func (f *fuzzer) submit() (call, func(answer)) {
	opts := []option{priority(f.r.IntN(3)), kind("k" + strconv.Itoa(f.r.IntN(3)))}
	if f.r.IntN(3) == 0 {
		opts = append(opts, retention(time.Duration(1+f.r.IntN(30))*time.Second))
	}
	if f.r.IntN(3) == 0 {
		opts = append(opts, retry(flowfabric.RetryPolicy{MaxRetries: f.r.IntN(3),
			Initial: time.Duration(f.r.IntN(2000)) * time.Millisecond, Max: time.Minute, Multiplier: 1.5}),
			reclaims(1+f.r.IntN(2)))
	}
	if f.r.IntN(4) == 0 {
		opts = append(opts, delay(time.Duration(f.r.IntN(5000))*time.Millisecond))
	}
	if f.r.IntN(4) == 0 {
		opts = append(opts, capabilities("gpu"), tags(map[string]string{"a.b": "c"}))
	}
	if f.r.IntN(4) == 0 {
		opts = append(opts, asking([][]flowfabric.Gate{{"a"}, {"a", "b"},
			{"a", "b", "c", "d"}}[f.r.IntN(3)]...))
	}
	if f.r.IntN(4) == 0 {
		opts = append(opts, namespace("other"))
	}
	x := f.item(opts...)
	c := call{"ff_create_execution", createArgs(x)}
	if f.r.IntN(3) == 0 {
		c.args[7] = "+" + strconv.Itoa(f.r.IntN(60000))
	}
	if f.r.IntN(3) == 0 {
		c.args[9] = strconv.Itoa(1 + f.r.IntN(20000))
	}
	return c, func(a answer) {
		if outcome("ff_create_execution", a) == "OK" {
			f.ids = append(f.ids, x.ID)
		}
	}
}

// setLane closes the lane of everything now and then, mostly opens it, or keeps things for another time.
func (f *fuzzer) setLane() call {
	states := []string{"active", "active", "active", "", "paused", "draining", "disabled"}
	keep := []string{"", "", "0", strconv.Itoa(1 + f.r.IntN(60))}
	name := []string{"default", "default", "default", "other"}
	return call{"ff_set_lane", []string{proto, "default", name[f.r.IntN(4)], states[f.r.IntN(7)], keep[f.r.IntN(4)],
		""}}
}

// operate is what somebody does to an execution or a session from outside.
func (f *fuzzer) operate(k *worker, id string) call {
	switch f.r.IntN(9) {
	case 0:
		return call{"ff_change_priority", []string{proto, id, strconv.Itoa(f.r.IntN(4))}}
	case 1:
		return call{"ff_set_tags", []string{proto, id, "execution", "1", "t.x" + strconv.Itoa(f.r.IntN(2)),
			strconv.Itoa(f.r.IntN(3)), "1", "t.x" + strconv.Itoa(f.r.IntN(2))}}
	case 2, 3:
		f.requests = append(f.requests, uuid.NewString())
		request := f.requests[max(0, len(f.requests)-1-f.r.IntN(2))]
		return call{"ff_replay_execution",
			[]string{proto, id, request, []string{"keep", "drop"}[f.r.IntN(2)], strconv.Itoa(f.r.IntN(2))}}
	case 4, 5:
		f.requests = append(f.requests, uuid.NewString())
		request := f.requests[max(0, len(f.requests)-1-f.r.IntN(2))]
		if n := len(f.fences); n > 0 && f.r.IntN(2) == 0 { // else hardly one of them is held
			id = ids.UUID(f.fences[n-1].Execution).String()
		}
		return call{"ff_revoke_lease", []string{proto, id, []string{"", k.session}[f.r.IntN(2)], request}}
	case 6:
		if f.r.IntN(3) > 0 {
			return call{"ff_forward_ring", []string{proto, k.subscription}}
		}
		return call{"ff_mark_dead", []string{protoOf("", "r"), "session", k.session}}
	case 8:
		fork := mint.ID(f.p)
		f.ids = append(f.ids, fork)
		return call{"ff_fork_execution", []string{proto, id, ids.UUID(fork).String(), "", "0", ""}}
	}
	switch f.r.IntN(4) {
	case 0:
		return call{"ff_change_priority", []string{proto, id, "0"}}
	case 1:
		return call{"ff_set_delay", []string{proto, id, []string{"0", "0", "1500"}[f.r.IntN(3)], uuid.NewString(), ""}}
	}
	return call{"ff_purge_execution", []string{proto, id, "86400000"}}
}

// claim repeats a number now and then, as after a lost reply.
func (f *fuzzer) claim(k *worker) (call, func(answer)) {
	q := k.request(1 + f.r.IntN(3))
	if f.r.IntN(5) == 0 && k.number > 0 {
		q.Number = k.number
	}
	q.Rotation = uint64(f.r.IntN(4))
	c := call{"ff_claim_next", claimArgs(q)}
	if k.gates {
		c.args = granting(c.args)
	}
	return c, func(a answer) {
		switch {
		case a.code == "lease_expired":
			f.workers[slices.Index(f.workers, k)] = f.newWorker(int(k.instance[1] - '0'))
			f.last = f.fingerprint()
			return
		case a.status == 0:
			return
		}
		rows, _ := strconv.Atoi(a.slots[7])
		slots := a.slots[8+2*rows:]
		if rows > 0 {
			k.subscription, k.table = "", 0
			k.nothingYet()
			f.last = f.fingerprint()
		}
		n, _ := strconv.Atoi(slots[0])
		before := len(f.grants)
		if k.gates {
			f.granted(k, q.Number, slots)
		}
		if n+len(f.grants)-before > 0 && q.Number > k.number {
			k.number = q.Number
		}
		for _, slot := range slots {
			if h := strings.Fields(slot); len(h) == claimWords {
				id, err := ids.ParseUUID(h[0])
				f.no(err)
				attempt, _ := strconv.ParseUint(h[1], 10, 32)
				epoch, _ := strconv.ParseUint(h[2], 10, 64)
				f.fences = append(f.fences, flowfabric.Fence{Execution: mint.Join(f.p, id),
					Session: k.session, Claim: q.Number, Epoch: epoch, Attempt: uint32(attempt)})
			}
		}
	}
}

// spoil replaces, drops or adds an argument.
func (f *fuzzer) spoil(c *call) {
	garbage := []string{"", "-1", "0", "1", "2", "1.5", "nan", "1e3", "0x10", "x", "a{b}", "\x00", "99999999999999999",
		strings.Repeat("z", 70), ids.UUID(f.item().ID).String()}
	c.args = slices.Clone(c.args)
	switch f.r.IntN(8) {
	case 0:
		c.args = c.args[:f.r.IntN(len(c.args))]
	case 1:
		c.args = append(c.args, garbage[f.r.IntN(len(garbage))])
	default:
		c.args[f.r.IntN(len(c.args))] = garbage[f.r.IntN(len(garbage))]
	}
	if c.name == "ff_set_lane" && len(c.args) > 5 {
		c.args[5] = "" // an ageing leaves what waits where it is
	}
}
