package httpapi

import (
	"cmp"
	"encoding/json"
	"net/http"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/trigger"
)

// eventBody is a client.Event.
type eventBody struct {
	Namespace string          `json:"namespace,omitempty"`
	Subject   string          `json:"subject" jsonschema:"what happened, such as order.paid; at most 128 bytes"`
	ID        string          `json:"id,omitempty" jsonschema:"a repeat within a day is known by it"`
	Data      json.RawMessage `json:"data,omitempty" jsonschema:"any JSON value, at most 64 KiB; the input of what it starts. Default null"`
}

func (c *call) publish(b *eventBody) (none client.Published, err error) {
	if b.Namespace, err = c.namespace(b.Namespace); err != nil {
		return none, err
	}
	return c.h.client.Publish(c.ctx(), client.Event{Subject: b.Subject, ID: b.ID, Namespace: b.Namespace,
		Data: json.RawMessage(value(b.Data))})
}

// triggerBody is a client.Trigger.
type triggerBody struct {
	Subject          string                     `json:"subject" jsonschema:"of the events that start something"`
	Where            map[string]json.RawMessage `json:"where,omitempty" jsonschema:"fields of the data, by names joined by dots, and the string, number, boolean or null that each must have; at most 8"`
	flowfabric.Start `for:"schedule"`
}

type triggerPut struct {
	triggerBody
	why
}

// trigger is what a body says; at is where it is in that of the request.
func (c *call) trigger(name string, b triggerBody, at string) (client.Trigger, error) {
	if err := c.whole(&b.Start, at); err != nil {
		return client.Trigger{}, err
	}
	b.Creator = triggerCreator
	t := client.Trigger{Name: name, Subject: b.Subject, Start: b.Start}
	for path, value := range b.Where {
		if t.Where == nil {
			t.Where = map[string]any{}
		}
		t.Where[path] = value
	}
	return t, nil
}

// triggerSet answers a change of a trigger.
type triggerSet struct {
	Name    string `json:"name"`
	Already bool   `json:"already" jsonschema:"it was so before, nothing changed"`
}

func (c *call) putTrigger(b *triggerPut) (set triggerSet, err error) {
	t, err := c.trigger(c.r.PathValue("key"), b.triggerBody, "")
	if err != nil {
		return set, err
	}
	set.Name = t.Name
	set.Already, err = c.h.client.PutTrigger(c.ctx(), t, c.act(b.why)...)
	return set, err
}

// triggerCreator creates what a trigger starts: the same whoever put it, so that putting what is there changes nothing.
const triggerCreator = "trigger"

type triggerList admin.Page[apiv1.Trigger]

func (c *call) triggers() (none triggerList, err error) {
	q := c.query()
	page, named := q.paging(), q.text("namespace")
	if q.err != nil {
		return none, q.err
	}
	if named, err = c.namespace(named); err != nil {
		return none, err
	}
	rows, err := c.h.conn.Engine.Triggers(c.ctx(), cmp.Or(named, c.h.conn.Namespace))
	var all []apiv1.Trigger
	for _, r := range rows {
		t := apiv1.Trigger{Name: r.Name, Subject: r.Text, UpdatedAt: r.Updated, By: r.By, Matched: r.Matched,
			LastAt: r.LastAt, LastEvent: r.Last, Refused: r.Refused, RefusedAt: r.RefusedAt,
			RefusedEvent: r.RefusedEvent}
		d, err := trigger.Decode(r.Definition)
		if err != nil {
			t.Error = err.Error()
		}
		t.Where, t.Start = d.Where, d.Start
		t.Namespace = r.Namespace
		all = append(all, t)
	}
	out, err := cut(page, all, err, func(t apiv1.Trigger) string { return t.Subject + "\x1f" + t.Name })
	return triggerList(out), err
}

func (c *call) removeTrigger() error {
	q := c.query()
	t := client.Trigger{Name: c.r.PathValue("key"), Subject: q.text("subject")}
	named := q.text("namespace")
	reason, err := c.reason()
	if err = cmp.Or(q.err, err); err != nil {
		return err
	}
	if t.Namespace, err = c.namespace(named); err != nil {
		return err
	}
	removed, err := c.h.client.RemoveTrigger(c.ctx(), t, c.act(reason)...)
	if err == nil && !removed {
		err = &problem{Status: http.StatusNotFound, Code: "trigger_not_found",
			Detail: "no trigger of the subject has this name"}
	}
	return c.nothingToSay(err)
}
