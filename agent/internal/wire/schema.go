package wire

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/flowfabric/flowfabric-go/agent"
)

// Schema is the schema of a tool's arguments: an object, as services demand it. Encoded it is the same each time, or
// a service's cache of prompts would not find it again, and its properties keep their order.
func Schema(t agent.ToolSpec) (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{"properties": json.RawMessage(`{}`)}
	if t.Schema != nil {
		data, err := json.Marshal(t.Schema)
		if err == nil && string(data) != "true" { // an empty schema
			err = json.Unmarshal(data, &fields)
		}
		if err != nil {
			return nil, Refuse(fmt.Errorf("schema of the tool %q: %w", t.Name, err))
		}
	}
	fields["type"] = json.RawMessage(`"object"`)
	return fields, nil
}

// Format is the schema of an answer, as [Schema] is that of arguments.
func Format(schema *jsonschema.Schema) (map[string]any, error) {
	fields, err := Schema(agent.ToolSpec{Name: "answer", Schema: schema})
	format := map[string]any{}
	for name, value := range fields {
		format[name] = value
	}
	return format, err
}

// Strict says what services can hold an answer to: closed if no object of the schema has other members than those it
// names, and required if it must have all of them.
func Strict(schema *jsonschema.Schema) (closed, required bool) {
	var tree any
	data, err := json.Marshal(schema)
	if err != nil || json.Unmarshal(data, &tree) != nil {
		return false, false
	}
	return strict(tree)
}

func strict(tree any) (closed, required bool) {
	closed, required = true, true
	add := func(part any) {
		c, r := strict(part)
		closed, required = closed && c, required && r
	}
	switch tree := tree.(type) {
	case []any:
		for _, part := range tree {
			add(part)
		}
	case map[string]any:
		for name, part := range tree {
			if members, ok := part.(map[string]any); ok && name == "properties" {
				needed, _ := tree["required"].([]any)
				for member, of := range members {
					add(of)
					required = required && slices.Contains(needed, any(member))
				}
			} else {
				add(part)
			}
		}
		kinds, many := tree["type"].([]any)
		if tree["type"] == "object" || many && slices.Contains(kinds, any("object")) {
			closed = closed && isNever(tree["additionalProperties"])
		}
	}
	return closed, required
}

// isNever reports the schema that nothing fits, in both its forms.
func isNever(schema any) bool {
	form, ok := schema.(map[string]any)
	if !ok {
		return schema == false
	}
	not, ok := form["not"].(map[string]any)
	return len(form) == 1 && (form["not"] == true || ok && len(not) == 0)
}
