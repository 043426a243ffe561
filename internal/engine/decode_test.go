package engine

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/stream"
)

// encodeFrames writes a message the way lua/stream/ff_append_frames.lua does.
func encodeFrames(m FrameMessage) string {
	var b strings.Builder
	run, entry := uint32(0), ""
	if len(m.Frames) > 0 {
		run = m.Frames[0].Run
	}
	if r := m.Resumed; r != nil {
		entry = strings.Join([]string{strconv.FormatUint(r.Epoch, 10), r.Reason, strconv.FormatUint(r.Recorded, 10),
			"1699999999999-4", strconv.FormatUint(r.Durables, 10)}, " ")
	}
	b.WriteString(strconv.FormatUint(uint64(m.Attempt), 10) + " " + strconv.Itoa(len(m.Frames)) + " " +
		strconv.FormatUint(uint64(run), 10) + " ")
	part := func(s string) { b.WriteString(strconv.Itoa(len(s)) + ":" + s) }
	part(entry)
	for _, f := range m.Frames {
		part(f.ID.String())
		part(f.Type)
		part(strings.TrimPrefix(f.Encoding, "utf8"))
		part(joinSource(&f))
		if f.ProducedAt.IsZero() {
			part("")
		} else {
			part(strconv.FormatInt(f.ProducedAt.UnixMilli(), 10))
		}
		switch {
		case f.Mode == stream.ModeSummary:
			part("s" + strconv.FormatUint(f.SummaryVersion, 10) + "," + strconv.FormatUint(f.Durables, 10))
		case f.Mode == stream.ModeBestEffort:
			part("l" + strconv.FormatInt(f.TTL.Milliseconds(), 10) + "," + strconv.FormatUint(f.Durables, 10))
		case f.Durables != f.Sequence:
			part("d," + strconv.FormatUint(f.Durables, 10))
		default:
			part("")
		}
		b.WriteString("1:")
		part(string(f.Payload))
	}
	return b.String()
}

func TestDecodeFrames(t *testing.T) {
	frames := []stream.Frame{
		{ID: stream.Cursor{Ms: 1700000000000, Seq: 1}, Sequence: 1, Type: "token", Encoding: "utf8",
			Payload: []byte("a:b 7:\x00\xff"), Durables: 1},
		{ID: stream.Cursor{Ms: 1700000000001, Seq: 2}, Sequence: 2, Type: "", Encoding: "json", Correlation: "c 1:",
			ProducedAt: time.UnixMilli(5).UTC(), Payload: []byte{}, Durables: 2},
		{ID: stream.Cursor{Ms: 1700000000001, Seq: 3}, Sequence: 3, Encoding: "json", Payload: []byte("{}"),
			Mode: stream.ModeSummary, SummaryVersion: 7, Durables: 2},
		{ID: stream.Cursor{Ms: 1700000000001, Seq: 4}, Sequence: 4, Encoding: "utf8", Payload: []byte{},
			Mode: stream.ModeBestEffort, TTL: 5 * time.Second, Durables: 2},
		{ID: stream.Cursor{Ms: 1700000000001, Seq: 5}, Sequence: 5, Encoding: "utf8", Payload: []byte{}, Durables: 3,
			Source: "model"},
		{ID: stream.Cursor{Ms: 1700000000001, Seq: 6}, Sequence: 6, Encoding: "utf8", Payload: []byte{}, Durables: 4,
			Correlation: "c", Source: "tool"},
	}
	message := FrameMessage{Attempt: 7, Frames: frames}
	if got, err := DecodeFrames(encodeFrames(message)); err != nil || !reflect.DeepEqual(got, message) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := DecodeFrames("0 0 1 0:"); got.Attempt != 0 || len(got.Frames) != 0 || err != nil {
		t.Errorf("an empty message: %+v, %v", got, err)
	}
	for i := range frames {
		frames[i].Run = 3
	}
	message.Resumed = &stream.Resumption{Run: 3, Epoch: 1700000000009, Reason: "delayed", First: frames[0].ID,
		Recorded: 12, Durables: 11}
	if got, err := DecodeFrames(encodeFrames(message)); err != nil || !reflect.DeepEqual(got, message) {
		t.Errorf("%+v, %v", got, err)
	}
	packed := "7 3 1 0:6:170-521:t0:0:0:4:d,333:1:a0:1:c"
	last := stream.Frame{ID: stream.Cursor{Ms: 170, Seq: 52}, Sequence: 52, Type: "t", Encoding: "utf8", Run: 1,
		Durables: 33, Payload: []byte("c")}
	middle, first := last, last
	middle.ID.Seq, middle.Sequence, middle.Durables, middle.Payload = 51, 51, 32, []byte{}
	first.ID.Seq, first.Sequence, first.Durables, first.Payload = 50, 50, 31, []byte("a")
	if got, err := DecodeFrames(packed); err != nil ||
		!reflect.DeepEqual(got, FrameMessage{Attempt: 7, Frames: []stream.Frame{first, middle, last}}) {
		t.Errorf("three frames of one entry: %+v, %v", got, err)
	}
	whole := encodeFrames(message)
	for i := range len(whole) {
		// every prefix, and every message with one byte less, is refused or at least not a panic
		if _, err := DecodeFrames(whole[:i]); !errors.Is(err, denied.Reply) {
			t.Errorf("prefix of %d bytes: %v", i, err)
		}
		_, _ = DecodeFrames(whole[:i] + whole[i+1:])
	}
	for _, text := range []string{
		"", " ", "1", "1 ", "x 0 1 0:", "-1 0 1 0:", "4294967296 0 1 0:", "0 101 1 0:", "0 1 1 0:", "0 0 4294967296 0:",
		"0 0 x 0:", "0 0 1 ", "0 0 2 11:1 x 0 0-0 0", "0 1 2 1:x1:1-11:11:t0:0:0:1:p0:",
		"0 1 2 11:x w 0 0-0 03:1-11:t0:0:0:0:1:1:p", "0 1 2 9:1 w 0 0 03:1-11:t0:0:0:0:1:1:p",
		"0 1 2 11:1 w 0 0-0 x3:1-11:t0:0:0:0:1:1:p", "0 0 1 0:x", whole + "0",
		"0 18446744073709551615 1 0:", "0 1 1 0:9223372036854775807:x", "0 1 1 0:99999999999999999999:x",
		"0 1 1 0:-1:x", "0 1 1 0:3:1-11:t0:0:0:0:1:1:p", "0 1 1 0:3:1-x1:t0:0:0:0:1:1:p",
		"0 1 1 0:3:1-11:t0:0:0:1:s1:1:p",
		"0 1 1 0:3:1-11:t0:0:0:2:s,1:1:p", "0 1 1 0:3:1-11:t0:0:0:3:s,11:1:p", "0 1 1 0:3:1-11:t0:0:0:4:s1,x1:1:p",
		"0 1 1 0:3:1-11:t0:0:0:4:x1,11:1:p", "0 1 1 0:3:1-11:t0:0:0:4:d1,11:1:p", "0 1 1 0:3:1-11:t0:0:0:4:lx,11:1:p",
		"0 1 1 0:3:1-11:t0:0:0:16:l9999999999999,11:1:p",
	} {
		if _, err := DecodeFrames(text); text != "0 1 1 0:3:1-11:t0:0:0:0:1:1:p" && !errors.Is(err, denied.Reply) {
			t.Errorf("%q: %v", text, err)
		} else if text == "0 1 1 0:3:1-11:t0:0:0:0:1:1:p" && err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzDecodeFrames(f *testing.F) {
	f.Add(encodeFrames(FrameMessage{Frames: []stream.Frame{{ID: stream.Cursor{Seq: 1}, Sequence: 1, Type: "token",
		Encoding: "utf8", Payload: []byte("x"), Run: 2}}, Resumed: &stream.Resumption{Run: 2, Reason: "released"}}))
	f.Add(encodeFrames(FrameMessage{Attempt: 1<<32 - 1,
		Frames: []stream.Frame{{Encoding: "json", Mode: stream.ModeSummary, SummaryVersion: 1,
			ProducedAt: time.UnixMilli(-1).UTC()},
			{Encoding: "bytes", Correlation: "c", Mode: stream.ModeBestEffort, TTL: time.Second}}}))
	f.Add("0 1 1 0:9223372036854775807:x")
	f.Fuzz(func(t *testing.T, message string) {
		decoded, err := DecodeFrames(message)
		if err != nil {
			if !errors.Is(err, denied.Reply) {
				t.Fatalf("%q: %v", message, err)
			}
			return
		}
		back, err := DecodeFrames(encodeFrames(decoded))
		if err != nil || !reflect.DeepEqual(decoded, back) {
			t.Fatalf("%q: %v\n%+v\n%+v", message, err, decoded, back)
		}
	})
}

func TestStreamIDs(t *testing.T) {
	for text, want := range map[string]stream.Cursor{"0-0": {}, "1700000000000-7": {Ms: 1700000000000, Seq: 7},
		"18446744073709551615-18446744073709551615": {Ms: 1<<64 - 1, Seq: 1<<64 - 1}} {
		if got, err := ParseStreamID(text); err != nil || got != want || got.String() != text {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-", "1", "1-", "-1", "1--1", "+1-1", "1-+1", "a-b", "1-1-1", " 1-1", "1-1 ",
		"18446744073709551616-0", "0x1-0", "1_0-0", "$", "+", "(1-1"} {
		if got, err := ParseStreamID(text); !errors.Is(err, flowfabric.ErrInvalidInput) || got != (stream.Cursor{}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	ordered := []stream.Cursor{{}, {Seq: 1}, {Ms: 1}, {Ms: 1, Seq: 1}, {Ms: 2}}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := a.Compare(b); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%s compared with %s is %d", a, b, got)
			}
		}
	}
}

func FuzzParseStreamID(f *testing.F) {
	for _, s := range []string{"0-0", "1-2", "+1-1", "1", "18446744073709551616-0", "00-0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ParseStreamID(text)
		if err != nil {
			if !errors.Is(err, flowfabric.ErrInvalidInput) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if strings.Trim(text, "0123456789") != "-" {
			t.Fatalf("%q has more than digits and a dash", text)
		}
		if again, err := ParseStreamID(id.String()); err != nil || again != id {
			t.Fatalf("%q: %v, %v", text, again, err)
		}
	})
}

func TestSessionIDs(t *testing.T) {
	for session, want := range map[string]string{"w1~abc": "w1", "gate~b~c": "b", "plain": "plain", "": "", "~x": ""} {
		if got := ids.Worker(session); got != want {
			t.Errorf("ids.Worker(%q) = %q, want %q", session, got, want)
		}
	}
	long := strings.Repeat("i", limits.MaxInstance)
	seen := map[string]bool{}
	for range 1000 {
		id := NewSessionID(long)
		if ids.Worker(id) != long || len(id) > 64 || seen[id] || valid.Name("session", id) != nil {
			t.Fatalf("session id %q", id)
		}
		seen[id] = true
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"aü", 2, "a"}, {"aü", 3, "aü"}, {"\xff\xff", 1, "\xff"}, {"üü", 1, ""},
		{"x", 0, ""}} {
		if got := cut(c.in, c.limit); got != c.want {
			t.Errorf("cut(%q, %d) = %q, want %q", c.in, c.limit, got, c.want)
		}
	}
}
