package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// left is a time that gets shorter from one answer to the next.
var left = regexp.MustCompile(`in (\d+h)?(\d+m)?\d+s`)

// The same verbs say the same of a store and of a process that serves it; a token is who asks.
func TestServed(t *testing.T) {
	w := newEnv(t, testserver.Redis(t))
	var entries []string
	for _, role := range []string{"viewer", "operator", "admin"} {
		sum := sha256.Sum256([]byte(role + "-secret"))
		entries = append(entries, fmt.Sprintf(`{"name":"%s-token","role":%q,"sha256":%q}`, role, role,
			hex.EncodeToString(sum[:])))
	}
	tokens, err := httpapi.ParseTokens("[" + strings.Join(entries, ",") + "]")
	must.No(t, err)
	api, err := httpapi.New(httpapi.Config{Admin: admin.New(w.client), Tokens: tokens,
		Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	defer api.Close()
	var breaks atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if strings.HasSuffix(q.URL.Path, "/events") && breaks.Add(1) == 1 {
			w = &breaking{w, 3}
		}
		api.ServeHTTP(w, q)
	}))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()

	as := func(role, line string) (int, string, string) {
		t.Helper()
		t.Setenv("FLOWFABRIC_URL", server.URL+"/")
		t.Setenv("FLOWFABRIC_TOKEN", role+"-secret")
		t.Setenv("FLOWFABRIC_BY", "")
		defer t.Setenv("FLOWFABRIC_URL", w.url)
		return w.run(line, "")
	}
	for _, line := range []string{"show <done> --result --input --json", "show <queued>", "ls",
		"ls --kind report --json",
		"why <later> --json", "history <done>", "tail <done>", "tail <failed>",
		"logs <done>", "logs <done> --follow --level warn", "logs <failed> --follow",
		"tail <done> --raw", "tail <done> --attempt 1 --durable", "waitpoints <asking>", "messages <queued>",
		"lane list", "queues",
		"workers --json", "flow ls", "schedules", "gate ls", "gate ls --json", "trail --json", "keys",
		"show 1-00000000-0000-4000-8000-000000000000", "gate show nobody --json", "ls --state nonsense"} {
		code, out, errOut := w.run(line, "")
		c, o, e := as("operator", line)
		out, o = left.ReplaceAllString(out, "in a while"), left.ReplaceAllString(o, "in a while")
		if c != code || o != out || e != errOut {
			t.Errorf("%s: %d, %s%s\nof the store: %d, %s%s", line, c, o, e, code, out, errOut)
		}
	}
	for _, tc := range []struct {
		role, line string
		code       int
		want       string
	}{
		{"viewer", "cancel <queued>", exitDenied, "viewer-token has the role viewer"},
		{"wrong", "ls", exitDenied, "its token is not known here"},
		{"operator", "purge <done>", exitDenied, "wants one of admin"},
		{"operator", "cancel <queued> --reason 'no longer'", exitOK, "cancelled"},
		{"operator", "cancel <queued> --by anna", exitUsage, "knows you by your token"},
		{"operator", "history <queued>", exitOK, "operator-token"},
		{"operator", "gate create acme --limit tokens=5", exitOK, "created"},
		{"operator", "gate ensure acme --limit tokens=6", exitOK, "unchanged"},
		{"operator", "gate update acme --limit tokens=6", exitOK, "updated"},
		{"operator", "gate rm acme --reason '" + strings.Repeat("é%", 2000) + "'", exitOK, "removed"},
		{"operator", "schedules put nightly --kind report --cron @daily --jitter 1m", exitOK, "(put)"},
		{"admin", "schedules put nightly --kind report --cron @daily --jitter 1m", exitOK, "(already)"},
		{"operator", "submit echo --input '{\"n\":1}' --key one --json", exitOK, `"duplicate":false`},
		{"operator", "submit echo --input '{\"text\":\"tides\"}' --key done --wait", exitOK, `{"text":"tides"}`},
		{"operator", "submit echo --input '{\"text\":\"tides\"}' --key done --tail", exitOK, "execution completed"},
		{"viewer", "tail 1-00000000-0000-4000-8000-000000000000", exitNotFound, ""},
		{"viewer", "tail <done> --attempt 9999999999", exitUsage, "--attempt"},
		{"operator", "doctor", exitUsage, "works on the store itself"},
		{"operator", "approve <asking> editor --choice approve", exitOK, "answered; it goes on"},
		{"operator", "freeze 1", exitDenied, "wants one of admin"},
		{"admin", "freeze 1", exitOK, "frozen 1 partition: 1"},
		{"admin", "lane pause batch", exitFailed, "changed in 3 of 4 partitions"},
		{"admin", "gate ls", exitFailed, "nothing is attached"},
		{"admin", "thaw --all", exitOK, "thawed 4 partitions"},
		{"admin", "why <asking> --namespace other", exitOK, ""},
		{"admin", "lane --namespace other --json", exitOK, "[]"},
		{"admin", "lane --all-namespaces", exitOK, "batch"},
	} {
		if code, out, errOut := as(tc.role, tc.line); code != tc.code || !strings.Contains(out+errOut, tc.want) {
			t.Errorf("%s: exit %d, want %d and %q: %s%s", tc.line, code, tc.code, tc.want, out, errOut)
		}
	}
	if breaks.Load() < 2 {
		t.Error("nobody came back after a break")
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>", http.StatusBadGateway)
	}))
	defer other.Close()
	if code, out, errOut := w.run("ls --by '' --url "+other.URL, ""); code != exitUnreachable ||
		!strings.Contains(errOut, "502") {
		t.Errorf("behind a proxy: exit %d, %s%s", code, out, errOut)
	}
	for name, answer := range map[string]http.HandlerFunc{
		"sent elsewhere": func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, "https://elsewhere.example", http.StatusMovedPermanently)
		},
		"shown a page": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>log in")) },
	} {
		proxy := httptest.NewServer(answer)
		if code, out, errOut := w.run("cancel <done> --by '' --url "+proxy.URL, ""); code != exitUnreachable {
			t.Errorf("%s: exit %d, %s%s", name, code, out, errOut)
		}
		proxy.Close()
	}
	other.Close()
	if code, out, errOut := w.run("ls --url "+other.URL, ""); code != exitUnreachable {
		t.Errorf("of nobody: exit %d, %s%s", code, out, errOut)
	}
}

// A connection on which nothing comes any more, not even a comment, is given up for another one.
func TestSilence(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if asked.Add(1) == 1 {
			must.No(t, http.NewResponseController(w).Flush())
			<-q.Context().Done()
			return
		}
		fmt.Fprint(w, "event: end\ndata: {\"kind\":\"end\",\"state\":\"completed\"}\n\n")
	}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	d := &door{base: server.URL, send: transport, silence: 100 * time.Millisecond}
	n := 0
	for e, err := range d.events(t.Context(), "/", nil) {
		if n++; err != nil || e.State != flowfabric.Completed {
			t.Fatalf("%+v, %v", e, err)
		}
	}
	if n != 1 || asked.Load() < 2 {
		t.Errorf("%d events of %d connections", n, asked.Load())
	}
}

// breaking is a connection that breaks after so many writes.
type breaking struct {
	http.ResponseWriter
	left int
}

func (b *breaking) Write(text []byte) (int, error) {
	if b.left--; b.left < 0 {
		panic(http.ErrAbortHandler)
	}
	return b.ResponseWriter.Write(text)
}

func (b *breaking) Unwrap() http.ResponseWriter { return b.ResponseWriter }
