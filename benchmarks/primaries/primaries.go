// Package primaries measures what further primaries add: clusters of one primary and more on this machine, and as many
// client processes, which submit and work. Each process has a core, as far as there are cores.
package primaries

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
	"github.com/flowfabric/flowfabric-go/benchmarks/report"
	"github.com/flowfabric/flowfabric-go/benchmarks/scale"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/benchmarks/systems/flowfabric"
)

// Options are the sizes of a measurement.
type Options struct {
	Server                        string // program to start
	Most                          int    // primaries
	Jobs, Concurrency, Partitions int    // jobs, and handlers and submitting goroutines, of each client
	JSON                          string // file for the result, if any
}

// Result is what was measured.
type Result struct {
	Machine report.Machine `json:"machine"`
	Pinned  bool           `json:"pinned"` // each process to one core
	Rows    []Row          `json:"rows"`
}

// Row is a scenario on so many primaries, from the start of its work until the last handler has run.
type Row struct {
	Primaries    int       `json:"primaries"`
	Scenario     string    `json:"scenario"`
	Jobs         int       `json:"jobs"`   // each of which was handled once
	Shared       bool      `json:"shared"` // there are fewer cores than processes
	PerSecond    float64   `json:"per_second"`
	ServerMicros float64   `json:"server_us_per_job"` // of all primaries
	ClientMicros float64   `json:"client_us_per_job"` // of all clients
	Partitions   []int     `json:"partitions"`        // of each primary
	Used         []float64 `json:"cores_used"`        // by each primary
	Calls        []float64 `json:"calls"`             // of functions, of each primary
}

// Run measures clusters of one primary and more, and prints a table.
func Run(ctx context.Context, o Options, out io.Writer) (Result, error) {
	r := Result{Machine: report.ThisMachine(), Pinned: true}
	for i := range runtime.NumCPU() { // some may be forbidden to us
		r.Pinned = r.Pinned && exec.CommandContext(ctx, "taskset", "-c", core(i), "true").Run() == nil
	}
	for n := 1; n <= o.Most; n++ {
		if err := r.add(ctx, o, n); err != nil {
			return r, fmt.Errorf("%d primaries: %w", n, err)
		}
	}
	if o.JSON != "" {
		text, err := json.MarshalIndent(r, "", "  ")
		if err := errors.Join(err, os.WriteFile(o.JSON, text, 0o644)); err != nil {
			return r, err
		}
	}
	return r, r.print(out)
}

// add measures n primaries.
func (r *Result) add(ctx context.Context, o Options, n int) error {
	s, err := server.StartCluster(ctx, o.Server, n)
	if err != nil {
		return err
	}
	defer s.Stop()
	for i, node := range s.Nodes() {
		pin := exec.CommandContext(ctx, "taskset", "-a", "-p", "-c", core(i), strconv.Itoa(node.PID()))
		if r.Pinned && pin.Run() != nil {
			return fmt.Errorf("%v does not pin a server", pin.Args)
		}
	}
	for _, scenario := range []string{"drain", "lifecycle"} {
		row := Row{Primaries: n, Scenario: scenario, Jobs: n * o.Jobs, Shared: 2*n > runtime.NumCPU(),
			Partitions: scale.Spread(o.Partitions, n)}
		if err := errors.Join(s.Reset(ctx), row.measure(ctx, o, s, r.Pinned)); err != nil {
			return fmt.Errorf("%s: %w", scenario, err)
		}
		r.Rows = append(r.Rows, row)
	}
	return nil
}

// core is that of a process, by its number: servers come first, then clients, and begin again when cores run out.
func core(process int) string { return strconv.Itoa(process % runtime.NumCPU()) }

// measure starts clients, lets them prepare, and measures from when all begin.
func (row *Row) measure(ctx context.Context, o Options, s *server.Cluster, pinned bool) error {
	store, err := flowfabric.System{}.Open(ctx, s, driver.Settings{Partitions: o.Partitions})
	if err != nil {
		return err
	}
	defer store.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	var running conc.WaitGroup
	defer running.Wait()
	defer cancel(nil)
	says, told, err := os.Pipe() // which all clients write to: lines are short enough to stay whole
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(says.Close(), told.Close()) }()
	var clients []int
	var orders []io.WriteCloser
	for i := range row.Primaries {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		args := []string{self, "primaries", "client", strconv.Itoa(i), row.Scenario, s.URL(),
			strconv.Itoa(o.Partitions), strconv.Itoa(o.Concurrency), strconv.Itoa(o.Jobs)}
		if pinned {
			args = append([]string{"taskset", "-c", core(row.Primaries + i)}, args...)
		}
		cmd, wrong := exec.CommandContext(ctx, args[0], args[1:]...), &bytes.Buffer{}
		cmd.Stdout, cmd.Stderr = told, wrong
		hears, err := cmd.StdinPipe()
		if err := errors.Join(err, cmd.Start()); err != nil {
			return err
		}
		clients, orders = append(clients, cmd.Process.Pid), append(orders, hears)
		running.Go(func() {
			if err := cmd.Wait(); err != nil { // nobody waits for it, then, and the others end
				cancel(fmt.Errorf("client %d: %w: %s", i, err, wrong))
			}
		})
	}
	_ = told.Close()
	handled, ready, last, sum := make([]int, len(clients)), 0, int64(0), 0
	lines := bufio.NewReader(says)
	listen := func(enough func() bool) (err error) {
		for err == nil && !enough() {
			var client, jobs int
			var at int64
			if _, err = fmt.Fscan(lines, &client, &jobs, &at); err == nil && at == 0 {
				ready++
			} else if err == nil {
				sum += jobs - handled[client]
				handled[client], last = jobs, max(last, at)
			}
		}
		if errors.Is(err, io.EOF) { // all have ended: why?
			running.Wait()
		}
		return errors.Join(context.Cause(ctx), err)
	}
	if err := listen(func() bool { return ready == len(clients) }); err != nil {
		return err
	}
	before, err := look(ctx, s, clients)
	if err != nil {
		return err
	}
	began := time.Now()
	for _, one := range orders {
		_, _ = fmt.Fprintln(one) // one that is gone is told of above
	}
	if err := listen(func() bool { return sum >= row.Jobs }); err != nil {
		return err
	}
	after, err := look(ctx, s, clients)
	if err != nil {
		return err
	}
	for _, one := range orders {
		_ = one.Close()
	}
	if err := listen(func() bool { return false }); !errors.Is(err, io.EOF) || context.Cause(ctx) != nil {
		return err
	}
	if done, err := store.(driver.Counter).Done(ctx); err != nil || done != row.Jobs || sum != row.Jobs {
		return fmt.Errorf("%d jobs were handled and %d completed, want %d once each: %w", sum, done, row.Jobs, err)
	}
	seconds, n := time.Unix(0, last).Sub(began).Seconds(), float64(row.Jobs)
	row.PerSecond = n / seconds
	for i := range after {
		used := after[i].Sub(before[i])
		if i == row.Primaries {
			row.ClientMicros = float64(used.CPU.Microseconds()) / n
			break
		}
		row.ServerMicros += float64(used.CPU.Microseconds()) / n
		row.Used = append(row.Used, used.CPU.Seconds()/seconds)
		row.Calls = append(row.Calls, used.Commands["fcall"].Calls+used.Commands["fcall_ro"].Calls)
	}
	return nil
}

// look reads the counters of each primary, and as the last the processor time of all clients.
func look(ctx context.Context, s *server.Cluster, clients []int) (out []driver.Sample, err error) {
	var all driver.Sample
	for i, node := range s.Nodes() {
		one, err1 := node.Sample(ctx)
		used, err2 := measure.ProcessTime(clients[i])
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		out, all.CPU = append(out, one), all.CPU+used
	}
	return append(out, all), nil
}

func (r Result) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w,
		"primaries\tscenario\tjobs/s\tsrv µs\tcli µs\tpartitions\tcores used\tmost/least\tcalls\tmost/least\t")
	list := func(format string, all any) string { return strings.Trim(fmt.Sprintf(format, all), "[]") }
	for _, row := range r.Rows {
		fmt.Fprintf(w, "%d\t%s\t%.0f\t%.1f\t%.1f\t%s\t%s\t%.2f\t%s\t%.2f\t\n", row.Primaries, row.Scenario,
			row.PerSecond, row.ServerMicros, row.ClientMicros, list("%d", row.Partitions), list("%.2f", row.Used),
			slices.Max(row.Used)/slices.Min(row.Used), list("%.0f", row.Calls),
			slices.Max(row.Calls)/slices.Min(row.Calls))
	}
	if !r.Pinned {
		fmt.Fprintln(w, "Processes are not pinned to cores: there is no taskset, or some cores are forbidden.")
	}
	if n := r.Machine.Cores; r.Rows[len(r.Rows)-1].Shared {
		fmt.Fprintf(w, "There are %d cores: beyond primaries + clients = %d, jobs/s say what the machine can do.\n", n,
			n)
	}
	return w.Flush()
}
