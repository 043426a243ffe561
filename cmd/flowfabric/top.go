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
	"github.com/flowfabric/flowfabric-go/client"
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
change comes after a question, under the name of --by, with "top" as the reason unless --reason says another.`,
		Example: `  flowfabric top
  flowfabric top --once --json | jq .waiting`,
		Args: cobra.NoArgs,
	}
	var all bool
	cmd.Flags().BoolVar(&all, "all-namespaces", false, "of all namespaces")
	scope := func() string {
		if all {
			return admin.AllNamespaces
		}
		return a.namespace
	}
	watch := a.lasting(func(ctx context.Context, _ []string) error {
		return a.with(ctx, func(c *client.Client) error {
			o := admin.New(c)
			keys, stop := a.keys(ctx)
			defer stop()
			var acts *topActs
			if keys != nil {
				acts = &topActs{app: a, client: c, admin: o, namespace: scope()}
			}
			return a.watch(ctx, topWatch{o, interval, scope(), keys, acts})
		})
	})
	single := a.once(func(ctx context.Context, _ []string) error {
		return a.operate(ctx, func(o *admin.Admin) error {
			return a.picture(ctx, topWatch{admin: o, namespace: scope()}, new(topView))
		})
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
	admin     *admin.Admin
	interval  time.Duration
	namespace string
	keys      <-chan byte
	acts      *topActs
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
	v, err := sample(ctx, w.admin, w.namespace)
	if err != nil {
		return err
	}
	v.Since(last.Overview)
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
// that is the error.
func sample(ctx context.Context, o *admin.Admin, namespace string) (topView, error) {
	all, err := o.Overview(ctx, namespace)
	if all.Partitions == 0 {
		return topView{}, err
	}
	v := topView{Overview: all}
	rates, failed := recent(ctx, o, v.At)
	for _, q := range all.Queues {
		t := topQueue{Queue: q}
		if !q.OldestAt.IsZero() {
			t.Age = flowfabric.Millis(max(v.At.Sub(q.OldestAt), 0))
		}
		r := rates[routeOf(q.Namespace, q.Lane, q.Kind)]
		t.EndedRate, t.FailedRate = r.ended, r.failed
		v.Queues = append(v.Queues, t)
	}
	v.EndedRate, v.FailedRate = rates[""].ended, rates[""].failed
	v.Error = strings.ReplaceAll(message(errors.Join(err, failed)), "\n", "; ")
	return v, nil
}

// rate is per second.
type rate struct{ ended, failed float64 }

func routeOf(namespace, lane, kind string) string { return namespace + "\x1f" + lane + "\x1f" + kind }

// recent tells what ended within the window before now, by route, and under "" in sum.
func recent(ctx context.Context, o *admin.Admin, now time.Time) (map[string]rate, error) {
	page, err := o.ListPage(ctx, admin.Filter{Namespace: admin.AllNamespaces,
		States: []flowfabric.PublicState{admin.Ended}, Newest: true}, "", limits.MaxListPage)
	rates := map[string]rate{}
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
	return rates, err
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
