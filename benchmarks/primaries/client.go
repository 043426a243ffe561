package primaries

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/systems/flowfabric"
)

// at is a server that another process has started.
type at struct {
	driver.Server
	url string
}

func (s at) URL() string { return s.url }

// Client is a client process. It prepares, waits for a line of in, and then works, or submits while it works, until in
// ends, which also happens when the process that started it dies. It says its number, how many jobs it has handled and
// when the last one; no moment says that it is ready.
func Client(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var number, partitions, concurrency, jobs int
	var scenario, url string
	if _, err := fmt.Sscan(strings.Join(args, " "), &number, &scenario, &url, &partitions, &concurrency,
		&jobs); err != nil {
		return fmt.Errorf("primaries client: %q: %w", args, err)
	}
	store, err := flowfabric.System{}.Open(ctx, at{url: url}, driver.Settings{Partitions: partitions, Typed: true})
	if err != nil {
		return err
	}
	defer store.Close()
	all := slices.Repeat([][]byte{[]byte(strings.Repeat("x", 256-driver.Envelope))}, jobs)
	fill := func() error { return store.SubmitMany(ctx, all) }
	submit := func() error {
		p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError().WithMaxGoroutines(concurrency)
		for _, payload := range all {
			p.Go(func(ctx context.Context) error { return store.Submit(ctx, payload) })
		}
		return p.Wait()
	}
	var handled, last atomic.Int64
	var stop func() error
	work := func() (err error) {
		stop, err = store.Work(ctx, driver.Worker{Concurrency: concurrency, Handle: func(context.Context, []byte) {
			last.Store(time.Now().UnixNano())
			handled.Add(1)
		}})
		return err
	}
	prepare, do := fill, work
	if scenario == "lifecycle" {
		prepare, do = work, submit
	}
	if err := prepare(); err != nil {
		return err
	}
	fmt.Fprintln(out, number, 0, 0)
	orders := bufio.NewReader(in)
	if _, err := orders.ReadString('\n'); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	over, end := context.WithCancel(ctx)
	p := pool.New().WithErrors()
	p.Go(func() error {
		defer end()
		_, err := io.Copy(io.Discard, orders)
		return err
	})
	tell := time.NewTicker(time.Millisecond)
	defer tell.Stop()
	for told := int64(0); over.Err() == nil; {
		select {
		case <-tell.C:
		case <-over.Done():
			err = stop()
		}
		if n := handled.Load(); n != told {
			fmt.Fprintln(out, number, n, last.Load())
			told = n
		}
	}
	return errors.Join(err, p.Wait())
}
