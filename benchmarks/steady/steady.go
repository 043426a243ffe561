// Package steady keeps a server and a worker busy for hours with some of everything, and watches that nothing grows:
// memory, keys and connections of the server; memory, goroutines and files of the process.
//
//	producers, one per kind of work: submit ─▶ wait for its end, check it ─▶ rest ─▶ again      a schedule: every second
//	worker                          ─┐
//	samples every minute             ├─ one process ──▶ one server with an append-only file
//	retention of seconds            ─┘  in the end: all work has ended and is purged, an audit finds nothing
//
// What is purged leaves its id taken for up to a day. So that these come to rest within the run, too, they are freed
// after [taken]. A run with a directory may be killed at any time; the next one with it goes on with its store and
// its samples.
package steady

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// Options of a run.
type Options struct {
	Server string        // program to start
	For    time.Duration // how long work is submitted, by all runs together
	Every  time.Duration // between two samples
	Rest   time.Duration // of a producer between two pieces of work
	Keep   time.Duration // retention of all work, 1 s or more
	Twins  int           // producers of each kind of work
	Only   string        // the one kind of work; "" = all
	// of the store and the samples, which a run that ended early has left or this one will; "" = none
	Dir string
}

const (
	tokenKeys = "steady:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	scheduled = "every second"
	// settling bounds how long the end of the work, and the purge, may take.
	settling = 3 * time.Minute
	// taken is for how long the id of purged work stays taken here.
	taken = 5 * time.Minute
)

// Run submits for as long as it should, prints every sample, and says what has grown. Work that ends otherwise than
// it must ends the run.
func Run(ctx context.Context, o Options, out io.Writer) error {
	past, err := earlier(&o)
	if err != nil {
		return err
	}
	s, err := server.StartIn(ctx, o.Server, o.Dir)
	if err != nil {
		return err
	}
	defer s.Stop()
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.Connect(ctx, client.Config{URL: s.URL(), Logger: quiet, TokenKeys: tokenKeys, Creator: "steady"})
	if err != nil {
		return err
	}
	defer c.Close()
	w, err := runtime.New(runtime.Config{URL: s.URL(), Logger: quiet, TokenKeys: tokenKeys, LeaseTTL: 5 * time.Second},
		bindings(o.Keep)...)
	if err != nil {
		return err
	}
	run := &steady{Options: o, server: s, client: c, admin: admin.New(c), samples: past}
	working, stop := context.WithCancel(ctx)
	defer stop()
	workers := pool.New().WithErrors().WithContext(ctx).WithCancelOnError().WithFirstError()
	workers.Go(func(ctx context.Context) error {
		defer stop()
		return errors.Join(w.Run(working), ctx.Err())
	})
	workers.Go(func(ctx context.Context) error {
		defer stop()
		return run.all(ctx, out)
	})
	return workers.Wait()
}

type steady struct {
	Options
	server *server.Server
	client *client.Client
	admin  *admin.Admin
	done   atomic.Int64 // pieces of work that ended as they must

	samples []sample // in order, those of earlier runs first
}

// all is a run beside its worker.
func (s *steady) all(ctx context.Context, out io.Writer) error {
	var past sample // what earlier runs came to
	if n := len(s.samples); n > 0 {
		past = s.samples[n-1]
		s.done.Store(past.Done)
		// what waits for a producer that is no more
		left, err := s.admin.Bulk(ctx, admin.Filter{}, admin.BulkAction{Cancel: true}, admin.BulkOptions{})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "goes on with %d samples of %s; %d executions were left and are cancelled\n", n, past.After,
			left.Done)
	}
	all, err := s.only()
	if err != nil {
		return err
	}
	spec := schedule.Every(time.Second, time.Time{})
	if _, err := client.Schedule(ctx, s.client, scheduled, spec, plain, "scheduled",
		flowfabric.Retention(s.Keep)); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, for %s, retention %s, %d producers of each of %d kinds of work, which rest %s\n\n",
		s.server.Name(), s.For, s.Keep, s.Twins, len(all), s.Rest)
	fmt.Fprint(out, heading)
	producing, stop := context.WithTimeout(ctx, s.For-past.After)
	defer stop()
	both := pool.New().WithErrors().WithContext(ctx).WithCancelOnError().WithFirstError()
	both.Go(func(ctx context.Context) error { return s.produce(ctx, producing, all) })
	both.Go(func(ctx context.Context) error { return s.watch(ctx, producing, past.After, out) })
	if err := both.Wait(); err != nil {
		return err
	}
	return errors.Join(s.settle(ctx, out), judge(s.samples, out))
}

// kinds are kinds of work by their names.
type kinds = map[string]func(ctx context.Context, name string) error

// produce runs all producers until producing ends; what they have begun they bring to its end.
func (s *steady) produce(ctx, producing context.Context, all kinds) error {
	producers := pool.New().WithErrors().WithContext(ctx).WithCancelOnError().WithFirstError()
	run := time.Now().UnixMilli() // a key of an earlier run may still name an execution that was cancelled
	for name, work := range all {
		for twin := range s.Twins {
			producers.Go(func(ctx context.Context) error {
				for n := 0; producing.Err() == nil; n++ {
					if err := work(ctx, fmt.Sprintf("%s-%d-%d-%d", name, run, twin, n)); err != nil {
						return fmt.Errorf("%s %d of producer %d: %w", name, n, twin, err)
					}
					s.done.Add(1)
					select {
					case <-time.After(s.Rest):
					case <-producing.Done():
					}
				}
				return nil
			})
		}
	}
	return producers.Wait()
}

// watch samples until producing ends.
func (s *steady) watch(ctx, producing context.Context, past time.Duration, out io.Writer) error {
	began := time.Now()
	for {
		select {
		case <-time.After(s.Every):
		case <-producing.Done():
			return nil
		}
		if err := s.free(ctx); err != nil {
			return err
		}
		x, err := s.sample(ctx)
		if err != nil {
			return err
		}
		x.After = past + time.Since(began).Round(time.Second)
		fmt.Fprint(out, x)
		s.samples = append(s.samples, x)
		if err := s.note(x); err != nil {
			return err
		}
	}
}

// settle waits until everything has ended and is purged, and audits the store.
func (s *steady) settle(ctx context.Context, out io.Writer) error {
	if _, err := s.admin.RemoveSchedule(ctx, scheduled); err != nil {
		return err
	}
	for deadline := time.Now().Add(s.Keep + settling); ; {
		report, err := s.admin.Check(ctx, admin.CheckOptions{})
		if err != nil {
			return err
		}
		left := 0
		for _, n := range report.Executions {
			left += n
		}
		if left == 0 && report.Sound {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("steady: %s after the last submit %d executions are left (%v), and the audit finds %v",
				s.Keep+settling, left, report.Executions, report.Kinds)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	x, err := s.sample(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out,
		"\nall %d pieces of work ended as they must; everything is purged, the audit finds nothing, and %.0f keys are left\n",
		x.Done, x.Values[keys])
	return nil
}

// judge compares the samples of the second quarter with those of the last: by then the first has filled what
// retention keeps.
func judge(samples []sample, out io.Writer) error {
	if len(samples) < 8 {
		fmt.Fprintf(out, "%d samples are too few to tell whether something grows\n", len(samples))
		return nil
	}
	quarter := len(samples) / 4
	fmt.Fprintf(out, "\n%-22s %12s %12s %8s\n", "median of the", "2nd quarter", "4th quarter", "growth")
	var grown error
	for f := range figures {
		middle := func(part []sample) float64 {
			var all []float64
			for _, x := range part {
				all = append(all, x.Values[f])
			}
			slices.Sort(all)
			return all[len(all)/2]
		}
		early, late := middle(samples[quarter:2*quarter]), middle(samples[len(samples)-quarter:])
		fmt.Fprintf(out, "%-22s %12.1f %12.1f %+7.1f%%\n", figureNames[f], early, late, 100*(late-early)/max(early, 1))
		if late > early*1.1+figureSlack[f] {
			grown = errors.Join(grown, fmt.Errorf("steady: %s grew from %.1f to %.1f", figureNames[f], early, late))
		}
	}
	if grown == nil {
		fmt.Fprintln(out, "\nnothing grew by more than a tenth and the slack of its figure")
	}
	return grown
}
