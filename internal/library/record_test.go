package library

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	vm "github.com/yuin/gopher-lua"

	"github.com/flowfabric/flowfabric-go/internal/record"
)

// codec runs lib/record.lua on its own.
type codec struct {
	*testing.T
	l *vm.LState
}

func newCodec(t *testing.T) *codec {
	c := &codec{T: t, l: vm.NewState()}
	t.Cleanup(c.l.Close)
	if err := c.l.DoString(strings.ReplaceAll(read("lib/reply.lua")+read("lib/record.lua"), "\nlocal ", "\n")); err !=
		nil {
		t.Fatal(err)
	}
	return c
}

// call calls a function of the codec; results are strings and tables.
func (c *codec) call(name string, results int, args ...vm.LValue) []vm.LValue {
	c.Helper()
	f := c.l.GetField(c.l.GetGlobal("record"), name)
	if err := c.l.CallByParam(vm.P{Fn: f, NRet: results, Protect: true}, args...); err != nil {
		c.Fatalf("record.%s: %v", name, err)
	}
	out := make([]vm.LValue, results)
	for i := range out {
		out[i] = c.l.Get(i - results)
	}
	c.l.Pop(results)
	return out
}

// table is what a function on the server sees of a record.
func (c *codec) table(r record.Record) *vm.LTable {
	t := c.l.NewTable()
	for field, value := range tableFields(r) {
		t.RawSetString(field, vm.LString(value))
	}
	if r.Input != "" {
		t.RawSetString("input", vm.LString(r.Input))
	}
	if r.Result != "" {
		t.RawSetString("result", vm.LString(r.Result))
	}
	return t
}

// long are the fields of the codec by the names under which they are stored, which are those of the twin.
var long = func() map[string]string {
	out := map[string]string{"s": "state", "ss": "session", "cl": "claim_number", "e": "epoch", "n": "attempt",
		"en": "ended_at", "rz": "result_size", "la": "claimed_at", "st": "first_claimed_at", "ty": "attempt_type",
		"rc": "retries",
		"lc": "reclaims", "r": "route", "ct": "created_at", "pr": "priority", "po": "policy",
		"pd": "digest", "in": "input_size"}
	for _, m := range regexp.MustCompile(`(?m)^  '(\w+)', '(\w+)',`).FindAllStringSubmatch(read("lib/record.lua"), -1) {
		out[m[2]] = m[1]
	}
	return out
}()

// tableFields are the fields as a function on the server sees them.
func tableFields(r record.Record) map[string]string {
	fields := map[string]string{}
	for name, value := range r.Fields {
		fields[long[name]] = value
	}
	return fields
}

var sizes = []int{0, 1, 40, 256, 1023, 1024, 1025, 1 << 20}

// payload is a payload of any bytes.
func payload(r *rand.Rand) string {
	b := make([]byte, sizes[r.IntN(len(sizes))])
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return string(b)
}

// texts are values that a caller chose.
var texts = []string{"x", "-", "%", "%e", "%-", "a b", "a\nb", "\t\r\v\f", "=", "a=b c=d", "\x00", "ü", "\xff\xfe",
	"2;3 \n5"}

var free = strings.Fields("ss po pd cr fc cb lr rq rv rw nd wt gs fl")

// state is a record with the fields that every execution has and the named ones, each with probability p.
func state(r *rand.Rand, p float64) record.Record {
	x := record.Record{Fields: map[string]string{"s": []string{"R1f", "A1", "T1", "S3", "G1i", "T5n"}[r.IntN(6)],
		"r": fmt.Sprint(r.IntN(2000) + 1), "ct": "1795378846881"}}
	for _, field := range strings.Fields(
		"cl e en la st ty rc lc pr po pd ss ta du tr to dl rt fl nd g wt ip dd fa sb tg ca cr fc cb lr rq rv ds pu pc tt wp uw sg rw gq rs gx gs gn ge") {
		if r.Float64() >= p {
			continue
		}
		if slices.Contains(free, field) {
			x.Fields[field] = texts[r.IntN(len(texts))]
		} else {
			x.Fields[field] = fmt.Sprint(r.Int64N(1 << 53))
		}
	}
	if r.IntN(3) > 0 {
		x.Fields["n"] = fmt.Sprint(r.IntN(1000) + 1)
	}
	for field, into := range map[string]*string{"in": &x.Input, "rz": &x.Result} {
		if blob := payload(r); blob != "" {
			x.Fields[field] = fmt.Sprint(len(blob))
			if len(blob) <= record.Inline {
				*into = blob
			}
		}
	}
	return x
}

// A text that is edited says the same as one that is written anew, whatever names and values are alike.
func TestMovedRecords(t *testing.T) {
	c, r := newCodec(t), rand.New(rand.NewPCG(3, 4))
	if err := c.l.DoString(`
		keys = { core = function() return 'key' end }
		function record.moved(text, code, fields)
			local ctx = { cache = { texts = { id = text }, records = {} } }
			record.move(ctx, 'id', code, fields)
			return ctx.cache.spliced.id
		end`); err != nil {
		t.Fatal(err)
	}
	for range rounds(500, 20_000) {
		x, fields := state(r, []float64{0, 0.2, 1}[r.IntN(3)]), c.l.NewTable()
		x.Fields["ss"] = []string{"lr=x~1", "uw=1 wp=2", "s"}[r.IntN(3)]
		text := x.Encode()
		x.Fields["s"] = []string{"S1", "T3n", "R2ai"}[r.IntN(3)]
		for _, field := range strings.Fields("lr tt wp uw tr ta sg g gs") {
			switch value := texts[r.IntN(len(texts))]; {
			case !slices.Contains(free, field):
				value = fmt.Sprint(r.IntN(1000))
				fallthrough
			case r.IntN(3) == 0:
				x.Fields[field] = value
				fields.RawSetString(long[field], vm.LString(value))
			case r.IntN(2) == 0:
				delete(x.Fields, field)
				fields.RawSetString(long[field], vm.LFalse)
			}
		}
		moved := c.call("moved", 1, vm.LString(text), vm.LString(x.Fields["s"]), fields)[0].String()
		got, err := record.Decode(moved)
		if err != nil || !maps.Equal(got.Fields, x.Fields) || got.Input != x.Input || got.Result != x.Result {
			t.Fatalf("%q\nwas %q, is %v (%v), want %v", moved, text, got.Fields, err, x.Fields)
		}
	}
}

func TestBothCodecsAgreeOnEveryRecord(t *testing.T) {
	c, r := newCodec(t), rand.New(rand.NewPCG(1, 2))
	for range rounds(600, 30_000) {
		x := state(r, []float64{0, 0.2, 1}[r.IntN(3)])
		text := x.Encode()
		if got := c.call("encode", 1, c.table(x))[0].String(); got != text {
			t.Fatalf("%v\nLua writes %q\nGo writes  %q", x.Fields, got, text)
		}
		back, err := record.Decode(text)
		if err != nil || !maps.Equal(back.Fields, x.Fields) || back.Input != x.Input || back.Result != x.Result {
			t.Fatalf("Go reads %v (%v), it was %v", back.Fields, err, x.Fields)
		}
		seen := map[string]string{}
		c.call("decode", 1, vm.LString(text))[0].(*vm.LTable).ForEach(func(k,
			v vm.LValue) {
			seen[k.String()] = v.String()
		})
		want := tableFields(x)
		if x.Input != "" {
			want["input"] = x.Input
		}
		if x.Result != "" {
			want["result"] = x.Result
		}
		if !maps.Equal(seen, want) {
			t.Fatalf("Lua reads %v, it was %v", seen, want)
		}
	}
}

// The plain paths never make a table. What they make is what the codec would have made.
func TestSplicesAgreeWithTheCodec(t *testing.T) {
	c, r := newCodec(t), rand.New(rand.NewPCG(3, 4))
	for range rounds(600, 30_000) {
		digest, input, result := texts[r.IntN(len(texts))], payload(r), payload(r)
		x := record.Record{Fields: map[string]string{"s": "R1f", "r": fmt.Sprint(r.IntN(2000) + 1),
			"ct": "1795378846881"}}
		for _, field := range []string{"pr", "po", "to", "dl", "cr"} {
			if r.IntN(4) == 0 {
				x.Fields[field] = fmt.Sprint(r.IntN(9000) + 1)
			}
		}
		named := x.Fields["to"] + x.Fields["dl"] + x.Fields["cr"]
		flow, node, edges := vm.LValue(vm.LNil), vm.LValue(vm.LNil), vm.LValue(vm.LNil)
		if r.IntN(2) == 0 { // a member of a flow
			x.Fields["fl"], x.Fields["nd"] = "flow", texts[r.IntN(len(texts))]
			flow, node = vm.LString("flow"), vm.LString(x.Fields["nd"])
			if r.IntN(2) == 0 {
				x.Fields["g"] = fmt.Sprint(1 + r.IntN(1000))
				if r.IntN(2) == 0 {
					x.Fields["ip"], edges = "1", vm.LString(x.Fields["g"])
				}
			}
			if r.IntN(4) == 0 {
				x.Fields["dd"], named = "7", named+"7"
			}
		}
		parts := c.call("fresh", 2, c.table(x))
		if r.IntN(4) == 0 {
			digest = ""
		} else {
			x.Fields["pd"] = digest
		}
		hold := func(field, blob string, into *string) {
			if blob != "" {
				x.Fields[field] = fmt.Sprint(len(blob))
			}
			if len(blob) <= record.Inline {
				*into = blob
			}
		}
		hold("in", input, &x.Input)
		if flow != vm.LNil { // the parts of one in no flow, and what joins them
			alone, fields := record.Record{Fields: maps.Clone(x.Fields)}, c.l.NewTable()
			for _, field := range []string{"fl", "nd", "g", "ip", "dd", "in", "pd"} {
				if value, ok := x.Fields[field]; ok && field != "in" && field != "pd" {
					fields.RawSetString(long[field], vm.LString(value))
				}
				delete(alone.Fields, field)
			}
			parts = c.call("fresh", 2, c.table(alone))
			joined := c.call("joining", 2, parts[0], parts[1], fields)
			if plain := joined[0] != vm.LNil; plain != (named == "") {
				t.Fatalf("%v is joined plainly: %v", x.Fields, plain)
			}
			if named == "" {
				fields.RawSetString("state", vm.LString("R3f"))
				blocked := c.call("joining", 2, parts[0], parts[1], fields)
				if blocked[0].String() != "R3f"+joined[0].String()[3:] || blocked[1] != joined[1] {
					t.Fatalf("blocked %v, else %v", blocked, joined)
				}
				parts = joined
			} else {
				parts = c.call("fresh", 2, c.table(x))
			}
		}
		text := c.call("compose", 1, parts[0], parts[1], vm.LString(digest), vm.LString(input))[0].String()
		if text != x.Encode() {
			t.Fatalf("created %q, want %q", text, x.Encode())
		}
		unclaimed := c.call("unclaimed", 7, vm.LString(text), vm.LString(x.Fields["r"]))
		if plain := unclaimed[0] != vm.LNil; plain != (named == "") {
			t.Fatalf("%q is plain: %v", text, plain)
		}
		if named == "" && (unclaimed[4] != flow || unclaimed[5] != node || unclaimed[6] != edges) {
			t.Fatalf("%q is of %v, want %v %v %v", text, unclaimed[4:], flow, node, edges)
		}
		next := c.call("next", 4, vm.LString(text), c.call("queued", 1, vm.LString(x.Fields["r"]))[0])
		switch alone := named == "" && flow == vm.LNil; {
		case alone != (next[0] != vm.LNil):
			t.Fatalf("%q has no named field: %v", text, !alone)
		case alone && !slices.Equal(next, unclaimed[:4]):
			t.Fatalf("%q is of %v, want %v", text, next, unclaimed[:4])
		}
		waits := "R3" + text[2:]
		if c.call("unclaimed", 1, vm.LString(waits), vm.LString(x.Fields["r"]))[0] != vm.LNil {
			t.Fatalf("%q may be claimed", waits)
		}
		if got := c.call("freed", 1, vm.LString(waits))[0].String(); got != text {
			t.Fatalf("freed %q, want %q", got, text)
		}
		if c.call("blocked", 1, vm.LString(text))[0] != vm.LNil {
			t.Fatalf("%q waits for others", text)
		}
		switch blocked := c.call("blocked", 1, vm.LString(waits))[0]; {
		case (blocked != vm.LNil) != (named == "" && flow != vm.LNil):
			t.Fatalf("%q waits for others: %v", waits, blocked)
		case blocked != vm.LNil:
			for field, want := range map[string]string{"state": "R3f", "route": x.Fields["r"],
				"created_at": x.Fields["ct"], "flow": "flow", "plain": "true"} {
				if got := c.l.GetField(blocked, field).String(); got != want {
					t.Fatalf("%s of %q is %s, want %s", field, waits, got, want)
				}
			}
			if got := c.l.GetField(blocked, "priority"); vm.LVAsString(got) != x.Fields["pr"] {
				t.Fatalf("priority of %q is %s", waits, got)
			}
		}
		if c.call("unclaimed", 1, vm.LString(text), vm.LString("0"))[0] != vm.LNil {
			t.Fatalf("%q is taken for one of another route", text)
		}
		if named != "" {
			continue
		}
		session, epoch := "w 1~"+texts[r.IntN(len(texts))], fmt.Sprint(r.Int64N(1<<50))
		lease := c.call("lease", 1, vm.LString(session), vm.LString("7"), vm.LString(epoch), vm.LString(epoch))[0]
		text = c.call("claimed", 1, vm.LString(text), lease)[0].String()
		maps.Copy(x.Fields, map[string]string{"s": "A1", "ss": session, "cl": "7", "e": epoch, "n": "1", "la": epoch,
			"st": epoch, "ty": "initial"})
		if text != x.Encode() {
			t.Fatalf("claimed %q, want %q", text, x.Encode())
		}
		token := c.call("token", 1, vm.LString(session), vm.LString("7"), vm.LString(epoch), vm.LString("1"))[0]
		if !strings.HasPrefix(text, token.String()) {
			t.Fatalf("%q does not begin with %q", text, token)
		}
		if got := c.call("plain", 2, vm.LString(text), token); got[0].String() != x.Fields["r"] || got[1] != flow {
			t.Fatalf("route and flow of %q are %v", text, got)
		}
		bare := c.call("bare", 1, vm.LString(text), token)[0] == vm.LTrue
		if bare && flow != vm.LNil || !bare && flow == vm.LNil && !strings.Contains(x.Fields["pd"], "=") {
			t.Fatalf("%q has no named field: %v", text, bare)
		}
		x.Fields["fa"] = "1"
		if c.call("plain", 1, vm.LString(x.Encode()), token)[0] != vm.LNil {
			t.Fatalf("%q is taken for plain", x.Encode())
		}
		delete(x.Fields, "fa")
		ended := c.call("ended", 1, token, vm.LString("1795378846999"), vm.LNumber(len(result)))[0]
		text = c.call("completed", 1, vm.LString(text), token, ended, vm.LString(result))[0].String()
		x.Fields["s"], x.Fields["en"] = "T1", "1795378846999"
		hold("rz", result, &x.Result)
		if text != x.Encode() {
			t.Fatalf("completed %q, want %q", text, x.Encode())
		}
	}
}

// A field that the codec does not know would be lost without a word, and a record that is written beside it would be
// overwritten.
func TestRecordsAreChangedByTheirCodecAlone(t *testing.T) {
	direct := regexp.MustCompile(`redis\.call\('(?:H\w+|M?GET|M?SET|APPEND)', keys\.core\(`)
	change := regexp.MustCompile(`\brecord\.(?:set|clear)\(ctx, [^,]+, ([^\n]*)`)
	name := regexp.MustCompile(`'(\w+)'(?:,|\))`)
	known := append(slices.Collect(maps.Values(long)), "input", "result")
	for _, file := range sources(t) {
		if file == "lib/record.lua" {
			continue
		}
		text := read(file)
		for _, m := range direct.FindAllString(text, -1) {
			t.Errorf(
				"lua/%s: %s: a record is no hash: read it with core.read, change it with record.set(ctx, id, field, value, …) and record.clear(ctx, id, field, …)",
				file, m)
		}
		for _, m := range change.FindAllStringSubmatch(text, -1) {
			for i, f := range name.FindAllStringSubmatch(m[1], -1) {
				if i == 0 && f[1][0] > '9' && !slices.Contains(known, f[1]) {
					t.Errorf(
						"lua/%s: %s: the record has no field %s: add it to layout in lib/record.lua and named in internal/record",
						file, m[0], f[1])
				}
			}
		}
	}
}
