package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
)

// attach changes what is attached to the scope that the argument names.
func attach(ctx context.Context, q *request, done, says string) error {
	scope, err := q.app.parseScope(q.args[0])
	if err != nil {
		return err
	}
	q.body["scope"] = scope
	if err := changedPartly(q.do(ctx, nil)); err != nil {
		return err
	}
	return q.app.show(struct {
		Scope string `json:"scope"`
		Done  string `json:"done"`
	}{gatetext.ScopeName(scope), done}, func(p *page) { p.say(says, gatetext.ScopeName(scope)) })
}

// blockedBy lists what a gate keeps from running.
func blockedBy(ctx context.Context, q *request, is func(admission.Closing) bool) ([]admin.ClosedRoute, error) {
	var all admin.Gated
	err := q.get(ctx, &all, "/v1/gated")
	if err == nil {
		err = missing(all.Missing)
	}
	closed := slices.DeleteFunc(all.Closed, func(c admin.ClosedRoute) bool { return c.Waiting == 0 || !is(c.Reason) })
	if err != nil && len(closed) == 0 {
		err = fmt.Errorf("the work that it blocks could not be read: %w", err)
	}
	return closed, err
}

// closedGroup is work of one lane and kind that waits for the same in some partitions.
type closedGroup struct {
	admin.ClosedRoute // Waiting in all of them, Until the first time, Reason with the most that was used
	partitions        map[uint16]bool
}

// grouped puts closed routes together over partitions, in the order in which they are tried again.
func grouped(closed []admin.ClosedRoute) []*closedGroup {
	type key struct {
		namespace, lane, kind string
		reason                admission.Closing
	}
	var out []*closedGroup
	seen := map[key]*closedGroup{}
	for _, c := range closed {
		k := key{c.Namespace, c.Lane, c.Kind, c.Reason}
		k.reason.Used, k.reason.Limit = 0, 0
		if c.Reason.Name+c.Reason.Key != "" { // partitions asked at different times
			k.reason.Text = ""
		}
		g := seen[k]
		if g == nil {
			g = &closedGroup{ClosedRoute: c, partitions: map[uint16]bool{c.Partition: true}}
			seen[k], out = g, append(out, g)
			continue
		}
		g.partitions[c.Partition] = true
		g.Waiting += c.Waiting
		if c.Until.Before(g.Until) {
			g.Until = c.Until
		}
		if c.Reason.Used > g.Reason.Used {
			g.Reason = c.Reason
		}
	}
	return out
}

// closedTable writes what does not run, if there is any.
func closedTable(p *page, title string, closed []admin.ClosedRoute) {
	if len(closed) == 0 {
		return
	}
	p.say("\n%s", title)
	var rows [][]any
	now := time.Now()
	for _, g := range grouped(closed) {
		next := instant(g.Until)
		if !g.Until.After(now) {
			next = "due"
		}
		rows = append(rows, []any{g.Namespace + "/" + g.Lane, g.Kind, g.Waiting, len(g.partitions), next,
			g.Reason.Text})
	}
	p.table([]string{"LANE", "KIND", "WAITING", "PARTITIONS", "NEXT TRY", "WHY"}, rows)
}

// removeGate removes a gate, unless it is attached to scopes.
func removeGate(ctx context.Context, q *request) error {
	if !q.said("force") {
		var all admin.Gated
		err := q.get(ctx, &all, "/v1/gated")
		if err == nil {
			err = missing(all.Missing)
		}
		var scopes []string
		for _, x := range all.Attached {
			if slices.Contains(x.Names, q.args[0]) {
				scopes = append(scopes, gatetext.ScopeName(x.Scope))
			}
		}
		switch {
		case len(scopes) > 0: // if there is such a thing at all
			if err := q.get(ctx, nil, "/v1/gates/*", q.args[0]); err != nil {
				return err
			}
			return fmt.Errorf(
				"remove gate %q: %w to %s, and work created there would wait: "+
					"detach it first ('flowfabric gate detach'), or use --force",
				q.args[0], errAttached, strings.Join(scopes, ", "))
		case err != nil:
			return fmt.Errorf("remove gate %q: its scopes could not be read, see --force: %w", q.args[0], err)
		}
	}
	if err := q.do(ctx, nil); err != nil {
		return err
	}
	return q.changed("removed", "")
}

func gatedText(p *page, v admin.Gated) {
	if len(v.Attached) == 0 {
		p.say("\nnothing is attached")
	} else {
		rows := make([][]any, len(v.Attached))
		for i, x := range v.Attached {
			scope := styled(normal, gatetext.ScopeName(x.Scope))
			if x.Mixed {
				scope = styled(yellow, gatetext.ScopeName(x.Scope)+" (mixed)")
			}
			rows[i] = []any{scope, strings.Join(x.Names, ","), instant(x.At), x.By}
		}
		p.say("\nattached:")
		p.table([]string{"SCOPE", "GATES", "SINCE", "BY"}, rows)
	}
	closedTable(p, "waits for a gate:",
		slices.DeleteFunc(slices.Clone(v.Closed), func(c admin.ClosedRoute) bool { return c.Waiting == 0 }))
	if v.Outbox > 0 {
		p.say("\n%s to gates not delivered yet", count(v.Outbox, "message"))
	}
}

// parseScope reads a scope. A lane without a namespace is in that of --namespace.
func (a *app) parseScope(text string) (admission.Scope, error) {
	kind, rest, _ := strings.Cut(text, ":")
	switch {
	case text == "everything":
		return admission.Scope{}, nil
	case kind == "namespace" && rest != "":
		return admission.Scope{Namespace: rest}, nil
	case kind == "lane" && rest != "":
		namespace, lane, ok := strings.Cut(rest, "/")
		if !ok {
			return admission.Scope{Namespace: a.namespace, Lane: rest}, nil
		}
		if namespace != "" && lane != "" { // without a lane it would be the namespace, and without both everything
			return admission.Scope{Namespace: namespace, Lane: lane}, nil
		}
	case kind == "tag":
		if key, value, ok := strings.Cut(rest, "="); ok && key != "" {
			return admission.Scope{TagKey: key, Tag: value}, nil
		}
	}
	return admission.Scope{},
		usage("SCOPE %q, want everything, namespace:NAME, lane:NAME, lane:NAMESPACE/NAME or tag:KEY=VALUE", text)
}
