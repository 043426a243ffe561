package times_test

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/times"
)

// calls is a store that keeps what it is told, or refuses it.
type calls struct {
	mu      sync.Mutex
	refuse  map[string]error // by namespace
	numbers map[string][]uint64
	got     map[string]string // namespace/kind@minute → text
}

func (c *calls) NoteTimes(_ context.Context, namespace, _ string, number uint64, rows []engine.Times) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.numbers[namespace] = append(c.numbers[namespace], number)
	if err := c.refuse[namespace]; err != nil {
		return err
	}
	for _, x := range rows {
		c.got[namespace+"/"+x.Kind+"@"+strconv.FormatInt(x.Minute, 10)] = x.Tally.Text()
	}
	return nil
}

func newCalls() *calls {
	return &calls{refuse: map[string]error{}, numbers: map[string][]uint64{}, got: map[string]string{}}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// Attempts of all partitions are added up by namespace, kind and minute, with the sums over kinds and namespaces.
func TestSums(t *testing.T) {
	s := newCalls()
	r := times.New(s, quiet())
	at := time.UnixMilli(10 * 60_000)
	for p := range uint16(20) {
		r.Add(p, times.Attempt{Namespace: "a", Kind: "k", Waited: time.Second, Ran: time.Minute, At: at})
	}
	r.Add(3, times.Attempt{Namespace: "a", Kind: "other", Outcome: times.Failed, Waited: -1, Ran: time.Minute, At: at})
	r.Add(3, times.Attempt{Namespace: "b", Kind: "k", Outcome: times.Other, Waited: 0, Ran: time.Hour,
		At: at.Add(time.Minute)})
	r.Add(3, times.Attempt{Namespace: "b", Kind: engine.EveryKind, Outcome: times.Retried, Waited: -1, At: at})
	r.Send(t.Context())
	want := map[string]string{
		"a/k@10": "20,0,0,0;73:20;116:20", "a/other@10": "0,1,0,0;;116:1", "a/*@10": "20,1,0,0;73:20;116:21",
		"b/k@11": "0,0,0,1;0:1;", "b/*@11": "0,0,0,1;0:1;", "b/@10": "0,0,1,0;;0:1", "b/*@10": "0,0,1,0;;0:1",
		"*/k@10": "20,0,0,0;73:20;116:20", "*/other@10": "0,1,0,0;;116:1", "*/@10": "0,0,1,0;;0:1",
		"*/*@10": "20,1,1,0;73:20;0:1,116:21", "*/k@11": "0,0,0,1;0:1;", "*/*@11": "0,0,0,1;0:1;",
	}
	if !maps.Equal(s.got, want) {
		t.Fatalf("%v", s.got)
	}
	s.got = map[string]string{}
	r.Send(t.Context())
	if len(s.got) > 0 {
		t.Fatalf("sent twice: %v", s.got)
	}
}

// A call that fails is repeated as it was before later ones of its namespace, and does not hold back others.
func TestWhatFailsIsSentAgain(t *testing.T) {
	s := newCalls()
	r := times.New(s, quiet())
	add := func() {
		for _, namespace := range []string{"a", "b"} {
			r.Add(1, times.Attempt{Namespace: namespace, Kind: "k", At: time.UnixMilli(60_000)})
		}
		r.Send(t.Context())
	}
	s.refuse["a"] = flowfabric.ErrTransport
	add()
	if s.got["a/k@1"] != "" || s.got["b/k@1"] == "" {
		t.Fatalf("%v", s.got)
	}
	add()
	delete(s.refuse, "a")
	r.Send(t.Context())
	if got := s.numbers["a"]; len(got) != 4 || got[0] != got[1] || got[1] != got[2] || got[3] <= got[2] {
		t.Fatalf("numbers of calls: %v", got)
	}
	if got := s.numbers["b"]; len(got) != 2 || got[0] >= got[1] {
		t.Fatalf("numbers of calls: %v", got)
	}
	s.refuse["a"] = flowfabric.ErrInvalidInput // no repeat can help
	add()
	delete(s.refuse, "a")
	r.Send(t.Context())
	if got := s.numbers["a"]; len(got) != 5 {
		t.Fatalf("numbers of calls: %v", got)
	}
}

// A minute is sent once it is over, and only what came later is left.
func TestMinutesAreSentWhenTheyAreOver(t *testing.T) {
	s := newCalls()
	r := times.New(s, quiet())
	for minute := range int64(3) {
		r.Add(uint16(minute), times.Attempt{Namespace: "a", Kind: "k", At: time.Unix(60*minute+59, 0)})
	}
	r.SendUntil(t.Context(), time.Unix(119, 0))
	if s.got["a/k@0"] == "" || s.got["a/k@1"] != "" {
		t.Fatalf("%v", s.got)
	}
	r.Add(1, times.Attempt{Namespace: "a", Kind: "k", At: time.Unix(61, 0)})
	s.got = map[string]string{}
	r.SendUntil(t.Context(), time.Unix(120, 0))
	if s.got["a/k@0"] != "" || !strings.HasPrefix(s.got["a/k@1"], "2,") || s.got["a/k@2"] != "" {
		t.Fatalf("%v", s.got)
	}
	r.Send(t.Context())
	if s.got["a/k@2"] == "" {
		t.Fatalf("%v", s.got)
	}
}

// However many namespaces and kinds there are, a process tells a bounded number apart, and the sums are whole.
func TestBounds(t *testing.T) {
	s := newCalls()
	r := times.New(s, quiet())
	const all = 5000
	for i := range all {
		r.Add(uint16(i), times.Attempt{Namespace: "n" + strconv.Itoa(i), Kind: "k" + strconv.Itoa(i), Waited: -1,
			At: time.UnixMilli(60_000)})
	}
	r.Send(t.Context())
	own := slices.DeleteFunc(slices.Collect(maps.Keys(s.got)), func(at string) bool {
		return strings.HasPrefix(at, "*/") || strings.Contains(at, "/*@")
	})
	if len(own) != 256 {
		t.Fatalf("%d are told apart, want 256", len(own))
	}
	if got := s.got["*/*@1"]; got != "5000,0,0,0;;0:5000" {
		t.Fatalf("the sum is %q", got)
	}
}

func BenchmarkAdd(b *testing.B) {
	r := times.New(newCalls(), quiet())
	now := time.Now()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			r.Add(uint16(i), times.Attempt{Namespace: "default", Kind: "send-mail", Waited: time.Duration(i) * 1000,
				Ran: time.Duration(i) * 500, At: now})
		}
	})
}
