package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sourcegraph/conc"
	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/clientmodels"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testnode"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// env is main.go's part in this process.
type env struct {
	*testing.T
	client *client.Client
	base   string
	out    output
}

// output is what main.go prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func start(t *testing.T, page, question string) *env {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.No(t, err)
	c, err := client.Connect(t.Context(), client.Config{URL: embedded.URL}) // the store that run uses, too
	must.No(t, err)
	e := &env{T: t, client: c, base: "http://" + listener.Addr().String()}
	ctx, stop := context.WithCancel(context.Background())
	var running conc.WaitGroup
	running.Go(func() {
		if err := run(ctx, options{url: embedded.URL, page: page, question: question}, listener, &e.out); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
		c.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return e
}

// call asks main.go for a page, or for a route of the API with a body. into is a *string or takes JSON.
func (e *env) call(method, path, body string, into any) {
	e.Helper()
	ctx, cancel := testwait.Context(e, e.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, e.base+path, strings.NewReader(body))
	must.No(e, err)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	must.No(e, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must.No(e, err)
	if answer.StatusCode != http.StatusOK {
		e.Fatalf("%s %s: %s %s", method, path, answer.Status, text)
	}
	if page, ok := into.(*string); ok {
		*page = string(text)
		return
	}
	must.No(e, json.Unmarshal(text, into))
}

// Seconds of a lease: of a worker that is killed, and of one that may be slow.
const short, longest = 2, 600

// worker starts worker.py, which adds to the file what it prints.
func (e *env) worker(file string, lease int) (kill func()) {
	e.Helper()
	python, err := exec.LookPath("python3")
	if err == nil {
		err = exec.CommandContext(e.Context(), python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))").Run()
	}
	if err != nil && os.Getenv("CI") == "" {
		e.Skip("there is no python3 of version 3.11 or newer")
	}
	must.No(e, err)
	printed, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must.No(e, err)
	defer printed.Close()
	cmd := exec.Command(python, "worker.py")
	cmd.Env = append(os.Environ(), "FLOWFABRIC_API="+e.base, fmt.Sprint("LEASE_SECONDS=", lease),
		"PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=../../clients/python/src")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = printed, &log
	must.No(e, cmd.Start())
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if e.Failed() || strings.Contains(log.String(), "Traceback") {
			e.Errorf("the worker said:\n%s", log.String())
		}
	})
	e.Cleanup(kill)
	return kill
}

// answerTo is what worker.py writes.
func answerTo(question string) (answer string) {
	for _, part := range []string{"What is known?", "What is disputed?", "What comes next?"} {
		answer += part + " A model would write a paragraph about “" + question + "” here, but this is one sentence.\n"
	}
	return answer
}

// A worker is killed in the middle of the second paragraph. The next one goes on with that paragraph: the plan is not
// made again, and the first paragraph is not written again. Then a person answers, and main.go publishes.
func TestResearch(t *testing.T) {
	e := start(t, "page", "Why do cats purr?")
	plans := filepath.Join(t.TempDir(), "plans")
	kill := e.worker(plans, short)
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	var found struct {
		Items []struct{ ID flowfabric.ExecutionID }
	}
	testwait.Until(t, "main.go submits", func() bool {
		e.call("GET", "/v1/executions?kind=research", "", &found)
		return len(found.Items) == 1
	})
	id := found.Items[0].ID

	attempts := map[uint32]string{}
	var shown stream.Transcript
	for event, err := range e.client.Execution(id).Tail(ctx, client.WithoutChildren()) {
		must.No(t, err)
		shown.Add(event)
		switch event.Kind {
		case stream.TailFrame:
			attempts[event.Attempt] += string(event.Frame.Payload)
			if event.Attempt == 1 && strings.HasSuffix(attempts[1], "disputed? A ") {
				kill()
				e.worker(plans, longest)
			}
		case stream.TailSuspended:
			if q := event.Suspension.Question; q != nil && q.Title == "Publish?" && len(q.Choices) == 2 {
				testwait.Until(t, "main.go shows the question, which is over once it is answered", func() bool {
					return strings.Contains(e.out.String(), "Publish? Answer in the page.")
				})
				e.call("POST", "/v1/executions/"+id.String()+"/waitpoints/publish:answer",
					`{"payload":{"choice":"yes","by":"Ann"}}`, &map[string]any{})
			}
		}
	}
	want := answerTo("Why do cats purr?")
	first, rest, _ := strings.Cut(want, "\n")
	if shown.Text() != want {
		t.Errorf("written: %q, want %q", shown.Text(), want)
	}
	if len(attempts) != 2 || !strings.HasPrefix(attempts[1], first+"\nWhat is disputed?") || attempts[2] != rest {
		t.Errorf("the attempts wrote %v", attempts)
	}
	got, err := client.Attach(e.client, research, id).Result(ctx)
	if err != nil || got != (Report{Answer: want, PublishedBy: "Ann"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if text, err := os.ReadFile(plans); err != nil || string(text) != "planning: Why do cats purr?\n" {
		t.Errorf("%v: it planned %q, want once", err, text)
	}
	testwait.Until(t, "main.go prints the result", func() bool {
		return strings.HasSuffix(e.out.String(), "\nPublished by: Ann\n")
	})
	published := fmt.Sprintf("Published: %d bytes.", len(want))
	for _, want := range []string{"[attempt 2 goes on after what was recorded]\n" + first,
		"Publish? Answer in the page.", published} {
		if strings.Count(e.out.String(), want) != 1 {
			t.Errorf("it printed %q, want %q once", e.out.String(), want)
		}
	}
}

// The types in kinds.ts are those that `flowfabric types` makes of what worker.py publishes.
func TestKinds(t *testing.T) {
	e := start(t, "page", "Why do dogs bark?")
	e.worker(filepath.Join(t.TempDir(), "plans"), longest)
	var all apiv1.Schemas
	testwait.Until(t, "worker.py publishes its schemas", func() bool {
		all = apiv1.Schemas{}
		e.call("GET", "/v1/schemas?kind=research", "", &all)
		return len(all.Kinds) == 1
	})
	types, err := clientmodels.OfKinds(all.Kinds)
	must.No(t, err)
	got, err := os.ReadFile("page/kinds.ts")
	if want := types.TypeScript(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v: page/kinds.ts is not what flowfabric types writes:\n%s", err, want)
	}
}

// browser is what the page needs of one: it presses yes, and ends when all is done.
const browser = `
const element = () => ({
  textContent: "", value: "Bob", buttons: [], remove() {}, querySelectorAll() { return this.buttons.splice(0) },
  append(...all) {
    this.buttons.push(...all.filter(one => one.onclick))
    if (!this.hidden) this.buttons.find(one => one.textContent === "yes")?.onclick()
  },
})
const made = {}
globalThis.document = { getElementById: id => (made[id] ??= element()), createElement: element }
globalThis.location = { origin: process.argv[2] }
setInterval(() => {
  const { question, text, status } = made
  if (!status?.textContent.startsWith("published")) return
  console.log([question, text, status].map(one => one.textContent).join("\n"))
  process.exit()
}, 20)
await import(process.argv[3])
`

// The page passes the compiler, and main.go says how to build it before it is, and serves it. It shows what worker.py
// writes, and a click answers.
func TestPage(t *testing.T) {
	if testing.Short() {
		t.Skip("it installs packages of npm")
	}
	dir, node := testnode.Installed(t, "../../clients/typescript")
	page := t.TempDir()
	built := filepath.Join(page, "page.js")
	must.No(t, testnode.Copy("page", page))
	must.No(t, os.RemoveAll(built)) // the copy of one that was built before
	e := start(t, page, "Why do birds sing?")
	testwait.Until(t, "it says how to build the page", func() bool {
		return strings.Contains(e.out.String(), buildPage)
	})

	here, err := filepath.Abs("page")
	must.No(t, err)
	run := func(program string, args ...string) string {
		t.Helper()
		ctx, cancel := testwait.Context(t, t.Context())
		defer cancel()
		cmd := node.Command(ctx, dir, program, args...)
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v:\n%s", cmd, err, text)
		}
		return string(text)
	}
	tools := filepath.Join(dir, "node_modules", ".bin")
	run(filepath.Join(tools, "tsc"), "--strict", "--project", here)
	run(filepath.Join(tools, "esbuild"), filepath.Join(here, "page.ts"), "--bundle", "--format=esm", "--outfile="+built)
	for path, want := range map[string]string{"/": `src="page.js"`, "/page.js": "published by"} {
		var got string
		if e.call("GET", path, "", &got); !strings.Contains(got, want) {
			t.Errorf("%s has no %q", path, want)
		}
	}

	e.worker(filepath.Join(t.TempDir(), "plans"), longest)
	must.No(t, os.WriteFile(filepath.Join(page, "package.json"), []byte(`{"type":"module"}`), 0o600))
	must.No(t, os.WriteFile(filepath.Join(page, "browser.js"), []byte(browser), 0o600))
	const question = "Why do birds sing?"
	want := question + "\n" + answerTo(question) + "\npublished by Bob\n"
	if got := run(node.Program, filepath.Join(page, "browser.js"), e.base, built); got != want {
		t.Errorf("the page showed %q, want %q", got, want)
	}
}
