package howto_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// What scale.md has KEDA ask is answered with how much waits, by Prometheus' text and by the API.
func TestScale(t *testing.T) {
	registry := prometheus.NewRegistry()
	ctx, c := start(t, runtime.Config{Registerer: registry},
		handler.Bind(handler.Define[int, int]("other"), func(context.Context, *handler.Task, int) (int, error) {
			return 0, nil
		}))
	for n := range 3 {
		_, err := client.Submit(ctx, c, handler.Define[int, int]("report"), n, flowfabric.Lane("reports"))
		must(t, err)
	}
	api, err := httpapi.New(httpapi.Config{Admin: admin.New(c), Authorize: httpapi.Open, Logger: quiet})
	must(t, err)
	defer api.Close()
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := httptest.NewServer(mux)
	defer server.Close()
	text, err := os.ReadFile("scale.md")
	must(t, err)
	page := string(text)

	query := regexp.MustCompile(`query: sum\((\w+)\{(.*)\}\) or vector\(0\)`).FindStringSubmatch(page)
	if query == nil {
		t.Fatal("the page has no query")
	}
	testwait.Progress(t, "the query of the page counts what waits", func() (bool, any) {
		lines := ""
		for line := range strings.Lines(body(t, server.URL+"/metrics")) {
			matches := strings.HasPrefix(line, query[1]+"{")
			for label := range strings.SplitSeq(query[2], ",") {
				matches = matches && strings.Contains(line, label)
			}
			if matches {
				lines += line
			}
		}
		return strings.HasSuffix(lines, "} 3\n") && strings.Count(lines, "\n") == 1, lines
	})

	asked := regexp.MustCompile(`url: https://flow\.example\.com(\S+)\n +valueLocation: (.*)\n`).
		FindAllStringSubmatch(page, -1)
	if len(asked) != 2 {
		t.Fatalf("the page asks the API %d times", len(asked))
	}
	for _, q := range asked {
		var answer any
		must(t, json.Unmarshal([]byte(body(t, server.URL+q[1])), &answer))
		if n := located(answer, strings.Trim(q[2], "'")); n != 3.0 {
			t.Errorf("%s of %s is %v, want 3: %v", q[2], q[1], n, answer)
		}
	}
}

func body(t *testing.T, at string) string {
	t.Helper()
	_, err := url.Parse(at)
	must(t, err)
	answer, err := http.Get(at)
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	return string(text)
}

var firstOf = regexp.MustCompile(`^#\((\w+)=="([^"]*)"\)$`)

// located is what a path leads to, as far as the page uses paths: members, and the first item with a text.
func located(v any, path string) any {
	for part := range strings.SplitSeq(path, ".") {
		if first := firstOf.FindStringSubmatch(part); first != nil {
			list, _ := v.([]any)
			v = nil
			for _, item := range list {
				if x, ok := item.(map[string]any); ok && x[first[1]] == first[2] {
					v = x
					break
				}
			}
			continue
		}
		object, _ := v.(map[string]any)
		v = object[part]
	}
	return v
}
