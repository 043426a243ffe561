package main

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"

	"github.com/flowfabric/flowfabric-go/admission"
)

// unsaid are flags without defaults, of a verb that changes only what is said.
func unsaid(flags []member) []member {
	out := slices.Clone(flags)
	for i := range out {
		out[i].usual = ""
	}
	return out
}

// noted says what was done to a gate, with a note about how it is now.
func noted(done string, note func(admission.Gate) string) func(*request, json.RawMessage) error {
	return func(q *request, answer json.RawMessage) error {
		var v admission.Gate
		if err := json.Unmarshal(answer, &v); err != nil {
			return err
		}
		return q.changed(done, note(v))
	}
}

// ensured is noted for what may have been there.
func ensured(note func(admission.Gate) string) func(*request, json.RawMessage) error {
	return func(q *request, answer json.RawMessage) error {
		if q.door.status != http.StatusCreated {
			return q.changed("unchanged", "it was there, and stays as it is")
		}
		return noted("created", note)(q, answer)
	}
}

// update puts what was said into a gate, as it was read; what was not said stays.
func update(ctx context.Context, q *request, was admission.Gate, revision uint64) error {
	before, err := json.Marshal(was)
	if err != nil {
		return err
	}
	whole := map[string]any{}
	_ = json.Unmarshal(before, &whole)
	reason, reasoned := q.body["reason"]
	delete(q.body, "reason")
	maps.Copy(whole, q.body)
	after, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	var now admission.Gate
	if err := json.Unmarshal(after, &now); err != nil {
		return usage("%v", err)
	}
	if reflect.DeepEqual(was, now) {
		return q.changed("unchanged", gateNote(now))
	}
	if whole["revision"] = revision; reasoned {
		whole["reason"] = reason
	}
	q.body = whole
	if err := q.do(ctx, nil); err != nil {
		return err
	}
	return q.changed("updated", gateNote(now))
}
