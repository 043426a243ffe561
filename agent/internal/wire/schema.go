package wire

import (
	"encoding/json"
	"fmt"

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
