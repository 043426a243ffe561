package admin_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// mixed makes executions in several states, and returns them as they were created.
func mixed(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) (all []flowfabric.ExecutionID) {
	t.Helper()
	tag := flowfabric.Tags(map[string]string{"who.customer": "a", "who.region": "eu"})
	for i := range 30 {
		opts := []client.SubmitOption{tag, flowfabric.Priority(i % 3)}
		if i%5 == 1 {
			opts = append(opts, flowfabric.Delay(time.Hour))
		}
		x := submit(ctx, t, c, "mix", opts...)
		if all = append(all, x.ID()); i%5 == 2 {
			must.No(t, x.Cancel(ctx))
		} else if i%5 == 3 {
			must.No(t, admin.New(c).Hold(ctx, x.ID()))
		}
	}
	return all
}

// byCreation sorts as the store does: by the time of the creation, then by the text of the id without its partition.
func byCreation(t *testing.T, list []admin.Listed, newest bool) {
	t.Helper()
	for i := 1; i < len(list); i++ {
		a, b := list[i-1], list[i]
		if newest {
			a, b = b, a
		}
		if a.CreatedAt.After(b.CreatedAt) {
			t.Errorf("%s of %s is listed before %s of %s", a.ID, a.CreatedAt, b.ID, b.CreatedAt)
		}
	}
}

func same(t *testing.T, what string, got []admin.Listed, want []flowfabric.ExecutionID) {
	t.Helper()
	have := counts(got)
	for _, id := range want {
		if have[id] != 1 {
			t.Errorf("%s: %s is listed %d times", what, id, have[id])
		}
	}
	if len(have) != len(want) {
		t.Errorf("%s: %d are listed, want %d", what, len(have), len(want))
	}
}

func TestListsInTheOrderOfCreation(t *testing.T) {
	onRedis(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		a, yes := admin.New(c), true
		_, err := a.SetIndex(ctx, admin.IndexChange{All: &yes})
		must.No(t, err)
		all := mixed(ctx, t, c, e)
		for _, limit := range []int{1, 7, 100} {
			for _, newest := range []bool{false, true} {
				list, _ := pages(ctx, t, c, admin.Filter{Newest: newest}, limit, func(int) {})
				same(t, "all", list, all)
				byCreation(t, list, newest)
			}
		}
		found, err := a.Count(ctx, admin.Filter{Kind: write.Kind()})
		must.No(t, err)
		for state, n := range map[flowfabric.PublicState]int{flowfabric.Waiting: 12, flowfabric.Delayed: 6,
			flowfabric.Cancelled: 6, admin.Held: 6} {
			if found.States[state] != n {
				t.Errorf("%s: %d are counted, want %d", state, found.States[state], n)
			}
		}
		list, _ := pages(ctx, t, c, admin.Filter{Kind: "another"}, 100, func(int) {})
		same(t, "another kind", list, nil)
		// What moves between two pages is listed once all the same.
		moved := 0
		list, _ = pages(ctx, t, c, admin.Filter{Newest: true}, 5, func(int) {
			for _, id := range all[moved : moved+4] {
				_ = c.Execution(id).Cancel(ctx)
			}
			moved += 4
		})
		same(t, "what moves", list, all)
	})
}

func TestIndexedTags(t *testing.T) {
	onRedis(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		a := admin.New(c)
		all := mixed(ctx, t, c, e) // before there is an index
		told := 0
		x, err := a.SetIndex(ctx, admin.IndexChange{Tags: []string{"who.customer"},
			Progress: func(n int) { told = n }})
		if err != nil || told < len(all) || x.Building || len(x.Tags) != 1 || !x.Tags[0].Ready ||
			x.Tags[0].Values != 1 {
			t.Fatalf("%+v, %d listed, %v", x, told, err)
		}
		more := mixed(ctx, t, c, e)
		for _, f := range []admin.Filter{{Tags: map[string]string{"who.customer": "a"}},
			{Tags: map[string]string{"who.customer": "a", "who.region": "eu"}, Newest: true}} {
			list, _ := pages(ctx, t, c, f, 7, func(int) {})
			same(t, "tagged", list, append(slices.Clone(all), more...))
			byCreation(t, list, f.Newest)
		}
		must.No(t, a.SetTags(ctx, all[0], map[string]string{"who.customer": "b"}, nil))
		must.No(t, a.SetTags(ctx, all[1], nil, []string{"who.customer"}))
		list, _ := pages(ctx, t, c, admin.Filter{Tags: map[string]string{"who.customer": "b"}}, 7, func(int) {})
		same(t, "of b", list, all[:1])
		found, err := a.Count(ctx, admin.Filter{Tags: map[string]string{"who.customer": "a"}, Kind: write.Kind()})
		if n := found.States[flowfabric.Cancelled]; err != nil || n != 12 {
			t.Errorf("%d cancelled ones are counted, want 12, %v", n, err)
		}
		for x, err := range a.List(ctx, admin.Filter{Tags: map[string]string{"who.customer": "a"},
			States: []flowfabric.PublicState{admin.Ended}}) {
			must.No(t, err)
			must.No(t, a.Purge(ctx, x.ID, 0))
		}
		report, err := a.Check(ctx, admin.CheckOptions{})
		if err != nil || !report.Sound {
			t.Errorf("%+v, %v", report, err)
		}
		x, err = a.SetIndex(ctx, admin.IndexChange{Tags: []string{"who.region"}, All: new(bool)})
		if err != nil || x.All || len(x.Tags) != 1 || x.Tags[0].Key != "who.region" {
			t.Errorf("%+v, %v", x, err)
		}
		if _, err := a.Count(ctx, admin.Filter{}); !errors.Is(err, flowfabric.ErrState) {
			t.Errorf("a count without an index: %v", err)
		}
		list, _ = pages(ctx, t, c, admin.Filter{Tags: map[string]string{"who.customer": "b"}}, 7, func(int) {})
		same(t, "of b without an index", list, all[:1])
		yes := true
		if x, err = a.SetIndex(ctx, admin.IndexChange{Tags: []string{}, All: &yes}); err != nil || !x.All ||
			len(x.Tags) != 0 || x.Building {
			t.Errorf("%+v, %v", x, err)
		}
		if report, err = a.Check(ctx, admin.CheckOptions{}); err != nil || !report.Sound {
			t.Errorf("%+v, %v", report, err)
		}
		for what, tags := range map[string][]string{
			"nine":   {"a.a", "b.b", "c.c", "d.d", "e.e", "f.f", "g.g", "h.h", "i.i"},
			"no key": {"Customer"}} {
			if _, err := a.SetIndex(ctx, admin.IndexChange{Tags: tags}); !errors.Is(err,
				flowfabric.ErrInvalidInput) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
