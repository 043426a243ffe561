package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testnode"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// scenario is one of the list, as far as all runners share it.
type scenario struct {
	Name   string          `json:"name"`
	Not    []string        `json:"not,omitempty"` // languages whose package has no such thing
	Manual bool            `json:"manual,omitempty"`
	Worker json.RawMessage `json:"worker,omitempty"`
	Types  json.RawMessage `json:"schemas,omitempty"` // of kinds, which packages for Go take from types
	Kinds  json.RawMessage `json:"kinds"`
	Do     json.RawMessage `json:"do"`

	Echo json.RawMessage `json:"echo,omitempty"` // short for a handler that returns what it is given
}

// read reads the list, and writes it whole to a file for a runner.
func read(t *testing.T) (all []scenario, file string) {
	t.Helper()
	files, err := filepath.Glob("scenarios/*.json")
	must.No(t, err)
	names := map[string]bool{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		must.No(t, err)
		var part []scenario
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&part); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, part...)
	}
	for i := range all {
		s := &all[i]
		if names[s.Name] {
			t.Errorf("there are two scenarios %q", s.Name)
		}
		names[s.Name] = true
		if len(s.Kinds) == 0 {
			s.Kinds = json.RawMessage(`{"k":[{"step":"kept","value":"$input","as":"x"},{"return":"$x"}]}`)
			s.Do = fmt.Appendf(nil, `[{"run":"$k","input":%s,"as":"out"},{"same":["$out",%[1]s],"expect":true}]`,
				s.Echo)
			s.Echo = nil
		}
	}
	text, err := json.Marshal(all)
	must.No(t, err)
	file = filepath.Join(t.TempDir(), "scenarios.json")
	must.No(t, os.WriteFile(file, text, 0o600))
	return all, file
}

// command builds the command flowfabric.
func command(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "flowfabric")
	build := exec.Command("go", "build", "-o", program, "github.com/flowfabric/flowfabric-go/cmd/flowfabric")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return program
}

// packaged builds the package for TypeScript in a folder of the test, and puts a script there, which finds it by name.
func packaged(t *testing.T, ctx context.Context, script string) (dir string, node testnode.Node) {
	t.Helper()
	dir, node = testnode.Installed(t, "../typescript")
	if text, err := node.Command(ctx, dir, "npm", "run", "build").CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	text, err := os.ReadFile(script)
	must.No(t, err)
	must.No(t, os.WriteFile(filepath.Join(dir, script), text, 0o600))
	return dir, node
}

// serve starts `flowfabric serve` on a Redis, and returns the addresses of both.
func serve(t *testing.T) (api, store string) {
	t.Helper()
	store = testserver.Redis(t)
	cmd := exec.Command(command(t), "serve", "--url", store, "--addr", "127.0.0.1:0", "--log-json")
	cmd.Env = append(os.Environ(), "FLOWFABRIC_TOKEN_KEYS="+tokenKeys)
	out, err := cmd.StderrPipe()
	must.No(t, err)
	must.No(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var line struct{ Dashboard string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Dashboard != "" {
			go func() { // the process must not block on a full pipe
				for lines.Scan() {
				}
			}()
			return line.Dashboard[:len(line.Dashboard)-1], store
		}
	}
	t.Fatal("serve ended")
	return "", ""
}

const tokenKeys = "conformance:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// run runs a runner, which prints a line for each scenario, and holds it to all of them that its language has.
func run(t *testing.T, language string, all []scenario, cmd *exec.Cmd) {
	t.Helper()
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		t.Errorf("the runner: %v", err)
	}
	said := map[string]string{}
	for line := range bytes.Lines(text) {
		var one struct{ Name, Wrong string }
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatalf("the runner says %s", line)
		}
		said[one.Name] = one.Wrong
	}
	judge(t, language, all, said)
}

func judge(t *testing.T, language string, all []scenario, said map[string]string) {
	t.Helper()
	ran := 0
	for _, s := range all {
		if slices.Contains(s.Not, language) {
			continue
		}
		switch wrong, told := said[s.Name]; {
		case !told:
			t.Errorf("%s: it did not run", s.Name)
		case wrong != "":
			t.Errorf("%s:\n%s", s.Name, wrong)
		default:
			ran++
		}
	}
	t.Logf("%s: %d of %d scenarios", language, ran, len(all))
}

// TestScenarios runs all scenarios in each language, against one server.
func TestScenarios(t *testing.T) {
	if testing.Short() {
		t.Skip("it is long")
	}
	all, file := read(t)
	api, store := serve(t)
	control := proxies(t, api)
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	t.Run("go", func(t *testing.T) { runGo(t, ctx, all, api, store) })
	t.Run("python", func(t *testing.T) {
		python, err := exec.LookPath("python3")
		if err != nil && os.Getenv("CI") == "" {
			t.Skip("SKIPPED: there is no python3")
		}
		must.No(t, err)
		sources, err := filepath.Abs("../python/src")
		must.No(t, err)
		cmd := exec.CommandContext(ctx, python, "run.py", file)
		cmd.Env = append(os.Environ(), "PROXY="+control, "DIRECT="+api, "PYTHONPATH="+sources,
			"PYTHONDONTWRITEBYTECODE=1")
		run(t, "python", all, cmd)
	})
	t.Run("typescript", func(t *testing.T) {
		dir, node := packaged(t, ctx, "run.mjs")
		cmd := node.Command(ctx, dir, node.Program, "run.mjs", file)
		cmd.Env = append(cmd.Env, "PROXY="+control, "DIRECT="+api)
		run(t, "typescript", all, cmd)
	})
}
