package framelog_test

import (
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/stream"
)

func read(t *testing.T, s *server, o framelog.ReadOptions) framelog.Page {
	t.Helper()
	page, err := framelog.Read(t.Context(), s, execution, 1, o)
	must.No(t, err)
	return page
}

func cursor(t *testing.T, text string) stream.Cursor {
	t.Helper()
	c, err := engine.ParseStreamID(text)
	must.No(t, err)
	return c
}

func TestReadLimits(t *testing.T) {
	s := newServer()
	s.frames(t, 3)
	for _, limit := range []int{-1, 0, 10_001} {
		_, err := framelog.Read(t.Context(), s, execution, 1, framelog.ReadOptions{Limit: limit})
		wantIs(t, err, flowfabric.ErrInvalidInput)
	}
	if s.reads != 0 {
		t.Error("a refused limit reached the server")
	}
	contiguous(t, read(t, s, framelog.ReadOptions{Limit: 1}).Frames, 1, 1)
	contiguous(t, read(t, s, framelog.ReadOptions{Limit: 10_000}).Frames, 1, 3)
	_, err := framelog.Read(t.Context(), s, mint.Join(ids.Keyed(64, "n", "k", "other")), 1,
		framelog.ReadOptions{Limit: 1})
	wantIs(t, err, flowfabric.ErrNotFound)
}

// the forms of a bound; from > to is empty.
func TestReadBounds(t *testing.T) {
	s := newServer()
	s.frames(t, 20)
	all := s.stored(0)
	third := all[2].ID
	for name, c := range map[string]struct {
		after       framelog.Place
		to          stream.Cursor
		first, last uint64
	}{
		"everything":       {framelog.Place{}, stream.Cursor{}, 1, 20},
		"after is without": {framelog.PlaceAt(third), stream.Cursor{}, 4, 20},
		"to is with":       {framelog.Place{}, third, 1, 3},
		"from > to":        {framelog.PlaceAt(all[5].ID), third, 1, 0},
		"from = to":        {framelog.PlaceAt(third), third, 1, 0},
		"after the greatest": {framelog.PlaceAt(cursor(t, "18446744073709551615-18446744073709551615")),
			stream.Cursor{}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			page := read(t, s, framelog.ReadOptions{After: c.after, To: c.to, Limit: 100})
			contiguous(t, page.Frames, c.first, c.last)
			if page.Gap || page.EOF || !page.Exists {
				t.Errorf("page %+v", page)
			}
		})
	}
}

func TestReadPagesUntilEOF(t *testing.T) {
	s := newServer()
	s.frames(t, 2500)
	s.settle(codes.Completed, "attempt_success")
	var all []stream.Frame
	var after framelog.Place
	for n := 1; ; n++ {
		page := read(t, s, framelog.ReadOptions{After: after, Limit: 100})
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

func TestReadByteCap(t *testing.T) {
	s := newServer()
	for i := range uint64(100) {
		_, err := s.AppendFrames(t.Context(), fence, i+1,
			[]stream.Frame{{Sequence: i + 1, Payload: make([]byte, 64<<10)}})
		must.No(t, err)
	}
	s.settle(codes.Completed, "attempt_success")
	var all []stream.Frame
	pages := 0
	for page := (framelog.Page{}); !page.EOF; pages++ {
		page = read(t, s, framelog.ReadOptions{After: page.Next, Limit: 100})
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
	if p := read(t, s, framelog.ReadOptions{Limit: 1}); p.Exists || p.Closed || p.EOF || p.Gap {
		t.Errorf("never written: %+v", p)
	}
	s.settle(codes.Failed, "attempt_failure")
	if p := read(t, s, framelog.ReadOptions{Limit: 1}); p.Exists || !p.EOF || p.ClosedReason != "attempt_failure" {
		t.Errorf("ended without a frame: %+v", p)
	}
}

func TestReadTrimGap(t *testing.T) {
	s := newServer()
	s.frames(t, 100)
	second := read(t, s, framelog.ReadOptions{Limit: 2})
	edge := read(t, s, framelog.ReadOptions{Limit: 60})
	s.trim(0, 40)
	for name, c := range map[string]struct {
		after   framelog.Place
		gap     bool
		trimmed uint64
	}{
		"from the start":              {framelog.Place{}, true, 60},
		"behind, sequence known":      {second.Next, true, 58},
		"behind, from text":           {framelog.PlaceAt(second.Next.Cursor()), true, 60},
		"at the newest trimmed frame": {edge.Next, false, 0},
		"within":                      {framelog.PlaceOf(s.stored(0)[3]), false, 0},
		"within, from text":           {framelog.PlaceAt(s.stored(0)[3].ID), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			page := read(t, s, framelog.ReadOptions{After: c.after, Limit: 100})
			if page.Gap != c.gap || page.Trimmed != c.trimmed {
				t.Errorf("gap %v, trimmed %d", page.Gap, page.Trimmed)
			}
		})
	}
	s.settle(codes.Completed, "attempt_success")
	s.trim(0, 0)
	page := read(t, s, framelog.ReadOptions{After: second.Next, Limit: 100})
	if !page.Gap || page.Trimmed != 98 || !page.EOF {
		t.Errorf("nothing retained: %+v", page)
	}
}
