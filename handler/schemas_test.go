package handler_test

import (
	"context"
	"testing"

	"github.com/flowfabric/flowfabric-go/handler"
)

type asked struct {
	Name string `json:"name"`
	Age  int    `json:"age,omitempty"`
}

// textCodec is another codec than that for JSON.
type textCodec struct{ handler.Codec }

// A binding says what its types are in JSON, unless its definition keeps it quiet or encodes otherwise.
func TestBindingsSayTheirTypes(t *testing.T) {
	const in = `{"$comment":"from a Go type: absent members and null are read as zero values","type":"object",` +
		`"properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"]}`
	bind := func(opts ...handler.DefineOption) handler.Binding {
		return handler.Bind(handler.Define[asked, []string]("k", opts...),
			func(context.Context, *handler.Task, asked) ([]string, error) { return nil, nil })
	}
	batch := handler.BindBatch(handler.Define[asked, []string]("k"),
		func(context.Context, []*handler.Item[asked, []string]) error { return nil }, handler.Batch{Size: 2})
	for what, b := range map[string]handler.Binding{"plain": bind(), "batch": batch,
		"offloaded": bind(handler.WithCodec(handler.Offloaded(handler.JSON, nil, 0)))} {
		input, result := b.Schemas()
		if string(input) != in || string(result) != `{"type":["null","array"],"items":{"type":"string"}}` {
			t.Errorf("%s: %s, %s", what, input, result)
		}
	}
	for what, b := range map[string]handler.Binding{"quiet": bind(handler.NoSchema()), "none": {},
		"another codec": bind(handler.WithCodec(textCodec{handler.JSON}))} {
		if input, result := b.Schemas(); input != nil || result != nil {
			t.Errorf("%s: %s, %s", what, input, result)
		}
	}
}
