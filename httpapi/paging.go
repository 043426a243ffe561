package httpapi

import (
	"cmp"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/admin"
)

// pages are the parameters of a list that is short enough to be read whole, and is answered in pages all the same.
var pages = []param{{name: "limit", text: "1..1000, default 1000", kind: "integer"},
	paged[1]}

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

// unpaged is a list that is answered whole. err is why some of it is missing: the answer says so, unless there is
// nothing else to say.
func unpaged[T any](items []T, err error) (out admin.Page[T], failed error) {
	out.Items = append([]T{}, items...) // a list also when there is none
	if err != nil {
		some, ok := errors.AsType[*admin.PartitionsError](err)
		if len(items) == 0 && !(ok && some.Failed < some.Total) {
			return out, err
		}
		out.Missing = inMembers(err.Error())
	}
	return out, nil
}

// cut puts the items of such a list in the order of their keys and keeps those of a page. What comes or goes between
// two pages moves no other item.
func cut[T any](p paging, items []T, err error, key func(T) string) (admin.Page[T], error) {
	out, err := unpaged(items, err)
	slices.SortFunc(out.Items, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
	if p.set {
		from, found := slices.BinarySearchFunc(out.Items, p.after, func(x T, after string) int {
			return cmp.Compare(key(x), after)
		})
		if found {
			from++
		}
		out.Items = out.Items[from:]
	}
	if len(out.Items) > p.limit {
		out.Items = out.Items[:p.limit]
		out.Cursor = base64.RawURLEncoding.EncodeToString([]byte(key(out.Items[p.limit-1])))
	}
	return out, err
}

// keyOf joins the parts of a key so that they are ordered one after the other.
func keyOf(parts ...string) string { return strings.Join(parts, "\x00") }
