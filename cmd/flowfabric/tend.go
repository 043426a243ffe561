package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
	"github.com/flowfabric/flowfabric-go/internal/partmetrics"
)

// tend keeps time in all partitions until ctx ends: ticks, schedules, and what gates are to be told. It
// is what workers do beside their work, for a store that may have none.
func tend(ctx context.Context, eng *engine.Engine, owner string, logger *slog.Logger,
	metrics *partmetrics.Metrics) error {
	watched := metrics.Watch(eng, logger)
	loop := maintain.New(maintain.Config{Engine: eng, Owner: owner, Logger: logger, OnTick: watched.Ticked,
		OnLag: watched.Lag, OnFire: watched.Fired,
		OnDeliver: watched.Delivered, OnReckon: watched.Reckoned})
	tasks := pool.New().WithContext(ctx).WithCancelOnError()
	tasks.Go(func(ctx context.Context) error { watched.Run(ctx); return nil })
	tasks.Go(loop.Run)
	tasks.Go(func(ctx context.Context) error { listen(ctx, eng, owner, loop); return nil })
	return tasks.Wait()
}

// listen hands the bells of all partitions to the loop until ctx ends: off cluster with one subscription, on a
// cluster with one each, since the channels live where the partitions do.
func listen(ctx context.Context, eng *engine.Engine, owner string, loop *maintain.Loop) {
	var all []uint16
	for p := range eng.Partitions() {
		all = append(all, p)
	}
	if !eng.Cluster() {
		subscribe(ctx, eng, owner, loop, all)
		return
	}
	var each conc.WaitGroup
	for _, p := range all {
		each.Go(func() { subscribe(ctx, eng, owner, loop, []uint16{p}) })
	}
	each.Wait()
}

// subscribe does that for partitions of one place, again and again.
func subscribe(ctx context.Context, eng *engine.Engine, owner string, loop *maintain.Loop, partitions []uint16) {
	channels, of := make([]string, len(partitions)), make(map[string]uint16, len(partitions))
	for i, p := range partitions {
		channels[i] = engine.BellChannel(p, owner)
		of[channels[i]] = p
	}
	missed := func() { // whatever rang while nobody listened
		for _, p := range partitions {
			loop.Ring(p)
		}
	}
	rung := func(channel, message string) {
		if p, ok := of[channel]; ok && message == "t" {
			loop.Ring(p)
		}
	}
	again := backoff.WithContext(backoff.NewConstantBackOff(time.Second), ctx)
	_ = backoff.Retry(func() error { // ends with ctx, never with an error of the connection
		err := eng.Subscribe(ctx, partitions[0], channels, missed, rung)
		if err == nil && ctx.Err() == nil {
			err = errors.New("subscription ended")
		}
		return err
	}, again)
}
