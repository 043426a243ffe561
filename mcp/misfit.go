package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/flowfabric/flowfabric-go/internal/kindschema"
	"github.com/flowfabric/flowfabric-go/internal/misfit"
)

// What is wrong with a value is told to models and to people who write clients: by the member of the JSON that they
// sent and by what it may be. The errors of decoders and validators name Go types and print values as Go does, so
// they only say that something is wrong.

// validate holds a value against a schema, and says where it does not fit.
func validate(r *jsonschema.Resolved, value any) error {
	if pointer, wrong := kindschema.Wrong(r, value); wrong != "" {
		return at(pointer, wrong)
	}
	return nil
}

// decode is json.Unmarshal, and says where the text does not fit.
func decode(text []byte, into any) error {
	if json.Unmarshal(text, into) == nil {
		return nil
	}
	return at(misfit.Decoding(text, reflect.New(reflect.TypeOf(into).Elem()).Interface()))
}

func at(pointer, wrong string) error {
	if pointer == "" {
		return errors.New(wrong)
	}
	return fmt.Errorf("%.256s: %s", pointer, wrong)
}

// methods have the types that the SDK decodes parameters into, before anything of ours sees them, but for
// logging/setLevel, which the protocol deprecates.
var methods = map[string]reflect.Type{
	"initialize": reflect.TypeFor[sdk.InitializeParams](), "ping": reflect.TypeFor[sdk.PingParams](),
	"tools/call": reflect.TypeFor[sdk.CallToolParamsRaw](), "tools/list": reflect.TypeFor[sdk.ListToolsParams](),
	"tasks/get": reflect.TypeFor[taskParams](), "tasks/update": reflect.TypeFor[updateParams](),
	"tasks/cancel":             reflect.TypeFor[taskParams](),
	"prompts/get":              reflect.TypeFor[sdk.GetPromptParams](),
	"prompts/list":             reflect.TypeFor[sdk.ListPromptsParams](),
	"resources/list":           reflect.TypeFor[sdk.ListResourcesParams](),
	"resources/templates/list": reflect.TypeFor[sdk.ListResourceTemplatesParams](),
	"resources/read":           reflect.TypeFor[sdk.ReadResourceParams](),
	"resources/subscribe":      reflect.TypeFor[sdk.SubscribeParams](),
	"resources/unsubscribe":    reflect.TypeFor[sdk.UnsubscribeParams](),
	"completion/complete":      reflect.TypeFor[sdk.CompleteParams](),
}

// wrongParams refuses parameters that the SDK cannot decode; nil: it can.
func wrongParams(method string, params json.RawMessage) *jsonrpc.Error {
	t, ok := methods[method]
	if !ok || len(params) == 0 {
		return nil
	}
	if err := decode(params, reflect.New(t).Interface()); err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid params: " + err.Error()}
	}
	return nil
}
