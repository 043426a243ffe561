package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

func topCommand(a *app) *cobra.Command {
	var once bool
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch queues, workers, maintenance and throughput",
		Long: `top shows waiting work, running work and workers, again and again until it is interrupted. ENDED/S
of a queue is the rate over the last ten seconds, estimated from the thousand executions that ended last.
The total throughput is exact from the second picture on; until then --json says 0 created and completed
per second. Off a terminal it prints one picture after the other; --json prints one line each.

On a terminal it also shows what runs and what failed last, and takes keys: j and k, or the arrows, choose a
row; c cancels and r replays the chosen execution, p pauses or resumes the lane of the row, q ends. Each
change comes after a question, under the name of --by, with "top" as the reason unless --reason says another.
With the URL of a process that serves, or a profile of one, the same is shown and done with its token. Counts are
then at most some seconds old, and of a token that is bound to namespaces only those of its queues.`,
		Example: `  flowfabric top
  flowfabric top --once --json | jq .waiting`,
		Args: cobra.NoArgs,
	}
	var all bool
	cmd.Flags().BoolVar(&all, "all-namespaces", false, "of all namespaces")
	source := func(ctx context.Context) (topSource, error) {
		s := topSource{reason: a.reason}
		if all {
			s.namespace = admin.AllNamespaces
		} else if cmd.Root().PersistentFlags().Changed("namespace") {
			s.namespace = a.namespace
		}
		var err error
		s.door, err = a.door(ctx, mustExist)
		return s, err
	}
	watch := a.lasting(func(ctx context.Context, _ []string) error {
		s, err := source(ctx)
		if err != nil {
			return err
		}
		defer s.door.close()
		keys, stop := a.keys(ctx)
		defer stop()
		var acts *topActs
		if keys != nil {
			acts = &topActs{app: a, source: s}
		}
		return a.watch(ctx, topWatch{s, interval, keys, acts})
	})
	single := a.once(func(ctx context.Context, _ []string) error {
		s, err := source(ctx)
		if err != nil {
			return err
		}
		defer s.door.close()
		return a.picture(ctx, topWatch{source: s}, new(topView))
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case interval < 100*time.Millisecond:
			return usage("--interval is %s, want 100ms or more", interval)
		case once:
			return single(cmd, args)
		}
		return watch(cmd, args)
	}
	cmd.Flags().BoolVar(&once, "once", false, "print one picture and end")
	cmd.Flags().DurationVar(&interval, "interval", 2*time.Second, "how often")
	return cmd
}

// rateWindow is over what the throughput is taken.
const rateWindow = 10 * time.Second

// topView is one picture.
type topView struct {
	admin.Overview
	Queues []topQueue `json:"queues"`
	Error  string     `json:"error,omitempty"` // what could not be read
}

// topQueue is a queue in the picture.
type topQueue struct {
	admin.Queue
	Age        flowfabric.Millis `json:"oldest_ms,omitempty"`
	EndedRate  float64           `json:"ended_per_s"`
	FailedRate float64           `json:"failed_per_s"`
}

// topWatch is what top looks at, and how a person acts in it; acts is nil where nobody can.
type topWatch struct {
	source   topSource
	interval time.Duration
	keys     <-chan byte
	acts     *topActs
}

// watch shows pictures until ctx ends; an interrupt is how a person ends it. A server that is away for a while is
// said so.
func (a *app) watch(ctx context.Context, w topWatch) error {
	ticks := time.NewTicker(w.interval)
	defer ticks.Stop()
	var last topView
	for {
		err := a.picture(ctx, w, &last)
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil
		}
		if err != nil && !flowfabric.Retryable(err) {
			return err
		}
		if err != nil {
			fmt.Fprintln(a.err, "flowfabric:", redact(err.Error()))
		}
		for next := false; !next; {
			select {
			case <-ctx.Done():
				if errors.Is(ctx.Err(), context.Canceled) {
					return nil
				}
				return ctx.Err()
			case key := <-w.keys:
				if w.acts.key(ctx, key) {
					return nil
				}
				if err := a.draw(last, w.acts); err != nil {
					return err
				}
			case <-ticks.C:
				next = true
			}
		}
	}
}

// picture takes one picture and shows it; last is the one before.
func (a *app) picture(ctx context.Context, w topWatch, last *topView) error {
	v, err := sample(ctx, w.source, last.Overview)
	if err != nil {
		return err
	}
	*last = v
	if w.acts != nil {
		if err := w.acts.look(ctx, v.Queues); err != nil {
			v.Error = join("; ", v.Error, message(err))
		}
	}
	return a.draw(v, w.acts)
}

// draw shows a picture, on a terminal in place of the one before.
func (a *app) draw(v topView, acts *topActs) error {
	return a.show(v, func(p *page) {
		if a.terminal() {
			p.WriteString("\x1b[H\x1b[2J")
		}
		v.text(p, acts)
		if acts != nil {
			acts.text(p)
		}
		if !a.terminal() {
			p.WriteByte('\n')
		}
	})
}

// sample asks for everything that is in a picture. What some partitions do not answer is told in it; when none does,
// that is the error. Rates are those since an earlier one.
func sample(ctx context.Context, s topSource, earlier admin.Overview) (topView, error) {
	all, fresh, err := s.overview(ctx)
	if all.Partitions == 0 {
		return topView{}, err
	}
	v := topView{Overview: all}
	rates, missing, failed := recent(ctx, s, v.At)
	for _, q := range all.Queues {
		t := topQueue{Queue: q}
		if !q.OldestAt.IsZero() {
			t.Age = flowfabric.Millis(max(v.At.Sub(q.OldestAt), 0))
		}
		r := rates[routeOf(q.Namespace, q.Lane, q.Kind)]
		t.EndedRate, t.FailedRate = r.ended, r.failed
		v.Queues = append(v.Queues, t)
	}
	if fresh {
		v.EndedRate, v.FailedRate = rates[""].ended, rates[""].failed
		v.Since(earlier)
	}
	v.Error = oneLine(message(errors.Join(err, failed)), missing)
	return v, nil
}

// rate is per second.
type rate struct{ ended, failed float64 }

func routeOf(namespace, lane, kind string) string { return namespace + "\x1f" + lane + "\x1f" + kind }

// recent tells what ended within the window before now, by route, and under "" in sum, and which partitions did not
// answer.
func recent(ctx context.Context, s topSource, now time.Time) (rates map[string]rate, missing string, err error) {
	if s.door.client != nil { // the sum is that of the store
		s.namespace = admin.AllNamespaces
	}
	page, err := s.executions(ctx, string(admin.Ended), "true", limits.MaxListPage)
	rates = map[string]rate{}
	for _, x := range page.Items {
		if now.Sub(x.EndedAt) > rateWindow {
			continue
		}
		for _, key := range []string{"", routeOf(x.Route.Namespace, x.Route.Lane, x.Route.Kind)} {
			r := rates[key]
			r.ended += 1 / rateWindow.Seconds()
			if s := x.State.Public; s == flowfabric.Failed || s == flowfabric.Expired {
				r.failed += 1 / rateWindow.Seconds()
			}
			rates[key] = r
		}
	}
	return rates, page.Missing, err
}

// usedUp names at most five gates whose amounts keep work waiting, "" when none does.
func (v topView) usedUp() any {
	if len(v.UsedUp) == 0 {
		return ""
	}
	var list []string
	for _, b := range v.UsedUp[:min(len(v.UsedUp), 5)] {
		list = append(list, fmt.Sprintf("%s is used up: %d wait", b.Gate, b.Waiting))
	}
	if more := len(v.UsedUp) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	return styled(yellow, strings.Join(list, ", "))
}

func (v topView) text(p *page, acts *topActs) {
	alarm := func(n int, s style) style {
		if n > 0 {
			return s
		}
		return normal
	}
	p.facts("at", instant(v.At),
		"executions", fmt.Sprintf("%d waiting, %d held, %d delayed, %d suspended, %d in flight, %d ended", v.Waiting,
			v.Held, v.Delayed, v.Suspended, v.Active, v.Ended),
		"throughput", fmt.Sprintf("%.1f ended/s, %.1f failed/s", v.EndedRate, v.FailedRate),
		"workers", styled(alarm(v.Lost, yellow),
			fmt.Sprintf("%d alive with %d slots, %d lost", v.Workers, v.Slots, v.Lost)),
		"partitions", styled(alarm(v.Overdue+v.Frozen, red),
			fmt.Sprintf("%d, %d maintained, %d overdue, %d frozen, lag %d ms", v.Partitions, v.Owned, v.Overdue,
				v.Frozen, time.Duration(v.Lag).Milliseconds())),
		"gates", fmt.Sprintf("%d routes closed, %d notices to deliver", v.Closed, v.Outbox),
		"amounts", v.usedUp(), "schedules", v.Schedules, "error", v.Error)
	if len(v.Queues) == 0 {
		return
	}
	p.WriteByte('\n')
	rows := make([][]any, len(v.Queues))
	for i, q := range v.Queues {
		rows[i] = []any{acts.mark(i), q.Namespace, q.Lane, q.Kind, join(",", q.Capabilities...),
			laneCell(q.State, q.Mixed),
			q.Waiting, span(time.Duration(q.Age)), fmt.Sprintf("%.1f", q.EndedRate),
			fmt.Sprintf("%.1f", q.FailedRate), q.Stored}
	}
	header := []string{" ", "NAMESPACE", "LANE", "KIND", "REQUIRES", "LANE STATE", "WAITING", "OLDEST", "ENDED/S",
		"FAILED/S", "STORED"}
	if acts == nil { // nobody chooses
		header = header[1:]
		for i := range rows {
			rows[i] = rows[i][1:]
		}
	}
	p.table(header, rows)
}
