package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/signature"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// The file of webhooks is refused with the place of what is wrong with it.
func TestWebhooksFile(t *testing.T) {
	t.Setenv("WEBHOOKS_TEST_SECRET", "whsec_"+base64.StdEncoding.EncodeToString(make([]byte, 32)))
	file := filepath.Join(t.TempDir(), "webhooks.json")
	for text, want := range map[string]string{
		`{`:                             "it is not JSON",
		`{"out":{"a":{"urls":"x"}}}`:    "/out/a/urls: there is no such member",
		`{"out":{"a":{"URL":"x"}}}`:     "/out/a/URL: there is no such member",
		`{"out":{"a":{"url":7}}}`:       "/out/a/url: it is a JSON number, want a string",
		`{"out":{"a":{},"a":{}}}`:       "/out/a: it is there twice",
		`{"out":{"a":{}}}`:              "out.a: url: it is missing",
		`{"in":{"a":{"scheme":"md5"}}}`: `in.a: scheme is "md5"`,
		`{"in":{"a":{"scheme":"slack","secrets":["env:WEBHOOKS_TEST_SECRET"]}}}`: "in.a: rules has 0 entries",
	} {
		must.No(t, os.WriteFile(file, []byte(text), 0o600))
		if _, err := readWebhooks(file, "default"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// The example of the documentation is a file that serve takes.
func TestWebhooksOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "how-to", "webhooks.md"))
	must.No(t, err)
	_, text, _ := strings.Cut(string(page), "```json\n")
	text, _, _ = strings.Cut(text, "```")
	dir := t.TempDir()
	secret := filepath.Join(dir, "finance")
	standard := "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32))
	must.No(t, os.WriteFile(secret, []byte(standard), 0o600))
	t.Setenv("PAGER_WEBHOOK_SECRET", standard)
	t.Setenv("STRIPE_WEBHOOK_SECRET", standard)
	t.Setenv("GITHUB_WEBHOOK_SECRET", "a secret of GitHub")
	file := filepath.Join(dir, "webhooks.json")
	must.No(t, os.WriteFile(file, []byte(strings.Replace(text, "/run/secrets/finance", secret, 1)), 0o600))
	w, err := readWebhooks(file, "default")
	if err != nil || len(w.out) != 2 || len(w.in) != 2 {
		t.Errorf("%+v, %v", w, err)
	}
}

// The trial of the page works as it is written: the file is read, and the signed request is accepted once.
func TestWebhooksTrial(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "how-to", "webhooks.md"))
	must.No(t, err)
	_, text, _ := strings.Cut(string(page), "## Try it on one machine")
	text, _, _ = strings.Cut(text, "\n## ")
	blocks := strings.Split(text, "```")
	if len(blocks) != 7 {
		t.Fatalf("%d parts, want a file, the start and the request", len(blocks))
	}
	t.Setenv("IN_SECRET", "only-to-try-this-out")
	t.Setenv("OUT_SECRET", "whsec_"+base64.StdEncoding.EncodeToString(make([]byte, 32)))
	dir := t.TempDir()
	file := filepath.Join(dir, "local.json")
	must.No(t, os.WriteFile(file, []byte(strings.TrimPrefix(blocks[1], "json\n")), 0o600))
	p := startDev(t, filepath.Join(dir, "data")+" --webhooks "+file)
	request := strings.Replace(strings.TrimPrefix(blocks[5], "sh\n"), "http://"+defaultHTTP, p.API, 1)
	for _, want := range []string{"accepted", "duplicate"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", request).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, want %s", out, err, want)
		}
	}
	if _, list := command(t, "ls", "--kind", "triage", "--json", "--url", p.URL); strings.Count(list, "\n") != 1 {
		t.Errorf("what it started: %s", list)
	}
}

// serve takes a webhook, and tells of what became of it, also after it was started anew.
func TestServeWebhooks(t *testing.T) {
	store, err := embedded.Start(t.Context(),
		embedded.Config{Addr: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	defer store.Close()
	secret := []byte("a secret of 32 bytes for a test!")
	t.Setenv("WEBHOOKS_TEST_SECRET", "whsec_"+base64.StdEncoding.EncodeToString(secret))
	t.Setenv("WEBHOOKS_TEST_GITHUB", string(secret))
	told := make(chan string, 1000)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		scheme := signature.Schemes["standard"]
		claim, wrong := scheme.Read(q.Header, time.Now(), 5*time.Minute)
		if wrong == nil {
			wrong = scheme.Check(claim, [][]byte{secret}, body)
		}
		if err != nil || wrong != nil {
			t.Errorf("%s: %v, %v", body, err, wrong)
		}
		told <- string(body)
	}))
	defer receiver.Close()
	file := filepath.Join(t.TempDir(), "webhooks.json")
	config := fmt.Sprintf(`{"out":{"ops":{"url":%q,"secrets":["env:WEBHOOKS_TEST_SECRET"],
		"events":["execution.cancelled"],
		"tags":{"app.from":"github"},"allow_addresses":["127.0.0.0/8"]}},
		"in":{"github":{"scheme":"github","secrets":["env:WEBHOOKS_TEST_GITHUB"],"rules":[{"event":"push",
		"submit":{"kind":"build","tags":{"app.from":"github","app.ref":"/ref"}}}]}}}`, receiver.URL)
	must.No(t, os.WriteFile(file, []byte(config), 0o600))

	serve := func() (base string, stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var said output
		var running conc.WaitGroup
		code := -1
		running.Go(func() {
			code = run(ctx, []string{"serve", "--url", store.URL(), "--addr", "127.0.0.1:0", "--webhooks", file},
				strings.NewReader(""), io.Discard, &said)
		})
		return said.await(t, `api=(http://[0-9.:]+)/v1`), func() {
			cancel()
			running.Wait()
			if code != 0 {
				t.Errorf("exit %d: %s", code, said.String())
			}
			http.DefaultClient.CloseIdleConnections()
		}
	}
	push := func(base, delivery string) (execution string) {
		body := `{"ref":"refs/heads/main"}`
		q, _ := http.NewRequestWithContext(t.Context(), "POST", base+"/v1/hooks/github", strings.NewReader(body))
		h := hmac.New(sha256.New, secret)
		h.Write([]byte(body))
		q.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(h.Sum(nil)))
		q.Header.Set("X-GitHub-Event", "push")
		q.Header.Set("X-GitHub-Delivery", delivery)
		reply, err := http.DefaultClient.Do(q)
		must.No(t, err)
		defer reply.Body.Close()
		var a struct{ Status, Execution string }
		if err := json.NewDecoder(reply.Body).Decode(&a); err != nil || reply.StatusCode != 200 {
			t.Fatalf("%d %+v, %v", reply.StatusCode, a, err)
		}
		return a.Execution
	}
	cancel := func(base, execution string) {
		q, _ := http.NewRequestWithContext(t.Context(), "POST", base+"/v1/executions/"+execution+":cancel",
			strings.NewReader("{}"))
		q.Header.Set("Content-Type", "application/json")
		reply, err := http.DefaultClient.Do(q)
		must.No(t, err)
		reply.Body.Close()
		if reply.StatusCode != http.StatusNoContent {
			t.Fatalf("cancel: %s", reply.Status)
		}
	}

	base, stop := serve()
	n, first := 0, ""
	testwait.Progress(t, "an end is told", func() (bool, any) { // of what happens once the relay runs
		select {
		case body := <-told:
			first = body
			return true, nil
		default:
			n++
			cancel(base, push(base, fmt.Sprint("d", n)))
			return false, n
		}
	})
	if !strings.Contains(first, `"type":"execution.cancelled"`) || !strings.Contains(first, `"kind":"build"`) {
		t.Error(first)
	}
	last := push(base, "last")
	if again := push(base, "last"); again != last || last == "" {
		t.Errorf("%s, then %s", last, again)
	}
	stop()
	base, stop = serve()
	defer stop()
	cancel(base, last)
	for body := ""; !strings.Contains(body, last); {
		select {
		case body = <-told:
		case <-testwait.End(t):
			t.Fatal("the end is not told after a restart")
		}
	}
}
