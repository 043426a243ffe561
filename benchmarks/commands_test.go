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

// A run is measured, reported, and compared with itself.
func TestReportAndCompareARun(t *testing.T) {
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
	if err != nil || !strings.Contains(string(tables), "### drain") || !strings.Contains(string(tables), "charts/latency.svg") {
		t.Errorf("%v\n%s", err, tables)
	}
	out.Reset()
	if err := run(t.Context(), []string{"compare", "-min", "1%", path, path}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "WARNING") || !strings.Contains(out.String(), "Figures shown: 0,") {
		t.Errorf("a run differs from itself:\n%s", &out)
	}
}

func TestArgumentsOfCommands(t *testing.T) {
	for args, want := range map[string]string{
		"report":                    "name one or more JSON documents",
		"report nowhere.json":       "nowhere.json",
		"compare":                   "want two documents",
		"compare a b c":             "want two documents",
		"compare -min 5 a b":        "such as 5%",
		"compare -min -5% a b":      "such as 5%",
		"guard -scenarios nothing":  "unknown scenario",
		"guard -rounds 0":           "-rounds is 0",
		"report -unknown some.json": "-unknown",
		"agent -turns 501":          "at most 500 turns",
	} {
		err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	for name := range commands {
		var help bytes.Buffer
		if err := run(t.Context(), []string{name, "-h"}, io.Discard, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "Usage: go run .") {
			t.Errorf("%s -h: %v\n%s", name, err, &help)
		}
	}
}
