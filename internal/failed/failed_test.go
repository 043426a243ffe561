package failed_test

import (
	"fmt"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/failed"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// ended is failure number n of a list that begins with the newest.
func ended(n int, kind, category, message string) failed.Execution {
	return failed.Execution{ID: mint.Join(0, [16]byte{15: byte(n)}), Kind: kind,
		EndedAt: time.UnixMilli(int64(1_000_000 - n)).UTC(),
		Failure: flowfabric.Failure{Category: flowfabric.Category(category), Message: message}}
}

func TestGroups(t *testing.T) {
	list := []failed.Execution{
		ended(0, "ship", "handler_error", "order 1: no stock"),
		ended(1, "ship", "attempt_timeout", "order 1: no stock"),
		ended(2, "pack", "handler_error", "order 1: no stock"),
		ended(3, "ship", "handler_error", "order 22: no stock"),
		ended(4, "ship", "handler_error", "order 333: no stock"),
		ended(5, "ship", "handler_error", "order 4444: no stock"),
		ended(6, "ship", "handler_error", ""),
	}
	var all failed.Groups
	if none := all.All(false); none.Items == nil || len(none.Items) != 0 || none.More {
		t.Fatalf("%+v", none)
	}
	for _, x := range list {
		all.Add(x)
	}
	got := all.All(true)
	if !got.More || !got.From.Equal(list[6].EndedAt) {
		t.Fatalf("%+v", got)
	}
	var text []string
	for _, g := range got.Items {
		text = append(text, fmt.Sprint(g.Kind, " ", g.Category, " ", g.Shape, " ", g.Count, " ", len(g.Examples)))
		if g.Key != failed.Key(g.Kind, g.Category, g.Shape) {
			t.Errorf("the key of %+v is another", g)
		}
	}
	want := []string{"ship handler_error order <n>: no stock 4 3", "ship attempt_timeout order <n>: no stock 1 1",
		"pack handler_error order <n>: no stock 1 1", "ship handler_error (no message) 1 1"}
	if fmt.Sprint(text) != fmt.Sprint(want) {
		t.Fatalf("%q, want %q", text, want)
	}
	g := got.Items[0]
	if !g.FirstAt.Equal(list[5].EndedAt) || !g.LastAt.Equal(list[0].EndedAt) || g.Examples[0] != list[0].ID ||
		g.Examples[2] != list[4].ID {
		t.Errorf("%+v", g)
	}
	for _, f := range list {
		if is, want := failed.Matches(g.Key, f.Kind, f.Failure), f.Kind == "ship" &&
			f.Category == "handler_error" && f.Message != ""; is != want {
			t.Errorf("%+v is of the group: %t", f, is)
		}
		if is, want := failed.Matches(g.Shape, f.Kind, f.Failure), f.Message != ""; is != want {
			t.Errorf("%+v has the shape: %t", f, is)
		}
	}
}
