package crash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

// patience bounds one run. One that takes longer has not ended.
const patience = 90 * time.Second

// outcome is what one run came to.
type outcome struct {
	point  point
	killed bool
	where  string // what was reached when the worker was killed
	wrong  string // why it did not end right; "" if it did

	tokens   int64 // paid
	bookings int   // calls of the bank
	keyed    int   // with different keys
	other    bool  // by a bank that knows keys, a seat is booked that is not the one of the conversation
	twice    int   // tokens that the reader sees again, and is not told to drop
	ruled    int   // the same, by a rule of the application
	dropped  int   // tokens that the reader was told to drop
	lost     int   // tokens of the conversation that the reader did not see

	recovery time.Duration // from the kill to the end
	reached  map[kind][]string
}

// lane makes one run after the other, on a server of its own.
type lane struct {
	system system
	server driver.Server
	ledger *ledger
	dir    string // of the socket between worker and store
}

func openLane(ctx context.Context, s system, program string) (*lane, error) {
	server, err := s.serve(ctx, program)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ffcrash")
	if err != nil {
		server.Stop()
		return nil, err
	}
	return &lane{system: s, server: server, ledger: openLedger(), dir: dir}, nil
}

func (l *lane) close() {
	l.ledger.close()
	l.server.Stop()
	_ = os.RemoveAll(l.dir)
}

// run makes a run whose first worker is killed at a point.
func (l *lane) run(ctx context.Context, at point) (out outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := l.server.Reset(ctx); err != nil {
		return out, err
	}
	c, err := l.system.open(ctx, l.server)
	if err != nil {
		return out, err
	}
	defer c.close()
	defer cancel() // before it, so that nothing follows any more
	w := &watch{at: at}
	account, service := l.ledger.begin(w)
	wire, url, err := l.wire(w)
	if err != nil {
		return out, err
	}
	defer wire.close()
	if err := c.submit(ctx); err != nil {
		return out, fmt.Errorf("submit: %w", err)
	}
	w.mu.Lock() // nothing that the process does counts before it can be killed
	first, err := l.start(ctx, url, service)
	if err == nil {
		w.kill = first.stop
	}
	w.mu.Unlock()
	if err != nil {
		return out, err
	}
	defer first.stop()
	return l.follow(ctx, c, w, account, first, func() (*process, error) {
		wire.cut()
		if err := c.pass(ctx); err != nil {
			return nil, err
		}
		return l.start(ctx, url, service)
	})
}

// follow waits for the end of a run, and replaces the worker when it is killed.
func (l *lane) follow(ctx context.Context, c caller, w *watch, a *account, first *process,
	again func() (*process, error)) (out outcome, err error) {
	out.point = w.at
	var result string
	var failed error
	ended := make(chan struct{})
	var waiting conc.WaitGroup
	waiting.Go(func() {
		defer close(ended)
		result, failed = c.result(ctx)
	})
	defer waiting.Wait()
	select {
	case <-ended:
	case <-first.ended:
		if !w.stop() {
			return out, fmt.Errorf("the worker ended by itself: %w\n%s", first.err, first.said.String())
		}
		died := time.Now()
		second, err := again()
		if err != nil {
			return out, err
		}
		defer second.stop()
		select {
		case <-ended:
		case <-second.ended:
			return out, fmt.Errorf("the second worker ended by itself: %w\n%s", second.err, second.said.String())
		}
		out.recovery = time.Since(died)
	}
	out.killed = w.stop()
	out.where, out.reached = w.last(), w.seen
	if errors.Is(failed, context.DeadlineExceeded) {
		failed = fmt.Errorf("it has not ended in %s", patience)
	}
	if failed != nil {
		out.wrong = failed.Error()
		a.judge(&out, "", nil)
		return out, nil
	}
	shown, dropped, err := c.shown(ctx)
	out.dropped = dropped
	a.judge(&out, result, shown)
	return out, err
}

// wire opens the socket that workers use instead of the store's.
func (l *lane) wire(w *watch) (*wire, string, error) {
	address := l.server.URL()
	path, url := socketOf(l.dir)
	store := socket(address)
	if strings.HasPrefix(address, "postgres:") {
		var err error
		if store, err = postgresSocket(address); err != nil {
			return nil, "", err
		}
		path = filepath.Join(l.dir, filepath.Base(store))
		if url, err = through(address, l.dir); err != nil {
			return nil, "", err
		}
	}
	wire, err := openWire(path, store, w, l.system.talk)
	return wire, url, err
}

// process is a running worker.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	said    strings.Builder // on stderr; to be read when it has ended
	ended   chan struct{}
	err     error
	running conc.WaitGroup
}

func (l *lane) start(ctx context.Context, url, service string) (*process, error) {
	p := &process{ended: make(chan struct{})}
	if l.system.worker != nil {
		p.cmd = l.system.worker(ctx, url, service)
	} else {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		p.cmd = exec.CommandContext(ctx, self, "crash", "worker", l.system.name, url, service)
	}
	p.cmd.Stderr = &p.said
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.running.Go(func() {
		defer close(p.ended)
		p.err = p.cmd.Wait()
	})
	return p, nil
}

// stop kills the process and waits until it has ended.
func (p *process) stop() {
	_ = p.cmd.Process.Kill()
	p.running.Wait()
	_ = p.in.Close()
}
