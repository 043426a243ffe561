package flowfabric

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// Graphs implements [driver.Grapher]: a worker that keeps the times of every job, and a flow for every graph, made in
// calls of 100 members through package engine, as package client makes them. Flows go round the partitions.
func (s *store) Graphs(ctx context.Context, concurrency int,
	times driver.Times) (func(context.Context, driver.Graph) error, func() error, error) {
	stop, err := s.work(ctx, driver.Worker{Concurrency: concurrency},
		func(_ context.Context, _ *handler.Task, in []byte) ([]byte, error) {
			graph, node := int(binary.BigEndian.Uint32(in)), int(binary.BigEndian.Uint32(in[4:]))
			times.Began(graph, node, time.Now())
			times.Ended(graph, node, time.Now())
			return nil, nil
		})
	if err != nil {
		return nil, nil, err
	}
	var next atomic.Uint32
	submit := func(ctx context.Context, g driver.Graph) error {
		id := flowfabric.FlowID(mint.ID(uint16(next.Add(1)-1) % s.engine.Partitions()))
		if err := s.submitGraph(ctx, id, g); err != nil {
			return fmt.Errorf("graph %d: %w", g.Number, err)
		}
		return nil
	}
	return submit, stop, nil
}

func (s *store) submitGraph(ctx context.Context, id flowfabric.FlowID, g driver.Graph) error {
	info := definition.Info()
	members := make([]engine.FlowMember, len(g.Nodes))
	edges := 0
	for i, n := range g.Nodes {
		payload := make([]byte, max(8, len(g.Payload)))
		copy(payload, g.Payload)
		binary.BigEndian.PutUint32(payload, uint32(g.Number))
		binary.BigEndian.PutUint32(payload[4:], uint32(i))
		name := strconv.Itoa(i)
		m := engine.FlowMember{Node: name, CancelRest: n.CancelRest,
			NewExecution: engine.NewExecution{ID: id.Member(name), Start: flowfabric.Start{Namespace: "default",
				Lane: info.Lane, Kind: info.Kind, Policy: info.Policy}, Payload: payload}}
		if n.Need > 0 {
			m.Policy, m.K = codes.Quorum, n.Need
		}
		if n.Cleanup {
			m.Policy = codes.AllEnded
		}
		for _, up := range n.After {
			m.Edges = append(m.Edges, engine.FlowEdge{From: members[up].ID})
		}
		members[i], edges = m, edges+len(m.Edges)
	}
	batches := engine.Batches(members)
	first := engine.NewFlow{ID: id, Namespace: "default", Kind: kind, Members: batches[0]}
	if len(batches) == 1 {
		first.Mode = engine.SealClosed
	}
	made, err := s.engine.CreateFlow(ctx, first)
	if err != nil {
		return err
	}
	more := made.More
	if len(batches) > 1 {
		for _, batch := range batches[1:] {
			if _, err := s.engine.StageFlow(ctx, id, nil, batch); err != nil {
				return err
			}
		}
		_, more, err = s.engine.SealFlow(ctx, id, engine.SealClosed, len(members), edges)
	}
	for more && err == nil {
		more, err = s.engine.DrainFlows(ctx, id.Partition())
	}
	return err
}

// Settled implements [driver.Grapher]: the counters of the headers tell it, without a look at the members.
func (s *store) Settled(ctx context.Context) (members, edges int, left bool, err error) {
	for p := range s.engine.Partitions() {
		page, listErr := s.engine.ListFlows(ctx, p, false, engine.Position{}, 100)
		for {
			if err = errors.Join(err, listErr); err != nil {
				return 0, 0, false, err
			}
			for _, f := range page.Flows {
				record, describeErr := s.engine.DescribeFlow(ctx, f.ID)
				if describeErr != nil {
					return 0, 0, false, describeErr
				}
				members, edges = members+record.Members, edges+record.Edges
				left = left || record.EndedAt.IsZero() || record.Backlog > 0
			}
			if !page.More {
				break
			}
			last := page.Flows[len(page.Flows)-1]
			page, listErr = s.engine.ListFlows(ctx, p, false,
				engine.Position{Score: last.CreatedAt.UnixMilli(), Member: last.Member}, 100)
		}
	}
	return members, edges, left, nil
}
