package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

const slots = 16384

// Cluster is some primaries without replicas, on ports of the loopback interface, and a connection that finds the
// one that has a key. It is a [driver.Server]: its counters are the sums of theirs.
type Cluster struct {
	nodes  []*Server
	client rueidis.Client
}

// StartCluster starts so many servers and waits until each of them calls the cluster complete. The end of ctx kills
// them.
func StartCluster(ctx context.Context, program string, primaries int) (*Cluster, error) {
	c := &Cluster{}
	if err := c.start(ctx, program, primaries); err != nil {
		c.Stop()
		return nil, fmt.Errorf("start a cluster of %s: %w", program, err)
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, program string, primaries int) (err error) {
	addresses, err := freeAddresses(2 * primaries)
	if err != nil {
		return err
	}
	for i := range primaries {
		_, bus, _ := net.SplitHostPort(addresses[primaries+i])
		s, err := startOn(ctx, program, "", addresses[i], []string{"--appendonly", "no", "--cluster-enabled", "yes",
			"--cluster-port", bus, "--cluster-announce-ip", "127.0.0.1"})
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, s)
		first, next := i*slots/primaries, (i+1)*slots/primaries
		calls := [][]string{{"CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i + 1)},
			{"CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(next - 1)}}
		for other := range i { // all of them, because word of a third node takes seconds to go round
			host, port, _ := net.SplitHostPort(addresses[other])
			_, bus, _ := net.SplitHostPort(addresses[primaries+other])
			calls = append(calls, []string{"CLUSTER", "MEET", host, port, bus})
		}
		for _, call := range calls {
			if err := s.Do(ctx, call...).Error(); err != nil {
				return fmt.Errorf("%s: %w", strings.Join(call, " "), err)
			}
		}
	}
	if err := c.complete(ctx); err != nil {
		return err
	}
	c.client, err = c.Dial()
	return err
}

// freeAddresses are n different ones of the loopback interface, on which nobody listens.
func freeAddresses(n int) (out []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		out = append(out, l.Addr().String())
	}
	return out, nil
}

// complete waits until every node knows all others and that all slots are served, or ctx ends.
func (c *Cluster) complete(ctx context.Context) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for _, s := range c.nodes {
		for {
			text, err := s.Do(ctx, "CLUSTER", "INFO").ToString()
			if err != nil {
				return errors.Join(context.Cause(ctx), err)
			}
			info := fieldsOf(text)
			if info["cluster_state"] == "ok" && info["cluster_slots_ok"] == strconv.Itoa(slots) &&
				info["cluster_known_nodes"] == strconv.Itoa(len(c.nodes)) {
				break
			}
			select {
			case <-again.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// Dial opens connections to all nodes; the caller closes them.
func (c *Cluster) Dial() (rueidis.Client, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: c.addresses(), DisableCache: true,
		PipelineMultiplex: -1})
	if err != nil && client != nil { // the driver returns one that would dial again later
		client.Close()
	}
	return client, err
}

func (c *Cluster) addresses() []string {
	out := make([]string, len(c.nodes))
	for i, s := range c.nodes {
		out[i] = s.address
	}
	return out
}

// Stop kills all nodes and removes their directories.
func (c *Cluster) Stop() {
	if c.client != nil {
		c.client.Close()
	}
	for _, s := range c.nodes {
		s.Stop()
	}
}

// Name is "cluster of 3, redis 7.0.15" or the like.
func (c *Cluster) Name() string {
	return fmt.Sprintf("cluster of %d, %s", len(c.nodes), c.nodes[0].Name())
}

// URL names all nodes.
func (c *Cluster) URL() string { return "redis://" + strings.Join(c.addresses(), ",") }

// PID of the first node.
func (c *Cluster) PID() int { return c.nodes[0].PID() }

// Nodes are the primaries, in the order of their slots.
func (c *Cluster) Nodes() []*Server { return c.nodes }

// Cardinality is how many members a sorted set has, wherever it is.
func (c *Cluster) Cardinality(ctx context.Context, key string) (int64, error) {
	return cardinality(ctx, c.client, key)
}

// Reset drops all keys of all nodes; functions stay loaded.
func (c *Cluster) Reset(ctx context.Context) (err error) {
	for _, s := range c.nodes {
		err = errors.Join(err, s.Reset(ctx))
	}
	return err
}

// Sample adds up CPU time and command statistics of all nodes, what they say to each other included.
func (c *Cluster) Sample(ctx context.Context) (driver.Sample, error) {
	out := driver.Sample{Commands: map[string]driver.Command{}}
	for _, s := range c.nodes {
		one, err := s.Sample(ctx)
		if err != nil {
			return out, err
		}
		out.CPU += one.CPU
		for name, n := range one.Commands {
			sum := out.Commands[name]
			out.Commands[name] = driver.Command{Calls: sum.Calls + n.Calls, USec: sum.USec + n.USec}
		}
	}
	return out, nil
}

// Memory adds up what the nodes' data occupy.
func (c *Cluster) Memory(ctx context.Context) (sum float64, err error) {
	resting := pool.NewWithResults[float64]().WithContext(ctx).WithFirstError()
	for _, s := range c.nodes {
		resting.Go(s.Memory)
	}
	each, err := resting.Wait()
	for _, one := range each {
		sum += one
	}
	return sum, err
}

// WatchSlow makes every node remember its long calls.
func (c *Cluster) WatchSlow(ctx context.Context, us int) (err error) {
	for _, s := range c.nodes {
		err = errors.Join(err, s.WatchSlow(ctx, us))
	}
	return err
}

// Slow is how long the remembered calls of all nodes took.
func (c *Cluster) Slow(ctx context.Context) (map[string][]float64, error) {
	out := map[string][]float64{}
	for _, s := range c.nodes {
		one, err := s.Slow(ctx)
		if err != nil {
			return nil, err
		}
		for function, took := range one {
			out[function] = append(out[function], took...)
		}
	}
	return out, nil
}
