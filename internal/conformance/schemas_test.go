package conformance

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/kindschema"
)

// spaceHere is a namespace whose schemas are in the scenario's partition.
func (w *env) spaceHere() string {
	for i := 0; ; i++ {
		if name := w.named("space") + strconv.Itoa(i); ids.SchedulePartition(name, partitions) == w.p {
			return name
		}
	}
}

// takes is a pair that says what inputs are.
func takes(schema string) kindschema.Pair { return kindschema.Pair{Input: json.RawMessage(schema)} }

// schemas are those of a namespace, as text by kind.
func (w *env) schemas(namespace string) map[string]string {
	w.Helper()
	all, err := w.e.Schemas(w.ctx, namespace)
	w.no(err)
	out := map[string]string{}
	for kind, pair := range all {
		out[kind] = kindschema.Text(pair)
	}
	return out
}

var schemaScenarios = []scenario{
	{name: "what workers say of kinds is kept, the last word counts, and saying nothing forgets", run: func(w *env) {
		space := w.spaceHere()
		text, number := takes(`{"type":"string"}`), takes(`{"type":"number"}`)
		number.Result = json.RawMessage(`{"type":"boolean"}`)
		w.no(w.e.PutSchemas(w.ctx, space, map[string]kindschema.Pair{"a": text, "b": number}))
		want := map[string]string{"a": kindschema.Text(text), "b": kindschema.Text(number)}
		sameDeep(w, "schemas", w.schemas(space), want)
		w.check()
		w.unchanged("the same again", func() {
			w.no(w.e.PutSchemas(w.ctx, space, map[string]kindschema.Pair{"a": text, "none": {}}))
		})
		w.no(w.e.PutSchemas(w.ctx, space, map[string]kindschema.Pair{"a": {}, "b": text}))
		sameDeep(w, "forgotten and changed", w.schemas(space), map[string]string{"b": kindschema.Text(text)})
		w.check()
	}},
	{name: "the version of the schemas of a namespace grows with every change", run: func(w *env) {
		space, last := w.spaceHere(), 0
		for _, schema := range []string{"x", "y", "", "x"} {
			a := w.must("ff_put_schemas", proto, space, "1", "k", schema)
			version, err := strconv.Atoi(a.slots[0])
			w.no(err)
			if version <= last {
				w.Fatalf("version %d after %d", version, last)
			}
			last = version
			same(w, "again", w.fcall("ff_put_schemas", proto, space, "1", "k", schema).slots[0], a.slots[0])
		}
	}},
	{name: "a namespace has at most 256 kinds with schemas, and a refused call changes nothing", run: func(w *env) {
		space, all := w.spaceHere(), map[string]kindschema.Pair{}
		for i := range 256 {
			all["k"+strconv.Itoa(i)] = takes(`{"type":"string"}`)
		}
		w.no(w.e.PutSchemas(w.ctx, space, all))
		w.unchanged("one more", func() {
			w.is(w.e.PutSchemas(w.ctx, space, map[string]kindschema.Pair{"k0": takes(`{"type":"null"}`),
				"more": takes(`{"type":"string"}`)}), flowfabric.ErrLimit)
		})
		w.no(w.e.PutSchemas(w.ctx, space, map[string]kindschema.Pair{"k0": {}}))
		w.no(w.e.PutSchemas(w.ctx, space, map[string]kindschema.Pair{"more": takes(`{"type":"string"}`)}))
		same(w, "kinds", len(w.schemas(space)), 256)
	}},
	{name: "an input that does not fit is refused alone, by the place of what is wrong", run: func(w *env) {
		space := w.spaceHere()
		w.no(w.e.PutSchemas(w.ctx, space, map[string]kindschema.Pair{"kind": takes(
			`{"type":"object","required":["to"],"properties":{"to":{"type":"array","items":{"type":"string"}}}}`)}))
		items := make([]engine.NewExecution, 3)
		for i, input := range []string{`{"to":["a"]}`, `{"to":["a",7]}`, `{"to":[]}`} {
			items[i] = w.item()
			items[i].Namespace, items[i].Kind, items[i].Payload = space, "kind", []byte(input)
		}
		made, err := w.e.CreateExecutions(w.ctx, w.p, items)
		w.no(err)
		w.no(errors.Join(made[0].Err, made[2].Err))
		w.is(made[1].Err, denied.InputMisfit)
		if !strings.Contains(made[1].Err.Error(), "kind kind: /to/1: it is a JSON number, want a string") {
			w.Fatal(made[1].Err)
		}
		w.check()
	}},
}
