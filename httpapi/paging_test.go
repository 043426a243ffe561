package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// Each list is complete in pages of any size, in one order, and what comes or goes meanwhile moves no other item.
func TestListsArePaged(t *testing.T) {
	a := newAPI(t)
	for i := range 5 {
		a.as("operator", "PUT", fmt.Sprintf("/v1/gates/b%d", i), `{"limits":{"tokens":{"hard":1}}}`, 200)
		a.as("operator", "PUT", fmt.Sprintf("/v1/schedules/s%d", i), `{"every_ms":3600000,"kind":"nobody"}`, 200)
		a.submit(fmt.Sprintf(`{"kind":"nobody%d","lane":"lane%d"}`, i%2, i))
	}
	read := func(path string) (names []string, next string) {
		t.Helper()
		var page struct {
			Items []json.RawMessage `json:"items"`
			Next  string            `json:"next_cursor"`
		}
		must.No(t, json.Unmarshal(a.as("viewer", "GET", path, "", 200).body, &page))
		for _, x := range page.Items {
			var row struct{ Name, Lane, Kind, Instance string }
			must.No(t, json.Unmarshal(x, &row))
			names = append(names, strings.Trim(strings.Join([]string{row.Instance, row.Lane, row.Name, row.Kind}, "/"),
				"/"))
		}
		return names, page.Next
	}
	for path, least := range map[string]int{"/v1/gates": 5, "/v1/schedules": 5, "/v1/lanes": 5,
		"/v1/queues": 5, "/v1/workers": 1} {
		whole, next := read(path)
		if len(whole) < least || next != "" || !slices.IsSorted(whole) {
			t.Errorf("%s: %q, next %q", path, whole, next)
		}
		for size := 1; size <= len(whole); size++ {
			var all []string
			for cursor := ""; ; {
				names, next := read(fmt.Sprintf("%s?limit=%d&cursor=%s", path, size, cursor))
				all = append(all, names...)
				if len(names) > size || next != "" && len(names) != size {
					t.Errorf("%s: a page of %d has %d, next %q", path, size, len(names), next)
				}
				if cursor = next; cursor == "" {
					break
				}
			}
			if !slices.Equal(all, whole) {
				t.Errorf("%s in pages of %d: %q, want %q", path, size, all, whole)
			}
		}
		for query, field := range map[string]string{"limit=0": "limit", "limit=1001": "limit", "cursor=!": "cursor",
			"page=2": "page"} {
			if p := into[problem](t, a.as("viewer", "GET", path+"?"+query, "", 400)); p.Field != field {
				t.Errorf("%s?%s: %+v", path, query, p)
			}
		}
	}
	first, next := read("/v1/gates?limit=2")
	a.as("operator", "DELETE", "/v1/gates/b1?reason=gone", "", 204) // the one that the cursor names
	a.as("operator", "PUT", "/v1/gates/a9", `{"limits":{"tokens":{"hard":1}}}`, 200)
	if rest, _ := read("/v1/gates?cursor=" + next); !slices.Equal(first, []string{"b0", "b1"}) || !slices.Equal(rest,
		[]string{"b2", "b3", "b4"}) {
		t.Errorf("%q, then %q", first, rest)
	}
	if s := into[admin.ScheduleInfo](t, a.as("viewer", "GET", "/v1/schedules/s3", "", 200)); s.Name != "s3" ||
		s.Kind != "nobody" || s.Next.IsZero() {
		t.Errorf("%+v", s)
	}
	a.as("viewer", "GET", "/v1/schedules/s9", "", 404)
	a.as("blue", "GET", "/v1/schedules/s3", "", 404)
	if p := into[problem](t, a.as("operator", "DELETE", "/v1/schedules/s3?why=x", "", 400)); p.Field != "why" {
		t.Errorf("%+v", p)
	}
}

// A list says what is missing in it, and is refused only when nothing answered.
func TestPartlyAnsweredLists(t *testing.T) {
	some := fmt.Errorf("list: %w", &admin.PartitionsError{Failed: 1, Total: 4})
	none := fmt.Errorf("list: %w", &admin.PartitionsError{Failed: 4, Total: 4})
	other := errors.New("no answer")
	for _, tc := range []struct {
		items   []int
		err     error
		missing bool
		refused bool
	}{
		{[]int{1}, nil, false, false}, {nil, nil, false, false},
		{[]int{1}, some, true, false}, {nil, some, true, false},
		{nil, none, false, true}, {nil, other, false, true}, {[]int{1}, other, true, false},
	} {
		page, err := cut(paging{limit: 10}, tc.items, tc.err, func(int) string { return "" })
		if (err != nil) != tc.refused || (page.Missing != "") != tc.missing ||
			err == nil && (page.Items == nil || len(page.Items) != len(tc.items)) {
			t.Errorf("%v with %v: %+v, %v", tc.items, tc.err, page, err)
		}
	}
}
