package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/trigger"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/schedule"
)

func (p *planner) schedules() error {
	switch {
	case p.b.Owner == "" && slices.ContainsFunc(slices.Collect(maps.Values(p.b.Schedules)),
		func(s settledSchedule) bool { return s.Owner == nil }):
		return invalid("/owner", "it is missing: schedules belong to the owner that declares them")
	case p.b.Owner == "" && p.b.Prune:
		return invalid("/owner", "it is missing: only schedules of an owner are removed")
	}
	for _, name := range slices.Sorted(maps.Keys(p.b.Schedules)) {
		field, s := "/schedules/"+name, p.b.Schedules[name]
		owner, owned := p.b.Owner, []client.SchedulingOption(nil)
		if s.Owner != nil {
			owner = *s.Owner
		}
		if owner != "" {
			owned = append(owned, link.Owner(owner))
		}
		d, err := p.c.declaration(name, s.scheduleBody, field, owned...)
		if err != nil {
			return wrong(err, field)
		}
		set, err := d.Put(p.ctx, p.c.h.client, p.c.by())
		if err != nil {
			return wrong(err, field)
		}
		if set.Already {
			p.out.Same++
			continue
		}
		x := settingChange{On: "schedule", Name: name, Action: "change", Field: field}
		now, err := p.c.h.admin.GetSchedule(p.ctx, name)
		switch {
		case errors.Is(err, flowfabric.ErrNotFound):
			x.Action = "create"
			err = p.add(x, nil, scheduleMembers(p.r.Schedule))
		case err == nil:
			others := otherPolicy(now.Policy, p.r.Schedule.Policy)
			if now.Digest != p.r.Schedule.Digest {
				others = append(others, "input")
			}
			err = p.add(x, scheduleMembers(now.Definition), scheduleMembers(p.r.Schedule, others...))
		}
		if err != nil {
			return err
		}
	}
	if !p.b.Prune {
		return nil
	}
	all, err := p.c.h.admin.Schedules(p.ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		if _, named := p.b.Schedules[s.Name]; !named && s.Owner == p.b.Owner {
			p.out.Changes = append(p.out.Changes, settingChange{On: "schedule", Name: s.Name, Action: "remove",
				Field: "/owner"})
		}
	}
	return nil
}

// scheduleMembers is a definition with what its JSON leaves out. Of others is told only that they are another one.
func scheduleMembers(d schedule.Definition, others ...string) any {
	d.CatchUp, d.Overlap = cmp.Or(d.CatchUp, schedule.CatchUpLast), cmp.Or(d.Overlap, schedule.OverlapAllow)
	d.Item.Start = startMembers(d.Item.Start)
	return struct {
		schedule.Definition
		Spec   string `json:"spec"`
		Input  string `json:"input,omitempty"`
		Policy string `json:"policy,omitempty"`
	}{d, d.Spec.String(), another("input", others), another("policy", others)}
}

// startMembers is a start as its JSON is to be compared.
func startMembers(s flowfabric.Start) flowfabric.Start {
	s.Creator = "" // the same for all
	s.Retries = &s.Policy.Retry.MaxRetries
	return s
}

func another(name string, others []string) string {
	if slices.Contains(others, name) {
		return "another one"
	}
	return ""
}

// otherPolicy is "policy" if two differ in what only programs can say, such as pauses between retries.
func otherPolicy(a, b flowfabric.Policy) []string {
	a.Retry.MaxRetries, b.Retry.MaxRetries = 1, 1
	a.Retention, b.Retention = flowfabric.Retentions{}, flowfabric.Retentions{}
	if valid.PackPolicy(a) == valid.PackPolicy(b) {
		return nil
	}
	return []string{"policy"}
}

func (p *planner) triggers() error {
	if len(p.b.Triggers) == 0 {
		return nil
	}
	all, err := p.c.h.conn.Engine.Triggers(p.ctx, "")
	if err != nil {
		return err
	}
	type key struct{ namespace, subject, name string }
	seen := map[key]bool{}
	for i, b := range p.b.Triggers {
		field := fmt.Sprintf("/triggers/%d", i)
		t, err := p.c.trigger(b.Name, b.triggerBody, field)
		if err == nil {
			_, err = p.c.h.client.PutTrigger(p.ctx, t, p.c.by())
		}
		if err != nil {
			return wrong(err, field)
		}
		d, err := trigger.Decode(p.r.Trigger)
		if err != nil {
			return err
		}
		k := key{d.Start.Namespace, b.Subject, b.Name}
		if seen[k] {
			return invalid(field+"/name", "the trigger is there twice")
		}
		seen[k] = true
		x := settingChange{On: "trigger", Name: b.Name, Namespace: k.namespace, Action: "create", Field: field}
		was := any(nil)
		var others []string
		for _, now := range all {
			if (key{now.Namespace, now.Text, now.Name}) != k {
				continue
			}
			x.Action, was = "change", map[string]string{"definition": "it cannot be read"}
			if before, err := trigger.Decode(now.Definition); err == nil {
				was, others = triggerMembers(b.Subject, before), otherPolicy(before.Start.Policy, d.Start.Policy)
			}
		}
		if err := p.add(x, was, triggerMembers(b.Subject, d, others...)); err != nil {
			return err
		}
	}
	return nil
}

func triggerMembers(subject string, d trigger.Definition, others ...string) any {
	return struct {
		Subject string         `json:"subject"`
		Where   map[string]any `json:"where,omitempty"`
		flowfabric.Start
		Policy string `json:"policy,omitempty"`
	}{subject, d.Where, startMembers(d.Start), another("policy", others)}
}
