package framelog_test

import (
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
)

// What a tail costs for a stored frame. The server of these tests copies frames; that is in it, too.
func BenchmarkTail(b *testing.B) {
	s := newServer()
	const frames = 10_000
	s.frames(b, frames)
	s.settle(codes.Completed, "attempt_success")
	h := framelog.NewHub(s)
	defer h.Close()
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range h.Tail(b.Context(), execution, framelog.TailOptions{}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n < frames {
			b.Fatalf("%d events", n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/frames, "ns/frame")
}
