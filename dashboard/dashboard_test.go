package dashboard

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// api answers every request with its path.
func api(w http.ResponseWriter, q *http.Request) {
	w.Header().Set("X-Api", "yes")
	_, _ = io.WriteString(w, q.Method+" "+q.URL.Path)
}

func aPage(t *testing.T) http.Handler {
	t.Helper()
	h, err := New(Config{API: http.HandlerFunc(api)})
	must.No(t, err)
	return h
}

func ask(h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	q := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, q)
	return w
}

func TestWithoutAnAPI(t *testing.T) {
	if _, err := New(Config{}); !errors.Is(err, flowfabric.ErrConfig) || !strings.Contains(err.Error(), "API is nil") {
		t.Error(err)
	}
}

// The address of traces is in the page as text, and must be one that a link may have.
func TestTraceURL(t *testing.T) {
	h, err := New(Config{API: http.HandlerFunc(api), TraceURL: `https://traces.example/t?id={trace}&"><script>`})
	must.No(t, err)
	want := `<meta name="flowfabric-trace" content="https://traces.example/t?id={trace}&amp;&#34;&gt;&lt;script&gt;">`
	if w := ask(h, "GET", "/"); !strings.Contains(w.Body.String(), want) {
		t.Errorf("%s", w.Body)
	}
	if w := ask(aPage(t), "GET", "/"); strings.Contains(w.Body.String(), "flowfabric-trace") {
		t.Errorf("%s", w.Body)
	}
	for url, want := range map[string]string{"https://traces.example/": "has no {trace}",
		"javascript:alert({trace})": "http://", "/trace/{trace}": "http://",
		"https://x/{trace}" + strings.Repeat("x", 2048): "want at most 2048"} {
		_, err := New(Config{API: http.HandlerFunc(api), TraceURL: url})
		if !errors.Is(err, flowfabric.ErrConfig) || !strings.Contains(err.Error(), "TraceURL") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v", url, err)
		}
	}
}

// The page has the strict policy, its files their types, and everything else is the API's.
func TestPageAndAPI(t *testing.T) {
	h := aPage(t)
	for _, x := range []struct{ path, media, has string }{
		{"/", "text/html; charset=utf-8", `src="assets/main.js"`},
		{"/assets/main.js", "text/javascript; charset=utf-8", "import"},
		{"/assets/pages/execution.js", "text/javascript; charset=utf-8", "import"},
		{"/assets/app.css", "text/css; charset=utf-8", ":root"},
		{"/assets/icon.svg", "image/svg+xml", "<svg"},
	} {
		w := ask(h, "GET", x.path)
		header := w.Header()
		if w.Code != 200 || header.Get("Content-Type") != x.media || !strings.Contains(w.Body.String(), x.has) ||
			header.Get("X-Api") != "" {
			t.Errorf("%s: %d %s", x.path, w.Code, header)
		}
		if header.Get("Content-Security-Policy") != policy || header.Get("X-Content-Type-Options") != "nosniff" ||
			header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %s", x.path, header)
		}
	}
	for _, path := range []string{"/v1/executions", "/healthz", "/assets/", "/assets/index.html",
		"/assets/../dashboard.go", "/index.html", "/nothing"} {
		if w := ask(h, "GET", path); w.Header().Get("X-Api") != "yes" || w.Body.String() != "GET "+path {
			t.Errorf("%s: %d %q", path, w.Code, w.Body)
		}
	}
	if w := ask(h, "POST", "/v1/executions/x:cancel"); w.Body.String() != "POST /v1/executions/x:cancel" {
		t.Errorf("%q", w.Body)
	}
	if w := ask(h, "POST", "/"); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("%d", w.Code)
	}
	if w := ask(h, "HEAD", "/assets/app.css"); w.Code != 200 || w.Body.Len() != 0 ||
		w.Header().Get("Content-Length") == "" {
		t.Errorf("%d, %d bytes", w.Code, w.Body.Len())
	}
}

func TestCompressionAndCache(t *testing.T) {
	h := aPage(t)
	plain, packed := ask(h, "GET", "/assets/ui.js"), ask(h, "GET", "/assets/ui.js", "Accept-Encoding", "br, gzip;q=0.8")
	r, err := gzip.NewReader(packed.Body)
	must.No(t, err)
	if text, err := io.ReadAll(r); err != nil || string(text) != plain.Body.String() ||
		packed.Header().Get("Content-Encoding") != "gzip" || packed.Header().Get("Vary") != "Accept-Encoding" {
		t.Errorf("%v, %s", err, packed.Header())
	}
	if w := ask(h, "GET", "/assets/ui.js", "Accept-Encoding", "gzip; q=0"); w.Header().Get("Content-Encoding") != "" {
		t.Error("it was packed for somebody who wants no gzip")
	}
	one, other := plain.Header().Get("ETag"), packed.Header().Get("ETag")
	if one == other {
		t.Errorf("both are %s", one)
	}
	for _, known := range []string{one, `"x", W/` + one} {
		if w := ask(h, "GET", "/assets/ui.js", "If-None-Match", known); w.Code != http.StatusNotModified ||
			w.Body.Len() != 0 {
			t.Errorf("%s: %d", known, w.Code)
		}
	}
	if w := ask(h, "GET", "/assets/ui.js", "If-None-Match", other); w.Code != 200 {
		t.Errorf("%d", w.Code)
	}
}

// It may be mounted at any path.
func TestMounted(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/ops/jobs/", http.StripPrefix("/ops/jobs", aPage(t)))
	if w := ask(mux, "GET", "/ops/jobs/"); w.Code != 200 || strings.Contains(w.Body.String(), `="/`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(mux, "GET", "/ops/jobs/v1/me"); w.Body.String() != "GET /v1/me" {
		t.Errorf("%q", w.Body)
	}
	bare := http.StripPrefix("/ops/jobs", aPage(t))
	for _, target := range []string{"/ops/jobs", "/ops/jobs?x=1/y"} {
		if w := ask(bare, "GET", target); w.Code != http.StatusMovedPermanently ||
			w.Header().Get("Location") != "/ops/jobs/" {
			t.Errorf("%s: %d %s", target, w.Code, w.Header())
		}
	}
}

// What a first look at the overview loads is small.
func TestFirstLoad(t *testing.T) {
	h, sum := aPage(t).(*page), 0
	for _, name := range []string{"/", "/assets/app.css", "/assets/main.js", "/assets/api.js", "/assets/live.js",
		"/assets/ui.js", "/assets/chart.js", "/assets/pages/overview.js", "/assets/icon.svg",
		"/assets/vendor/preact-htm.js", "/assets/vendor/uplot.js", "/assets/vendor/uplot.css"} {
		f := h.files[name]
		if f == nil {
			t.Errorf("there is no %s", name)
			continue
		}
		if f.gzip == nil {
			sum += len(f.plain)
		} else {
			sum += len(f.gzip)
		}
	}
	if sum >= 75_000 {
		t.Errorf("the first load is %d bytes, want less than 75,000", sum)
	}
	t.Logf("the first load is %d bytes", sum)
}

// A page of what belongs to no namespace asks first whether it may, and tells somebody who is bound to one why there
// is nothing to see.
func TestPagesOfNoNamespaceExplain(t *testing.T) {
	for name, operations := range map[string][]string{"gates": {"listGates", "listGated"},
		"health": {"examine", "listPartitions", "listTokenKeys"}, "overview": {"examine"}} {
		text, err := files.ReadFile("assets/pages/" + name + ".js")
		says := "<${Bound} what="
		if name == "overview" { // it has something for everybody
			says = "You see what belongs to the namespace"
		}
		if err != nil || !strings.Contains(string(text), says) {
			t.Errorf("%s does not say why it is empty (%v)", name, err)
		}
		for _, o := range operations {
			if !strings.Contains(string(text), `may("`+o+`")`) && !strings.Contains(string(text), `ask("`+o+`", `) {
				t.Errorf("%s does not ask whether %s is allowed", name, o)
			}
		}
	}
}

// A page that is embedded has its own name, colours and way to sign in, and refuses what it could not show.
func TestEmbedding(t *testing.T) {
	h, err := New(Config{API: http.HandlerFunc(api), Title: "Acme <Jobs>", SignInURL: "/login?to={return}",
		Colors: map[string]string{"main": "#123456", "dark-main": "#abc"}})
	must.No(t, err)
	index := ask(h, "GET", "/").Body.String()
	for _, want := range []string{`<meta name="flowfabric-title" content="Acme &lt;Jobs&gt;">`,
		`<meta name="flowfabric-sign-in" content="/login?to={return}">`, `href="assets/theme.css"`} {
		if !strings.Contains(index, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	w := ask(h, "GET", "/assets/theme.css")
	if css := w.Body.String(); !strings.Contains(css, ":root{--main:#123456;}") ||
		!strings.Contains(css, ":root[data-theme=dark]{--main:#abc;}") ||
		w.Header().Get("Content-Type") != medias[".css"] {
		t.Errorf("%s %s", w.Header(), css)
	}
	if ask(aPage(t), "GET", "/assets/theme.css").Header().Get("X-Api") == "" {
		t.Error("there is a theme without colours")
	}
	for field, cfg := range map[string]Config{
		"Title":                    {Title: strings.Repeat("x", 41)},
		"SignInURL \"javascript":   {SignInURL: "javascript:alert(1)"},
		"SignInURL \"//evil":       {SignInURL: "//evil.example"},
		`Colors["main"]`:           {Colors: map[string]string{"main": "red;}body{display:none"}},
		`there is no colour "hue"`: {Colors: map[string]string{"hue": "#fff"}},
	} {
		cfg.API = http.HandlerFunc(api)
		if _, err := New(cfg); !errors.Is(err, flowfabric.ErrConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
