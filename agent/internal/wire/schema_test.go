package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/internal/wire"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

func TestSchemaIsAnObject(t *testing.T) {
	for _, tt := range []struct {
		schema *jsonschema.Schema
		want   string
	}{
		{nil, `{"properties":{},"type":"object"}`},
		{&jsonschema.Schema{}, `{"properties":{},"type":"object"}`},
		{&jsonschema.Schema{Types: []string{"null", "object"}}, `{"properties":{},"type":"object"}`},
		{&jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"b": {}, "a": {}},
			PropertyOrder: []string{"b", "a"}}, `{"properties":{"b":true,"a":true},"type":"object"}`},
	} {
		fields, err := wire.Schema(agent.ToolSpec{Name: "x", Schema: tt.schema})
		must.No(t, err)
		if got, _ := json.Marshal(fields); string(got) != tt.want {
			t.Errorf("the schema is %s, want %s", got, tt.want)
		}
	}
	if _, err := wire.Schema(agent.ToolSpec{Name: "x", Schema: &jsonschema.Schema{Not: &jsonschema.Schema{}}}); err ==
		nil {
		t.Error("a schema that nothing fits makes no error")
	}
}

func TestStrict(t *testing.T) {
	type inner struct {
		A string `json:"a"`
	}
	type all struct {
		In   inner    `json:"in"`
		List []*inner `json:"list"`
	}
	type some struct {
		In *struct {
			A string `json:"a,omitempty"`
		} `json:"in"`
	}
	type open struct {
		In map[string]inner `json:"in"`
	}
	of := func(schema *jsonschema.Schema, err error) *jsonschema.Schema { must.No(t, err); return schema }
	for name, tt := range map[string]struct {
		schema           *jsonschema.Schema
		closed, required bool
	}{
		"all":  {of(jsonschema.For[all](nil)), true, true},
		"some": {of(jsonschema.For[some](nil)), true, false},
		"open": {of(jsonschema.For[open](nil)), false, true},
	} {
		if closed, required := wire.Strict(tt.schema); closed != tt.closed || required != tt.required {
			t.Errorf("%s: closed %v, required %v", name, closed, required)
		}
	}
	fields, err := wire.Format(of(jsonschema.For[inner](nil)))
	must.No(t, err)
	if got, _ := json.Marshal(fields); string(got) !=
		`{"additionalProperties":false,"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}` {
		t.Errorf("the format is %s", got)
	}
}
