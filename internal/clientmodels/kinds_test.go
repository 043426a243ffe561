package clientmodels_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/clientmodels"
	"github.com/flowfabric/flowfabric-go/internal/kindschema"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testnode"
)

// generated are the types of testdata/kinds.json, by the name of their file.
func generated(t *testing.T) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/kinds.json")
	must.No(t, err)
	var all map[string]kindschema.Pair
	must.No(t, json.Unmarshal(text, &all))
	for kind, p := range all {
		if _, err := kindschema.Compact(p); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
	}
	k, err := clientmodels.OfKinds(all)
	must.No(t, err)
	return map[string][]byte{"kinds.ts": k.TypeScript(), "kinds.py": k.Python()}
}

// The types of hard schemas are as they are committed: odd names, reserved words, references that come back, unions,
// maps, tuples, values.
func TestTypesOfKinds(t *testing.T) {
	for name, text := range generated(t) {
		path := filepath.Join("testdata", name)
		if os.Getenv("FLOWFABRIC_GOLDEN") == "write" {
			must.No(t, os.WriteFile(path, text, 0o644))
		}
		if committed, err := os.ReadFile(path); err != nil || !bytes.Equal(committed, text) {
			t.Errorf("%s is not what the schemas say (%v); write it again with FLOWFABRIC_GOLDEN=write:\n%s", path, err,
				text)
		}
	}
}

// The compiler of TypeScript takes the types with all its checks, and refuses values that do not fit.
func TestTypeScriptOfKinds(t *testing.T) {
	dir, node := testnode.Installed(t, "../../clients/chat-transport")
	for name, text := range generated(t) {
		must.No(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	use, err := os.ReadFile("testdata/use.ts")
	must.No(t, err)
	must.No(t, os.WriteFile(filepath.Join(dir, "use.ts"), use, 0o600))
	cmd := node.Command(t.Context(), dir, filepath.Join(dir, "node_modules", ".bin", "tsc"), "--strict", "--noEmit",
		"--exactOptionalPropertyTypes", "--ignoreConfig", "--types", "", "use.ts")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Python compiles the types and finds what each name in them means.
func TestPythonOfKinds(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("it needs python3")
	}
	if version, err := exec.CommandContext(t.Context(), python, "-c",
		"import sys; print(sys.version_info >= (3, 11))").Output(); err != nil ||
		strings.TrimSpace(string(version)) != "True" {
		t.Skip("it needs Python 3.11 or later")
	}
	path := filepath.Join(t.TempDir(), "kinds.py")
	must.No(t, os.WriteFile(path, generated(t)["kinds.py"], 0o600))
	cmd := exec.CommandContext(t.Context(), python, "testdata/use.py", path)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Whatever schema workers may publish has types in both languages, and making them ends.
func FuzzTypesOfKinds(f *testing.F) {
	text, err := os.ReadFile("testdata/kinds.json")
	must.No(f, err)
	var all map[string]kindschema.Pair
	must.No(f, json.Unmarshal(text, &all))
	for _, p := range all {
		f.Add([]byte(p.Input))
		f.Add([]byte(p.Result))
	}
	f.Add([]byte(`{"properties":{"a":{"allOf":[{"$ref":"#"},{"type":"object"}]},"b":{"allOf":[{"$ref":"#"},{}]}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := kindschema.Compact(kindschema.Pair{Input: text})
		if err != nil || p.Input == nil {
			return
		}
		k, err := clientmodels.OfKinds(map[string]kindschema.Pair{"k": p})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if len(k.TypeScript()) == 0 || len(k.Python()) == 0 {
			t.Errorf("%s: no types", text)
		}
	})
}
