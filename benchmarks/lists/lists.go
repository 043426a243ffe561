// Package lists measures pages of lists in a store with many executions, whose index (docs/adr/0100) has all of them
// and a tag: what a person waits for who looks at a dashboard.
package lists

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"text/tabwriter"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
)

// Options of a run.
type Options struct {
	Server     string // program to start
	Items      int    // executions, one of twenty with the tag; at least 25,000
	Partitions int
	Samples    int // of each page
}

const (
	page  = 50
	depth = 20 // pages that are turned before the one that is measured as deep
)

var tag = map[string]string{"app.customer": "acme"}

// Run measures, and prints a line for each kind of page.
func Run(ctx context.Context, o Options, out io.Writer) error {
	s, err := server.Start(ctx, o.Server)
	if err != nil {
		return err
	}
	defer s.Stop()
	c, err := client.Connect(ctx, client.Config{URL: s.URL(), Partitions: uint16(o.Partitions),
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer c.Close()
	a := admin.New(c)
	all := true
	if _, err := a.SetIndex(ctx, admin.IndexChange{All: &all, Tags: []string{"app.customer"}}); err != nil {
		return err
	}
	if err := fill(ctx, c, o.Items); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, %d executions in %d partitions, pages of %d, %d samples\n\n", s.Name(), o.Items,
		o.Partitions, page, o.Samples)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "page\tmedian ms\tmost ms\t")
	for _, p := range []struct {
		name   string
		filter admin.Filter
		turned int
	}{{"newest", admin.Filter{Newest: true}, 0},
		{"oldest", admin.Filter{}, 0},
		{"newest, deep", admin.Filter{Newest: true}, depth},
		{"newest of a kind", admin.Filter{Newest: true, Kind: "rare"}, 0},
		{"newest of a tag", admin.Filter{Newest: true, Tags: tag}, 0},
		{"newest of a tag, deep", admin.Filter{Newest: true, Tags: tag}, depth}} {
		took, err := pages(ctx, a, p.filter, p.turned, o.Samples)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t\n", p.name, measure.Median(took), slices.Max(took))
	}
	return w.Flush()
}

// fill submits so many executions, one of twenty of another kind and with the tag.
func fill(ctx context.Context, c *client.Client, n int) error {
	usual, rare := handler.Define[int, int]("usual"), handler.Define[int, int]("rare")
	for left := n; left > 0; left -= 10_000 {
		inputs := make([]int, min(left, 10_000))
		few := len(inputs) / 20
		if _, err := client.SubmitMany(ctx, c, usual, inputs[few:]); err != nil {
			return err
		}
		if _, err := client.SubmitMany(ctx, c, rare, inputs[:few], flowfabric.Tags(tag)); err != nil {
			return err
		}
	}
	return nil
}

// pages measures one page, in ms, so many times, behind others that are turned first.
func pages(ctx context.Context, a *admin.Admin, f admin.Filter, turned, samples int) ([]float64, error) {
	f.Namespace = admin.AllNamespaces
	cursor := ""
	for range turned {
		p, err := a.ListPage(ctx, f, cursor, page)
		if err != nil {
			return nil, err
		}
		cursor = p.Cursor
	}
	took := make([]float64, samples)
	for i := range took {
		began := time.Now()
		p, err := a.ListPage(ctx, f, cursor, page)
		took[i] = float64(time.Since(began)) / float64(time.Millisecond)
		if err == nil && len(p.Items) != page {
			err = fmt.Errorf("a page has %d executions, want %d", len(p.Items), page)
		}
		if err != nil {
			return nil, err
		}
	}
	return took, nil
}
