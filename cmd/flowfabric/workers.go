package main

import (
	"context"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
)

var workerVerbs = []verb{
	{
		use: "list", short: "List worker processes",
		long: `list shows the live worker processes, those that were lost in the last hour, and those that an
operator marked dead. A killed process counts as alive until its lease expires.`,
		example: "  flowfabric workers list",
		route:   "GET /v1/workers",
		run: rows([]string{"INSTANCE", "STATE", "POOL", "LANES", "KINDS", "HAS", "BUSY", "HOST", "VERSION", "SEEN",
			"WHY"},
			func(w flowfabric.Worker) []any {
				slots := fmt.Sprint(w.InFlight)
				if w.Concurrency > 0 {
					slots = fmt.Sprintf("%d/%d", w.InFlight, w.Concurrency)
				}
				if w.Stuck > 0 { // which it may not hold any more
					slots = fmt.Sprintf("%d/%d, %d stuck", max(w.InFlight, w.Reported), w.Concurrency, w.Stuck)
				}
				return []any{w.Instance, workerState(w), w.Pool, join(",", w.Lanes...), join(",", w.Kinds...),
					join(",", w.Capabilities...), slots, w.Host, w.Version, instant(w.SeenAt), w.Reason}
			}),
	},
	{
		use: "mark-dead INSTANCE", short: "Declare a worker dead and requeue its work",
		long: `mark-dead takes everything from a worker process that is known to be gone, without waiting for its
leases. The next tick queues its work again, within about a second where workers run, which costs no
retry. The command prints how much work that is. A live process loses its running work, registers again
and goes on; to stop it, stop the process.`,
		example: "  flowfabric workers mark-dead web-17 --reason 'node was terminated'",
		route:   "POST /v1/workers/{INSTANCE}:mark-dead",
		run: func(ctx context.Context, q *request) error {
			v := struct {
				Instance string `json:"instance"`
				apiv1.Dead
			}{Instance: q.args[0]}
			if err := q.do(ctx, &v.Dead); err != nil {
				return err
			}
			return q.app.show(v, func(p *page) {
				if v.Held == 0 {
					p.say("gave up %s; it held nothing", v.Instance)
					return
				}
				p.say("gave up %s; %s will be queued again by the next tick (within about a second where workers run)",
					v.Instance, count(v.Held, "execution"))
			})
		},
	},
}

// workerState is how a worker is, for people.
func workerState(w flowfabric.Worker) cell {
	switch {
	case w.Dead:
		return cell{"dead", yellow}
	case w.Alive:
		return cell{"alive", green}
	}
	return cell{"lost", red}
}
