//go:build unix

package crash_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// process is a child that talks in lines. It is gone when the test ends.
type process struct {
	name  string
	cmd   *exec.Cmd
	input io.WriteCloser
	lines chan string
	done  chan struct{} // closed when it has ended; err is its result
	err   error
}

func launch(t testing.TB, name string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{name: name, cmd: cmd, lines: make(chan string, 100_000), done: make(chan struct{})}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must.No(t, err)
	if p.input, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	must.No(t, cmd.Start())
	go func() { // ends with the process, whose end cleanup waits for
		defer close(p.done)
		s := bufio.NewScanner(out)
		for s.Scan() {
			p.lines <- s.Text()
		}
		p.err = cmd.Wait()
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends the process as a crash does and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

func (p *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("%s to %s: %v", s, p.name, err)
	}
}

// ended waits for a process that was asked to stop, and fails the test unless it ended cleanly.
func (p *process) ended(t testing.TB) {
	t.Helper()
	select {
	case <-p.done:
	case <-testwait.End(t):
		t.Fatalf("%s does not stop", p.name)
	}
	if p.err != nil {
		t.Errorf("%s ended with %v", p.name, p.err)
	}
}

// expect waits for a line with the prefix and returns the rest.
func (p *process) expect(t testing.TB, prefix string) string {
	t.Helper()
	end := testwait.End(t)
	for {
		select {
		case line := <-p.lines:
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				return rest
			}
		case <-p.done:
			t.Fatalf("worker %s ended while waiting for %q", p.name, prefix)
		case <-end:
			t.Fatalf("worker %s never said %q", p.name, prefix)
		}
	}
}
