package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run is measured and reported.
func TestReportARun(t *testing.T) {
	d, _ := measured(t, append(small, "-scenarios", "drain,latency")...)
	dir := t.TempDir()
	path := filepath.Join(dir, "run.json")
	if err := d.Write(path); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	text := filepath.Join(dir, "report", "REPORT.md")
	if err := run(t.Context(), []string{"report", "-o", text, path}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), text) {
		t.Errorf("it does not say where the report is: %s", &out)
	}
	written, err := os.ReadFile(text)
	if err != nil || !strings.Contains(string(written), "tables/run-1.md") {
		t.Errorf("%v\n%s", err, written)
	}
	tables, err := os.ReadFile(filepath.Join(dir, "report", "tables", "run-1.md"))
	if err != nil || !strings.Contains(string(tables), "\ndrain (redis") {
		t.Errorf("%v\n%s", err, tables)
	}
}

func TestArgumentsOfCommands(t *testing.T) {
	for args, want := range map[string]string{
		"report":                    "name one or more JSON documents",
		"report nowhere.json":       "nowhere.json",
		"guard -scenarios nothing":  "unknown scenario",
		"guard -rounds 0":           "-rounds is 0",
		"report -unknown some.json": "-unknown",
		"scale -primaries 0":        "0 primaries",
		"scale sometimes":           `unknown argument "sometimes"`,
		"scale -load nowhere.json":  "nowhere.json",
		"scale -costs nowhere.json": "nowhere.json",
		"scale plan -batch 0":       "0 a call",
		"scale check -n 100":        "multiple of 6400",
	} {
		err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	for name := range commands {
		var help bytes.Buffer
		if err := run(t.Context(), []string{name, "-h"}, io.Discard, &help); !errors.Is(err, flag.ErrHelp) ||
			!strings.Contains(help.String(), "Usage: go run .") {
			t.Errorf("%s -h: %v\n%s", name, err, &help)
		}
	}
}

// A load from a file is simulated under costs from another one.
func TestScaleReadsLoadsAndCosts(t *testing.T) {
	dir := t.TempDir()
	load, costs, wrong := filepath.Join(dir, "load.json"), filepath.Join(dir, "costs.json"),
		filepath.Join(dir, "wrong.json")
	for path, text := range map[string]string{load: `{"preload": 6400, "workers": 2}`,
		costs: `{"claim": {"fixed_us": 1000, "item_us": 1000}}`, wrong: `{"prelaod": 6400}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	simulated := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if err := run(t.Context(), append([]string{"scale"}, args...), &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	usual := simulated("-load", load)
	if !strings.Contains(usual, "6400  0  0") || usual != simulated("-preload", "6400", "-workers", "2") {
		t.Errorf("a load from a file is simulated as\n%s", usual)
	}
	if slow := simulated("-load", load, "-costs", costs); slow == usual || !strings.Contains(slow, "6400  0  0") {
		t.Errorf("with dear claims it is\n%s", slow)
	}
	if err := run(t.Context(), []string{"scale", "-load", wrong}, io.Discard, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "prelaod") {
		t.Errorf("an unknown field: %v", err)
	}
	if plan := simulated("plan", "-waiting", "1e9", "-partitions", "1024"); !strings.Contains(plan, "627.0 GB") {
		t.Errorf("the plan of docs/explanation/scale.md is\n%s", plan)
	}
}
