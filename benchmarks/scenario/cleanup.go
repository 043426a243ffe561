package scenario

import (
	"context"
	"fmt"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

// cleanups measures one large graph without and with jobs that run once others have ended, whatever they came to:
// none, one for each group of a thousand jobs, and one for each job.
func cleanups(ctx context.Context, b *Bench) error {
	if _, ok := b.Store.(driver.Grapher); !ok {
		return b.lacks("jobs cannot depend on each other")
	}
	groups := max(b.Members/100, 1)
	for _, v := range []struct {
		name  string
		graph driver.Graph
	}{
		{"without cleanup", groupsOf(groups, 996, false)},
		{"cleanup of each group", groupsOf(groups, 996, true)},
		{"pairs of jobs", pairs(groups*499, false)},
		{"each with its cleanup", pairs(groups*499, true)},
	} {
		if err := b.open(ctx); err != nil {
			return err
		}
		if err := b.graphs(ctx, fmt.Sprintf("%d jobs, %s", len(v.graph.Nodes), v.name), v.graph, 3, 1, 0); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
	}
	return nil
}

// groupsOf is so many groups of a job, n jobs after it and a join, and a join of all; with cleanup each group has a
// job after all of its own.
func groupsOf(groups, n int, cleanup bool) (g driver.Graph) {
	var last []int
	add := func(node driver.Node) int {
		g.Nodes = append(g.Nodes, node)
		return len(g.Nodes) - 1
	}
	for range groups {
		root := add(driver.Node{})
		all := make([]int, n)
		for i := range all {
			all[i] = add(driver.Node{After: []int{root}})
		}
		join := add(driver.Node{After: all})
		last = append(last, join)
		if cleanup {
			last = append(last, add(driver.Node{After: append([]int{root, join}, all...), Cleanup: true}))
		}
	}
	add(driver.Node{After: last})
	return g
}

// pairs is a job, n jobs after it and one after each of those, which needs it or cleans up behind it, and a job
// behind every thousandth.
func pairs(n int, cleanup bool) (g driver.Graph) {
	g.Nodes = make([]driver.Node, 1, 2*n+2)
	var last []int
	for i := range n {
		g.Nodes = append(g.Nodes, driver.Node{After: []int{0}},
			driver.Node{After: []int{len(g.Nodes)}, Cleanup: cleanup})
		if i%(n/min(n, 900)+1) == 0 {
			last = append(last, len(g.Nodes)-1)
		}
	}
	g.Nodes = append(g.Nodes, driver.Node{After: last})
	return g
}
