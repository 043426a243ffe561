package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

// gap is the time between two lines of counts, so that telling costs nothing that shows. The last job is told so much
// late.
const gap = time.Millisecond

// Work does a task: it says that it is ready, works from the first line of input until its end, and tells counts
// meanwhile.
func Work(ctx context.Context, system driver.System, t Task, in io.Reader, out io.Writer) error {
	store, err := system.Open(ctx, attached(t.URL), driver.Settings{Partitions: t.Partitions, Typed: t.Typed})
	if err != nil {
		return fmt.Errorf("open a store of %s: %w", system.Name(), err)
	}
	defer store.Close()
	if _, err := fmt.Fprintln(out, ready); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	if !lines.Scan() { // never let go
		return lines.Err()
	}
	c := &counts{some: make(chan struct{}, 1), out: out}
	var telling conc.WaitGroup
	telling.Go(c.tell)
	stop, err := store.Work(ctx, driver.Worker{Handle: c.handle, Concurrency: t.Concurrency, Counts: true})
	if err == nil {
		for lines.Scan() { //nolint:revive // nothing else is said
		}
		err = errors.Join(lines.Err(), stop())
	}
	close(c.some)
	telling.Wait()
	return errors.Join(err, c.err)
}

// counts tells how many jobs were handled since it last told.
type counts struct {
	handled atomic.Int64
	some    chan struct{}
	out     io.Writer
	err     error // of the first line that could not be written
}

func (c *counts) handle(context.Context, []byte) {
	c.handled.Add(1)
	select {
	case c.some <- struct{}{}:
	default: // there is news already
	}
}

// tell ends when some is closed and everything is told.
func (c *counts) tell() {
	for range c.some {
		c.line()
		time.Sleep(gap)
	}
	c.line()
}

func (c *counts) line() {
	if n := c.handled.Swap(0); n > 0 && c.err == nil {
		_, c.err = fmt.Fprintln(c.out, n)
	}
}
