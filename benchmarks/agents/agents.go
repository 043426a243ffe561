// Package agents measures what the loop of package agent costs beside a bare handler that records as many steps and
// appends as many pieces of text: for a turn, for a delta, and for a turn that is recalled.
//
// It starts a server of its own, and one worker that runs one execution at a time. Models and tools answer at once.
package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// Options of a run.
type Options struct {
	Server string // program to start
	Rounds int
	Runs   int // executions of each kind and round
	Turns  int // of an execution, each with a tool but the last
	Deltas int // of an answer, of five bytes
}

// size is how much an execution does.
type size struct{ Turns, Deltas int }

// The kinds of executions: an agent, the handler beside it, and an agent whose handler runs twice, the second time
// without doing anything. The result of the last is how many nanoseconds the second run took.
var (
	looping  = handler.Define[size, int64]("looping", flowfabric.Retries(0))
	bare     = handler.Define[size, int64]("bare", flowfabric.Retries(0))
	recalled = handler.Define[size, int64]("recalled", flowfabric.Retries(0))
)

// Run measures and writes a table.
func Run(ctx context.Context, o Options, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := server.Start(ctx, o.Server)
	if err != nil {
		return err
	}
	defer s.Stop()
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.Connect(ctx, client.Config{URL: s.URL(), Logger: quiet})
	if err != nil {
		return err
	}
	defer c.Close()
	w, err := runtime.New(runtime.Config{URL: s.URL(), Concurrency: 1, Logger: quiet},
		handler.Bind(looping, loop), handler.Bind(bare, plain), handler.Bind(recalled, again))
	if err != nil {
		return err
	}
	var working conc.WaitGroup
	defer working.Wait()
	defer cancel()
	working.Go(func() { _ = w.Run(ctx) })
	b := &bench{o: o, server: s, client: c}
	fmt.Fprintf(out, "%s, %d rounds of %d executions of %d turns; medians\n\n", s.Name(), o.Rounds, o.Runs, o.Turns)
	return b.table(ctx, out)
}

type bench struct {
	o      Options
	server *server.Server
	client *client.Client
}

// part is one line: what is measured, and its figures by round.
type part struct {
	name  string
	kind  *handler.Definition[size, int64]
	size  size
	wall  []float64 // µs a turn
	cli   []float64
	srv   []float64
	calls []float64
	value []float64 // of the results, in µs a turn
}

func (b *bench) table(ctx context.Context, out io.Writer) error {
	few, many := size{b.o.Turns, 0}, size{b.o.Turns, b.o.Deltas}
	parts := []*part{
		{name: "bare, no deltas", kind: bare, size: few}, {name: "agent, no deltas", kind: looping, size: few},
		{name: fmt.Sprintf("bare, %d deltas", b.o.Deltas), kind: bare, size: many},
		{name: fmt.Sprintf("agent, %d deltas", b.o.Deltas), kind: looping, size: many},
		{name: "recalled", kind: recalled, size: few},
	}
	for round := range b.o.Rounds + 1 { // the first one is not measured
		for _, p := range parts {
			if err := b.measure(ctx, p, round > 0); err != nil {
				return fmt.Errorf("agents: %s: %w", p.name, err)
			}
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tµs a turn\tcli µs\tsrv µs\tcalls\t")
	for _, p := range parts[:4] {
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.0f\t%.2f\t\n", p.name, median(p.wall), median(p.cli), median(p.srv),
			median(p.calls))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	perTurn := difference(parts[1], parts[0], 1)
	perDelta := difference(parts[3], parts[2], 1) - perTurn
	fmt.Fprintf(out, "\nthe loop beside the bare handler: %.0f cli µs a turn, %.2f cli µs a delta\n", perTurn,
		perDelta/float64(max(1, b.o.Deltas)))
	fmt.Fprintf(out, "a delta, all in all: %.2f cli µs\n", difference(parts[3], parts[1], float64(max(1, b.o.Deltas))))
	fmt.Fprintf(out, "a turn that is recalled: %.1f µs\n", median(parts[4].value))
	return nil
}

// difference is the median over the rounds of what one part took more processor time than another.
func difference(a, b *part, by float64) float64 {
	var all []float64
	for i := range a.cli {
		all = append(all, (a.cli[i]-b.cli[i])/by)
	}
	return median(all)
}

func (b *bench) measure(ctx context.Context, p *part, keep bool) error {
	m, err := measure.Start(ctx, b.server, "")
	if err != nil {
		return err
	}
	var value float64
	for range b.o.Runs {
		x, err := client.Submit(ctx, b.client, p.kind, p.size)
		if err != nil {
			return err
		}
		took, err := x.Result(ctx)
		if err != nil {
			return err
		}
		value += float64(took) / 1e3
	}
	turns := b.o.Runs * b.o.Turns
	f, _, err := m.Stop(ctx, turns)
	if err != nil || !keep {
		return err
	}
	p.wall = append(p.wall, 1e6*f[measure.Seconds]/float64(turns))
	p.cli, p.srv, p.calls = append(p.cli, f[measure.ClientItem]), append(p.srv, f[measure.ServerItem]),
		append(p.calls, f[measure.CallsItem])
	p.value = append(p.value, value/float64(turns))
	return nil
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

const piece = "word "

type lookup struct {
	Text string `json:"text"`
}

var search = agent.NewTool("search", "looks things up", func(_ context.Context, q lookup) (string, error) {
	return "all about " + q.Text, nil
})

// config is an agent whose model asks for one tool a turn and then ends.
func config(s size) agent.Config {
	model := agent.ModelFunc(func(_ context.Context, req agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		for range s.Deltas {
			if err := delta(agent.Delta{Text: piece}); err != nil {
				return agent.Response{}, err
			}
		}
		r := agent.Response{Message: agent.Message{Text: "looking"}, Stop: agent.StopEnd,
			Usage: agent.Usage{Input: 100, Output: 10}}
		if len(req.Messages) < 2*s.Turns-1 {
			r.Stop = agent.StopTools
			r.Message.Calls = []agent.ToolCall{{ID: "call", Name: "search",
				Arguments: json.RawMessage(`{"text":"tides"}`)}}
		}
		return r, nil
	})
	return agent.Config{Model: model, Tools: []agent.Tool{search}, Prompt: "What about tides?", MaxTurns: s.Turns}
}

func loop(ctx context.Context, t *handler.Task, s size) (int64, error) {
	r, err := agent.Run(ctx, t, config(s))
	return int64(r.Turns), err
}

// answer is as large as what an agent records of one.
type answer struct {
	Message agent.Message `json:"message"`
	Usage   agent.Usage   `json:"usage"`
	Took    time.Duration `json:"took"`
}

// plain does what an agent does, without its checks, its frames of messages and its reports to budgets.
func plain(ctx context.Context, t *handler.Task, s size) (int64, error) {
	for i := range s.Turns {
		_, err := handler.Step(ctx, t, fmt.Sprint("model ", i+1), func(ctx context.Context) (answer, error) {
			for range s.Deltas {
				if err := t.Frame(ctx, "token", piece); err != nil {
					return answer{}, err
				}
			}
			return answer{Message: agent.Message{Role: agent.Assistant, Text: "looking"},
				Usage: agent.Usage{Input: 100, Output: 10}, Took: 1}, nil
		})
		if err != nil || i == s.Turns-1 {
			return int64(i), err
		}
		if _, err := handler.Step(ctx, t, fmt.Sprint("tool ", i+1), func(context.Context) (answer, error) {
			return answer{Message: agent.Message{Role: agent.ToolRole, Tool: "search", Text: "all about tides"},
				Took: 1}, nil
		}); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// again runs an agent, puts itself aside, and measures how long the agent takes when everything is recorded.
func again(ctx context.Context, t *handler.Task, s size) (int64, error) {
	began := time.Now()
	if _, err := agent.Run(ctx, t, config(s)); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if t.AttemptType() != flowfabric.AttemptResumed {
		return 0, handler.Delay(0)
	}
	return int64(took), nil
}
