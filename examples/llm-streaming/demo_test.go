package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sourcegraph/conc"
	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// TestMain lets the crash demo start this test binary as its workers.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-worker") {
		main()
		return
	}
	os.Exit(m.Run())
}

// runDemo runs the program with args and returns what it printed.
func runDemo(t *testing.T, args ...string) string {
	t.Helper()
	t.Setenv("OPENAI_API_KEY", "") // also for the workers
	var out bytes.Buffer
	if err := run(t.Context(), args, func(string) string { return "" }, strings.NewReader(""), &out,
		os.Stderr); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if strings.ContainsRune(out.String(), '\x1b') {
		t.Error("control codes in plain output")
	}
	return out.String()
}

// streamed is what the plain view printed of a prompt's answer, without what a crash made void.
func streamed(t *testing.T, out string, i int) string {
	t.Helper()
	var words []string
	for line := range strings.Lines(out) {
		text, ok := strings.CutPrefix(line, fmt.Sprintf("[%d] ", i))
		switch {
		case !ok || strings.HasPrefix(text, "prompt: "):
		case strings.HasPrefix(text, ">> "): // the answer begins again with what is kept of it
			words = nil
		case strings.HasPrefix(text, "done: "):
			return strings.Join(words, " ")
		default:
			words = append(words, strings.Fields(text)...)
		}
	}
	t.Errorf("prompt %d is not done:\n%s", i, out)
	return ""
}

func TestDemo(t *testing.T) {
	defer goleak.VerifyNone(t)
	out := runDemo(t, "-pace", "1ms", "-tokens", "60", "-prompts", "The White Rabbit", "Call me Ishmael")
	for i, text := range []string{"The White Rabbit", "Call me Ishmael"} {
		want, _, _ := generate(t, newTestModel(t), Prompt{Text: text, MaxTokens: 60, Seed: uint64(i + 1)}, "")
		if got := streamed(t, out, i+1); got != want {
			t.Errorf("prompt %d streamed\n%s\nwant\n%s", i+1, got, want)
		}
	}
	if !strings.Contains(out, "\n2 answers in ") {
		t.Errorf("no summary:\n%s", out)
	}
}

// The API answers its first request with 429, so the demo sees a retry too.
func TestDemoWithAPI(t *testing.T) {
	var calls atomic.Int32
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			w.Header().Set("Retry-After", "0")
			http.Error(w, "slow down", http.StatusTooManyRequests)
			return
		}
		fmt.Fprint(w, delta("Forty-"), delta("two."), "data: [DONE]\n\n")
	}))
	defer api.Close()
	env := map[string]string{"OPENAI_BASE_URL": api.URL, "OPENAI_API_KEY": "secret", "OPENAI_MODEL": "tiny"}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"Why?"}, func(name string) string { return env[name] }, strings.NewReader(""),
		&out, os.Stderr); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"Model: tiny.", "[1] !! attempt 1 failed\n",
		"[1] >> attempt 1 failed; attempt 2 continues on ", "[1] Forty-two.\n", "2 tokens in ", "2 attempts, by tiny"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "secret") {
		t.Error("the key was printed")
	}
}

func TestCrashDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes several seconds: it waits for a lease to run out")
	}
	begin := time.Now()
	out := runDemo(t, "-crash", "-pace", "20ms", "-tokens", "120")
	t.Logf("took %s", time.Since(begin))
	if !regexp.MustCompile(`\*\*\* killed worker-\d \(pid \d+\), which holds prompt 1, after 40 tokens`).MatchString(
		out) {
		t.Errorf("nobody was killed:\n%s", out)
	}
	if !regexp.MustCompile(
		`\n\[1\] >> attempt 1 died with its worker; attempt 2 continues on worker-\d, \d+ tokens kept\n`).MatchString(
		out) {
		t.Errorf("prompt 1 did not go on elsewhere:\n%s", out)
	}
	if !regexp.MustCompile(`\n\[1\] done: .*, 2 attempts\n`).MatchString(out) ||
		!strings.Contains(out, "\n4 answers in ") {
		t.Errorf("not all prompts were answered:\n%s", out)
	}
}

// A worker that drains at once hands its prompts back in the middle of a sentence. What is shown goes on after the last
// recorded sentence, and reads as if nothing had happened.
func TestDrainedAnswerReadsClean(t *testing.T) {
	defer goleak.VerifyNone(t)
	url, release, err := embedded.Resolve(t.Context(), embedded.URL, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	o := options{url: url, pace: 3 * time.Millisecond, log: slog.New(slog.DiscardHandler), env: func(string) string {
		return ""
	}}
	c, err := client.Connect(t.Context(), client.Config{URL: url, Logger: o.log})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var out bytes.Buffer
	prompts := []Prompt{{Text: "Call me Ishmael", MaxTokens: 90, Seed: 1}}
	ctx, stopSecond := context.WithCancel(t.Context())
	first, stopFirst := context.WithCancel(ctx)
	defer stopFirst()
	tokens := 0
	var workers conc.WaitGroup
	defer workers.Wait()
	defer stopSecond()
	work := func(ctx context.Context) {
		workers.Go(func() {
			if err := serve(ctx, o, runtime.Config{DrainTimeout: -1}); err != nil {
				t.Error(err)
			}
		})
	}
	work(first)
	p := &producer{client: c, view: newPlain(&out, prompts),
		onToken: func(context.Context, *client.Execution[Answer], int, int) {
			if tokens++; tokens == 40 {
				stopFirst()
				work(ctx)
			}
		}}
	if _, err := p.ask(ctx, prompts); err != nil {
		t.Fatal(err)
	}
	want, _, _ := generate(t, newTestModel(t), prompts[0], "")
	if got := streamed(t, out.String(), 1); got != want {
		t.Errorf("streamed\n%s\nwant\n%s\nin\n%s", got, want, out.String())
	}
	if !strings.Contains(out.String(), "[1] >> attempt 1 was released; it continues on ") {
		t.Errorf("the drain is not shown:\n%s", out.String())
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-tokens", "0"}, {"-no-such-flag"}, {"-url", "ftp://nowhere"}} {
		var out, errs bytes.Buffer
		if err := run(t.Context(), args, func(string) string { return "" }, strings.NewReader(""), &out,
			&errs); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}
