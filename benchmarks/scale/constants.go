package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// many is how many of each are made.
const many = 400

// channels are those of one worker: a doorbell in each partition.
const channels = 64

// Constants measures, on a server of its own, what connections, channels, waiting workers, sessions and registrations
// occupy, and what a message to many, a poll, a doorbell and an empty claim cost. It replaces these in c. Before it
// looks at connections it lets them rest, since the server frees the buffers of idle ones after seconds.
func Constants(ctx context.Context, program string, rest time.Duration, c Costs) (Costs, error) {
	s, err := server.Start(ctx, program)
	if err != nil {
		return c, err
	}
	defer s.Stop()
	e, err := engine.Open(ctx, engine.Config{URL: s.URL(), Partitions: channels, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return c, err
	}
	defer e.Close()
	m := &constants{s: s, e: e, c: c, rest: rest}
	for _, step := range []func(context.Context) error{m.polls, m.registrations, m.waiters, m.sessions, m.connections} {
		if err := step(ctx); err != nil {
			return c, fmt.Errorf("scale: %w", err)
		}
	}
	return m.c, nil
}

type constants struct {
	s     *server.Server
	e     *engine.Engine
	c     Costs
	rest  time.Duration
	claim engine.ClaimRequest
}

// grown is by how many bytes a step makes the server's memory grow, for each of many.
func (m *constants) grown(ctx context.Context, memory func(context.Context) (float64, error),
	do func() error) (float64, error) {
	before, err := memory(ctx)
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := memory(ctx)
	return (after - before) / many, err
}

// memory counts buffers of connections, too, unlike [server.Server.Memory].
func (m *constants) memory(ctx context.Context) (float64, error) {
	select {
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-time.After(m.rest):
	}
	if _, err := m.s.Memory(ctx); err != nil { // waits until it has come to rest
		return 0, err
	}
	text, err := m.s.Do(ctx, "INFO", "memory").ToString()
	if err != nil {
		return 0, err
	}
	_, text, _ = strings.Cut(text, "used_memory:")
	text, _, _ = strings.Cut(text, "\r\n")
	return strconv.ParseFloat(text, 64)
}

// took is the µs of the median call of a command.
func (m *constants) took(ctx context.Context, command string, do func(i int) error) (float64, error) {
	p, err := m.s.Timed(ctx, command, func() error {
		for i := range many {
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && p.USec == 0 {
		err = fmt.Errorf("the server counts no %s", command)
	}
	return p.USec, err
}

// connections opens them, lets each listen to channels of its own, and then all to shared ones.
func (m *constants) connections(ctx context.Context) (err error) {
	conns := make([]net.Conn, many)
	var readers conc.WaitGroup
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close()
			}
		}
		readers.Wait()
	}()
	b := &m.c.Bytes
	if b.Connection, err = m.grown(ctx, m.memory, func() error {
		for i := range conns {
			if conns[i], err = net.Dial("unix", strings.TrimPrefix(m.s.URL(), "unix://")); err != nil {
				return err
			}
			if _, err := io.WriteString(conns[i], "PING\r\n"); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	listen := func(name func(i, p int) string, last string) func() error {
		return func() error {
			for i, c := range conns {
				names := make([]string, channels)
				for p := range names {
					names[p] = name(i, p)
				}
				if _, err := io.WriteString(c, "SSUBSCRIBE "+strings.Join(names, " ")+"\r\n"); err != nil {
					return err
				}
			}
			return m.heard(ctx, last)
		}
	}
	for _, c := range conns {
		readers.Go(func() { _, _ = io.Copy(io.Discard, c) }) // until the connection is closed
	}
	own, err := m.grown(ctx, m.memory, listen(func(i, p int) string {
		return engine.BellChannel(uint16(p), fmt.Sprintf("worker-of-a-usual-name-%d", i))
	},
		engine.BellChannel(channels-1, fmt.Sprintf("worker-of-a-usual-name-%d", many-1))))
	if err != nil {
		return err
	}
	shared, err := m.grown(ctx, m.memory, listen(func(_, p int) string { return engine.UrgentChannel(uint16(p)) }, ""))
	if err != nil {
		return err
	}
	b.Subscription, b.Shared = own/channels, shared/channels
	before, err := m.s.Sample(ctx)
	if err != nil {
		return err
	}
	const messages = 200
	for range messages {
		if err := m.s.Do(ctx, "SPUBLISH", engine.UrgentChannel(0), "w9000").Error(); err != nil {
			return err
		}
	}
	after, err := m.s.Sample(ctx)
	// the writes to sockets happen after the call
	m.c.Fanout = float64(after.Sub(before).CPU.Nanoseconds()) / 1000 / messages / many
	return err
}

// heard waits until all listen to the last of the shared channels, or somebody to the given one.
func (m *constants) heard(ctx context.Context, channel string) error {
	want := int64(1)
	if channel == "" {
		channel, want = engine.UrgentChannel(channels-1), many
	}
	for {
		reply, err := m.s.Do(ctx, "PUBSUB", "SHARDNUMSUB", channel).ToArray()
		if err != nil {
			return err
		}
		if n, err := reply[1].AsInt64(); err != nil || n >= want {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// polls ask for one partition and for all.
func (m *constants) polls(ctx context.Context) error {
	all := make([]uint16, channels)
	for i := range all {
		all[i] = uint16(i)
	}
	us := map[int]float64{}
	for _, n := range []int{1, channels} {
		var err error
		poll := func(int) error { _, _, err := m.e.Poll(ctx, all[:n]); return err }
		for _, command := range []string{"fcall_ro", "eval_ro", "evalsha_ro", "fcall"} {
			if us[n], err = m.took(ctx, command, poll); err == nil {
				break
			}
		}
		if err != nil {
			return fmt.Errorf("poll: %w", err)
		}
	}
	m.c.Poll.Item = max(0, (us[channels]-us[1])/(channels-1))
	m.c.Poll.Fixed = us[1] - m.c.Poll.Item
	return nil
}

func (m *constants) registrations(ctx context.Context) (err error) {
	info := flowfabric.WorkerInfo{Pool: "workers", Namespaces: []string{"default"}, Lanes: []string{"default"},
		Kinds: []string{"bench", "bench-typed"}, Concurrency: 64, Host: "a-host-of-a-usual-name", PID: 12345,
		Version: "v1.2.3", StartedAt: time.Now()}
	m.c.Bytes.Registration, err = m.grown(ctx, m.s.Memory, func() error {
		for i := range many {
			if _, err := m.e.RegisterWorker(ctx, engine.Registration{Instance: fmt.Sprintf("worker-of-a-usual-name-%d",
				i), Token: "token", TTL: time.Hour, Info: info}); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// waiters are workers that have found nothing in partition 0.
func (m *constants) waiters(ctx context.Context) error {
	if err := m.create(ctx, 1); err != nil { // so that there is a route
		return err
	}
	m.claim = engine.ClaimRequest{Session: m.session(many), Number: 1, TTL: time.Hour, Max: 1, Wait: true}
	first, err := m.e.ClaimNext(ctx, m.claim)
	if err != nil {
		return err
	}
	m.claim.Table = first.Table
	var routes []uint64
	for _, row := range first.Routes {
		routes = append(routes, row.ID)
	}
	if m.claim.Subscription, err = m.e.SetSubscription(ctx, 0, engine.Subscription{Classes: routes}); err != nil {
		return err
	}
	if _, err := m.e.ClaimNext(ctx, m.claim); err != nil { // takes what was created
		return err
	}
	ask := func(i int) error {
		q := m.claim
		q.Session = m.session(i)
		r, err := m.e.ClaimNext(ctx, q)
		if err == nil && !r.Registered {
			err = fmt.Errorf("claim %d found something", i)
		}
		return err
	}
	if m.c.Bytes.Waiter, err = m.grown(ctx, m.s.Memory, func() (err error) {
		for i := range many {
			err = errors.Join(err, ask(i))
		}
		return err
	}); err != nil {
		return err
	}
	m.c.Empty, err = m.took(ctx, "fcall", ask) // again, as waiters do every two minutes
	return err
}

// sessions are workers that have claimed one execution each.
func (m *constants) sessions(ctx context.Context) error {
	var active float64
	err := m.create(ctx, many)
	if err != nil {
		return err
	}
	active, err = m.grown(ctx, m.s.Memory, func() error {
		for i := range many {
			q := m.claim
			q.Session, q.Wait = m.session(many+1+i), false
			r, err := m.e.ClaimNext(ctx, q)
			if err == nil && len(r.Claims) != 1 {
				err = fmt.Errorf("claim %d brought %d executions", i, len(r.Claims))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	// What is claimed takes no more memory than what waits, apart from its session: it changes one index for another.
	m.c.Bytes.Session = active - (m.c.Bytes.Active - m.c.Bytes.Waiting)
	return err
}

func (m *constants) session(i int) string {
	return engine.NewSessionID(fmt.Sprintf("worker-of-a-usual-name-%d", i))
}

func (m *constants) create(ctx context.Context, n int) error {
	for all := make([]engine.NewExecution, n); len(all) > 0; {
		part := all[:min(len(all), maxBatch)]
		all = all[len(part):]
		for i := range part {
			part[i] = engine.NewExecution{ID: mint.ID(0),
				Start: flowfabric.Start{Namespace: "default", Lane: "default",
					Kind: "bench", Policy: flowfabric.Policy{Retry: valid.DefaultRetry()}}, Payload: make([]byte, 256)}
		}
		out, err := m.e.CreateExecutions(ctx, 0, part)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(out, func(c engine.Created) bool { return c.Err != nil }); i >= 0 {
			return out[i].Err
		}
	}
	return nil
}

// Print writes the constants as a table.
func (c Costs) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "call\tµs for one\tµs an item of 32\t")
	for _, row := range []struct {
		name string
		call Call
	}{{"create", c.Create}, {"claim", c.Claim}, {"complete", c.Complete}, {"append", c.Append},
		{"poll, items are partitions", c.Poll}} {
		fmt.Fprintf(w, "%s\t%.1f\t%.2f\t\n", row.name, row.call.Fixed+row.call.Item,
			(row.call.Fixed+32*row.call.Item)/32)
	}
	for _, row := range []struct {
		name string
		us   float64
	}{{"empty claim", c.Empty}, {"suspend", c.Suspend}, {"signal", c.Signal}, {"renew", c.Renew}, {"tick", c.Tick},
		{"ping", c.Ping},
		{"message to one more connection", c.Fanout}} {
		fmt.Fprintf(w, "%s\t%.2f\t\t\n", row.name, row.us)
	}
	fmt.Fprintln(w, "\t\t\t\nbytes of one\t\t\t")
	b := c.Bytes
	for _, row := range []struct {
		name  string
		bytes float64
	}{{"waiting execution, without payload", b.Waiting}, {"active", b.Active}, {"suspended", b.Suspended},
		{"done", b.Done}, {"connection", b.Connection},
		{"channel of one subscriber", b.Subscription}, {"one more subscriber", b.Shared},
		{"registered waiter", b.Waiter}, {"session", b.Session}, {"registered worker", b.Registration}} {
		fmt.Fprintf(w, "%s\t%.0f\t\t\n", row.name, math.Round(row.bytes))
	}
	return w.Flush()
}
