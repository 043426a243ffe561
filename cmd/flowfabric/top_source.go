package main

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// topSource is where top looks and acts: the API. Only counts come from a store itself, if top has its URL, since the
// API counts every few seconds for all who ask.
type topSource struct {
	door      *door
	namespace string // * for all, empty for the usual one
	reason    string
}

// overview counts, without rates where fresh is true.
func (s topSource) overview(ctx context.Context) (o admin.Overview, fresh bool, err error) {
	if s.door.client != nil {
		o, err = admin.New(s.door.client).Overview(ctx, s.namespace)
		return o, true, err
	}
	var seen struct {
		Now admin.Overview `json:"now"`
	}
	if err := s.door.ask(ctx, http.MethodGet, "/v1/overview", nil, nil, &seen); err != nil {
		return o, false, err
	}
	o = seen.Now
	o.Waiting, o.Stored = 0, 0
	for after := ""; ; {
		var page admin.Page[admin.Queue]
		q := s.query("limit", strconv.Itoa(limits.MaxListPage))
		if after != "" {
			q.Set("cursor", after)
		}
		if err := s.door.ask(ctx, http.MethodGet, "/v1/queues", q, nil, &page); err != nil {
			return o, false, err
		}
		for _, x := range page.Items {
			o.Waiting, o.Stored = o.Waiting+x.Waiting, o.Stored+x.Stored
		}
		o.Queues = append(o.Queues, page.Items...)
		if after = page.Cursor; after == "" {
			return o, false, nil
		}
	}
}

// query has pairs of names and values, and the namespace.
func (s topSource) query(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	if s.namespace != "" {
		q.Set("namespace", s.namespace)
	}
	return q
}

// executions lists some in a state, those that ended or began last in front if newest is "true".
func (s topSource) executions(ctx context.Context, state, newest string, most int) (page admin.Page[admin.Listed],
	err error) {
	err = s.door.ask(ctx, http.MethodGet, "/v1/executions",
		s.query("state", state, "newest", newest, "limit", strconv.Itoa(most)), nil, &page)
	return page, err
}

func (s topSource) act(ctx context.Context, path string, body map[string]any) error {
	body["reason"] = cmp.Or(s.reason, "top")
	return s.door.ask(ctx, http.MethodPost, path, nil, body, nil)
}

func (s topSource) cancel(ctx context.Context, id flowfabric.ExecutionID) error {
	return s.act(ctx, at("/v1/executions/*:cancel", id.String()), map[string]any{})
}

func (s topSource) replay(ctx context.Context, id flowfabric.ExecutionID) error {
	return s.act(ctx, at("/v1/executions/*:replay", id.String()), map[string]any{})
}

func (s topSource) setLane(ctx context.Context, namespace, lane string, to flowfabric.LaneState) error {
	return s.act(ctx, at("/v1/lanes/*:set", lane), map[string]any{"namespace": namespace, "state": to})
}

// oneLine is what is wrong, in one line.
func oneLine(texts ...string) string { return strings.ReplaceAll(join("; ", texts...), "\n", "; ") }
