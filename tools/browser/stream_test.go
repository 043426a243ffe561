package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// counting writes so many numbered frames, one after the other, and slowly enough that somebody can reload and kill
// in between.
const counting = 60

var count = handler.Define[int, int]("count", flowfabric.Retries(0))

// workerURL is set in the process of a worker.
const workerURL = "FLOWFABRIC_BROWSER_WORKER"

// TestWorkerProcess is the worker that the test kills: this program, in a process of its own.
func TestWorkerProcess(t *testing.T) {
	url := os.Getenv(workerURL)
	if url == "" {
		t.Skip("it is run by TestStreamSurvivesReloadAndKill")
	}
	w, err := runtime.New(runtime.Config{URL: url, LeaseTTL: time.Second, Logger: slog.New(slog.DiscardHandler)},
		handler.Bind(count, func(ctx context.Context, t *handler.Task, n int) (int, error) {
			for i := range n {
				if err := t.Frame(ctx, "number", strconv.Itoa(i)); err != nil {
					return 0, err
				}
				select {
				case <-time.After(30 * time.Millisecond):
				case <-ctx.Done():
					return 0, context.Cause(ctx)
				}
			}
			return n, nil
		}))
	must.No(t, err)
	must.No(t, w.Run(t.Context()))
}

func startWorker(t *testing.T, url string) *exec.Cmd {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run", "^TestWorkerProcess$", "-test.timeout", "0")
	command.Env = append(os.Environ(), workerURL+"="+url)
	must.No(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	return command
}

// page follows an execution and keeps what it has seen, and where it was, for the case that it is loaded again.
const page = `<!doctype html><title>following</title><script>
const seen = JSON.parse(sessionStorage.getItem("seen") || '{"list":[],"last":""}')
const source = new EventSource("/v1/executions/%s/events?access_token=%s&after=" + seen.last)
function note(text, e) {
  seen.list.push(text)
  seen.last = e.lastEventId
  sessionStorage.setItem("seen", JSON.stringify(seen))
}
for (const kind of ["attempt", "frame", "gap", "attempt_end", "retry", "end"])
  source.addEventListener(kind, e => {
    const d = JSON.parse(e.data)
    note([d.kind, d.attempt, d.frame ? d.frame.text : d.attempt_type || d.reason || d.state || ""].join(" "), e)
    if (kind === "end") { source.close(); document.title = "ended" }
  })
</script>`

// The page in the documents shows each piece of the output once, from another origin, when the worker is killed in
// the middle.
func TestDocumentedPage(t *testing.T) {
	b := openBrowser(t)
	silent := slog.New(slog.DiscardHandler)
	store, err := embedded.Start(t.Context(), embedded.Config{Addr: "127.0.0.1:0", Logger: silent})
	must.No(t, err)
	defer store.Close()
	c, err := client.Connect(t.Context(),
		client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: store.URL(), Logger: silent})
	must.No(t, err)
	defer c.Close()
	text, err := os.ReadFile("../../docs/how-to/http.md")
	must.No(t, err)
	_, after, _ := strings.Cut(string(text), "```html\n")
	html, _, found := strings.Cut(after, "```\n")
	if !found || strings.Count(html, "http://127.0.0.1:7788") != 1 {
		t.Fatalf("the page in http.md is %q", html)
	}
	var base string
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path != "/token" {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, strings.Replace(html, "http://127.0.0.1:7788", base, 1))
			return
		}
		answer, err := http.Post(base+"/v1/executions/"+q.URL.Query().Get("id")+"/stream-token", "application/json",
			strings.NewReader(`{"life_s":60}`))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		_, _ = io.Copy(w, answer.Body)
	}))
	defer app.Close()
	defer app.CloseClientConnections()
	api, err := httpapi.New(httpapi.Config{Admin: admin.New(c), Authorize: httpapi.Open,
		AllowedOrigins: []string{app.URL}, Logger: silent})
	must.No(t, err)
	web := httptest.NewServer(api)
	defer web.Close()
	defer web.CloseClientConnections()
	base = web.URL

	first := startWorker(t, store.URL())
	exec, err := client.Submit(b.ctx, c, count, counting)
	must.No(t, err)
	b.do(chromedp.Navigate(app.URL + "/?id=" + exec.ID().String()))
	b.wait(`document.querySelector("#text").textContent.startsWith("012345678910")`)
	if err := first.Process.Kill(); err != nil { // SIGKILL
		t.Fatal(err)
	}
	startWorker(t, store.URL())
	b.wait(`document.title === "completed"`)
	want := ""
	for i := range counting {
		want += strconv.Itoa(i)
	}
	b.want(`document.querySelector("#text").textContent`, want)
	if x, err := c.Execution(exec.ID()).Get(b.ctx); err != nil || x.Reclaims != 1 {
		t.Errorf("the worker was not lost in the middle: %+v, %v", x, err)
	}
	b.quiet("favicon.ico")
}

// A page that is loaded again in the middle of a stream, while the worker is killed, has everything of every attempt
// once, and is told of the new attempt.
func TestStreamSurvivesReloadAndKill(t *testing.T) {
	b := openBrowser(t)
	ctx := b.ctx
	silent := slog.New(slog.DiscardHandler)
	store, err := embedded.Start(t.Context(), embedded.Config{Addr: "127.0.0.1:0", Logger: silent})
	must.No(t, err)
	defer store.Close()
	c, err := client.Connect(t.Context(),
		client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: store.URL(), Logger: silent})
	must.No(t, err)
	defer c.Close()
	api, err := httpapi.New(httpapi.Config{Admin: admin.New(c), Authorize: httpapi.Open, Logger: silent})
	must.No(t, err)
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("GET /page", func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, page, q.URL.Query().Get("id"), q.URL.Query().Get("token"))
	})
	web := httptest.NewServer(mux)
	defer web.Close()
	defer web.CloseClientConnections()

	first := startWorker(t, store.URL())
	exec, err := client.Submit(ctx, c, count, counting)
	must.No(t, err)
	answer, err := http.Post(web.URL+"/v1/executions/"+exec.ID().String()+"/stream-token", "application/json",
		strings.NewReader(`{}`))
	must.No(t, err)
	var made struct {
		Token string `json:"access_token"`
	}
	must.No(t, json.NewDecoder(answer.Body).Decode(&made))
	answer.Body.Close()
	list := func() (seen []string) {
		t.Helper()
		must.No(t, json.Unmarshal([]byte(b.text(`JSON.stringify(seen.list)`)), &seen))
		return seen
	}
	until := func(what string) {
		t.Helper()
		testwait.Progress(t, what, func() (bool, any) {
			seen := list()
			return slices.Contains(seen, what), fmt.Sprintf("%q", seen)
		})
	}
	link := web.URL + "/page?id=" + exec.ID().String() + "&token=" + made.Token
	b.do(chromedp.Navigate(link))
	until("frame 1 10")
	if err := first.Process.Kill(); err != nil { // SIGKILL
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(link)) // the same page again: only its session storage is left
	startWorker(t, store.URL())
	until("frame 2 5")
	b.do(chromedp.Navigate(link)) // the same page again: only its session storage is left
	until("end 2 completed")

	seen, at := list(), 0
	want := func(text string) {
		t.Helper()
		if at >= len(seen) || seen[at] != text {
			t.Fatalf("event %d is not %q: %q", at, text, seen)
		}
		at++
	}
	want("attempt 1 initial")
	frames := 0
	for ; at < len(seen) && strings.HasPrefix(seen[at], "frame 1 "); frames++ {
		want(fmt.Sprint("frame 1 ", frames))
	}
	if frames < 11 || frames >= counting {
		t.Errorf("the first attempt had %d frames when it was killed", frames)
	}
	want("attempt_end 1 lease_expired")
	if at < len(seen) && strings.HasPrefix(seen[at], "retry ") {
		want("retry 2 reclaim")
	}
	want("attempt 2 reclaim")
	for i := range counting {
		want(fmt.Sprint("frame 2 ", i))
	}
	want("attempt_end 2 attempt_success")
	want("end 2 completed")
	if at != len(seen) {
		t.Errorf("more came: %q", seen[at:])
	}
}
