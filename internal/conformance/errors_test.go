package conformance

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/contract"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

var errorScenarios = []scenario{
	{name: "a function that refuses a garbage argument leaves the store unchanged", run: func(w *env) {
		// Each value meets every tenth argument, every argument is emptied once, and every third cut off. Where the
		// server is slow it is far fewer. A soak brings them all together.
		garbage, spread, cuts := hostile, 10, 3
		if w.srv.Share > 1 {
			garbage, spread, cuts = []string{"", "x"}, 30, 30
		}
		if os.Getenv("FLOWFABRIC_SOAK") != "" {
			spread, cuts = 1, 1
		}
		for i := range w.stage().calls {
			if !w.mine(i) {
				continue
			}
			c := w.stage().calls[i]
			before, text := w.fingerprintFor(c.name), w.digest()
			setup := func() {
				c = w.stage().calls[i]
				before, text = w.fingerprintFor(c.name), w.digest()
			}
			if w.srv.Features.Native { // and DUMP
				image := w.save()
				setup = func() {
					w.checker = invariant.NewChecker()
					w.restore(image)
				}
			}
			try := func(what string, args []string) {
				w.Helper()
				mark := w.changes()
				a := w.fcall(c.name, args...)
				if mark != "" && w.changes() == mark || w.fingerprintFor(c.name) == before {
					return
				}
				if refused(c.name, a) {
					w.Fatalf("%s %s answered %s and changed the keyspace:\n%s", c.name, what, a.code,
						difference(text, w.digest()))
				}
				if bad := w.violations(w.dump()); len(bad) > 0 { // it was legal after all, so it must have been whole
					w.Fatalf("%s %s answered %s and broke:\n%s", c.name, what, a.code, strings.Join(bad, "\n"))
				}
				setup()
			}
			for at := range len(c.args) {
				for n, g := range garbage {
					if (n+at+i)%spread != 0 && (g != "" || w.srv.Share > 1) {
						continue
					}
					args := slices.Clone(c.args)
					args[at] = g
					try(fmt.Sprintf("argument %d = %.20q", at, g), args)
				}
				if (at+i)%cuts == 0 {
					try(fmt.Sprintf("cut to %d arguments", at), slices.Clone(c.args[:at]))
				}
			}
			w.hostile = true // no function minds
			try("one argument more", append(slices.Clone(c.args), "x"))
			w.hostile = false
		}
	}},
	{name: "what the header of a function does not allow is refused by its argument's name, and changes nothing",
		run: func(w *env) {
			known, s := functionsByName(), w.stage()
			for i := range s.calls {
				if c := s.calls[i]; w.mine(i) && !w.unfit(known[c.name], c) {
					s = w.stage()
				}
			}
		}},
	{name: "every function keeps to the arguments and replies in its header", run: func(w *env) {
		for i := range w.stage().calls {
			if !w.mine(i) {
				continue
			}
			c := w.stage().calls[i]
			if a := w.fcall(c.name, c.args...); a.status == 0 && c.name != "ff_session_close" {
				// that session holds work; others are closed elsewhere
				w.Errorf("the staged call of %s is refused, so its header was held to nothing", c.name)
			}
		}
	}},
	{name: "random hostile input in several arguments at once changes nothing when refused", run: func(w *env) {
		seed := uint64(number("FLOWFABRIC_SEED", time.Now().UnixNano()))
		r := rand.New(rand.NewPCG(seed, 1))
		n := int(number("FLOWFABRIC_SOAK", 4000)) / max(1, w.srv.Share)
		var calls []call
		var image []saved
		before := map[string]string{} // by where a call is made
		refusals, changed, last := 0, false, ""
		defer func() {
			if w.Failed() {
				w.Logf("seed %d, %s", seed, last)
			}
		}()
		for i := range n {
			switch {
			case i%500 == 0 || changed && image == nil:
				calls, before = w.stage().calls, map[string]string{}
				if w.srv.Features.Native { // and DUMP
					image = w.save()
				}
			case changed:
				w.checker = invariant.NewChecker()
				w.restore(image)
			}
			changed = false
			c := calls[r.IntN(len(calls))]
			seat := w.seat(c.name)
			if before[seat] == "" {
				before[seat] = w.fingerprintFor(c.name)
			}
			args := slices.Clone(c.args)
			for range 1 + r.IntN(3) {
				at := r.IntN(len(args))
				args[at] = hostile[r.IntN(len(hostile))]
				if r.IntN(4) == 0 {
					args[at] += string(rune(r.IntN(256)))
				}
			}
			last = fmt.Sprintf("call %d: %s %.600q", i, c.name, args)
			w.hostile = true // a count that became 0 leaves arguments over
			mark := w.changes()
			a := w.fcall(c.name, args...)
			w.hostile = false
			if refused(c.name, a) {
				refusals++
			}
			if mark != "" && w.changes() == mark {
				continue
			}
			if now := w.fingerprintFor(c.name); now != before[seat] {
				if refused(c.name, a) {
					w.Fatalf("%s answered %s and changed the keyspace", c.name, a.code)
				}
				w.check()
				changed = true
			}
		}
		w.no(w.e.ThawPartition(w.ctx, w.p)) // a call may have frozen it
		w.Logf("seed %d: %d calls, %d refused", seed, n, refusals)
		if refusals < n/2 {
			w.Errorf("only %d of %d calls were refused", refusals, n)
		}
	}},
	{name: "a missing, frozen or newer partition refuses every function", run: func(w *env) {
		s := w.stage()
		names := map[string]bool{}
		for _, c := range s.calls {
			names[c.name] = true
		}
		for _, h := range contract.Functions() {
			if !names[h.Name] && h.Name != "ff_version" && h.Name != "ff_configure" {
				w.Errorf("%s is not staged", h.Name)
			}
		}
		const missing = "ff:{fp:60000}"
		for _, c := range s.calls {
			if c.name == "ff_boot" {
				continue
			}
			same(w, c.name, w.fcallOn([]string{missing}, c.name, c.args...).code, "partition_missing")
		}
		made, err := w.do("KEYS", missing+"*").AsStrSlice()
		w.no(err)
		same(w, "keys made", len(made), 0)
		for _, damage := range [][3]string{{"frozen", "1", "partition_frozen"},
			{"protocol", strconv.Itoa(limits.Protocol + 1), "protocol_mismatch"}} {
			old := w.root()[damage[0]]
			roots := append([]string{string(w.k)}, w.roots...)
			for _, root := range roots {
				w.set("HSET", root, damage[0], damage[1])
			}
			w.unchanged(damage[2], func() {
				for _, c := range s.calls {
					if damage[0] == "frozen" &&
						(c.name == "ff_boot" || c.name == "ff_poll" || c.name == "ff_freeze_partition" ||
							c.name == "ff_describe_partition") {
						continue
					}
					same(w, c.name, w.fcall(c.name, c.args...).code, damage[2])
				}
			})
			for _, root := range roots {
				if old == "" {
					w.set("HDEL", root, damage[0])
				} else {
					w.set("HSET", root, damage[0], old)
				}
			}
		}
		_, err = w.e.ReadExecution(w.ctx, mint.ID(partitions))
		w.is(err, flowfabric.ErrInvalidInput)
	}},
	{name: "every function says that an execution does not exist, or was purged", run: func(w *env) {
		s := w.stage()
		gone := w.create()
		w.cancel(gone)
		_, err := w.e.PurgeExecution(w.ctx, gone, 24*time.Hour)
		w.no(err)
		known := functionsByName()
		for _, c := range s.calls {
			values, err := contract.Decode(known[c.name].Args, unnoted(c.args))
			w.no(err)
			at := slices.IndexFunc(values, func(v contract.Value) bool {
				return v.Slot.Name == "id" && v.Slot.Type.Name == "id"
			})
			codes := known[c.name].Errors
			if c.name == "ff_complete_execution" { // its items say so
				codes = []string{"execution_not_found"}
			}
			if at < 0 || !slices.Contains(codes, "execution_not_found") || c.name == "ff_set_tags" &&
				c.args[2] == "flow" {
				continue // it makes one, or names others, or a flow
			}
			for id, code := range map[flowfabric.ExecutionID]string{
				mint.ID(w.p): "execution_not_found", gone: "result_purged"} {
				// a claim in the same call works
				if slices.Contains(codes, code) && (c.name != "ff_complete_execution" || len(c.args) == 9) {
					args := slices.Clone(c.args)
					args[values[at].At] = ids.UUID(id).String()
					w.unchanged(c.name, func() { same(w, c.name, outcome(c.name, w.fcall(c.name, args...)), code) })
				}
			}
		}
	}},
	{name: "the deployment's partition counts are validated, and fixed once written", run: func(w *env) {
		key := string(w.k) + ":config"
		defer w.set("DEL", key)
		same(w, "absent", w.fcallOn([]string{key}, "ff_configure", proto, "8", "4", "0").code, "config_missing")
		for _, bad := range []string{"0", "65536", "x", "", "1.5"} {
			for at := 1; at < 3; at++ {
				args := []string{proto, "8", "4", "1"}
				args[at] = bad
				same(w, "argument "+bad, w.fcallOn([]string{key}, "ff_configure", args...).code, "invalid_input")
			}
		}
		n, err := w.do("EXISTS", key).AsInt64()
		w.no(err)
		same(w, "nothing was made", n, 0)
		sameDeep(w, "made", w.fcallOn([]string{key}, "ff_configure", proto, "8", "4", "1"),
			answer{1, "OK", []string{"8", "4", "1"}})
		sameDeep(w, "fixed", w.fcallOn([]string{key}, "ff_configure", proto, "9", "9", "1"),
			answer{1, "OK", []string{"8", "4", "0"}})
		w.set("HSET", key, "num_flow_partitions", "many")
		same(w, "damaged", w.fcallOn([]string{key}, "ff_configure", proto, "9", "9", "1").code, "invalid_input")
	}},
}

// hostile are texts that no argument expects: braces, control characters, what is no UTF-8, and every way to write a
// number that is not a plain whole one.
var hostile = []string{"", "-1", "0", "1", "1.5", "x", "nan", "inf", "-inf", "1e3", "0x10", "007", "-0", "+5", " 1",
	"1 ", "１", "9007199254740991", "9007199254740993", "99999999999999999999", "-9007199254740993", "a{b}", "{fp:9}",
	"}{", "\x00", "\x00\xff", "\r\n", "*1\r\n$4\r\nPING\r\n", "-", "+", ";", ",", "\x1f", "%d", "%s%n", "../..",
	"\xed\xa0\x80", "nil", "false",
	"00000000-0000-0000-0000-00000000000{", strings.Repeat("y", 2000)}

// unfit replaces each argument of a good call by what its type does not hold, and cuts the call off before each: all of
// it is refused, and what is wrong is named. It tells whether nothing was done.
func (w *env) unfit(h contract.Function, c call) (whole bool) {
	w.Helper()
	values, err := contract.Decode(h.Args, unnoted(c.args))
	w.no(err)
	before := w.fingerprintFor(c.name)
	whole = true
	for _, v := range values[1:] { // before is the protocol
		if c.name == "ff_fire_schedule" && v.At > 15 {
			break // what is wrong with that is counted: an instant is missed
		}
		code := cmp.Or(codeOf[v.Slot.Name+":"+v.Slot.Type.Name], v.Slot.Code, "invalid_input")
		name := cmp.Or(saidAs[v.Slot.Name], v.Slot.Name)
		for _, g := range slices.Concat(hostile, beyond(v.Slot.Type)) {
			args := slices.Clone(c.args)
			args[v.At] = g
			if _, err := contract.Decode(h.Args, unnoted(args)); err == nil {
				continue // it may be so
			}
			told, all := w.refusal(c.name, args)
			whole = whole && all
			got, detail, _ := strings.Cut(told, " ")
			switch {
			case slices.Contains(fenced, v.Slot.Name) && slices.Contains(unfenced, got):
			case strings.HasSuffix(got, "_too_large") || v.Slot.Name == "digest" && got == "invalid_token":
			case got == code && (v.Slot.Type.Name == "rows" || strings.Contains(detail, name) ||
				strings.HasPrefix(detail, g[:min(len(g), 64)])): // or it is shown
			default:
				w.Errorf("%s argument %d %s = %.40q: %q, want %s about %s", c.name, v.At, v.Slot, g, told, code, name)
			}
		}
	}
	for at := range c.args {
		if _, err := contract.Decode(h.Args, unnoted(c.args[:at])); err == nil {
			continue
		}
		told, all := w.refusal(c.name, c.args[:at])
		if whole = whole && all; told == "" {
			w.Errorf("%s cut to %d arguments is not refused", c.name, at)
		}
	}
	if whole && w.fingerprintFor(c.name) != before {
		w.Fatalf("%s: something that was refused changed the keyspace", c.name)
	}
	return whole
}

// A fence that cannot be one is refused like one that does not hold any more.
var (
	fenced   = []string{"session", "claim", "epoch", "attempt"}
	unfenced = []string{"stale_lease", "partial_fence", "stale_owner_cannot_append"}
)

// saidAs is how refusals name arguments that they do not name as headers do, and codeOf are their codes.
var (
	saidAs = map[string]string{"upstreams": "policy"}
	codeOf = map[string]string{"key:tag": "invalid_tag_key", "capabilities:bytes": "invalid_capabilities"}
)

// beyond are texts that a type just does not hold.
func beyond(t contract.Type) (out []string) {
	switch t.Name {
	case "n", "rows", "ms":
		out = append(out, strconv.FormatInt(t.Lo-1, 10), strconv.FormatInt(t.Hi+1, 10))
	case "bytes", "ascii", "line", "name", "hex":
		out = append(out, strings.Repeat("a", int(t.Hi)+1), strings.Repeat("a", int(max(0, t.Lo-1))))
	}
	for _, word := range t.Words {
		out = append(out, word+"x", strings.ToUpper(word))
	}
	return append(out, nearly[t.Name]...)
}

// nearly are texts of almost the form that a type has.
var nearly = map[string][]string{
	"tag": {"a", "a.", ".a", "a..b", "A.b", "a.B", "1a.b", "a.b c", "a b.c", "a.é",
		strings.Repeat("a", 63) + ".b"},
	"service":   {"/a", "a b", "a{b}", strings.Repeat("l", 65)},
	"label":     {".a", "a b", "a{b}", strings.Repeat("l", 65)},
	"dimension": {"T", "9a", "a b", ".a", "breached-at", strings.Repeat("d", 65)},
	"kid":       {"a:b", "a b", "ä", "a\n", "k/1", strings.Repeat("k", 33)},
	"when":      {"soon", "+", "+-1", "+1.5", "-5", "01"},
	"uuid": {"00000000-0000-0000-0000-00000000000g", "0000000000000000000000000000000000000000",
		"00000000-0000-0000-0000-00000000000A", "00000000-0000-0000-0000-000000000000 "},
	"ref": {"1-00000000-0000-0000-0000-000000000000", "01.00000000-0000-0000-0000-000000000000",
		"1.0000", "65536.00000000-0000-0000-0000-000000000000"},
	"gate": {"@1.0.0@", "@1.0@k", "@1.0.0.0@k", "@-1.0.0@k", "@1.0.0@a b", "@1.0.0@a,b", "@1.0.0@a\x1fb", ".0.0@k",
		"@@k", "@", "@1.0.0@" + strings.Repeat("k", limits.MaxLimitKey+1)},
	"object": {"[]", "{", "{} ", "null"},
}

// refusal is the code and the detail with which a call, or one of its items, is refused, "" if it is not, and whether
// nothing else was done.
func (w *env) refusal(name string, args []string) (told string, whole bool) {
	w.Helper()
	a := w.fcall(name, args...)
	if a.status == 0 {
		return strings.Join(append([]string{a.code}, a.slots...), " "), true
	}
	for i, slot := range a.slots { // of a batch: one code for each item, and what it is about
		if code, ok := strings.CutPrefix(slot, "-"); ok && code != "" {
			return strings.Join(append([]string{code}, a.slots[i+1:]...), " "), refused(name, a)
		}
	}
	return "", false
}

// call is a function with its arguments.
type call struct {
	name string
	args []string
}

// staged is a partition with something of everything, and one good call of every function.
type staged struct {
	calls []call
	fence flowfabric.Fence
}

// stage empties the partition and sets it up.
func (w *env) stage() staged {
	w.Helper()
	defer func(quiet bool) { w.quiet = quiet }(w.quiet)
	w.quiet = true
	w.reset()
	w.set("HSET", string(w.k), "index", "1 +a.b")
	id := w.create(retries(2), deadline(time.Hour), timeout(time.Minute), tags(map[string]string{"a.b": "c"}))
	gone := w.create(priority(1))
	k := w.worker("w1")
	lost := k.one(gone).Fence
	f := k.one(id).Fence
	w.frames(f, 1, 1)
	w.cancel(lost.Execution) // leaves a notice
	w.create(bouncing("staged", time.Hour, 0), tags(map[string]string{"a.b": "c"}), deadline(2*time.Hour))
	ended := w.create(priority(1), deadline(time.Hour), tags(map[string]string{"a.b": "c"}))
	e := k.one(ended).Fence
	_, err := w.e.RecordStep(w.ctx, e, "s", []byte("v"), 0)
	w.no(err)
	w.frames(e, 1, 1)
	w.no(w.complete(e, "r").Err)
	w.seed()
	handed := w.pend(f, "handed")
	w.mail(id, "user", "a message")
	asleep := w.create(priority(1), deadline(time.Hour))
	wait := w.stopped(k.one(asleep).Fence, within(time.Minute, "escalate"), awaiting("it"))
	waiting := w.createN(2)[0]
	later := w.create(delay(time.Hour))
	recurring := w.recurring(w.named("s"), time.Minute)
	subject, term := uuid.NewString(), strings.Repeat("0", 32)
	w.must("ff_put_trigger", proto, subject, "default", "order.paid", "started", "definition", "1", term)
	own := func(id flowfabric.ExecutionID) string { return strconv.Itoa(int(w.p)) + "." + ids.UUID(id).String() }
	expected := own(id)
	w.must("ff_expect_event", proto, subject, expected, handed.ID.String(), handed.Digest, "1", term)
	w.unheard = [][]string{{subject, expected, handed.ID.String()}, {subject, own(asleep), wait.ID.String()}}
	w.create(delay(time.Hour))
	flows := w.stageFlows()
	gated := w.gateCalls(w.stageGates())
	streams := w.stageStreams()
	idle := w.worker("idle")
	idle.can = func(engine.Route) bool { return false }
	idle.nothing()
	w.must("ff_register_worker", proto, "w8", "t8", "30000", "0", "0", "{}", "")
	w.tick()
	calls := append(fencedCalls(f),
		call{"ff_deliver_signal", wireDeliver(asleep, wait, "go")},
		call{"ff_send_message", wireSend(id, uuid.NewString())},
		call{"ff_stop_turn", []string{proto, ids.UUID(id).String(), uuid.NewString()}},
		call{"ff_read_messages", []string{proto, ids.UUID(id).String(), "0", "10"}},
		call{"ff_read_log", []string{proto, ids.UUID(id).String(), "1", "", "0", "debug", "10"}},
		call{"ff_approve_waitpoint", wireApprove(asleep, wait.Key, "go")},
		call{"ff_resume_execution", wireResume(asleep, uuid.NewString())},
		call{"ff_reissue_token", wireReissue(asleep, wait)},
		call{"ff_set_token_keys", wireKey("rotate", "k2", "1000", "1")},
		call{"ff_check_others",
			[]string{proto, elsewhere(id, "waiter"), "2", ids.UUID(id).String(), ids.UUID(ended).String()}},
		call{"ff_note_waiters", []string{proto, "2", "+", ids.UUID(id).String(), elsewhere(id, "waiter"), "1.0", "-",
			ids.UUID(asleep).String(), elsewhere(id, "waiter"), "1.0"}},
		call{"ff_tell_waiters", []string{proto, "1", ids.UUID(id).String(), elsewhere(id, "x"), "1.0", "s", "1"}},
		call{"ff_list_token_keys", []string{proto}},
		call{"ff_set_lane", []string{proto, "default", "default", "paused", "60", "1000"}},
		call{"ff_list_lanes", []string{proto, ""}},
		call{"ff_set_feed", []string{proto, "cls", "60000", "1000"}},
		call{"ff_read_queues", []string{proto, "", ""}},
		call{"ff_list_executions", []string{proto, "active", k.session, "1", "2", ids.UUID(id).String(), "10", "1",
			"1"}},
		call{"ff_count_executions", []string{proto, "tagged", "a.b=c", "", "", "0", everything, "10"}},
		call{"ff_set_index", []string{proto, "1", "0", "", "2", "a.b", "c.d"}},
		call{"ff_index_executions", []string{proto, "1", ids.UUID(id).String()}},
		call{"ff_describe_partition", []string{proto}},
		call{"ff_register_worker", []string{proto, "w9", "t9", "30000", "2", "1", "{}", "1.4"}},
		call{"ff_put_schemas", []string{proto, "default", "1", "a kind", "{}"}},
		call{"ff_note_times", []string{proto, "default", "sender", "1", "1", "a kind",
			strconv.FormatInt(w.now()/60000, 10), "1,0,0,0;3:1;7:1"}},
		call{"ff_read_times", []string{proto, "default", "a kind", strconv.FormatInt(w.now()/60000, 10), "1"}},
		call{"ff_leave_worker", []string{proto, "w8", "t8"}},
		call{"ff_mark_dead", []string{proto, "worker", "w8"}},
		call{"ff_list_workers", []string{proto, "", "10"}}, call{"ff_list_versions", []string{proto}},
		call{"ff_list_sessions", []string{proto, "", "10"}},
		call{"ff_put_schedule", wirePut("another", "0", "", w.now()+1000, "definition", "in")},
		call{"ff_fire_schedule", wireFire(w, recurring, "1")},
		call{"ff_pause_schedule",
			[]string{proto, recurring.Name, "1", strconv.FormatUint(recurring.Revision, 10)}},
		call{"ff_remove_schedule", []string{proto, recurring.Name, strconv.FormatUint(recurring.Revision, 10)}},
		call{"ff_list_schedules", []string{proto, "all", "", "10"}},
		call{"ff_put_trigger", []string{proto, subject, "default", "order.paid", "another", "definition", "1", term}},
		call{"ff_remove_trigger", []string{proto, subject, "started"}},
		call{"ff_list_triggers", []string{proto, "", "", "10"}},
		call{"ff_publish_event", []string{proto, subject, uuid.NewString(), "default", "order.paid", "e1",
			strings.Repeat("a", 64), "{}", "1", term}},
		call{"ff_expect_event", []string{proto, subject, own(asleep), wait.ID.String(), wait.Digest, "1", term}},
		call{"ff_forget_expected", []string{proto, "1", subject, expected, handed.ID.String()}},
		call{"ff_refuse_start", []string{proto, subject, "started", "lane_closed", "e1"}},
		call{"ff_audit_executions", []string{proto, "1", "2", ids.UUID(id).String(), ids.UUID(asleep).String()}},
		call{"ff_audit_index", []string{proto, "1", "alarms", "", "2"}},
		call{"ff_audit_keys", []string{proto, "1", "2", "t", ids.UUID(id).String(), "", "o",
			ids.UUID(ended).String(), "0"}},
		call{"ff_audit_flows", []string{proto, "1", "1", ids.UUID(asleep).String(), "0", "0", ""}},
		call{"ff_audit_routes", []string{proto, "1", "0", "0", "", "0"}}, // what it is told of routes it believes
		call{"ff_read_suspension", []string{proto, ids.UUID(asleep).String()}},
		call{"ff_read_question", []string{proto, ids.UUID(asleep).String(), wait.ID.String(), wait.Digest}},
		call{"ff_read_signals", []string{proto, ids.UUID(asleep).String(), wait.ID.String(), "0"}},
		call{"ff_create_execution",
			createArgs(w.item(delay(time.Minute), deadline(time.Hour), timeout(time.Minute), retries(1),
				tags(map[string]string{"x.y": "z"})))},
		call{"ff_create_execution", createArgs(w.item(bouncing("staged", time.Minute, time.Hour), retries(1),
			lane("another"), tags(map[string]string{"x.y": "z"})))},
		call{"ff_claim_next", claimArgs(k.request(2))},
		call{"ff_set_subscription", []string{proto, "abc123", "1", "default", "2", "1", "2", "1", "busy", "5"}},
		call{"ff_session_renew", []string{proto, k.session, "30000", "1"}},
		call{"ff_session_held", []string{proto, k.session, "0"}},
		call{"ff_session_close", []string{proto, k.session}},
		call{"ff_tick", []string{proto, ticker, "0"}},
		call{"ff_poll", []string{proto}},
		call{"ff_boot", []string{proto}},
		call{"ff_read_execution", []string{proto, ids.UUID(id).String()}},
		call{"ff_read_history", []string{proto, ids.UUID(id).String()}},
		call{"ff_read_steps", []string{proto, ids.UUID(id).String(), ""}},
		call{"ff_explain_execution", []string{proto, ids.UUID(asleep).String()}},
		call{"ff_change_priority", []string{proto, ids.UUID(waiting).String(), "5"}},
		call{"ff_set_delay", []string{proto, ids.UUID(later).String(), "5000", uuid.NewString(), ""}},
		call{"ff_set_tags", []string{proto, ids.UUID(id).String(), "execution", "1", "c.d", "v", "1", "a.b"}},
		call{"ff_replay_execution", []string{proto, ids.UUID(ended).String(), uuid.NewString(), "drop", "1"}},
		call{"ff_rewind_execution", []string{proto, ids.UUID(ended).String(), uuid.NewString(), "s", "1", "utf8", "x"}},
		call{"ff_fork_execution", []string{proto, ids.UUID(id).String(), uuid.NewString(), "", "1", "input"}},
		call{"ff_purge_execution", []string{proto, ids.UUID(ended).String(), "86400000"}},
		call{"ff_revoke_lease", []string{proto, ids.UUID(id).String(), k.session, uuid.NewString()}},
		call{"ff_mark_dead", []string{proto, "session", k.session}},
		call{"ff_forward_ring", []string{proto, k.subscription}},
		call{"ff_freeze_partition", []string{proto, "1"}},
		call{"ff_read_attempt_stream", []string{proto, ids.UUID(id).String(), "1"}},
	)
	calls = slices.Concat(calls, flows, gated, streams)
	for _, h := range contract.Functions() {
		args, simple := plainArgs(h, id)
		if simple && !slices.ContainsFunc(calls, func(c call) bool { return c.name == h.Name }) {
			calls = append(calls, call{h.Name, args})
		}
	}
	for _, c := range calls {
		if c.name == "ff_close_waitpoint" {
			c.args[6] = handed.ID.String()
		}
	}
	next := k.request(1)
	calls = append(calls, call{"ff_complete_execution",
		slices.Concat([]string{proto, "1"}, fenceArgs(f), []string{"r", "1"}, claimArgs(next)[1:])})
	return staged{calls: calls, fence: f}
}

// plainArgs are good arguments of a function that only reads and takes nothing but single values, made of its header.
// So a new one is staged before anybody has thought of a better call. id is an execution.
func plainArgs(h contract.Function, id flowfabric.ExecutionID) (args []string, simple bool) {
	for i, x := range h.Args {
		if i == 0 { // the protocol
			args = append(args, proto)
			continue
		}
		slot, single := x.(contract.Slot)
		if !single || slot.Type.Name == "rows" {
			return nil, false
		}
		good := slices.Concat(slot.Type.Words, []string{ids.UUID(id).String(), elsewhere(id, "x"), "default", "1",
			"a.b"})
		fits := slices.IndexFunc(good, slot.Type.Holds)
		if fits < 0 {
			return nil, false
		}
		args = append(args, good[fits])
	}
	return args, slices.Contains(h.Flags, "no-writes") && len(args) > 0
}

// stageFlows makes flows in every state, and returns a good call of every function about them.
func (w *env) stageFlows() []call {
	w.Helper()
	running := w.flow().node("a", nil).node("b", []string{"a"}).submit(engine.SealGrowing)
	staging := w.flow().node("a", nil)
	staging.stage()
	failed := w.flow().node("a", nil).submit(engine.SealClosed)
	made := w.flow().node("a", nil).node("b", []string{"a"})
	w.cancel(failed.id.Member("a"))
	staging.node("b", []string{"a"}, quorum(1), cancelRest,
		as(retries(1), tags(map[string]string{"x.y": "z"}))).node("c", nil)
	return []call{
		{"ff_flow_create", wireMake(made.id, "seal", made.nodes...)},
		{"ff_flow_stage", wireStage(staging.id, staging.nodes[1:]...)},
		{"ff_flow_seal", []string{proto, ids.UUID(staging.id).String(), "grow", "1", "0"}},
		{"ff_flow_cancel", []string{proto, ids.UUID(running.id).String(), "cancel_all"}},
		{"ff_flow_replay", []string{proto, ids.UUID(failed.id).String(), uuid.NewString(), "keep", "0", "1",
			ids.UUID(failed.id.Member("a")).String()}},
		{"ff_flow_drain", []string{proto}},
		{"ff_set_tags", []string{proto, ids.UUID(running.id).String(), "flow", "1", "c.d", "v", "1", "a.b"}},
		{"ff_audit_flows", []string{proto, "1", "1", ids.UUID(running.id).String(), "0", "0", ""}},
		{"ff_flow_describe", []string{proto, ids.UUID(running.id).String()}},
		{"ff_flow_list", []string{proto, "1", strconv.FormatInt(w.now()+1000, 10), ids.UUID(running.id).String(),
			"10"}},
		{"ff_flow_members", []string{proto, ids.UUID(running.id).String(), "0", "10", "1"}},
		{"ff_read_inputs", []string{proto, ids.UUID(running.id.Member("b")).String(), "1"}},
	}
}

// fencedCalls is every call of a holder.
func fencedCalls(f flowfabric.Fence) []call {
	fence := fenceArgs(f)
	with := func(more ...string) []string { return slices.Concat([]string{proto}, fence, more) }
	child := engine.FlowMember{NewExecution: engine.NewExecution{ID: f.Execution.Child("wait", "c"),
		Start: flowfabric.Start{Namespace: "default", Lane: "default", Kind: "k"}},
		Node: "c"}
	return []call{
		{"ff_complete_execution", slices.Concat([]string{proto, "1"}, fence, []string{"result", "0"})},
		{"ff_fail_execution", with("category", "reason", "0", "", "", "0")},
		{"ff_delay_execution", with("+1000", "")},
		{"ff_continue_execution", with("next")},
		{"ff_release_execution", with()},
		{"ff_cancel_execution", with("owner")},
		{"ff_record_step", with("step", "value", "0", "")},
		{"ff_receive_messages", with("user·1", "user", "1", "looked", "")},
		{"ff_update_progress", with("50", "half")},
		{"ff_append_frames", with(strconv.Itoa(2), "1", "d", "type", "json", "", "12", "1", "payload")},
		{"ff_append_log", with("1", "1", "1234", "warn", "2", `{"m":"slow"}`)},
		{"ff_create_pending_waitpoint", with(wirePend("draft", minted("draft"))...)},
		{"ff_close_waitpoint", with(uuid.NewString())},
		{"ff_suspend_execution", with(wireSuspend(suspension(awaiting("it"), within(time.Minute, "fail")))...)},
		{"ff_make_children", with(wireWait("wait", "all", "cancel", child)...)},
		{"ff_wait_for_others", with("others", "all", "run", "cancel", "1", elsewhere(f.Execution, "x"), "x", ".", "")},
		{"ff_append_frames", with("2", "2", "s", "type", "json", "", "", "1", "{}", "l5000", "type", "", "c", "", "1",
			"payload", "0", "{}", "64")},
	}
}

// refused tells whether a reply says that nothing was done.
func refused(name string, a answer) bool {
	if a.status == 0 {
		return true
	}
	item := outcome(name, a)
	if name == "ff_complete_execution" && slices.Contains(a.slots[2:], "OK") {
		return false // the claim in the same call worked
	}
	return item != "OK" && item != "REPLACED" && (name == "ff_create_execution" || name == "ff_complete_execution")
}
