package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// missing is an error about what is missing in what was shown.
func missing(what string) error {
	if what == "" {
		return nil
	}
	return errors.New(what)
}

// pages reads all pages of a list: its items, each as it came as well.
func pages[T any](ctx context.Context, q *request) (items []T, raw []json.RawMessage, err error) {
	raw = []json.RawMessage{} // a list also when there is none
	for lacks := ""; ; {
		var next admin.Page[json.RawMessage]
		if err := q.do(ctx, &next); err != nil {
			return nil, nil, err
		}
		for _, text := range next.Items {
			var item T
			if err := json.Unmarshal(text, &item); err != nil {
				return nil, nil, fmt.Errorf("%s: the server's answer is not understood by this version: %w", q.path,
					err)
			}
			items = append(items, item)
		}
		raw, lacks = append(raw, next.Items...), cmp.Or(lacks, next.Missing)
		if next.Cursor == "" {
			return items, raw, missing(lacks)
		}
		q.query.Set("cursor", next.Cursor)
	}
}

// rows has a verb show a list as one table, and with --json as one array.
func rows[T any](header []string, row func(T) []any) func(context.Context, *request) error {
	return manyRows(header, func(item T) [][]any { return [][]any{row(item)} })
}

// manyRows is rows for items that take several.
func manyRows[T any](header []string, rows func(T) [][]any) func(context.Context, *request) error {
	return func(ctx context.Context, q *request) error {
		items, raw, err := pages[T](ctx, q)
		if raw == nil {
			return err
		}
		var cells [][]any
		for _, item := range items {
			cells = append(cells, rows(item)...)
		}
		if shown := q.app.show(raw, func(p *page) { p.table(header, cells) }); shown != nil {
			return shown
		}
		return err
	}
}

// limitFlags are those of a list that can be long.
var limitFlags = []member{whole("", "limit", "how many at most; `0` is all").or(strconv.Itoa(limits.DefaultListPage)),
	text("?cursor", "cursor", "go on where the page with this `cursor` ended, with the same flags")}

// long has a verb show up to --limit items of a list, page after page, and where the next page begins: as a table, or
// with --json an item on each line, so that a long list begins at once and needs no memory.
func long[T any](header []string, row func(T) []any) func(context.Context, *request) error {
	return func(ctx context.Context, q *request) error {
		limit := limits.DefaultListPage
		if q.cmd.Flags().Changed("limit") {
			limit = q.number("limit")
		}
		if limit < 0 {
			return usage("--limit is %d, want 0 or more", limit)
		}
		p, cells, cursor := &page{colour: q.app.colour()}, [][]any{}, ""
		for left := limit; ; {
			size := limits.MaxListPage
			if limit > 0 {
				size = min(left, size)
			}
			q.put("?limit", size)
			var next admin.Page[json.RawMessage]
			if err := q.do(ctx, &next); err != nil {
				return err
			}
			for _, raw := range next.Items {
				if q.app.json {
					if err := q.app.line(raw); err != nil {
						return err
					}
					continue
				}
				var item T
				if err := json.Unmarshal(raw, &item); err != nil {
					return fmt.Errorf("%s: the server's answer is not understood by this version: %w", q.path, err)
				}
				cells = append(cells, row(item))
			}
			cursor = next.Cursor
			if left -= len(next.Items); cursor == "" || limit > 0 && left <= 0 {
				break
			}
			q.put("?cursor", cursor)
		}
		if q.app.json {
			if cursor == "" {
				return nil
			}
			return q.app.next(cursor)
		}
		if header != nil {
			p.table(header, cells)
		} else {
			for _, c := range cells {
				p.say("%s", c...)
			}
		}
		if cursor != "" {
			p.say("more: --cursor %s", cursor)
		}
		_, err := p.WriteTo(q.app.out)
		return err
	}
}
