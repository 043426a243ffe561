package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/clientmodels"
	"github.com/flowfabric/flowfabric-go/internal/kindschema"
)

var schemaVerb = verb{
	use: "schema", short: "Print the JSON Schemas of kinds",
	long: `schema prints the JSON Schemas that workers publish for the inputs and results of their kinds. A worker in
Go publishes those of its types when it starts, other workers when they open a session. 'flowfabric types'
makes types of them.`,
	example: "  flowfabric schema > schema.json\n  flowfabric schema --kind send-mail",
	route:   "GET /v1/schemas", namespace: "?namespace",
	flags: []member{{flag: "kind", kind: textKind, usage: "only this `kind`", to: "?kind"}},
	show: func(q *request, answer json.RawMessage) error {
		if q.app.json {
			return q.app.line(answer)
		}
		var text bytes.Buffer
		if err := json.Indent(&text, answer, "", "  "); err != nil {
			return err
		}
		_, err := q.app.out.Write(append(text.Bytes(), '\n'))
		return err
	},
}

func typesCommand(a *app) *cobra.Command {
	var lang, file string
	var kinds []string
	cmd := &cobra.Command{
		Use:   "types",
		Short: "Write types of TypeScript or Python for the inputs and results of kinds",
		Long: `types writes types for the inputs and results of kinds to stdout: interfaces of TypeScript, or typed
dictionaries of Python 3.11. They are made of the schemas that workers publish in the namespace, or of a file that
'flowfabric schema' has written.`,
		Example: `  flowfabric types --lang ts > kinds.ts
  flowfabric types --lang python --kind send-mail --file schema.json`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&lang, "lang", "", "`language`: ts or python")
	cmd.Flags().StringArrayVar(&kinds, "kind", nil, "only this `kind`; may be given several times")
	cmd.Flags().StringVar(&file, "file", "", "read the schemas from this `file`, - for stdin, instead of a server")
	_ = cmd.MarkFlagRequired("lang")
	_ = cmd.RegisterFlagCompletionFunc("lang",
		cobra.FixedCompletions([]string{"ts", "python"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = a.once(func(ctx context.Context, _ []string) error {
		switch {
		case a.json:
			return usage("types writes source, so it takes no --json; 'flowfabric schema' writes JSON")
		case lang != "ts" && lang != "python":
			return usage("--lang is %q, want ts or python", lang)
		}
		query := url.Values{}
		if cmd.Root().PersistentFlags().Changed("namespace") {
			query.Set("namespace", a.namespace)
		}
		all, err := a.schemas(ctx, file, query)
		if err == nil {
			all, err = chosen(all, kinds)
		}
		if err != nil {
			return err
		}
		types, err := clientmodels.OfKinds(all)
		if err != nil {
			return err
		}
		text := types.TypeScript()
		if lang == "python" {
			text = types.Python()
		}
		_, err = a.out.Write(text)
		return err
	})
	return cmd
}

// schemas are those of a file, or of a namespace.
func (a *app) schemas(ctx context.Context, file string, query url.Values) (map[string]apiv1.KindSchemas, error) {
	var answer apiv1.Schemas
	if file == "" {
		d, err := a.door(ctx, mustExist)
		if err != nil {
			return nil, err
		}
		defer d.close()
		err = d.ask(ctx, http.MethodGet, "/v1/schemas", query, nil, &answer)
		return answer.Kinds, err
	}
	if file != "-" {
		file = "@" + file
	}
	text, err := a.read("--file", file)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Kinds == nil {
		return nil, usage("--file has no schemas, want what 'flowfabric schema' prints: an object with kinds")
	}
	return answer.Kinds, nil
}

// chosen are the schemas of some kinds, or of all.
func chosen(all map[string]apiv1.KindSchemas, kinds []string) (map[string]apiv1.KindSchemas, error) {
	out := map[string]apiv1.KindSchemas{}
	for kind, pair := range all {
		if len(kinds) > 0 && !slices.Contains(kinds, kind) {
			continue
		}
		checked, err := kindschema.Compact(pair)
		if wrong, ok := errors.AsType[*kindschema.FieldError](err); ok {
			return nil, usage("kind %s: %s: %s", kind, wrong.Field, wrong.Wrong)
		}
		out[kind] = checked
	}
	for _, kind := range kinds {
		if _, known := out[kind]; !known {
			return nil, usage("--kind %s has no schema; those that have one: %s", kind,
				strings.Join(slices.Sorted(maps.Keys(all)), ", "))
		}
	}
	if len(out) == 0 {
		return nil, usage("no kind has a schema: workers publish them when they start")
	}
	return out, nil
}
