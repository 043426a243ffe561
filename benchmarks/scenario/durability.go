package scenario

import (
	"context"
	"fmt"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

// servings are the ways in which servers run in the scenarios that are about them; in others they write nothing to
// disk. Every system then has a server for each.
var servings = map[string][]driver.Serving{
	"durability": {{Durability: driver.Volatile}, {Durability: driver.EverySecond}, {Durability: driver.Always}},
}

// durability measures producers and the way of a job on a server that writes to disk in one way or another. Where every
// confirmation waits for the disk, jobs take their time: hence fewer of them.
func durability(ctx context.Context, b *Bench) error {
	many := max(b.Items/4, 1)
	how := b.serving.Durability.String()
	b.part = how
	for _, v := range []struct {
		name              string
		items, goroutines int
	}{
		{"one goroutine", max(many/5, 1), 1},
		{fmt.Sprintf("%d goroutines", b.Concurrency), many, b.Concurrency},
	} {
		if err := b.open(ctx); err != nil {
			return err
		}
		f, commands, err := b.measureSubmit(ctx, v.name, v.items, v.goroutines, 1)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", how, v.name, err)
		}
		b.done(how+": submit, "+v.name, f, commands)
	}
	if err := b.open(ctx); err != nil {
		return err
	}
	return b.lifecycle(ctx, how+": lifecycle", many)
}
