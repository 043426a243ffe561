// Command worker is the program that the tests of internal/crash kill: a worker of the mix, or a producer of it.
// It ends when its standard input does, so that nothing outlives a test that dies.
//
// Failure story: it has none of its own, that is the point. What it must not lose is in its journal.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/crash"
	"github.com/flowfabric/flowfabric-go/runtime"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	journal, err := crash.OpenJournal(os.Getenv("FF_CRASH_JOURNAL"))
	if err != nil {
		return err
	}
	defer func() { _ = journal.Close() }()
	if os.Getenv("FF_CRASH_ROLE") == "producer" {
		return produce(ctx, journal)
	}
	return work(ctx, journal)
}

func work(ctx context.Context, journal *crash.Journal) error {
	ctx, cancel := context.WithCancel(ctx) // not stop, which would let a second signal kill the process
	defer cancel()
	url, release, err := journal.Listen(os.Getenv("FF_CRASH_URL"))
	if err != nil {
		return err
	}
	defer release()
	ttl, err := time.ParseDuration(os.Getenv("FF_CRASH_TTL"))
	if err != nil {
		return err
	}
	drain := 10 * time.Second
	if text := os.Getenv("FF_CRASH_DRAIN"); text != "" {
		if drain, err = time.ParseDuration(text); err != nil {
			return err
		}
	}
	name := os.Getenv("FF_CRASH_NAME")
	level := slog.LevelError
	if os.Getenv("FF_CRASH_VERBOSE") != "" {
		level = slog.LevelInfo
	}
	w, err := runtime.New(runtime.Config{
		URL: url, Instance: name, LeaseTTL: ttl, Concurrency: 16, DrainTimeout: drain,
		TokenKeys: "crash:" + strings.Repeat("c7", 32), // all processes sign with the same key
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})),
	}, crash.Bind(name))
	if err != nil {
		return err
	}
	var input sync.WaitGroup
	input.Go(func() { // not waited for when a signal ends the process: reading stdin cannot be cut short
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			continue
		}
		cancel()
	})
	var ready sync.WaitGroup
	defer ready.Wait()
	ready.Go(func() {
		again := time.NewTicker(2 * time.Millisecond)
		defer again.Stop()
		for w.Ready() != nil {
			select {
			case <-ctx.Done():
				return
			case <-again.C:
			}
		}
		fmt.Println("ready")
	})
	defer cancel()
	return w.Run(ctx)
}

// produce submits the jobs 0, 1, 2 … as far as standard input allows ("upto <n>" lines), in batches under
// idempotency keys, and goes on where the journal of a predecessor ends.
func produce(ctx context.Context, journal *crash.Journal) error {
	next := 0
	err := crash.ReadJournal(os.Getenv("FF_CRASH_JOURNAL"), nil, nil, func(b crash.Batch) {
		if b.What != "sent" {
			next = b.First + b.Count
		}
	})
	if err != nil {
		return err
	}
	patience, err := time.ParseDuration(os.Getenv("FF_CRASH_PATIENCE"))
	if err != nil {
		return err
	}
	partitions, err := strconv.ParseUint(os.Getenv("FF_CRASH_PARTITIONS"), 10, 16)
	if err != nil {
		return err
	}
	c, err := client.Connect(ctx, client.Config{URL: os.Getenv("FF_CRASH_URL"), SubmitTimeout: patience,
		Partitions: uint16(partitions)})
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() && ctx.Err() == nil {
		var limit int
		if _, err := fmt.Sscanf(lines.Text(), "upto %d", &limit); err != nil {
			return err
		}
		for next < limit && ctx.Err() == nil {
			n := min(100, limit-next)
			submit(ctx, c, journal, next, n)
			next += n
			fmt.Println("at", next)
		}
	}
	return nil
}

// submit repeats a batch until it is acknowledged; of every fifth batch it does not care to know.
func submit(ctx context.Context, c *client.Client, journal *crash.Journal, first, n int) {
	jobs := make([]crash.Job, n)
	for i := range jobs {
		jobs[i].Index = first + i
	}
	journal.Note("sent %d %d", first, n)
	for ctx.Err() == nil {
		_, err := client.SubmitMany(ctx, c, crash.Mix, jobs,
			client.Keys(func(i int) flowfabric.Key { return flowfabric.IdempotencyKey(jobs[i].Key()) }))
		if err == nil {
			journal.Note("acked %d %d", first, n)
			return
		}
		if _, unknown := errors.AsType[*client.UnknownOutcomeError](err); unknown && first/100%5 == 4 {
			journal.Note("unknown %d %d", first, n)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}
