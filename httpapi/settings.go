package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

// settingsBody is a file of settings, as `flowfabric apply` reads it. What it does not name stays as it is.
type settingsBody struct {
	Owner     string                     `json:"owner,omitempty" jsonschema:"who declares the schedules; required with schedules"`
	Prune     bool                       `json:"prune,omitempty" jsonschema:"also remove what is not named: schedules of the owner, and tags of the index"`
	Gates     map[string]admission.Gate  `json:"gates,omitempty" jsonschema:"budgets, quotas and governors of services, by name"`
	Attached  []attachedSetting          `json:"attached,omitempty" jsonschema:"scopes, with gates for what is created there"`
	Lanes     []laneSetting              `json:"lanes,omitempty"`
	Index     *admin.IndexChange         `json:"index,omitempty" jsonschema:"by what executions can be found"`
	Schedules map[string]settledSchedule `json:"schedules,omitempty" jsonschema:"by name"`
	Triggers  []triggerSetting           `json:"triggers,omitempty"`
}

type attachedSetting struct {
	Scope admission.Scope `json:"scope" jsonschema:"{} is everything"`
	Gates []string        `json:"gates" jsonschema:"at least these"`
}

type laneSetting struct {
	Name string `json:"name"`
	admin.LaneChange
}

type settledSchedule struct {
	scheduleBody
	Owner *string `json:"owned_by,omitempty" jsonschema:"who declares it, if not the owner of the file; empty: nobody"`
}

type triggerSetting struct {
	Name string `json:"name"`
	triggerBody
}

// settingsPlan is what applying a file would do.
type settingsPlan struct {
	Changes []settingChange `json:"changes" jsonschema:"in the order in which they are to be made"`
	Same    int             `json:"same" jsonschema:"settings that are as the file says"`
}

type settingChange struct {
	On        string         `json:"on" jsonschema:"gate, scope, lane, store, schedule or trigger, as in the audit trail"`
	Name      string         `json:"name,omitempty"`
	Namespace string         `json:"namespace,omitempty" jsonschema:"of a lane or a trigger"`
	Action    string         `json:"action" jsonschema:"create, change or remove"`
	Field     string         `json:"field" jsonschema:"where the file has it; of what is removed: the owner"`
	Revision  uint64         `json:"revision,omitempty" jsonschema:"of the gate that is changed"`
	Fields    []settingField `json:"fields,omitempty" jsonschema:"members that differ"`
}

type settingField struct {
	Name string          `json:"name"`
	Was  json.RawMessage `json:"was,omitempty" jsonschema:"absent: it is not set"`
	Is   json.RawMessage `json:"is,omitempty" jsonschema:"absent: it will not be set"`
}

// planner judges a file by the rules of each change, and compares it with the store.
type planner struct {
	c   *call
	ctx context.Context
	b   *settingsBody
	r   *link.Rehearsal
	out settingsPlan
}

func (c *call) planSettings(b *settingsBody) (settingsPlan, error) {
	r := &link.Rehearsal{Gates: map[string]string{}}
	for name, g := range b.Gates {
		r.Gates[name] = g.Parent
	}
	p := &planner{c: c, ctx: r.In(c.ctx()), b: b, r: r, out: settingsPlan{Changes: []settingChange{}}}
	for _, part := range []func() error{p.gates, p.attached, p.lanes, p.index, p.schedules,
		p.triggers} {
		if err := part(); err != nil {
			return settingsPlan{}, err
		}
	}
	return p.out, nil
}

// wrong tells where in the file an error is.
func wrong(err error, field string) error {
	if err == nil {
		return nil
	}
	p := *problemOf(ownedElsewhere(err, field))
	p.Field = cmp.Or(p.Field, field)
	return &p
}

// add notes what differs, if anything does.
func (p *planner) add(x settingChange, was, is any) error {
	fields, err := differing(was, is)
	if x.Fields = fields; err == nil && len(fields) > 0 {
		p.out.Changes = append(p.out.Changes, x)
	} else {
		p.out.Same++
	}
	return err
}

// differing compares two values member by member.
func differing(was, is any) (out []settingField, err error) {
	var members [2]map[string]json.RawMessage
	for i, v := range []any{was, is} {
		text, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(text, &members[i])
		}
		if err != nil {
			return nil, fmt.Errorf("compare settings: %w", err)
		}
	}
	names := slices.Collect(maps.Keys(members[0]))
	for name := range members[1] {
		if _, both := members[0][name]; !both {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		if a, b := members[0][name], members[1][name]; string(a) != string(b) {
			out = append(out, settingField{name, a, b})
		}
	}
	return out, nil
}

func (p *planner) gates() error {
	for _, name := range parentsFirst(p.b.Gates) {
		g, field := p.b.Gates[name], "/gates/"+name
		err := named(&g.Name, name)
		if err == nil {
			err = p.c.h.admin.PutGate(p.ctx, g, p.c.by())
		}
		if err != nil {
			return wrong(err, field)
		}
		x := settingChange{On: "gate", Name: name, Action: "change", Field: field}
		now, err := p.c.h.admin.GetGate(p.ctx, name)
		switch {
		case errors.Is(err, flowfabric.ErrNotFound):
			x.Action = "create"
			err = p.add(x, nil, settled(g))
		case err == nil:
			x.Revision = now.Revision
			err = p.add(x, settled(now.Gate), settled(g))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parentsFirst sorts gates so that each comes after the one above it.
func parentsFirst(all map[string]admission.Gate) (out []string) {
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		g, there := all[name]
		if !there || seen[name] {
			return
		}
		seen[name] = true
		visit(g.Parent)
		out = append(out, name)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		visit(name)
	}
	return out
}

// settled is a gate with its defaults, so that two that mean the same are equal.
func settled(g admission.Gate) admission.Gate {
	g.Name, g.OnHard = "", cmp.Or(g.OnHard, admission.HardReject)
	g.Refund = slices.Compact(slices.Sorted(slices.Values(g.Refund)))
	if g.Service == nil {
		return g
	}
	s := *g.Service
	s.Patience, s.Burst = flowfabric.Millis(s.Waits()), maps.Clone(s.Burst)
	for dim, n := range s.PerMinute {
		if s.Burst[dim] == 0 {
			if s.Burst == nil {
				s.Burst = map[string]int64{}
			}
			s.Burst[dim] = max(1, n/40)
		}
	}
	g.Service = &s
	return g
}

func (p *planner) attached() error {
	if len(p.b.Attached) == 0 {
		return nil
	}
	all, err := p.c.h.admin.Gated(p.ctx)
	if err != nil {
		return err
	}
	seen := map[admission.Scope]bool{}
	for i, a := range p.b.Attached {
		field := fmt.Sprintf("/attached/%d", i)
		gates := make([]flowfabric.Gate, len(a.Gates))
		for i, name := range a.Gates {
			gates[i] = flowfabric.Gate(name)
		}
		if err := p.c.h.admin.AttachGates(p.ctx, a.Scope, gates, p.c.by()); err != nil {
			return wrong(err, field)
		}
		if a.Scope.Lane != "" {
			a.Scope.Namespace = cmp.Or(a.Scope.Namespace, p.c.h.conn.Namespace)
		}
		if seen[a.Scope] {
			return invalid(field+"/scope", "it is there twice")
		}
		seen[a.Scope] = true
		var now admin.AttachedGates
		for _, x := range all.Attached {
			if x.Scope == a.Scope {
				now = x
			}
		}
		whole := slices.Compact(slices.Sorted(slices.Values(slices.Concat(now.Names, a.Gates))))
		if len(whole) > limits.MaxGates {
			return invalid(field+"/gates", "with those attached %d gates, want at most %d", len(whole), limits.MaxGates)
		}
		x := settingChange{On: "scope", Name: gatetext.ScopeName(a.Scope), Action: "change", Field: field}
		was := map[string]any{"gates": now.Names}
		if len(now.Names) == 0 {
			x.Action, was = "create", nil
		}
		if now.Mixed {
			was["partitions"] = "differ"
		}
		if err := p.add(x, was, map[string]any{"gates": whole}); err != nil {
			return err
		}
	}
	return nil
}

func (p *planner) lanes() error {
	if len(p.b.Lanes) == 0 {
		return nil
	}
	all, err := p.c.h.admin.Lanes(p.ctx, admin.AllNamespaces)
	if err != nil {
		return err
	}
	seen := map[[2]string]bool{}
	for i, l := range p.b.Lanes {
		field := fmt.Sprintf("/lanes/%d", i)
		if l.Namespace, err = p.c.namespace(l.Namespace); err == nil {
			err = p.c.h.admin.SetLane(p.ctx, l.Name, l.LaneChange, p.c.by())
		}
		if err != nil {
			return wrong(err, field)
		}
		l.Namespace = cmp.Or(l.Namespace, p.c.h.conn.Namespace)
		key := [2]string{l.Namespace, l.Name}
		if seen[key] {
			return invalid(field+"/name", "the lane is there twice")
		}
		seen[key] = true
		now := admin.Lane{State: flowfabric.LaneActive}
		for _, x := range all {
			if x.Namespace == l.Namespace && x.Name == l.Name {
				now = x
			}
		}
		was, is := laneMembers(now, l.LaneChange)
		x := settingChange{On: "lane", Name: l.Name, Namespace: l.Namespace, Action: "change", Field: field}
		if err := p.add(x, was, is); err != nil {
			return err
		}
	}
	return nil
}

// laneMembers are the members that a change names, as the lane has them and as it says.
func laneMembers(now admin.Lane, l admin.LaneChange) (was, is map[string]any) {
	was, is = map[string]any{}, map[string]any{}
	put := func(name string, before, after any) { was[name], is[name] = before, after }
	if l.State != "" {
		put("state", now.State, l.State)
	}
	for outcome, d := range l.Retention {
		before := map[flowfabric.PublicState]time.Duration{flowfabric.Completed: now.Retention.Completed,
			flowfabric.Failed: now.Retention.Failed, flowfabric.Cancelled: now.Retention.Cancelled,
			flowfabric.Expired: now.Retention.Expired}[outcome]
		put("retention_s/"+string(outcome), int64(before/time.Second), int64(d/time.Second))
	}
	if l.Ageing != nil {
		put("ageing_ms", now.Ageing, *l.Ageing)
	}
	if l.Weight != nil {
		put("weight", max(1, now.Weight), max(1, *l.Weight))
	}
	if now.Mixed {
		was["partitions"] = "differ"
	}
	return was, is
}

func (p *planner) index() error {
	if p.b.Index == nil {
		return nil
	}
	now, err := p.c.h.admin.SetIndex(p.ctx, *p.b.Index, p.c.by())
	if err != nil {
		return wrong(err, "/index")
	}
	was, is := map[string]any{}, map[string]any{}
	if all := p.b.Index.All; all != nil {
		was["all"], is["all"] = now.All, *all
	}
	if p.b.Index.Tags != nil {
		keys, want := []string{}, slices.Clone(p.b.Index.Tags)
		for _, t := range now.Tags {
			keys = append(keys, t.Key)
		}
		if !p.b.Prune {
			want = append(want, keys...)
		}
		slices.Sort(want)
		want = slices.Compact(append([]string{}, want...))
		if _, err := p.c.h.admin.SetIndex(p.ctx, admin.IndexChange{Tags: want}, p.c.by()); err != nil { // too many
			return wrong(err, "/index/tags")
		}
		was["tags"], is["tags"] = keys, want
	}
	if now.Building {
		was["building"] = true
	}
	if fields, err := differing(was, is); err == nil && len(fields) > 0 && p.c.who.Role != Admin {
		return &problem{Status: http.StatusForbidden, Code: "forbidden", Field: "/index",
			Detail: fmt.Sprintf("%s is a %s; a change of the index wants an admin", p.c.who.Name, p.c.who.Role)}
	}
	return p.add(settingChange{On: "store", Name: "index", Action: "change", Field: "/index"}, was, is)
}
