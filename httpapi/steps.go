package httpapi

import (
	"net/http"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

type stepList struct {
	Items []step `json:"items" jsonschema:"what ended first comes first"`
}

type step struct {
	Name      string     `json:"name" jsonschema:"a name is there once for each attempt that failed in the step, and once as recorded"`
	Kind      string     `json:"kind" jsonschema:"step; or wait (an answer), waitpoint (opened before a wait), messages (what a receipt took from a mailbox; its name is the mailbox, · and a number) or children (how those of a wait ended)"`
	Attempt   uint32     `json:"attempt" jsonschema:"1 for the first"`
	StartedAt *time.Time `json:"started_at,omitempty"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	Bytes     int        `json:"bytes" jsonschema:"of the value; 0 if it failed"`
	State     string     `json:"state" jsonschema:"recorded, or failed: the attempt failed with the error of this step"`
	Error     string     `json:"error,omitempty"`
}

func newStep(s flowfabric.StepRecord) step {
	out := step{Name: s.Name, Kind: s.Kind, Attempt: s.Attempt, StartedAt: utc(s.StartedAt), EndedAt: utc(s.EndedAt),
		Bytes: s.Bytes, State: "recorded", Error: s.Error}
	if s.Failed {
		out.State = "failed"
	}
	return out
}

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
	out := stepList{Items: make([]step, 0, len(list))}
	for _, s := range list {
		s.Error = shown.text("failure", s.Error)
		out.Items = append(out.Items, newStep(s))
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
