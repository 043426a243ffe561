package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
)

// feedFlags choose what tail --follow shows.
var feedFlags = []string{"lane", "kind", "tag", "state"}

// feedLine is an event, or a note that some were missed.
type feedLine struct {
	flowfabric.FeedEvent
	Detail string `json:"detail,omitempty"`
}

// tailAll prints what happens to all executions that match, until it is interrupted.
func (q *request) tailAll(ctx context.Context) error {
	if !q.said("follow") {
		return usage("tail: ID is missing; without one want --follow")
	}
	for _, flag := range []string{"attempt", "from", "from-now", "durable", "own", "raw"} {
		if q.cmd.Flags().Changed(flag) {
			return usage("--%s goes with ID", flag)
		}
	}
	states, err := q.cmd.Flags().GetStringSlice("state")
	if err != nil {
		return usage("--state: %v", err)
	}
	for _, s := range states {
		if !slices.Contains(feedStates, s) {
			return usage("--state %q, want one or more of %s", s, join(", ", feedStates...))
		}
	}
	events, err := q.feed(ctx, len(states) == 0)
	if err != nil {
		return err
	}
	for e, err := range events {
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil
		}
		if err != nil {
			return q.named(err)
		}
		if e.Detail == "" && len(states) > 0 && !among(states, e.State) {
			continue
		}
		if err := q.app.happened(e); err != nil {
			return err
		}
	}
	return nil
}

// feedStates are those that --state takes.
var feedStates = []string{"waiting_children", "waiting", "delayed", "suspended", "active", "completed", "failed",
	"cancelled", "expired", "skipped", "ended"}

// among tells whether a state is one of those that are named.
func among(states []string, s flowfabric.PublicState) bool {
	if slices.Contains(states, "ended") && slices.Contains([]flowfabric.PublicState{flowfabric.Completed,
		flowfabric.Failed, flowfabric.Cancelled, flowfabric.Expired, flowfabric.Skipped}, s) {
		return true
	}
	return slices.Contains(states, string(s))
}

// feed are the events of the store that the flags choose.
func (q *request) feed(ctx context.Context, signals bool) (iter.Seq2[feedLine, error], error) {
	tags, err := pairs("--tag", said(q.cmd.Flags(), "tag"))
	if err != nil {
		return nil, err
	}
	namespace := q.app.namespace
	if q.said("all-namespaces") {
		namespace = "" // any
	}
	if q.door.client == nil {
		if err := q.within(ctx, namespace); err != nil {
			return nil, err
		}
		for _, name := range []string{"lane", "kind"} {
			if value := q.text(name); value != "" {
				q.query.Set(name, value)
			}
		}
		for k, v := range tags {
			q.query.Add("tag", k+"="+v)
		}
		q.query.Set("leases", "true")
		q.query.Set("signals", fmt.Sprint(signals))
		return followed(ctx, q.door, "/v1/events", q.query, func(feedLine) (string, bool) { return "", false }), nil
	}
	feed, err := admin.New(q.door.client).Subscribe(ctx, admin.SubscribeOptions{Ends: true, Leases: true,
		Signals: signals, Namespace: namespace, Lane: q.text("lane"), Kind: q.text("kind"), Tags: tags})
	if err != nil {
		return nil, err
	}
	return func(yield func(feedLine, error) bool) {
		for e, err := range feed.Events(ctx) {
			line := feedLine{FeedEvent: e}
			if errors.Is(err, flowfabric.ErrFeedGap) {
				line.Detail, err = err.Error(), nil
			}
			if !yield(line, err) {
				return
			}
		}
	}, nil
}

// within asks for events of a namespace, "" for any. If none was named it is the first that the token is bound to.
func (q *request) within(ctx context.Context, namespace string) error {
	named := q.query.Has("namespace")
	if q.query.Del("namespace"); namespace == "" {
		return nil
	}
	if !named {
		var me struct {
			Namespaces []string `json:"namespaces"`
		}
		if err := q.get(ctx, &me, "/v1/me"); err != nil {
			return err
		}
		if len(me.Namespaces) > 0 {
			namespace = me.Namespaces[0]
		}
	}
	q.query.Set("namespace", namespace)
	return nil
}

// happened prints an event.
func (a *app) happened(e feedLine) error {
	if e.Detail != "" {
		fmt.Fprintln(a.err, "flowfabric: some events were missed:", indented(e.Detail, hanging))
		return nil
	}
	return a.show(e.FeedEvent, func(p *page) {
		p.put(styled(faint, instant(e.At)))
		p.WriteString("  ")
		word, detail := styled(stateStyle(e.State), e.State), e.BlockingReason
		if e.Kind == "signal" {
			word, detail = styled(bold, "signal"), join(", ", e.Name, e.Effect)
		}
		p.put(word)
		if e.Attempt > 0 {
			detail = join(", ", detail, fmt.Sprintf("attempt %d", e.Attempt))
		}
		if e.Worker != "" {
			detail = join(" ", detail, "on "+e.Worker)
		}
		p.say("  %s  %s", e.Execution.String(), detail)
	})
}
