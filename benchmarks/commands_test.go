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
		"outbox -c 501":             "at most 500",
		"crash -lanes 0":            "-lanes 0",
		"crash -systems celery":     `unknown system "celery"`,
		"against -rounds 0":         "-rounds 0",
		"against -revision none":    "none",
		"scale sometimes":           `unknown argument "sometimes"`,
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

// The plan is that of docs/explanation/scale.md, and a simulation says what became of the executions.
func TestScale(t *testing.T) {
	for args, want := range map[string]string{"plan -waiting 1e9 -partitions 1024": "627.0 GB",
		"-preload 6400 -workers 2": "6400  0  0"} {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"scale"}, strings.Fields(args)...), &out, io.Discard)
		if err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("scale %s: %v, want %q in\n%s", args, err, want, &out)
		}
	}
}
