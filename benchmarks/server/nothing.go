package server

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/redis/rueidis"
)

// nothing is a library whose function gets a key, which a cluster routes by, and returns.
const nothing = `#!lua name=benchnothing
redis.register_function{function_name='bench_nothing', callback=function() return 1 end, flags={'no-writes'}}`

// Trivial implements [driver.Callable].
func (s *Server) Trivial(ctx context.Context) (func(context.Context) error, func(), error) {
	return trivial(ctx, []*Server{s}, s.Dial)
}

// Trivial implements [driver.Callable]: calls go round keys of all nodes.
func (c *Cluster) Trivial(ctx context.Context) (func(context.Context) error, func(), error) {
	return trivial(ctx, c.nodes, c.Dial)
}

func trivial(ctx context.Context, nodes []*Server,
	dial func() (rueidis.Client, error)) (func(context.Context) error, func(), error) {
	for _, s := range nodes {
		if err := s.Do(ctx, "FUNCTION", "LOAD", "REPLACE", nothing).Error(); err != nil {
			return nil, nil, fmt.Errorf("load the trivial function: %w", err)
		}
	}
	client, err := dial()
	if err != nil {
		return nil, nil, err
	}
	var roots [64]string // as many as a store has partitions by default
	for i := range roots {
		roots[i] = "bench:{" + strconv.Itoa(i) + "}"
	}
	var next atomic.Uint32
	call := func(ctx context.Context) error {
		key := roots[next.Add(1)%uint32(len(roots))]
		return client.Do(ctx, client.B().Fcall().Function("bench_nothing").Numkeys(1).Key(key).Build()).Error()
	}
	return call, client.Close, nil
}
