package child

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

// stopTimeout bounds how long a child may take to end when it is told to.
const stopTimeout = 30 * time.Second

// Start starts a child and waits until it is ready. handled is told of the jobs that it handled, by one goroutine.
// The end of ctx kills it.
func Start(ctx context.Context, t Task, handled func(n int)) (driver.Spawned, error) {
	program, err := os.Executable()
	if err != nil {
		return driver.Spawned{}, fmt.Errorf("find this program: %w", err)
	}
	task, err := json.Marshal(t)
	if err != nil {
		return driver.Spawned{}, err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), variable+"="+string(task))
	c := &started{cmd: cmd}
	cmd.Stderr = &c.said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return driver.Spawned{}, err
	}
	if c.in, err = cmd.StdinPipe(); err != nil {
		return driver.Spawned{}, err
	}
	if err := cmd.Start(); err != nil {
		return driver.Spawned{}, fmt.Errorf("start a worker's process: %w", err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != ready {
		c.err = fmt.Errorf("a worker's process says %q first, want %q", lines.Text(), ready)
		return driver.Spawned{}, c.stop()
	}
	c.reader.Go(func() { c.err = count(lines, handled) })
	return driver.Spawned{PID: cmd.Process.Pid, Begin: c.begin, Stop: c.stop}, nil
}

// started is a child as its parent sees it.
type started struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	reader conc.WaitGroup
	err    error        // of what it says; the reader's until that has ended
	said   bytes.Buffer // on stderr; complete when the process has been waited for
}

func (c *started) begin(context.Context) error {
	if _, err := io.WriteString(c.in, "go\n"); err != nil {
		return fmt.Errorf("let a worker's process begin: %w", err)
	}
	return nil
}

// stop closes the child's input, and waits until it has told everything and ended.
func (c *started) stop() error {
	_ = c.in.Close()
	late := time.AfterFunc(stopTimeout, func() { _ = c.cmd.Process.Kill() })
	defer late.Stop()
	c.reader.Wait()
	err := c.cmd.Wait()
	if err != nil {
		err = fmt.Errorf("a worker's process: %w: %s", err, bytes.TrimSpace(c.said.Bytes()))
	}
	return errors.Join(c.err, err)
}

// count reads a child's counts until it ends.
func count(lines *bufio.Scanner, handled func(n int)) error {
	for lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		if err != nil || n < 1 {
			return fmt.Errorf("a worker's process says %q, want a number of jobs", lines.Text())
		}
		handled(n)
	}
	return lines.Err()
}
