package httpapi

import (
	"net/http"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
)

// stepList has what ended first at its beginning.
type stepList admin.Page[flowfabric.StepRecord]

func (c *call) steps() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	shown, err := c.redactor(id)
	if err != nil {
		return err
	}
	list, err := c.h.client.Steps(c.ctx(), id)
	if err != nil {
		return err
	}
	out := stepList{Items: make([]flowfabric.StepRecord, 0, len(list))}
	for _, s := range list {
		s.Error = shown.text("failure", s.Error)
		out.Items = append(out.Items, s)
	}
	return c.answerJSON(http.StatusOK, out)
}

func (c *call) stepValue() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	name := c.r.PathValue("key")
	if err := printable("key", name); err != nil {
		return err
	}
	shown, err := c.redactor(id)
	if err != nil {
		return err
	}
	value, recorded, err := c.h.client.StepValue(c.ctx(), id, name)
	if err != nil {
		return err
	}
	if !recorded {
		return notFound("the execution has recorded no step %q", name)
	}
	return c.answerJSON(http.StatusOK, shown.payload("step", value))
}
