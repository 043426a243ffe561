package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/backfill"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/trigger"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// settingsFile is the store as a file of settings.
type settingsFile struct {
	Settings settingsBody     `json:"settings" jsonschema:"what planSettings takes. Applied to this store it changes nothing"`
	LeftOut  []settingLeftOut `json:"left_out,omitempty" jsonschema:"what no file can say, so that it is not in the settings"`
}

type settingLeftOut struct {
	On   string `json:"on" jsonschema:"scope, schedule or trigger"`
	Name string `json:"name"`
	Why  string `json:"why"`
}

// settingsReader makes a file of what the store has.
type settingsReader struct {
	c   *call
	out settingsFile
}

func (c *call) readSettings() (settingsFile, error) {
	r := &settingsReader{c: c}
	for _, part := range []func() error{r.gates, r.attached, r.lanes, r.index, r.schedules, r.triggers, r.compare} {
		if err := part(); err != nil {
			return settingsFile{}, err
		}
	}
	r.owner()
	return r.out, nil
}

func (r *settingsReader) leave(on, name, why string) {
	r.out.LeftOut = append(r.out.LeftOut, settingLeftOut{on, name, why})
}

func (r *settingsReader) gates() error {
	all, err := r.c.h.admin.Gates(r.c.ctx())
	r.out.Settings.Gates = map[string]admission.Gate{}
	for _, g := range all {
		name := g.Name
		g.Gate.Name = ""
		r.out.Settings.Gates[name] = g.Gate
	}
	return err
}

func (r *settingsReader) attached() error {
	all, err := r.c.h.admin.Gated(r.c.ctx())
	for _, a := range all.Attached {
		x := attachedSetting{Scope: a.Scope}
		for _, g := range a.Gates {
			if _, _, ok := g.Limit(); ok {
				r.leave("scope", gatetext.ScopeName(a.Scope), "limits of keys are attached by programs")
				continue
			}
			x.Gates = append(x.Gates, g.Name())
		}
		if len(x.Gates) > 0 {
			r.out.Settings.Attached = append(r.out.Settings.Attached, x)
		}
	}
	return err
}

func (r *settingsReader) lanes() error {
	all, err := r.c.h.admin.Lanes(r.c.ctx(), admin.AllNamespaces)
	for _, l := range all {
		x := laneSetting{Name: l.Name, LaneChange: admin.LaneChange{Namespace: l.Namespace, State: l.State}}
		for _, outcome := range []flowfabric.PublicState{flowfabric.Completed, flowfabric.Failed, flowfabric.Cancelled,
			flowfabric.Expired} {
			if d := *l.Retention.Of(outcome); d != 0 {
				if x.Retention == nil {
					x.Retention = admin.RetentionChange{}
				}
				x.Retention[outcome] = d
			}
		}
		if l.Ageing != 0 {
			x.Ageing = &l.Ageing
		}
		if l.Weight > 1 {
			x.Weight = &l.Weight
		}
		if l.State != flowfabric.LaneActive || x.Retention != nil || x.Ageing != nil || x.Weight != nil {
			r.out.Settings.Lanes = append(r.out.Settings.Lanes, x)
		}
	}
	return err
}

func (r *settingsReader) index() error {
	now, err := r.c.h.admin.Index(r.c.ctx())
	x := &admin.IndexChange{All: &now.All, Tags: []string{}}
	for _, t := range now.Tags {
		x.Tags = append(x.Tags, t.Key)
	}
	r.out.Settings.Index = x
	return err
}

func (r *settingsReader) schedules() error {
	all, err := r.c.h.admin.Schedules(r.c.ctx())
	r.out.Settings.Schedules = map[string]settledSchedule{}
	if err != nil {
		return err
	}
	for _, s := range all {
		body, why, err := r.schedule(s)
		switch {
		case err != nil:
			return err
		case why != "":
			r.leave("schedule", s.Name, why)
		default:
			r.out.Settings.Schedules[s.Name] = body
		}
	}
	return nil
}

// schedule is one as a file has it, or why a file cannot.
func (r *settingsReader) schedule(s admin.ScheduleInfo) (b settledSchedule, why string, err error) {
	if s.Err != nil {
		return b, s.Err.Error(), nil
	}
	source, err := backfill.Read(r.c.ctx(), r.c.h.conn, s.Name, s.Revision)
	if errors.Is(err, denied.NoSchedule) || errors.Is(err, denied.ScheduleChanged) {
		return b, "it was changed meanwhile", nil
	}
	if err != nil {
		return b, "", err
	}
	owner := s.Owner
	b.Owner, b.Definition = &owner, s.Definition
	b.Definition.Owner, b.Definition.Item.Start = "", r.start(s.Item.Start)
	b.Cron, b.Zone, b.EveryMs = s.Spec.Expression, s.Spec.Zone, s.Spec.Interval.Milliseconds()
	if b.EveryMs != 0 && s.Spec.Anchor.UnixMilli() != 0 {
		b.Anchor = s.Spec.Anchor
	}
	if s.Definition.Nodes == 0 {
		b.given, why = r.given(routeIn(s.Namespace, s.Item.Start), source.Input())
		return b, why, nil
	}
	b.Retries = nil // which its nodes have
	t, err := flowplan.Decode(source.Input())
	if err != nil {
		return b, err.Error(), nil
	}
	if t.Mode != engine.SealClosed {
		return b, "its flow may grow, which only programs say", nil
	}
	for _, n := range t.Nodes {
		start, err := valid.Unpacked(n.Start, n.Packed)
		if err != nil {
			return b, err.Error(), nil
		}
		x := nodeBody{Name: n.Name, Start: r.start(start), Group: n.Group, K: n.K, CancelRest: n.CancelRest}
		x.Namespace = "" // that of the flow
		if n.Group == codes.AllOf {
			x.Group = ""
		}
		for _, e := range n.Edges {
			from := t.Nodes[e.From].Name
			if e.Input == "" {
				x.After = append(x.After, from)
				continue
			}
			if x.Inputs == nil {
				x.Inputs = map[string]string{}
			}
			x.Inputs[e.Input] = from
		}
		if x.given, why = r.given(routeIn(s.Namespace, start), r.c.h.conn.Engine.Box().Shown(n.Payload)); why != "" {
			return b, why, nil
		}
		b.Nodes = append(b.Nodes, x)
	}
	return b, "", nil
}

// start is what is stored of one as a file says it.
func (r *settingsReader) start(s flowfabric.Start) flowfabric.Start {
	retries := s.Policy.Retry.MaxRetries
	s.Creator, s.Retries = "", &retries
	return s
}

func routeIn(namespace string, s flowfabric.Start) flowfabric.Route {
	return flowfabric.Route{Namespace: namespace, Lane: s.Lane, Kind: s.Kind}
}

// given is an input as a file has it, or why it cannot be shown.
func (r *settingsReader) given(route flowfabric.Route, input []byte) (g given, why string) {
	switch {
	case sealed.Is(input):
		return g, "its input is encrypted, and this server has no key for it"
	case len(input) > 0 && !bytes.Equal(r.c.redactorOf(flowfabric.ExecutionID{}, route).payload("input", input), input):
		return g, "its input is withheld"
	}
	text, err := json.Marshal(json.RawMessage(input))
	switch {
	case err != nil || !bytes.Equal(text, input): // its bytes would be others
		g.Base64 = append([]byte{}, input...)
	case string(input) != "null":
		g.Input = input
	}
	return g, ""
}

func (r *settingsReader) triggers() error {
	all, err := r.c.h.conn.Engine.Triggers(r.c.ctx(), "")
	for _, t := range all {
		d, err := trigger.Decode(t.Definition)
		if err != nil {
			r.leave("trigger", t.Namespace+"/"+t.Name, err.Error())
			continue
		}
		x := triggerSetting{t.Name, triggerBody{Subject: t.Text, Start: r.start(d.Start)}}
		for path, value := range d.Where {
			if x.Where == nil {
				x.Where = map[string]json.RawMessage{}
			}
			if x.Where[path], err = json.Marshal(value); err != nil {
				return fmt.Errorf("read settings: %w", err)
			}
		}
		r.out.Settings.Triggers = append(r.out.Settings.Triggers, x)
	}
	return err
}

// compare plans the file as a reader would send it, and leaves out what that would change or refuse.
func (r *settingsReader) compare() error {
	for {
		text, err := json.Marshal(r.out.Settings)
		var sent settingsBody
		if err = cmp.Or(err, json.Unmarshal(text, &sent)); err != nil {
			return fmt.Errorf("read settings: %w", err)
		}
		plan, err := r.c.planSettings(&sent)
		if err != nil {
			if p := problemOf(err); p.Status >= 500 || !r.drop(p.Field, p.Detail) {
				return err
			}
			continue
		}
		for _, x := range slices.Backward(plan.Changes) { // later ones in front, so that places stay right
			var names []string
			for _, f := range x.Fields {
				names = append(names, f.Name)
			}
			if x.On == "schedule" || x.On == "trigger" {
				r.drop(x.Field, "only programs can say what it has as: "+strings.Join(names, ", "))
			}
		}
		return nil
	}
}

// drop leaves out what is at a place of the file, if it may.
func (r *settingsReader) drop(field, why string) bool {
	b := &r.out.Settings
	if rest, ok := strings.CutPrefix(field, "/schedules/"); ok {
		name := "" // the longest, since names may have slashes
		for one := range b.Schedules {
			if len(one) > len(name) && strings.HasPrefix(rest+"/", one+"/") {
				name = one
			}
		}
		delete(b.Schedules, name)
		r.leave("schedule", name, why)
		return name != ""
	}
	parts := strings.SplitN(field+"//", "/", 4)
	i, err := strconv.Atoi(parts[2])
	switch {
	case parts[1] == "triggers" && err == nil && i < len(b.Triggers):
		r.leave("trigger", b.Triggers[i].Namespace+"/"+b.Triggers[i].Name, why)
		b.Triggers = slices.Delete(b.Triggers, i, i+1)
	case parts[1] == "attached" && err == nil && i < len(b.Attached):
		r.leave("scope", gatetext.ScopeName(b.Attached[i].Scope), why)
		b.Attached = slices.Delete(b.Attached, i, i+1)
	default:
		return false
	}
	return true
}

// owner names the owner once if all schedules have the same, so that the file can prune. It must not where one of
// them is left out, which would be pruned.
func (r *settingsReader) owner() {
	all := r.out.Settings.Schedules
	owners := map[string]bool{}
	for _, s := range all {
		owners[*s.Owner] = true
	}
	if slices.ContainsFunc(r.out.LeftOut, func(x settingLeftOut) bool { return x.On == "schedule" }) ||
		len(owners) != 1 || owners[""] {
		return
	}
	for name, s := range all {
		r.out.Settings.Owner, s.Owner = *s.Owner, nil
		all[name] = s
	}
}
