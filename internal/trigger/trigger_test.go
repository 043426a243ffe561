package trigger_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/trigger"
)

// meets tells whether data has all terms of a filter.
func meets(t *testing.T, data string, where map[string]any) bool {
	t.Helper()
	terms, err := trigger.Terms([]byte(data))
	must.No(t, err)
	filter, err := trigger.Filter(where)
	must.No(t, err)
	for _, term := range filter {
		if !slices.Contains(terms, term) {
			return false
		}
	}
	return true
}

func TestFiltersCompareValuesOfFields(t *testing.T) {
	data := `{"order":{"id":7,"paid":true,"by":"7","note":null,"lines":[{"sku":"a"}],"": "empty"},"total":1.50e1,
		"big":1e400}`
	for _, c := range []struct {
		where map[string]any
		want  bool
	}{
		{nil, true},
		{map[string]any{"order.id": 7}, true},
		{map[string]any{"order.id": 7.0, "total": 15}, true},
		{map[string]any{"order.id": json.Number("70e-1")}, true},
		{map[string]any{"order.id": "7"}, false},
		{map[string]any{"order.by": "7"}, true},
		{map[string]any{"order.by": 7}, false},
		{map[string]any{"order.paid": true, "order.note": nil}, true},
		{map[string]any{"order.paid": "true"}, false},
		{map[string]any{"order.note": "null"}, false},
		{map[string]any{"order.gone": nil}, false},
		{map[string]any{"order.": "empty"}, true},
		{map[string]any{"order.lines.sku": "a"}, false},
		{map[string]any{"order.id": 7, "total": 16}, false},
		{map[string]any{"id": 7}, false},
		{map[string]any{"big": json.Number("1e400")}, true},
	} {
		if got := meets(t, data, c.where); got != c.want {
			t.Errorf("%v: %t", c.where, got)
		}
	}
	for _, other := range []string{`7`, `"text"`, `[]`, `[{"order":{"id":7}}]`, `{}`} {
		if meets(t, other, map[string]any{"order.id": 7}) || !meets(t, other, nil) {
			t.Errorf("%s", other)
		}
	}
}

func TestFiltersAndDataAreBounded(t *testing.T) {
	where := map[string]any{}
	for i := range 9 {
		where[fmt.Sprint("f", i)] = i
	}
	for _, bad := range []map[string]any{where, {"": 1}, {strings.Repeat("x", 257): 1}, {"a": []int{1}},
		{"a": map[string]int{}}, {"a": func() {}}} {
		if _, err := trigger.Filter(bad); !errors.Is(err, flowfabric.ErrInvalidInput) ||
			!strings.Contains(err.Error(), "where") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"f%d":%d`, i, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	if terms, err := trigger.Terms([]byte(many(1024))); err != nil || len(terms) != 1024 {
		t.Errorf("%d, %v", len(terms), err)
	}
	for _, bad := range []string{many(1025), ``, `{`, `{} {}`, `nope`} {
		if _, err := trigger.Terms([]byte(bad)); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
	deep := strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat("}", 2000)
	if terms, err := trigger.Terms([]byte(deep)); err != nil || len(terms) != 0 {
		t.Errorf("%d, %v", len(terms), err)
	}
}

func TestDefinitions(t *testing.T) {
	d := trigger.Definition{Where: map[string]any{"a.b": "x"}, Start: flowfabric.Start{Kind: "k", Namespace: "n",
		Lane: "l", Priority: 7, Tags: map[string]string{"a.b": "c"}}}
	d.Start.Policy.Retry.MaxRetries = 2
	text, terms, err := trigger.Encode(d)
	must.No(t, err)
	got, err := trigger.Decode(text)
	must.No(t, err)
	if again, _, err := trigger.Encode(got); err != nil || again != text || len(terms) != 1 {
		t.Errorf("%s, then %s, %v", text, again, err)
	}
	begun := got.Begun("order.paid", "e1")
	want := map[string]string{"a.b": "c", "event.subject": "order.paid", "event.id": "e1"}
	if !reflect.DeepEqual(begun.Tags, want) || len(got.Start.Tags) != 1 || begun.Policy.Retry.MaxRetries != 2 {
		t.Errorf("%+v", begun)
	}
	for what, change := range map[string]func(*trigger.Definition){
		"kind":          func(d *trigger.Definition) { d.Start.Kind = "" },
		"lane":          func(d *trigger.Definition) { d.Start.Lane = "{" },
		"namespace":     func(d *trigger.Definition) { d.Start.Namespace = "" },
		"delay_ms":      func(d *trigger.Definition) { d.Start.Delay = 1 },
		"event.subject": func(d *trigger.Definition) { d.Start.Tags = map[string]string{"event.subject": "x"} },
		"Priority":      func(d *trigger.Definition) { d.Start.Priority = 9001 },
		"bytes": func(d *trigger.Definition) {
			d.Where = map[string]any{"a": strings.Repeat("x", 17<<10)}
		},
	} {
		bad := d
		change(&bad)
		if _, _, err := trigger.Encode(bad); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, bad := range []string{"", "{}", `{"v":2,"start":{}}`} {
		if _, err := trigger.Decode(bad); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestSubjectsAndIDs(t *testing.T) {
	for _, ok := range []string{"a", "order.paid", "a/b c", strings.Repeat("x", 128)} {
		must.No(t, trigger.CheckSubject(ok))
		must.No(t, trigger.CheckID(ok))
	}
	for _, bad := range []string{"", ".", "..", "{a}", "é", "a\x1f", strings.Repeat("x", 129)} {
		if err := trigger.CheckSubject(bad); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, bad := range []string{"", "a\n", "a\x1f", strings.Repeat("x", 257)} {
		if err := trigger.CheckID(bad); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
