package crash

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/redis/rueidis"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/systems/bullmq"
)

var bullSteps = system{
	name:  "BullMQ",
	serve: serveBull, talk: respDialect, open: openBull, worker: bullWorker,
	version: func() string { return bullmq.System{}.Version() },
}

// script is a file beside the driver of the other benchmarks, which shares its packages.
func script(name string) string {
	_, file, _, _ := runtime.Caller(0) // benchmarks are run from their sources
	return filepath.Join(filepath.Dir(file), "..", "systems", "bullmq", "node", name)
}

func serveBull(ctx context.Context, program string) (driver.Server, error) {
	return bullmq.System{Program: program, Cold: true}.Serve(ctx) // which says if packages are missing
}

func bullWorker(ctx context.Context, url, service string) *exec.Cmd {
	settings, _ := json.Marshal(map[string]string{"path": socket(url), "service": service})
	return exec.CommandContext(ctx, "node", script("agent.js"), string(settings))
}

// bullCaller is a process that waits for the job.
type bullCaller struct {
	url   string
	redis rueidis.Client
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *json.Decoder
}

func openBull(_ context.Context, s driver.Server) (caller, error) {
	own, err := dialRedis(s.URL())
	return &bullCaller{url: s.URL(), redis: own}, err
}

func (c *bullCaller) submit(ctx context.Context) error {
	settings, err := json.Marshal(map[string]any{"path": socket(c.url), "messages": []message{question}})
	if err != nil {
		return err
	}
	c.cmd = exec.CommandContext(ctx, "node", script("ask.js"), string(settings))
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	c.lines = json.NewDecoder(out)
	return c.lines.Decode(&struct{}{})
}

func (c *bullCaller) result(context.Context) (string, error) { // the end of the submission's context kills the process
	var said struct{ Result, Error string }
	err := c.lines.Decode(&said)
	if said.Error != "" {
		err = errors.New(said.Error)
	}
	return said.Result, err
}

func (c *bullCaller) pass(context.Context) error { return nil } // the lock of a second

func (c *bullCaller) shown(ctx context.Context) ([]string, int, error) {
	tokens, err := readTokens(ctx, c.redis, "bull:agent:events", func(f map[string]string) string {
		var progress struct{ Token string }
		if f["event"] != "progress" || json.Unmarshal([]byte(f["data"]), &progress) != nil {
			return ""
		}
		return progress.Token
	})
	return tokens, 0, err
}

func (c *bullCaller) close() {
	if c.cmd != nil && c.cmd.Process != nil {
		_ = c.in.Close()
		_ = c.cmd.Wait()
	}
	c.redis.Close()
}
