package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testnode"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/tools/browser/scene"
)

// binaries is where programs are built, once there is one.
var binaries atomic.Pointer[string]

// program is the command flowfabric, chatProgram the example, each built once for all tests.
var (
	program     = sync.OnceValues(func() (string, error) { return build("../..", "./cmd/flowfabric", "flowfabric") })
	chatProgram = sync.OnceValues(func() (string, error) { return build("../../examples/chat", ".", "chat") })
)

func build(dir, pkg, name string) (string, error) {
	to, err := os.MkdirTemp("", "flowfabric-browser")
	if err != nil {
		return "", err
	}
	if !binaries.CompareAndSwap(nil, &to) { // another one is there
		_ = os.Remove(to)
		to = *binaries.Load()
	}
	path := filepath.Join(to, name)
	build := exec.Command("go", "build", "-tags", "no_openai,no_anthropic", "-o", path, pkg) // the chat without SDKs
	build.Dir = dir
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	return path, nil
}

// TestMain removes what was built.
func TestMain(m *testing.M) {
	code := m.Run()
	if dir := binaries.Load(); dir != nil {
		_ = os.RemoveAll(*dir)
	}
	_ = os.RemoveAll(pageFolder)
	os.Exit(code)
}

// roles have a token each in the tests.
var roles = []httpapi.Role{httpapi.Viewer, httpapi.Producer, httpapi.Operator, httpapi.Admin, httpapi.Worker}

// deployment is a Redis with the scene, and "flowfabric serve" in a process of its own.
type deployment struct {
	t       *testing.T
	store   string
	scene   *scene.Scene
	client  *client.Client
	admin   *admin.Admin
	secrets map[string]string
	tokens  string // the file
	base    string
	serving *exec.Cmd
	logs    *bytes.Buffer
	reading conc.WaitGroup
}

// deploy starts all of it. Without fill the store is empty.
func deploy(t *testing.T, fill bool) *deployment {
	t.Helper()
	d := stand(t)
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	s, err := scene.Start(ctx, d.store)
	must.No(t, err)
	t.Cleanup(s.Stop)
	d.scene, d.client, d.admin = s, s.Client, s.Admin
	if fill {
		must.No(t, s.Fill(ctx))
	}
	d.serve()
	t.Cleanup(d.kill)
	return d
}

// stand is a Redis, and all that serve needs to begin on it.
func stand(t *testing.T) *deployment {
	t.Helper()
	d := &deployment{t: t, store: testserver.Redis(t), secrets: map[string]string{}}
	var entries []string
	add := func(name string, role httpapi.Role, namespaces ...string) {
		secret, entry, err := httpapi.NewToken(name, role, time.Time{}, namespaces...)
		must.No(t, err)
		d.secrets[name] = secret
		entries = append(entries, entry)
	}
	for _, role := range roles {
		add(string(role), role)
	}
	add("zoe", httpapi.Operator)
	add("blue", httpapi.Operator, "blue")
	d.tokens = filepath.Join(t.TempDir(), "tokens.json")
	must.No(t, os.WriteFile(d.tokens, []byte("["+strings.Join(entries, ",")+"]"), 0o600))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.No(t, err)
	d.base = "http://" + listener.Addr().String() + "/"
	listener.Close()
	return d
}

// serve starts the process and waits until it answers.
func (d *deployment) serve() {
	d.t.Helper()
	path, err := program()
	must.No(d.t, err)
	addr := strings.TrimSuffix(strings.TrimPrefix(d.base, "http://"), "/")
	d.serving = exec.Command(path, "serve", "--url", d.store, "--addr", addr, "--tokens", d.tokens,
		"--trace-url", "https://traces.example/trace/{trace}")
	d.serving.Env = append(os.Environ(), "FLOWFABRIC_TOKEN_KEYS="+scene.Keys)
	pipe, err := d.serving.StderrPipe()
	must.No(d.t, err)
	must.No(d.t, d.serving.Start())
	d.logs = &bytes.Buffer{}
	logs := d.logs
	d.reading.Go(func() {
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			logs.WriteString(lines.Text() + "\n")
		}
	})
	testwait.Until(d.t, "flowfabric serve answers", func() bool {
		answer, err := http.Get(d.base + "readyz")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

func (d *deployment) kill() {
	_ = d.serving.Process.Kill()
	d.reading.Wait()
	_ = d.serving.Wait()
}

// ask asks the API as somebody.
func (d *deployment) ask(name, method, path string, body any) (status int, answer map[string]any) {
	d.t.Helper()
	var text []byte
	var err error
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			d.t.Fatal(err)
		}
	}
	q, err := http.NewRequestWithContext(d.t.Context(), method, d.base+"v1/"+path, bytes.NewReader(text))
	must.No(d.t, err)
	q.Header.Set("Authorization", "Bearer "+d.secrets[name])
	q.Header.Set("Content-Type", "application/json")
	got, err := http.DefaultClient.Do(q)
	must.No(d.t, err)
	defer got.Body.Close()
	_ = json.NewDecoder(got.Body).Decode(&answer)
	return got.StatusCode, answer
}

// submit creates an execution as the producer and returns its id.
func (d *deployment) submit(body map[string]any) string {
	d.t.Helper()
	status, answer := d.ask("producer", "POST", "executions", body)
	if status != http.StatusCreated && status != http.StatusOK {
		d.t.Fatalf("submit: %d %v", status, answer)
	}
	return answer["id"].(string)
}

// until waits until an execution is in a state.
func (d *deployment) until(id, state string) {
	d.t.Helper()
	testwait.Progress(d.t, id+" is "+state, func() (bool, any) {
		_, x := d.ask("viewer", "GET", "executions/"+id, nil)
		return x["state"] == state, x["state"]
	})
}

// axe is the source of the rules of accessibility.
func axe(t *testing.T) string {
	t.Helper()
	dir, _ := testnode.Installed(t, "testdata/axe")
	source, err := os.ReadFile(filepath.Join(dir, "node_modules/axe-core/axe.min.js"))
	must.No(t, err)
	return string(source)
}
