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
