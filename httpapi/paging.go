package httpapi

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/admin"
)

// pages are the parameters of a list that is short enough to be read whole, and is answered in pages all the same.
var pages = []param{{name: "limit", text: "1..1000, default 1000", kind: "integer"},
	{name: "cursor", text: "next_cursor of the page before", kind: "string"}}

// paging is which page of a list was asked for.
type paging struct {
	limit int
	after string // the key of the last item of the page before
	set   bool   // there was one
}

// paging reads the parameters of a page.
func (q *query) paging() paging {
	p := paging{limit: int(q.number("limit", 1, maxPage, maxPage))}
	if cursor := q.text("cursor"); cursor != "" {
		key, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil {
			q.wrong("cursor", "it is no next_cursor of this list")
		}
		p.after, p.set = string(key), true
	}
	return p
}

// cut puts items in the order of their keys and keeps those of a page. What comes or goes between two pages moves no
// other item.
func cut[T any](p paging, items []T, key func(T) string) (out admin.Page[T]) {
	slices.SortFunc(items, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
	if p.set {
		from, found := slices.BinarySearchFunc(items, p.after, func(x T, after string) int {
			return cmp.Compare(key(x), after)
		})
		if found {
			from++
		}
		items = items[from:]
	}
	if len(items) > p.limit {
		items = items[:p.limit]
		out.Cursor = base64.RawURLEncoding.EncodeToString([]byte(key(items[p.limit-1])))
	}
	out.Items = append([]T{}, items...) // a list also when there is none
	return out
}

// keyOf joins the parts of a key so that they are ordered one after the other.
func keyOf(parts ...string) string { return strings.Join(parts, "\x00") }
