package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Refused before anything is sent: one byte more than a call may carry.
func TestTooLargeAPayload(t *testing.T) {
	e, f := openFake(t)
	f.answer(func(string) string { t.Error("something was sent"); return nilReply })
	x := NewExecution{ID: sampleID, Start: flowfabric.Start{Namespace: "n", Lane: "l", Kind: "k"},
		Payload: make([]byte, limits.MaxPayload+1)}
	if _, err := e.CreateExecutions(t.Context(), sampleID.Partition(), []NewExecution{x}); !errors.Is(err,
		flowfabric.ErrPayloadTooLarge) {
		t.Errorf("1 MiB and a byte: %v", err)
	}
}

// FuzzTags: Go and the server agree on what a tag is; each checks for itself.
func FuzzTags(f *testing.F) {
	for _, s := range []string{"team.region", "a", "a.", ".a", "a..b", "A.b", "a.B", "a.b.c_1", "_a.b", "a.b-c", "ä.b",
		"a.\x00"} {
		f.Add(s, "v")
	}
	f.Add("a.b", strings.Repeat("v", 257))
	e := open(f, Config{URL: testserver.Embedded(f), Partitions: 1})
	f.Fuzz(func(t *testing.T, key, value string) {
		// The bare call: Engine.CreateExecutions would refuse a bad tag before it is sent.
		r, err := e.call(context.Background(), fnCreate, 0, protocol, "n", "l", "k",
			"", "0", "", "", "", "", "", "1", key, value, "1", ids.UUID(mint.ID(0)).String(), "",
			"payload")
		must.No(t, err)
		r.Count(1)
		_, _, refused := r.answer()
		if err := valid.Tags(map[string]string{key: value}); (refused == nil) != (err == nil) {
			t.Errorf("%q=%q: server %v, Go %v", key, value, refused, err)
		}
	})
}
