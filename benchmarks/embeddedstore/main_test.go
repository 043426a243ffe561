package main

import (
	"bytes"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

func TestFiguresOfASmallRun(t *testing.T) {
	drain := []string{"lone submit, empty store: p50 ms", "SubmitMany: jobs/s", "drain: jobs/s", "drain: jobs"}
	for args, want := range map[string][]string{
		"":                             drain,
		"-server redis-server":         append(drain, "drain: processor µs of the server per job"),
		"-memory":                      {"live Go heap: bytes per waiting execution"},
		"-memory -server redis-server": {"used_memory of the server: bytes per waiting execution"},
	} {
		var out bytes.Buffer
		err := run(t.Context(), strings.Fields(args+" -waiting 200 -runs 2"), &out, io.Discard)
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		for _, title := range want {
			if !regexp.MustCompile(regexp.QuoteMeta(title) + ` +\d*[1-9]|` + regexp.QuoteMeta(title) + ` +0\.\d*[1-9]`).
				Match(out.Bytes()) {
				t.Errorf("%s: %s has no figure:\n%s", args, title, &out)
			}
		}
	}
}

// A drain that takes too long is stopped, and its figures are of the part that was drained.
func TestDrainThatIsStopped(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), strings.Fields("-waiting 5000 -runs 1 -most 1ms"), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(`drain: jobs +5000`).Match(out.Bytes()) {
		t.Errorf("it was not stopped:\n%s", &out)
	}
}

func TestArguments(t *testing.T) {
	for args, want := range map[string]string{
		"-waiting 99":                       "-waiting 99",
		"-runs 0":                           "-runs 0",
		"-most 0s":                          "-most 0s",
		"more":                              `"more"`,
		"-memory -url redis://127.0.0.1:80": "not in this process",
		"-url nothing://":                   "scheme is not known",
		"-server no-such-server":            "no-such-server",
	} {
		if err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
