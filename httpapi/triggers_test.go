package httpapi

import (
	"testing"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// triggers puts, lists and removes triggers, and publishes an event.
func (a *api) triggers() {
	t := a.t
	const path = "/v1/triggers/on-paid"
	const body = `{"subject":"order.paid","kind":"echo","where":{"order.id":7},"retries":1}`
	if s := into[triggerSet](t, a.as("operator", "PUT", path, body, 200)); s.Already || s.Name != "on-paid" {
		t.Errorf("%+v", s)
	}
	if s := into[triggerSet](t, a.as("operator", "PUT", path, body, 200)); !s.Already {
		t.Errorf("%+v", s)
	}
	a.as("producer", "PUT", path, body, 403)
	for bad, field := range map[string]string{
		`{"subject":"order.paid"}`: "/kind",
		`{"kind":"echo"}`:          "/subject",
		`{"subject":"order.paid","kind":"echo","delay_ms":1}`:                    "/delay_ms",
		`{"subject":"order.paid","kind":"echo","where":{"a":[1]}}`:               "",
		`{"subject":"order.paid","kind":"echo","tags":{"event.id":"x"}}`:         "",
		`{"subject":"order.paid","kind":"echo","where":7}`:                       "/where",
		`{"subject":"order.{paid}","kind":"echo","where":{"a":"b","c":{"d":1}}}`: "",
	} {
		if p := into[problem](t, a.as("operator", "PUT", path, bad, 400)); field != "" && p.Field != field {
			t.Errorf("%s: %+v", bad, p)
		}
	}
	published := into[client.Published](t, a.as("producer", "POST", "/v1/events:publish",
		`{"subject":"order.paid","id":"e1","data":{"order":{"id":7}}}`, 200))
	if published != (client.Published{ID: "e1", Starts: 1}) {
		t.Errorf("%+v", published)
	}
	again := into[client.Published](t, a.as("producer", "POST", "/v1/events:publish",
		`{"subject":"order.paid","id":"e1","data":{"order":{"id":7}}}`, 200))
	if again != (client.Published{ID: "e1", Starts: 1, Duplicate: true}) {
		t.Errorf("%+v", again)
	}
	a.as("producer", "POST", "/v1/events:publish", `{"subject":"order.paid","id":"e1","data":8}`, 409)
	a.as("producer", "POST", "/v1/events:publish", `{"id":"e1"}`, 400)
	if other := into[client.Published](t, a.as("producer", "POST", "/v1/events:publish",
		`{"subject":"order.paid","data":{"order":{"id":8}}}`, 200)); other.Starts != 0 || other.ID == "" {
		t.Errorf("%+v", other)
	}
	a.as("viewer", "POST", "/v1/events:publish", `{"subject":"order.paid"}`, 403)
	list := into[triggerList](t, a.as("viewer", "GET", "/v1/triggers", "", 200)).Items
	if len(list) != 1 || list[0].Kind != "echo" || list[0].Where["order.id"] != 7.0 || list[0].Matched != 1 ||
		list[0].LastEvent != "e1" || list[0].Creator != "trigger" || list[0].Error != "" {
		t.Errorf("%+v", list)
	}
	if list := into[triggerList](t, a.as("blue", "GET", "/v1/triggers", "", 200)).Items; len(list) != 0 {
		t.Errorf("%+v", list)
	}
	a.as("operator", "DELETE", path+"?subject=order.paid", "", 204)
	a.as("operator", "DELETE", path+"?subject=order.paid", "", 404)
	a.as("operator", "DELETE", path, "", 400)
}

// What an event starts gets its data, in a namespace of its own.
func TestPublishedEventsStartWork(t *testing.T) {
	a := newAPI(t)
	a.as("blue", "PUT", "/v1/triggers/t", `{"subject":"order.paid","kind":"echo"}`, 200)
	a.as("producer", "POST", "/v1/events:publish", `{"subject":"order.paid","id":"e1","data":1}`, 200)
	p := into[client.Published](t, a.as("blue", "POST", "/v1/events:publish",
		`{"subject":"order.paid","id":"e1","data":{"total":12}}`, 200))
	if p.Starts != 1 {
		t.Fatalf("%+v", p)
	}
	_, subject := ids.Subject(4, "blue", "order.paid")
	id := mint.Join(ids.Triggered(4, ids.Published(subject, "e1"), "t"))
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	testwait.Until(t, "the execution", func() bool {
		s, err := a.client.Execution(id).Get(ctx)
		return err == nil && s.Namespace == "blue" && s.Tags["event.subject"] == "order.paid"
	})
}
