package fftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

func wire(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

// call is the request for a function.
func call(function string, args ...string) string {
	return wire(append([]string{"FCALL", function, "1", "ff:{fp:0}", "1"}, args...)...)
}

func TestParseRequest(t *testing.T) {
	want := []string{"SET", "key", "two\r\nlines"}
	first := wire(want...)
	whole := first + wire("PING")
	for n := range len(whole) {
		args, size := parseRequest([]byte(whole[:n]))
		if n < len(first) && size != 0 || n >= len(first) && (size != len(first) || !slices.Equal(args, want)) {
			t.Fatalf("of %d bytes: %q, %d", n, args, size)
		}
	}
}

// Every function is either housekeeping or a place to die at, and the names of the former are real.
func TestWrites(t *testing.T) {
	for _, name := range []string{
		"ff_claim_next", "ff_append_frames", "ff_record_step", "ff_complete_execution", "ff_fail_execution",
		"ff_delay_execution",
	} {
		if !writes()[name] {
			t.Errorf("%s is no write", name)
		}
	}
	for _, name := range housekeeping {
		if write, known := writes()[name]; write || !known {
			t.Errorf("%s: known %v, write %v", name, known, write)
		}
	}
	if writes()["ff_read_execution"] {
		t.Error("a read is a write")
	}
}

// sink is a network that remembers what has arrived.
type sink struct {
	net.Conn
	got *strings.Builder
}

func (s sink) Write(p []byte) (int, error) { return s.got.Write(p) }
func (s sink) Read(p []byte) (int, error)  { return copy(p, lastWord), nil }
func (s sink) Close() error                { return nil }

// A dying worker's call is delivered or not, as planned, what came before it is, and nothing after it on any
// connection.
func TestLinkDies(t *testing.T) {
	for _, after := range []bool{false, true} {
		var got strings.Builder
		deaths := 0
		j := newJournal(crash{"ff_complete_execution", 1, after})
		l := &link{journal: j, dial: func(context.Context) (net.Conn, error) { return sink{got: &got}, nil },
			died: func() { deaths++ }}
		one, err := l.connect(t.Context())
		must.No(t, err)
		other, err := l.connect(t.Context())
		must.No(t, err)
		tick := call("ff_tick", "owner", "0")
		step := call("ff_record_step", "id", "session", "1", "1", "0", "name", "value")
		done := call("ff_complete_execution", strconv.Itoa(limits.Protocol))
		if _, err := io.WriteString(one, tick+step[:9]); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(one, step[9:]+wire("PING")+done+tick); !errors.Is(err, errCut) {
			t.Errorf("after %v: the dying call: %v", after, err)
		}
		for _, late := range []string{tick, step, wire("PING")} {
			if _, err := io.WriteString(other, late); !errors.Is(err, errCut) {
				t.Errorf("after %v: a late call: %v", after, err)
			}
		}
		want := tick + step + wire("PING")
		events := []event{{stepRecorded, "id", "name"}}
		where := "died before call 1 of ff_complete_execution"
		if after {
			want += done
			events = append(events, event{kind: runRecorded, name: "ff_complete_execution"})
			where = "died after call 1 of ff_complete_execution"
		}
		want += string(lastRequest)
		if got.String() != want {
			t.Errorf("after %v: delivered %q, want %q", after, got.String(), want)
		}
		if !slices.Equal(j.history(), events) || j.crashedAt() != where || deaths == 0 {
			t.Errorf("after %v: %v, %q, %d deaths", after, j.history(), j.crashedAt(), deaths)
		}
		l.cut()
		if _, err := l.connect(t.Context()); !errors.Is(err, errCut) {
			t.Errorf("a cut link: %v", err)
		}
	}
}

// What counts as done again (see Crashes).
func TestReportRepeats(t *testing.T) {
	effect := func(name string) event { return event{kind: effectDone, name: name} }
	step := func(name string) event { return event{stepRecorded, "id", name} }
	ended := event{kind: runRecorded, name: "ff_delay_execution"}
	for name, c := range map[string]struct {
		events []event
		want   string
	}{
		"once":                             {[]event{effect("a"), step("a"), effect("b"), step("b"), ended}, ""},
		"before its record":                {[]event{effect("a"), effect("a"), step("a")}, ""},
		"while another step was recorded":  {[]event{effect("a"), effect("b"), step("a"), effect("b"), step("b")}, ""},
		"after its record":                 {[]event{effect("a"), step("a"), effect("a")}, "its step"},
		"without a step, nothing recorded": {[]event{effect("x"), effect("x"), effect("x"), step("a")}, ""},
		"without a step, a step recorded":  {[]event{effect("x"), step("a"), effect("x"), effect("x")}, "step a"},
		"without a step, a run ended":      {[]event{effect("x"), ended, effect("x")}, "the end of a run"},
		"first done after the record":      {[]event{step("a"), effect("x"), effect("x")}, ""},
	} {
		fake := &recorder{TB: t}
		reportRepeats(&Report[int]{t: fake}, c.events)
		if c.want == "" && len(fake.all) > 0 ||
			c.want != "" && (len(fake.all) != 1 || !strings.Contains(fake.all[0], c.want)) {
			t.Errorf("%s: %q, want %q", name, fake.all, c.want)
		}
	}
}

// A record is what makes the store not do the work again: steps, the completion and delays, not failures.
func TestJournalRecords(t *testing.T) {
	j := newJournal(crash{})
	l := &link{journal: j}
	for _, function := range []string{
		"ff_claim_next", "ff_append_frames", "ff_fail_execution", "ff_release_execution", "ff_cancel_execution",
		"ff_delay_execution", "ff_complete_execution",
	} {
		args, _ := parseRequest([]byte(call(function, "id")))
		if deliver, crashed := j.note(l, args); !deliver || crashed {
			t.Errorf("%s: delivered %v, crashed %v", function, deliver, crashed)
		}
	}
	want := []event{{kind: runRecorded, name: "ff_delay_execution"}, {kind: runRecorded, name: "ff_complete_execution"}}
	if !slices.Equal(j.history(), want) {
		t.Errorf("%v, want %v", j.history(), want)
	}
}

// Every write is a place to die at, before and after, whatever other writes came between those of its kind.
func TestJournalPlaces(t *testing.T) {
	j := newJournal(crash{})
	l := &link{journal: j}
	for _, function := range []string{"ff_tick", "ff_claim_next", "ff_record_step", "ff_claim_next",
		"ff_read_execution"} {
		args, _ := parseRequest([]byte(call(function, "id")))
		j.note(l, args)
	}
	want := []crash{
		{"ff_claim_next", 1, false}, {"ff_claim_next", 1, true}, {"ff_claim_next", 2, false},
		{"ff_claim_next", 2, true},
		{"ff_record_step", 1, false}, {"ff_record_step", 1, true},
	}
	if got := j.places(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Between a worker's death and the next run of a live one, nobody is there to do anything.
func TestTheDeadHaveNoEffects(t *testing.T) {
	j := newJournal(crash{function: "ff_append_frames", call: 1})
	first, second := &link{journal: j}, &link{journal: j}
	args, _ := parseRequest([]byte(call("ff_append_frames", "id")))
	j.begin(first)
	j.effect("alive")
	if _, crashed := j.note(first, args); !crashed {
		t.Fatal("it did not die")
	}
	j.effect("dead")
	j.begin(first)
	j.effect("begun by the dead")
	if deliver, crashed := j.note(second, args); !deliver || crashed {
		t.Errorf("of the second worker: delivered %v, crashed %v", deliver, crashed)
	}
	j.effect("not yet begun")
	j.begin(second)
	j.effect("next")
	var names []string
	for _, e := range j.history() {
		names = append(names, e.name)
	}
	if !slices.Equal(names, []string{"alive", "next"}) {
		t.Errorf("effects %q", names)
	}
}

// Every effect of the undisturbed run must happen, and is missed once.
func TestReportLosses(t *testing.T) {
	effect := func(name string) event { return event{kind: effectDone, name: name} }
	step := func(name string) event { return event{stepRecorded, "id", name} }
	undisturbed := []event{effect("a"), step("a"), step("b"), effect("c"), effect("c"), effect("d")}
	for name, c := range map[string]struct {
		events []event
		want   []string
	}{
		"all": {[]event{effect("d"), effect("c"), effect("a"), effect("a"), effect("more")}, nil},
		"none": {nil,
			[]string{`effect "a" never happened`, `effect "c" never happened`, `effect "d" never happened`}},
		"its step only":  {[]event{step("a"), effect("c"), effect("d")}, []string{`effect "a" never happened`}},
		"once for twice": {[]event{effect("a"), effect("c"), effect("d")}, nil},
	} {
		fake := &recorder{TB: t}
		reportLosses(&Report[int]{t: fake}, undisturbed, c.events)
		if !slices.Equal(fake.all, c.want) {
			t.Errorf("%s: %q, want %q", name, fake.all, c.want)
		}
	}
}

type recorder struct {
	testing.TB
	all []string
}

func (r *recorder) Helper()           {}
func (r *recorder) Error(args ...any) { r.all = append(r.all, fmt.Sprint(args...)) }
