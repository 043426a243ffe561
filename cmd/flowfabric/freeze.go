package main

import (
	"context"
	"strconv"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
)

var freezeVerbs = []verb{
	{
		use: "freeze PARTITION...", short: "Refuse all calls to partitions, while their slots are moved",
		long: `freeze makes partitions refuse every call until thaw, so that their slots can be moved key by key.
Nothing is lost, but nothing runs, and leases keep expiring: a freeze that is shorter than the leases
costs no work. The command prints the frozen partitions. Freezing twice is no error.`,
		example: `  flowfabric freeze 3 --reason 'move slot 8042'
  flowfabric freeze 0-7 12
  flowfabric freeze --all`,
		route: "POST /v1/partitions/{PARTITION}:freeze", flags: []member{yes("", "all", "all partitions")}, free: true,
		run: func(ctx context.Context, q *request) error { return eachPartition(ctx, q, "freeze", "frozen") },
	},
	{
		use: "thaw PARTITION...", short: "End a freeze",
		long:    `thaw makes partitions work again. Thawing a partition that is not frozen is no error.`,
		example: "  flowfabric thaw --all",
		route:   "POST /v1/partitions/{PARTITION}:thaw", flags: []member{yes("", "all", "all partitions")}, free: true,
		run: func(ctx context.Context, q *request) error { return eachPartition(ctx, q, "thaw", "thawed") },
	},
}

// eachPartition changes the chosen partitions one after the other and tells what each answered.
func eachPartition(ctx context.Context, q *request, action, done string) error {
	var there admin.Page[flowfabric.Partition] // those that do not answer included
	if err := q.get(ctx, &there, "/v1/partitions"); err != nil {
		return err
	}
	chosen, err := choose(q.args, q.said("all"), uint16(len(there.Items)))
	if err != nil {
		return err
	}
	out := make([]partitionOutcome, len(chosen))
	var failed partial
	var changed []uint16
	for i, p := range chosen {
		q.path = at("/v1/partitions/*:"+action, strconv.Itoa(int(p)))
		err := q.do(ctx, nil)
		out[i] = partitionOutcome{p, outcome(done, false, err), message(err)}
		if failed.add(p, err); err == nil {
			changed = append(changed, p)
		}
	}
	if err := q.app.show(out, func(p *page) {
		if len(changed) > 0 {
			p.say("%s %s: %s", done, count(len(changed), "partition"), ranges(changed))
		}
	}); err != nil {
		return err
	}
	return failed.err("not " + done)
}
