package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/approval"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
)

// errOver ends the demo's workers once there is nothing left to do.
var errOver = errors.New("the release is decided")

// show is one release with everybody who takes part: the worker, the page, the people.
type show struct {
	options
	view    *view
	ledger  *ledger
	client  *client.Client
	exec    *client.Execution[Verdict]
	page    string        // address of the approval page
	attempt atomic.Uint32 // that the tail has reached
	resumed bool
	fleet   *fleet // nil: the worker is in this process
}

// demo connects, submits a release, and shows what comes of it.
func demo(ctx context.Context, o options, stdout io.Writer) error {
	url, release, err := embedded.Resolve(ctx, o.url, o.log)
	if err != nil {
		return err
	}
	defer release()
	if o.keys == "" { // only of an embedded server, which ends with this program
		o.keys = "demo:" + randomHex(32)
	}
	intro(stdout, o, url)
	o.url = url // an address that worker processes can reach too
	c, err := client.Connect(ctx, client.Config{URL: url, Logger: o.log})
	if err != nil {
		return err
	}
	defer c.Close()
	s := &show{options: o, view: &view{out: stdout}, ledger: newLedger(), client: c}
	page, err := s.openPage()
	if err != nil {
		return err
	}
	defer page.close()
	return s.run(ctx)
}

func randomHex(n int) string {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never fails
	return hex.EncodeToString(raw)
}

// intro tells a stranger what is going to be seen.
func intro(out io.Writer, o options, url string) {
	fmt.Fprintln(out,
		"FlowFabric: a release is built, two people are asked, and it is deployed if both approve. While the")
	fmt.Fprintln(out, "pipeline waits for them, for minutes or for days, it is a record in the store and nothing else.")
	server := "as given" // its URL may hold a password
	if o.url == embedded.URL {
		server = url + ", embedded in this program, in memory, for development only"
	}
	fmt.Fprintf(out, "Server: %s.\n", server)
	switch {
	case o.crash:
		fmt.Fprintln(out, "Nothing to do for you: two simulated people open the links, and the worker is killed twice.")
	case o.auto:
		fmt.Fprintln(out, "Nothing to do for you: two simulated people open the links.")
	}
	fmt.Fprintln(out)
}

// run is the show. When the worker cannot go on, everything ends with its reason.
func (s *show) run(outer context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(outer)
	if s.exec, err = client.Submit(ctx, s.client, Release, Request{s.version, approvers, s.within}); err != nil {
		cancel(err)
		return err
	}
	var others conc.WaitGroup
	defer others.Wait()
	defer cancel(errOver)
	work := s.work
	if s.crash {
		s.fleet = &fleet{options: s.options, did: s.ledger.did, dead: map[string]int{}}
		work = s.fleet.run
	}
	others.Go(func() {
		if err := work(ctx); err != nil {
			cancel(err)
		}
	})
	others.Go(func() {
		if err := s.people(ctx); err != nil && ctx.Err() == nil {
			cancel(err)
		}
	})
	verdict, err := s.follow(ctx)
	switch {
	case err == nil:
		s.conclude(verdict)
	case outer.Err() != nil:
		return s.interrupted(outer)
	}
	return err
}

// work is the worker in this process.
func (s *show) work(ctx context.Context) error {
	return serve(ctx, s.options, runtime.Config{Instance: "worker-1"}, s.ledger.did)
}

// interrupted takes the release back: nobody is left who could serve its links.
func (s *show) interrupted(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := s.exec.Cancel(ctx, flowfabric.Reason("the demo was interrupted")); err != nil &&
		!errors.Is(err, flowfabric.ErrTerminal) {
		return err
	}
	s.view.line("stopped", "You interrupted it, so the release was cancelled.")
	return nil
}

// follow tails the execution over all attempts, then takes its typed result.
func (s *show) follow(ctx context.Context) (Verdict, error) {
	for event, err := range s.exec.Tail(ctx) {
		if err != nil {
			return Verdict{}, err
		}
		switch event.Kind {
		case stream.TailAttempt:
			s.attempt.Store(event.Attempt)
		case stream.TailResumed: // in the same attempt: after the wait, or handed back by a worker that stopped
			if err := s.resumedBy(ctx); err != nil {
				return Verdict{}, err
			}
		case stream.TailFrame:
			if err := s.frame(ctx, event.Frame.Type, string(event.Frame.Payload)); err != nil {
				return Verdict{}, err
			}
		case stream.TailAttemptEnd:
			if err := s.ended(ctx, event); err != nil {
				return Verdict{}, err
			}
		}
	}
	return s.exec.Result(ctx)
}

// frame shows one line of a step, live.
func (s *show) frame(ctx context.Context, typ, line string) error {
	switch typ {
	case "ask":
		token, err := s.ledger.token(ctx, line)
		if err != nil {
			return err
		}
		s.view.line("mail", "to %-4s %s", line, approval.Link(s.page, token))
		return nil
	case "deploy":
		if err := s.resumedBy(ctx); err != nil {
			return err
		}
	}
	s.view.line(typ, "%s", line)
	return nil
}

// resumedBy tells, once, where the pipeline went on after the wait.
func (s *show) resumedBy(ctx context.Context) error {
	if s.resumed {
		return nil
	}
	s.resumed = true
	snapshot, err := s.exec.Get(ctx)
	if err != nil {
		return err
	}
	s.view.line("resumed", "The handler runs again from the top, on %s. Steps on record are not repeated.",
		snapshot.Worker)
	return nil
}

// ended tells of an attempt that did not finish, which is that its worker died unless something is wrong.
func (s *show) ended(ctx context.Context, event stream.TailEvent) error {
	if event.Reason == "attempt_success" {
		return nil
	}
	snapshot, err := s.exec.Get(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(snapshot.AttemptLog, func(a flowfabric.AttemptRecord) bool {
		return a.Index == event.Attempt
	})
	if at >= 0 && s.fleet != nil {
		worker := snapshot.AttemptLog[at].Worker
		if n, ok := s.fleet.death(worker); ok {
			s.view.line("crash", "%s was killed (SIGKILL) once %s; its lease of %s ran out.", worker, crashes[n].when,
				s.lease)
			s.view.line("crash", "worker-%d takes over, in a process of its own.", n+2)
			return nil
		}
	}
	s.view.line("attempt", "Attempt %d ended: %s.", event.Attempt, event.Reason)
	return nil
}

// conclude tells how it ended, and that nothing was done twice.
func (s *show) conclude(v Verdict) {
	text := v.Image + " is deployed, approved"
	if !v.Deployed {
		text = v.Image + " is not deployed: " + v.Reason
	}
	if len(v.By) > 0 {
		text += " by " + strings.Join(v.By, " and ")
	}
	if v.Comment != "" {
		text += " (" + v.Comment + ")"
	}
	s.view.line("verdict", "%s.", text)
	s.view.line("verdict", "%s.", s.ledger)
}
