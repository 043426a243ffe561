package httpapi

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/clientmodels"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// clientModels are the models of the clients, by path from the root of the module.
func clientModels(t *testing.T) map[string][]byte {
	t.Helper()
	uses, roots := map[reflect.Type][]string{}, []clientmodels.Root{}
	add := func(of reflect.Type, use string, closed bool) {
		if of == nil || of.Name() == "" { // a change that needs no body
			return
		}
		if uses[of] == nil {
			roots = append(roots, clientmodels.Root{Name: of.Name(), Type: of, Schema: schemaOf(of, closed)})
		}
		if !slices.Contains(uses[of], use) {
			uses[of] = append(uses[of], use)
		}
	}
	add(of[problem](), "every refusal", false)
	for _, r := range routes {
		add(r.body, "what "+r.name+" takes", true)
		for _, a := range r.answers {
			add(a.body, "what "+r.name+" answers", false)
		}
	}
	for i, r := range roots {
		text := strings.Join(uses[r.Type], ", ")
		roots[i].Doc = strings.ToUpper(text[:1]) + text[1:] + "."
	}
	models, err := clientmodels.Collect(roots, clientmodels.Constants{Root: "..", Open: map[reflect.Type]bool{
		of[flowfabric.Category](): true, of[suspend.Reason](): true, of[suspend.Cause](): true}})
	must.No(t, err)
	return map[string][]byte{"clients/typescript/src/models.ts": models.TypeScript(),
		"clients/python/src/flowfabric/models.py": models.Python(pythonArguments)}
}

// pythonArguments are the members of bodies for which methods of the Python client have arguments.
var pythonArguments = map[string][]string{
	"Submission":   {"kind", "input"},
	"FlowBody":     {"kind", "nodes"},
	"SchedulePut":  {"kind"},
	"SuspendBody":  {"lease", "wait", "question", "until"},
	"ChildrenBody": {"lease", "wait", "children"},
}

func TestMakesTheModels(t *testing.T) {
	for path, text := range clientModels(t) {
		path = filepath.Join("..", path)
		if os.Getenv("FLOWFABRIC_GOLDEN") == "write" {
			must.No(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must.No(t, os.WriteFile(path, text, 0o644))
		}
		if committed, err := os.ReadFile(path); err != nil || !bytes.Equal(committed, text) {
			t.Errorf("%s is not what the routes say (%v); write it again with FLOWFABRIC_GOLDEN=write", path, err)
		}
	}
}
