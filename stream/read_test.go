package stream_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/stream"
)

// spec 30 §11 #11
func TestParseCursor(t *testing.T) {
	for text, want := range map[string]string{
		"start": "start", "end": "end", "5": "5", "5-0": "5-0", "0": "0", "007-08": "7-8",
		"18446744073709551615-18446744073709551615": "18446744073709551615-18446744073709551615",
	} {
		c, err := stream.ParseCursor(text)
		if err != nil || c.String() != want {
			t.Errorf("%q: %q, %v", text, c, err)
		}
	}
	for _, text := range []string{"", "-", "+", "abc", "1-", "-1", "18446744073709551616", "1-18446744073709551616", "+5", "5-+1",
		" 5", "5 ", "1-2-3", "$", "(5", "5-*", "START", "now", "٣", "1_000", "0x5"} {
		_, err := stream.ParseCursor(text)
		wantIs(t, err, flowfabric.ErrInvalidInput)
	}
}

func TestCursorInJSON(t *testing.T) {
	var v struct{ After stream.Cursor }
	must(t, json.Unmarshal([]byte(`{"After":"12-3"}`), &v))
	out, err := json.Marshal(v)
	must(t, err)
	if string(out) != `{"After":"12-3"}` {
		t.Errorf("got %s", out)
	}
	wantIs(t, json.Unmarshal([]byte(`{"After":"+"}`), &v), flowfabric.ErrInvalidInput)
	if (stream.Cursor{}).String() != "0-0" {
		t.Error("the zero cursor is before the first frame")
	}
}

func FuzzParseCursor(f *testing.F) {
	for _, seed := range []string{"start", "end", "5", "5-0", "", "-", "+", "1-", "-1", "18446744073709551616", "00-00", "5-5-5"} {
		f.Add(seed)
	}
	shape := regexp.MustCompile(`^(start|end|[0-9]+(-[0-9]+)?)$`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := stream.ParseCursor(text)
		if err != nil {
			wantIs(t, err, flowfabric.ErrInvalidInput)
			return
		}
		if !shape.MatchString(text) {
			t.Fatalf("%q was accepted", text)
		}
		again, err := stream.ParseCursor(c.String())
		if err != nil || again != c {
			t.Fatalf("%q reads as %v, and that as %v (%v)", text, c, again, err)
		}
	})
}

func read(t *testing.T, s *server, o stream.ReadOptions) stream.Page {
	t.Helper()
	page, err := stream.Read(t.Context(), s, execution, 0, o)
	must(t, err)
	return page
}

func cursor(t *testing.T, text string) stream.Cursor {
	t.Helper()
	c, err := stream.ParseCursor(text)
	must(t, err)
	return c
}

// spec 30 §11 #11
func TestReadLimits(t *testing.T) {
	s := newServer()
	s.frames(t, 3)
	for _, limit := range []int{-1, 0, 10_001} {
		_, err := stream.Read(t.Context(), s, execution, 0, stream.ReadOptions{Limit: limit})
		wantIs(t, err, flowfabric.ErrInvalidInput)
	}
	if s.reads != 0 {
		t.Error("a refused limit reached the server")
	}
	contiguous(t, read(t, s, stream.ReadOptions{Limit: 1}).Frames, 1, 1)
	contiguous(t, read(t, s, stream.ReadOptions{Limit: 10_000}).Frames, 1, 3)
	_, err := stream.Read(t.Context(), s, flowfabric.DeriveExecutionID(64, "n", "k", "other"), 0, stream.ReadOptions{Limit: 1})
	wantIs(t, err, flowfabric.ErrNotFound)
	_, err = stream.Read(t.Context(), s, execution, 0, stream.ReadOptions{Limit: 1, To: cursor(t, "start")})
	wantIs(t, err, flowfabric.ErrInvalidInput)
}

// spec 30 §11 #11: the forms of a bound; from > to is empty.
func TestReadBounds(t *testing.T) {
	s := newServer()
	s.frames(t, 20)
	all := s.stored(0)
	third, ms := all[2].ID, all[9].ID.Ms
	upTo, from := uint64(0), uint64(20)
	for _, f := range all {
		if f.ID.Ms <= ms {
			upTo = f.Sequence
		}
		if f.ID.Compare(engine.StreamID{Ms: ms}) <= 0 {
			from = f.Sequence
		}
	}
	for name, c := range map[string]struct {
		after, to   stream.Cursor
		first, last uint64
	}{
		"start..end":        {cursor(t, "start"), cursor(t, "end"), 1, 20},
		"after is without":  {stream.CursorAt(third), stream.Cursor{}, 4, 20},
		"to is with":        {stream.Cursor{}, stream.CursorAt(third), 1, 3},
		"to a millisecond":  {stream.Cursor{}, cursor(t, fmt.Sprint(ms)), 1, upTo},
		"after millisecond": {cursor(t, fmt.Sprint(ms)), stream.Cursor{}, from + 1, 20},
		"from > to":         {stream.CursorAt(all[5].ID), stream.CursorAt(third), 1, 0},
		"from = to":         {stream.CursorAt(third), stream.CursorAt(third), 1, 0},
		"after the greatest": {cursor(t, "18446744073709551615-18446744073709551615"),
			stream.Cursor{}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			page := read(t, s, stream.ReadOptions{After: c.after, To: c.to, Limit: 100})
			contiguous(t, page.Frames, c.first, c.last)
			if page.Gap || page.EOF || !page.Exists {
				t.Errorf("page %+v", page)
			}
		})
	}
}

func TestReadAfterEndIsNow(t *testing.T) {
	s := newServer()
	s.frames(t, 3)
	page := read(t, s, stream.ReadOptions{After: cursor(t, "end"), Limit: 10})
	if len(page.Frames) != 0 || page.Next.String() != s.stored(0)[2].ID.String() {
		t.Errorf("page %+v", page)
	}
	s.frames(t, 2)
	contiguous(t, read(t, s, stream.ReadOptions{After: page.Next, Limit: 10}).Frames, 4, 5)
}

// spec 30 §11 #12
func TestReadPagesUntilEOF(t *testing.T) {
	s := newServer()
	s.frames(t, 2500)
	s.settle(flowfabric.CodeCompleted, "attempt_success")
	var all []stream.Frame
	var after stream.Cursor
	for n := 1; ; n++ {
		page := read(t, s, stream.ReadOptions{After: after, Limit: 100})
		all = append(all, page.Frames...)
		after = page.Next
		if !page.Closed || page.ClosedReason != "attempt_success" {
			t.Fatalf("page %d is not closed", n)
		}
		if page.EOF != (n == 25) {
			t.Fatalf("page %d: eof %v", n, page.EOF)
		}
		if page.EOF {
			break
		}
	}
	contiguous(t, all, 1, 2500)
}

// spec 30 §11 #14
func TestReadByteCap(t *testing.T) {
	s := newServer()
	for i := range uint64(100) {
		_, err := s.AppendFrames(t.Context(), fence, i+1, []engine.Frame{{Sequence: i + 1, Payload: make([]byte, 64<<10)}})
		must(t, err)
	}
	s.settle(flowfabric.CodeCompleted, "attempt_success")
	var all []stream.Frame
	pages := 0
	for page := (stream.Page{}); !page.EOF; pages++ {
		page = read(t, s, stream.ReadOptions{After: page.Next, Limit: 100})
		all = append(all, page.Frames...)
		if len(page.Frames)*(64<<10) > 4<<20 {
			t.Fatalf("a page of %d frames", len(page.Frames))
		}
	}
	contiguous(t, all, 1, 100)
	if pages < 2 {
		t.Errorf("%d pages", pages)
	}
}

func TestReadStates(t *testing.T) {
	s := newServer()
	if p := read(t, s, stream.ReadOptions{Limit: 1}); p.Exists || p.Closed || p.EOF || p.Gap {
		t.Errorf("never written: %+v", p)
	}
	s.settle(flowfabric.CodeFailed, "attempt_failure")
	if p := read(t, s, stream.ReadOptions{Limit: 1}); p.Exists || !p.EOF || p.ClosedReason != "attempt_failure" {
		t.Errorf("ended without a frame: %+v", p)
	}
}

// spec 30 §11 #27 and §4.4
func TestReadTrimGap(t *testing.T) {
	s := newServer()
	s.frames(t, 100)
	second := read(t, s, stream.ReadOptions{Limit: 2})
	edge := read(t, s, stream.ReadOptions{Limit: 60})
	s.trim(0, 40)
	for name, c := range map[string]struct {
		after   stream.Cursor
		gap     bool
		trimmed uint64
	}{
		"from the start":              {stream.Cursor{}, true, 60},
		"behind, sequence known":      {second.Next, true, 58},
		"behind, from text":           {cursor(t, second.Next.String()), true, 60},
		"at the newest trimmed frame": {edge.Next, false, 0},
		"within":                      {stream.CursorOf(s.stored(0)[3]), false, 0},
		"within, from text":           {cursor(t, s.stored(0)[3].ID.String()), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			page := read(t, s, stream.ReadOptions{After: c.after, Limit: 100})
			if page.Gap != c.gap || page.Trimmed != c.trimmed {
				t.Errorf("gap %v, trimmed %d", page.Gap, page.Trimmed)
			}
		})
	}
	s.settle(flowfabric.CodeCompleted, "attempt_success")
	s.trim(0, 0)
	page := read(t, s, stream.ReadOptions{After: second.Next, Limit: 100})
	if !page.Gap || page.Trimmed != 98 || !page.EOF {
		t.Errorf("nothing retained: %+v", page)
	}
}
