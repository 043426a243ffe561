package joblog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/stream"
)

// sink keeps lines.
type sink struct{ lines []stream.LogLine }

func (s *sink) Add(line stream.LogLine) { s.lines = append(s.lines, line) }

type broken struct{}

func (broken) MarshalJSON() ([]byte, error) { panic("no JSON") }

// A record becomes a line whose attributes are an object: names of groups have dots, and values that JSON lacks are
// texts. The other handler gets the records that it wants, and only those.
func TestRecordsBecomeLines(t *testing.T) {
	var kept sink
	var text bytes.Buffer
	h := NewHandler(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn}), &kept, slog.LevelInfo)
	log := slog.New(&h).With("a", 1).WithGroup("g").With("b", "x")
	log.Debug("not kept")
	log.Info("kept", slog.Group("h", "c", true, "d", 2*time.Second), slog.Group("", "e", 1.5), "err", errors.New("no"))
	log.Error("both", "what", broken{}, "nothing", nil, "channel", make(chan int))
	if n := strings.Count(text.String(), "\n"); n != 1 || !strings.Contains(text.String(), `"g":{"b":"x"`) {
		t.Errorf("the other handler got %s", text.String())
	}
	if len(kept.lines) != 2 || kept.lines[0].Level != Info || kept.lines[1].Level != Error ||
		kept.lines[0].Message != "kept" || kept.lines[0].At.IsZero() {
		t.Fatalf("%+v", kept.lines)
	}
	if got := string(kept.lines[0].Attributes); got !=
		`{"a":1,"g.b":"x","g.h.c":true,"g.h.d":"2s","g.e":1.5,"g.err":"no"}` {
		t.Error(got)
	}
	var last map[string]any
	if err := json.Unmarshal(kept.lines[1].Attributes, &last); err != nil ||
		!strings.HasPrefix(last["g.what"].(string), "!PANIC") || last["g.nothing"] != nil ||
		!strings.HasPrefix(last["g.channel"].(string), "0x") {
		t.Errorf("%v %v", last, err)
	}
}

// However long message and attributes are, what is stored of them has at most 8 KiB, is JSON, and says that it was cut.
func TestLinesAreCut(t *testing.T) {
	long := strings.Repeat("ä<\x00", 20000)
	many := make([]Attr, 2000)
	for i := range many {
		many[i] = Attr{fmt.Sprintf("attribute %d", i), quote("value")}
	}
	for what, x := range map[string]struct {
		message string
		attrs   []Attr
		marked  bool
	}{
		"short":                {"hello", []Attr{{"a", quote("b")}}, false},
		"a long message":       {long, nil, true},
		"a plain long message": {strings.Repeat("x", 100000), nil, true},
		"a long text":          {"m", []Attr{{"a", quote(long)}, {"b", quote("c")}}, true},
		"a long object":        {"m", []Attr{{"a", json.RawMessage(`[` + strings.Repeat("1,", 9000) + `1]`)}}, true},
		"a long name":          {"m", []Attr{{long, quote("c")}}, true},
		"all of them":          {long, []Attr{{long, quote(long)}, {long, quote(long)}, {long, quote(long)}}, true},
		"many":                 {"m", many, true},
		"no UTF-8":             {"\xff\xfe", []Attr{{"\xff", quote("\xff")}}, false},
	} {
		line := stream.LogLine{}
		Fill(&line, x.message, x.attrs)
		text := Text(line)
		if len(text) > limits.MaxLogLine || !json.Valid(text) {
			t.Errorf("%s: %d bytes: %.300s", what, len(text), text)
		}
		if strings.Contains(string(text), mark) != x.marked {
			t.Errorf("%s: %.300s", what, text)
		}
		var back stream.LogLine
		if err := Read(&back, text); err != nil || back.Message != line.Message ||
			!bytes.Equal(back.Attributes, line.Attributes) {
			t.Errorf("%s: %v: read as %.300v, want %.300v", what, err, back, line)
		}
	}
}

// store is what a writer sends to.
type store struct {
	mu      sync.Mutex
	calls   []int // lines of each
	lines   []stream.LogLine
	last    uint64
	refuses error
	waits   time.Duration
}

func (s *store) AppendLines(ctx context.Context, first uint64, lines []stream.LogLine) error {
	time.Sleep(s.waits)
	s.mu.Lock()
	defer s.mu.Unlock()
	if first <= s.last {
		panic("a number was given twice")
	}
	s.last = first + uint64(len(lines)) - 1
	s.calls = append(s.calls, len(lines))
	if err := cmp.Or(s.refuses, ctx.Err()); err != nil {
		return err
	}
	s.lines = append(s.lines, lines...)
	return nil
}

// counts are the lines that were stored, and how many they say are missing.
func (s *store) counts() (stored, dropped int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.lines {
		if dropped += x.Dropped; x.Message != "" {
			stored++
		}
	}
	return stored, dropped
}

func line(n int) stream.LogLine { return stream.LogLine{Level: Info, Message: fmt.Sprint(n)} }

// Lines that come together go in one call, 200 ms after the first; a hundred go at once.
func TestLinesGoInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s store
		w := NewWriter(t.Context(), &s)
		for n := range 10 {
			w.Add(line(n))
		}
		time.Sleep(linger - time.Millisecond)
		synctest.Wait()
		if stored, _ := s.counts(); stored != 0 {
			t.Fatal("sent early")
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		for n := range fullLines {
			w.Add(line(n))
		}
		time.Sleep(pause)
		synctest.Wait()
		w.Add(line(1))
		w.Close()
		w.Close()
		w.Add(line(2))
		if !slices.Equal(s.calls, []int{10, fullLines, 1}) {
			t.Error(s.calls)
		}
	})
}

// Nobody who logs waits for a store that is slow or refuses. All lines are stored, or counted as dropped.
func TestLinesThatAreDroppedAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store{waits: time.Second}
		w := NewWriter(t.Context(), &s)
		const all = 20000
		began := time.Now()
		var wg conc.WaitGroup
		for range 20 {
			wg.Go(func() {
				for n := range all / 20 {
					w.Add(line(n))
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); took > 0 {
			t.Errorf("logging took %s of virtual time", took)
		}
		time.Sleep(time.Minute)
		s.mu.Lock()
		s.refuses = flowfabric.ErrTransport
		s.mu.Unlock()
		w.Add(line(1))
		w.Add(line(2))
		time.Sleep(time.Minute)
		s.mu.Lock()
		s.refuses, s.waits = nil, 0
		s.mu.Unlock()
		w.Close() // which says what is missing at the end
		stored, dropped := s.counts()
		if stored+dropped != all+2 || stored < limits.MaxLogLines/4 || dropped < 2 {
			t.Errorf("%d stored, %d dropped, want %d together", stored, dropped, all+2)
		}
	})
}

// A writer whose lease is lost sends nothing more.
func TestLostWritersStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store{refuses: denied.StaleLease}
		w := NewWriter(t.Context(), &s)
		for n := range 3 {
			w.Add(line(n))
			time.Sleep(time.Second)
		}
		w.Close()
		if !slices.Equal(s.calls, []int{1}) {
			t.Error(s.calls)
		}
	})
}
