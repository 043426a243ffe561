package httpapi

import (
	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
)

// stepList has what ended first at its beginning.
type stepList admin.Page[flowfabric.StepRecord]

func (c *call) steps(id flowfabric.ExecutionID) (out stepList, err error) {
	shown, err := c.redactor(id)
	if err != nil {
		return out, err
	}
	list, err := c.h.client.Execution(id).Steps(c.ctx())
	out.Items = append([]flowfabric.StepRecord{}, list...)
	for i, s := range list {
		out.Items[i].Error = shown.text("failure", s.Error)
	}
	return out, err
}

func (c *call) stepValue(id flowfabric.ExecutionID) (flowfabric.Payload, error) {
	name := c.r.PathValue("key")
	if err := printable("key", name); err != nil {
		return nil, err
	}
	shown, err := c.redactor(id)
	if err != nil {
		return nil, err
	}
	value, recorded, err := c.h.client.Execution(id).StepValue(c.ctx(), name)
	if err != nil {
		return nil, err
	}
	if !recorded {
		return nil, notFound("the execution has recorded no step %q", name)
	}
	return shown.payload("step", value), nil
}
