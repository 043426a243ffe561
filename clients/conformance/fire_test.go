package conformance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// killed is a program that is killed again and again.
type killed struct {
	t     *testing.T
	start func() *exec.Cmd
	cmd   *exec.Cmd
}

func (k *killed) again() {
	k.end()
	k.cmd = k.start()
	must.No(k.t, k.cmd.Start())
}

// answers waits until an address answers: a server that starts while its store is away ends.
func answers(ctx context.Context, address string) {
	for ctx.Err() == nil {
		if a, err := http.Get("http://" + address + "/v1/openapi.json"); err == nil {
			_ = a.Body.Close()
			return
		}
		time.Sleep(5 * time.Millisecond) // timed: it asks again
	}
}

func (k *killed) end() {
	if k.cmd != nil && k.cmd.Process != nil {
		_ = k.cmd.Process.Kill()
		_ = k.cmd.Wait()
	}
}

// Workers of both languages, the process with the API and the server are killed while they stream and record steps.
// Every execution ends once, with the value that its step recorded, and its stream has each frame once.
func TestUnderFire(t *testing.T) {
	if testing.Short() {
		t.Skip("it is long")
	}
	const jobs, kills = 150, 12
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	ledger, program := filepath.Join(t.TempDir(), "ledger"), command(t)
	redis := testserver.Start(t, testserver.ServerRedis, testserver.AOF())
	npm, node := packaged(t, ctx, "fire.mjs")
	sources, err := filepath.Abs("../python/src")
	must.No(t, err)

	address := freePort(t)
	env := append(os.Environ(), "URL=http://"+address, "LEDGER="+ledger, "PYTHONPATH="+sources,
		"FLOWFABRIC_TOKEN_KEYS="+tokenKeys)
	serve := &killed{t: t, start: func() *exec.Cmd {
		cmd := exec.CommandContext(ctx, program, "serve", "--url", redis.URL(), "--addr", address)
		cmd.Env = env
		return cmd
	}}
	workers := []*killed{
		{t: t, start: func() *exec.Cmd {
			cmd := exec.CommandContext(ctx, "python3", "fire.py")
			cmd.Env = env
			return cmd
		}},
		{t: t, start: func() *exec.Cmd {
			cmd := node.Command(ctx, npm, node.Program, "fire.mjs")
			cmd.Env = append(cmd.Env, env...)
			return cmd
		}},
	}
	for _, k := range append(workers, serve) {
		defer k.end()
		k.again()
	}

	c, err := client.Connect(ctx, client.Config{URL: redis.URL(), TokenKeys: tokenKeys})
	must.No(t, err)
	defer c.Close()
	var all []*client.Execution[string]
	for _, language := range []string{"python", "typescript"} {
		def := handler.Define[int, string]("fire-"+language, flowfabric.Retries(100), handler.MaxReclaims(100))
		for n := range jobs {
			e, err := client.Submit(ctx, c, def, n, flowfabric.Delay(time.Duration(n)*20*time.Millisecond))
			must.No(t, err)
			all = append(all, e)
		}
	}
	var fire conc.WaitGroup
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	fire.Go(func() {
		for n := range kills {
			before := lines(ledger)
			for len(lines(ledger)) < len(before)+2 && len(lines(ledger)) < len(all) && ctx.Err() == nil {
				time.Sleep(5 * time.Millisecond) // timed: it looks again
			}
			switch n % 4 {
			case 2:
				serve.again()
				answers(ctx, address)
			case 3:
				redis.Kill()
				redis.Restart()
			default:
				workers[r.IntN(2)].again()
			}
		}
	})
	results := map[string]string{}
	for _, e := range all {
		result, err := e.Result(ctx)
		must.No(t, err)
		results[e.ID().String()] = result
		if said := frames(t, ctx, e); said != whole {
			t.Errorf("%s: the stream is %q", e.ID(), said)
		}
	}
	fire.Wait()

	paid := map[string][]string{}
	for _, line := range lines(ledger) {
		id, token, _ := strings.Cut(line, "|")
		paid[id] = append(paid[id], token)
	}
	again := 0
	for id, result := range results {
		if !slices.Contains(paid[id], result) {
			t.Errorf("%s ended with %q, which is none of what it paid: %v", id, result, paid[id])
		}
		again += len(paid[id]) - 1
	}
	if most := kills * 16; again > most { // a step that was not recorded yet runs again
		t.Errorf("%d steps ran again, want at most %d", again, most)
	}
	t.Logf("%d executions, %d kills, %d steps ran again before they were recorded", len(all), kills, again)
}

var whole = func() (text string) {
	for i := range 20 {
		text += fmt.Sprintf("%d ", i)
	}
	return text
}()

// frames is the text of an execution as a reader shows it: frames of attempts that were cut off do not count, but for
// those that a recorded step covers.
func frames(t *testing.T, ctx context.Context, e *client.Execution[string]) string {
	t.Helper()
	script, err := e.Transcript(ctx)
	must.No(t, err)
	return script.Text()
}

func lines(path string) []string {
	text, _ := os.ReadFile(path)
	return strings.Fields(strings.ReplaceAll(string(text), " ", "|"))
}
