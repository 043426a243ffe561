package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// devProcess is flowfabric dev in a process of its own.
type devProcess struct {
	announcement
	kill func()
}

func startDev(t *testing.T, dir string) devProcess {
	t.Helper()
	exe, err := os.Executable()
	must.No(t, err)
	cmd := exec.Command(exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), asCommand+"=dev --json --addr 127.0.0.1:0 --data "+dir)
	var out, errOut output
	cmd.Stdout, cmd.Stderr = &out, &errOut
	must.No(t, cmd.Start())
	p := devProcess{kill: func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}}
	t.Cleanup(p.kill)
	line := out.await(t, `(?m)^(\{.*\})$`)
	must.No(t, json.Unmarshal([]byte(line), &p.announcement))
	return p
}

// visitor uses a dev server as its handlers and producers do.
type visitor struct {
	*testing.T
	ctx    context.Context
	client *client.Client
	tokens chan suspend.Token
	stop   func()
}

func (p devProcess) visit(t *testing.T) *visitor {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	v := &visitor{T: t, ctx: ctx, tokens: make(chan suspend.Token, 10)}
	quiet := slog.New(slog.DiscardHandler)
	var err error
	v.client, err = client.Connect(ctx, client.Config{URL: p.URL, TokenKeys: p.TokenKeys, Logger: quiet,
		CallTimeout: time.Hour, SubmitTimeout: time.Hour})
	must.No(t, err)
	worker, err := runtime.New(runtime.Config{URL: p.URL, TokenKeys: p.TokenKeys, Logger: quiet},
		handler.Bind(echo, func(_ context.Context, _ *handler.Task, in map[string]any) (map[string]any, error) {
			return in, nil
		}),
		handler.Bind(ask, func(ctx context.Context, t *handler.Task, _ map[string]any) (suspend.Answer, error) {
			token, err := t.Pending(ctx, "editor", time.Hour)
			if err != nil {
				return suspend.Answer{}, err
			}
			v.tokens <- token
			return handler.Await[suspend.Answer](ctx, t, "editor", suspend.Within(48*time.Hour))
		}))
	must.No(t, err)
	running, stop := context.WithCancel(ctx)
	var serving conc.WaitGroup
	serving.Go(func() { _ = worker.Run(running) })
	v.stop = func() {
		stop()
		serving.Wait()
		v.client.Close()
	}
	t.Cleanup(v.stop)
	return v
}

// As somebody who tries it out: a server that is killed goes on when it is started again. The link that was sent before
// works, and a schedule fires once.
func TestKilledDevGoesOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := startDev(t, dir)
	if p.Data != dir {
		t.Errorf("it says that the data is in %q", p.Data)
	}
	before := p.visit(t)
	asking, err := client.Submit(before.ctx, before.client, ask, map[string]any{})
	must.No(t, err)
	_, err = asking.AwaitSuspension(before.ctx)
	must.No(t, err)
	token := <-before.tokens
	before.stop()
	if code, text := command(t, "schedules", "put", "once", "--kind", "echo", "--every", "1s", "--max-runs", "1",
		"--input", `{"n":1}`, "--url", p.URL); code != exitOK {
		t.Fatalf("%d: %s", code, text)
	}
	if code, text := command(t, "index", "set", "--all=false", "--url", p.URL); code != exitOK {
		t.Fatalf("%d: %s", code, text)
	}
	p.kill()

	p = startDev(t, dir)
	// A start does not undo what was set, and is not in the trail.
	if _, text := command(t, "index", "--url", p.URL); !strings.Contains(text, "state by state") {
		t.Errorf("the index after the second start: %s", text)
	}
	if _, text := command(t, "trail", "--on", "store", "--url", p.URL); strings.Count(text, "\n") != 2 ||
		!strings.Contains(text, "set index store, by dev") {
		t.Errorf("the trail of the index: %s", text)
	}
	after := p.visit(t)
	answer, err := http.PostForm(p.API+"/approve", url.Values{"token": {token.Reveal()}, "choice": {"approve"},
		"by": {"anna"}})
	must.No(t, err)
	answer.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the link: %s", answer.Status)
	}
	var got suspend.Answer
	again, err := client.Submit(after.ctx, after.client, ask, map[string]any{}) // the same keys sign
	must.No(t, err)
	_, err = again.AwaitSuspension(after.ctx)
	must.No(t, err)
	raw, err := after.client.Execution(asking.ID()).Result(after.ctx)
	must.No(t, err)
	must.No(t, json.Unmarshal(raw, &got))
	if got.Choice != "approve" || got.By != "anna" {
		t.Errorf("the answer is %+v", got)
	}
	testwait.Progress(t, "the schedule is over", func() (bool, any) {
		_, text := command(t, "schedules", "show", "once", "--json", "--url", p.URL)
		return strings.Contains(text, `"ended"`) || strings.Contains(text, `"over"`), text
	})
	if _, list := command(t, "ls", "--kind", "echo", "--json", "--url", p.URL); strings.Count(list,
		`"kind":"echo"`) != 1 {
		t.Errorf("the schedule did not make one execution: %s", list)
	}
	after.stop()
	p.kill()
	if code, text := onFolder(t, dir, "check"); code != exitOK {
		t.Errorf("check: %d %s", code, text)
	}
}

// command runs one and returns all that it printed.
func command(t *testing.T, args ...string) (code int, text string) {
	t.Helper()
	var out output
	code = run(t.Context(), args, strings.NewReader(""), &out, &out)
	return code, out.String()
}

// onFolder runs a command on the store of a folder.
func onFolder(t *testing.T, dir string, args ...string) (int, string) {
	t.Helper()
	s := serveFolder(t, dir)
	defer s.Close()
	return command(t, append(args, "--url", s.URL())...)
}

func serveFolder(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), embedded.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	t.Cleanup(s.Close)
	return s
}

// The second process on a folder is told who has it, and a backup of a folder in use is the whole store, with the keys
// that its tokens are signed with.
func TestAFolderInUse(t *testing.T) {
	dir, copied := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "copy")
	p := startDev(t, dir)
	v := p.visit(t)
	x, err := client.Submit(v.ctx, v.client, echo, map[string]any{"text": "tides"})
	must.No(t, err)
	_, err = x.Result(v.ctx)
	must.No(t, err)
	for _, line := range []string{"dev --addr 127.0.0.1:0 --data ", "export ",
		"serve --addr 127.0.0.1:0 --store-addr 127.0.0.1:0 --data "} {
		if code, text := command(t, strings.Fields(line+dir)...); code != exitUsage ||
			!strings.Contains(text, "belongs to process ") || !strings.Contains(text, p.URL) {
			t.Errorf("%s: %d %s", line, code, text)
		}
	}
	if code, text := command(t, "backup", dir, copied); code != exitOK {
		t.Fatalf("%d: %s", code, text)
	}
	if code, text := command(t, "backup", dir, copied); code != exitUsage || !strings.Contains(text, "not empty") {
		t.Errorf("over a backup: %d %s", code, text)
	}
	v.stop()
	p.kill()
	if code, text := onFolder(t, copied, "show", "--result", x.ID().String()); code != exitOK ||
		!strings.Contains(text, "tides") {
		t.Errorf("in the backup: %d %s", code, text)
	}
	if code, text := command(t, "store", "inspect", copied); code != exitOK || !strings.Contains(text, ": whole, ") {
		t.Errorf("the backup, inspected: %d %s", code, text)
	}
	logs, err := filepath.Glob(filepath.Join(copied, "log-*.resp"))
	must.No(t, err)
	must.No(t, os.WriteFile(logs[0], []byte("no log"), 0o600))
	if code, text := command(t, "store", "inspect", logs[0]); code != exitFailed || !strings.Contains(text, "DAMAGE") {
		t.Errorf("a damaged file, inspected: %d %s", code, text)
	}
	for _, folder := range []string{dir, copied} {
		if keys, err := tokenkeys.Kept(folder, ""); err != nil || keys != p.TokenKeys {
			t.Errorf("%s has other keys, %v", folder, err)
		}
	}
}

// What cannot be meant is refused by the name of the flag.
func TestDataRefuses(t *testing.T) {
	empty, file, short := t.TempDir(), filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "short")
	must.No(t, os.WriteFile(file, []byte(strings.Repeat("x", 32)), 0o600))
	must.No(t, os.WriteFile(short, []byte("secret\n"), 0o600))
	t.Setenv("FLOWFABRIC_URL", "")
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	must.No(t, err)
	defer busy.Close()
	for line, want := range map[string]string{
		"dev --fsync always":                                                    "--fsync always needs --data",
		"dev --fsync often --data " + empty:                                     "want everysec or always",
		"dev --data " + file:                                                    "file",
		"serve --store-addr 127.0.0.1:0":                                        "--store-addr needs --data",
		"serve --store-password-file " + file:                                   "--store-password-file needs --data",
		"serve --data x --url redis://h":                                        "--data and --url",
		"serve --data x --store-addr 0.0.0.0:0":                                 "--store-password-file",
		"serve --data x --store-password-file /n":                               "--store-password-file",
		fmt.Sprint("serve --data x --store-password-file ", short):              "6 bytes, want 16",
		fmt.Sprint("dev --addr ", busy.Addr()):                                  "--addr names another address",
		fmt.Sprint("serve --data ", t.TempDir(), " --store-addr ", busy.Addr()): "--store-addr names another address",
		fmt.Sprint("dev --addr 127.0.0.1:0 --http ", busy.Addr()):               "--http names another address",
		fmt.Sprint("serve --tokens ", empty, "/none"):                           "'flowfabric token new NAME",
		"ls --url embedded:./data":                                              "logs at its start",
		"ls":                                                                    "redis://host:6379, or use --data",
		"export " + empty:                                                       "no data of FlowFabric",
		"export " + empty + " --json":                                           "--json",
		"export /nowhere/at/all":                                                "/nowhere/at/all",
		"backup " + empty + " x":                                                "no data of FlowFabric",
		"backup " + empty:                                                       "DEST is missing",
		"import " + filepath.Dir(file):                                          "not empty",
		"import x":                                                              "--url",
		"import x --url https://h":                                              "the store itself",
		"store inspect /nowhere --at -1":                                        "--at is -1",
		"store inspect /nowhere":                                                "/nowhere",
	} {
		if code, text := command(t, strings.Fields(line)...); code == exitOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %s", line, code, text, want)
		}
	}
	if _, err := os.Stat("x"); err == nil {
		t.Error("a refused command made its folder")
	}
}
