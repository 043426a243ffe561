package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// output is what a command has written so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// await waits until the output has what a pattern finds, and returns its first group.
func (o *output) await(t *testing.T, pattern string) string {
	t.Helper()
	var found []string
	testwait.Progress(t, "output has "+pattern, func() (bool, any) {
		text := o.String()
		found = regexp.MustCompile(pattern).FindStringSubmatch(text)
		return found != nil, text
	})
	return found[len(found)-1]
}

func get(t *testing.T, url, secret string) (int, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	must.No(t, err)
	if secret != "" {
		q.Header.Set("Authorization", "Bearer "+secret)
	}
	answer, err := http.DefaultClient.Do(q)
	must.No(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must.No(t, err)
	return answer.StatusCode, string(body)
}

// post submits, and returns where the answer says that it is.
func post(t *testing.T, url, secret, body string) string {
	t.Helper()
	q, _ := http.NewRequest("POST", url, strings.NewReader(body))
	q.Header.Set("Authorization", "Bearer "+secret)
	q.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(q)
	must.No(t, err)
	answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		t.Fatalf("%s: %s", body, answer.Status)
	}
	return answer.Header.Get("Location")
}

// showsPartitions waits until serve tells of all partitions, what waits in them and what its ticks did. A scrape
// leads to a reading of the partitions, which the next one shows.
func showsPartitions(t *testing.T, url, secret string) {
	t.Helper()
	all := regexp.MustCompile(`(?m)^flowfabric_partitions (\d+)$`)
	testwait.Progress(t, "serve tells of all partitions", func() (bool, any) {
		_, body := get(t, url, secret)
		want := []string{
			`flowfabric_queue_waiting{kind="unserved",lane="default",namespace="default",state="active"} 1`,
			`flowfabric_tick_effects_total{effect="expired"} 1`,
		}
		if m := all.FindStringSubmatch(body); m != nil {
			want = append(want, "flowfabric_partitions_owned "+m[1])
		}
		missing := slices.DeleteFunc(want, func(line string) bool { return strings.Contains(body, "\n"+line+"\n") })
		return len(missing) == 0, fmt.Sprintf("without %q", missing)
	})
}

// serve answers by token, keeps time without any worker, and stops in order while a stream is open.
func TestServe(t *testing.T) {
	store, err := embedded.Start(t.Context(),
		embedded.Config{Addr: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	defer store.Close()
	file := filepath.Join(t.TempDir(), "tokens.json")
	var shown bytes.Buffer
	for _, role := range []string{"viewer", "producer"} {
		shown.Reset()
		if code := run(t.Context(), []string{"token", "new", "a-" + role, "--role", role, "--file", file, "--json"},
			strings.NewReader(""), &shown, &shown); code != 0 {
			t.Fatalf("%d: %s", code, shown.String())
		}
	}
	var made madeToken
	if err := json.Unmarshal(shown.Bytes(), &made); err != nil || made.Secret == "" || made.Name != "a-producer" {
		t.Fatalf("%s: %v", shown.String(), err)
	}
	if stored, err := os.ReadFile(file); err != nil || strings.Contains(string(stored), made.Secret) ||
		!strings.Contains(string(stored), "a-viewer") {
		t.Errorf("%s, %v", stored, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var said output
	var running conc.WaitGroup
	code := -1
	running.Go(func() {
		code = run(ctx, []string{"serve", "--url", store.URL(), "--addr", "127.0.0.1:0", "--tokens", file},
			strings.NewReader(""), io.Discard, &said)
	})
	base := said.await(t, `api=(http://[0-9.:]+)/v1`)
	if status, body := get(t, base+"/readyz", ""); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	for _, live := range []string{"--live=false", "--live"} {
		var told output
		if code := run(t.Context(), []string{"health", "--addr", strings.TrimPrefix(base, "http://"), live},
			strings.NewReader(""), &told, &told); code != 0 || told.String() != "ok\n" {
			t.Errorf("health %s: %d %s", live, code, told.String())
		}
	}
	if status, _ := get(t, base+"/v1/workers", ""); status != 401 {
		t.Errorf("without a token: %d", status)
	}
	post(t, base+"/v1/executions", made.Secret, `{"kind":"unserved"}`)
	if status, body := get(t, base+"/metrics", made.Secret); status != 200 || !strings.Contains(body,
		`flowfabric_api_request_seconds_count{operation="readyz",status="200"} 2`) {
		t.Errorf("%d %.300s", status, body)
	}
	if status, body := get(t, base+"/approve", ""); !strings.Contains(body, "This link does not work") {
		t.Errorf("approvals: %d %s", status, body)
	}
	where := post(t, base+"/v1/executions", made.Secret, `{"kind":"nobody","deadline_ms":200}`)
	q, _ := http.NewRequest("GET", base+where+"/result", nil) // nobody but serve expires it
	q.Header.Set("Authorization", "Bearer "+made.Secret)
	q.Header.Set("Prefer", "wait=30")
	answer, err := http.DefaultClient.Do(q)
	must.No(t, err)
	body, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	if answer.StatusCode != 200 || !strings.Contains(string(body), `"expired"`) {
		t.Errorf("%d %s", answer.StatusCode, body)
	}

	showsPartitions(t, base+"/metrics", made.Secret)

	where = post(t, base+"/v1/executions", made.Secret, `{"kind":"nobody"}`)
	q, _ = http.NewRequest("GET", base+where+"/events", nil)
	q.Header.Set("Authorization", "Bearer "+made.Secret)
	if answer, err = http.DefaultClient.Do(q); err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if line, err := bufio.NewReader(answer.Body).ReadString('\n'); err != nil || line != ": follow\n" {
		t.Errorf("%q, %v", line, err)
	}
	stop()
	running.Wait()
	if code != 0 {
		t.Errorf("exit %d: %s", code, said.String())
	}
	if strings.Contains(said.String(), made.Secret) {
		t.Error("the secret is in the log")
	}
	http.DefaultClient.CloseIdleConnections()
}

// The log says where the dashboard is, also when serve listens on all addresses.
func TestReachable(t *testing.T) {
	for at, want := range map[string]string{"0.0.0.0:7788": "localhost:7788", "[::]:7788": "localhost:7788",
		"127.0.0.1:7788": "127.0.0.1:7788"} {
		addr, err := net.ResolveTCPAddr("tcp", at)
		must.No(t, err)
		if got := "http://" + reachable(addr); got != "http://"+want || redact(got) != got {
			t.Errorf("%s: %s, logged as %s", at, got, redact(got))
		}
	}
}

// serve refuses what would let strangers in, and what it cannot understand.
func TestServeRefuses(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"open to all":      {[]string{"--addr", "0.0.0.0:0"}, nil, "--tokens"},
		"a name":           {[]string{"--addr", "example.com:80"}, nil, "--tokens"},
		"no file":          {[]string{"--tokens", "/nowhere/tokens.json"}, nil, "tokens"},
		"a bad file":       {[]string{"--tokens", bad}, nil, "JSON array"},
		"no webhooks":      {[]string{"--webhooks", "/nowhere/webhooks.json"}, nil, "--webhooks"},
		"bad webhooks":     {[]string{"--webhooks", bad}, nil, "it is not JSON"},
		"bad text":         {nil, map[string]string{"FLOWFABRIC_API_TOKENS": "x"}, "JSON array"},
		"both":             {[]string{"--tokens", bad}, map[string]string{"FLOWFABRIC_API_TOKENS": "[]"}, "both"},
		"a short key":      {nil, map[string]string{"FLOWFABRIC_STREAM_KEY": "00ff"}, "FLOWFABRIC_STREAM_KEY"},
		"no connections":   {[]string{"--max-connections", "0"}, nil, "--max-connections"},
		"an odd origin":    {[]string{"--allow-origin", "app"}, nil, "AllowedOrigins"},
		"an argument":      {[]string{"now"}, nil, "now"},
		"a role of tokens": {[]string{"--tokens"}, nil, "tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := embedded.Start(t.Context(),
				embedded.Config{Addr: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
			must.No(t, err)
			defer store.Close()
			for k, v := range x.env {
				t.Setenv(k, v)
			}
			var said output
			if code := run(t.Context(), append([]string{"serve", "--url", store.URL()}, x.args...),
				strings.NewReader(""), io.Discard, &said); code == 0 || !strings.Contains(said.String(), x.want) {
				t.Errorf("%d: %s, want %s", code, said.String(), x.want)
			}
		})
	}
	var said output
	if code := run(t.Context(), []string{"token", "new", "x", "--role", "king"}, strings.NewReader(""), io.Discard,
		&said); code == 0 || !strings.Contains(said.String(), "role") {
		t.Errorf("%d: %s", code, said.String())
	}
}

// health tells apart a process that says that it is not ready, one that is not there, and an address that is none.
func TestHealth(t *testing.T) {
	sick := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			http.Error(w, "no store", http.StatusServiceUnavailable)
		}
	}))
	addr := strings.TrimPrefix(sick.URL, "http://")
	ask := func(args ...string) (int, string) {
		var told output
		code := run(t.Context(), append([]string{"health"}, args...), strings.NewReader(""), &told, &told)
		return code, told.String()
	}
	if code, told := ask("--addr", addr); code != exitFailed || !strings.Contains(told,
		"503 Service Unavailable: no store") {
		t.Errorf("%d %s", code, told)
	}
	if code, told := ask("--addr", addr, "--live"); code != exitOK {
		t.Errorf("%d %s", code, told)
	}
	sick.Close()
	if code, told := ask("--addr", addr); code != exitUnreachable {
		t.Errorf("%d %s", code, told)
	}
	if code, told := ask("--addr", "here"); code != exitUsage || !strings.Contains(told, "--addr") {
		t.Errorf("%d %s", code, told)
	}
}
