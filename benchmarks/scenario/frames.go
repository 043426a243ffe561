package scenario

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// perJob is how many frames stand for one job in the sizes of a run: they are that much faster.
const perJob = 5

// appendFrames has every stream appended to by a goroutine of its own, Batch frames a call, and then does the same
// with bare XADD, pipelined Batch at a time over one connection.
func appendFrames(ctx context.Context, b *Bench) error {
	streamer, ok := b.Store.(driver.Streamer)
	if !ok {
		return b.lacks("jobs put out no frames")
	}
	streams, stop, err := streamer.Streams(ctx, b.Concurrency)
	if err != nil {
		return err
	}
	frames := b.payloads(b.Batch)
	calls := max(perJob*b.Items/b.Batch/len(streams), 1)
	r, err := b.appendAll(ctx, "", len(streams), calls, func(ctx context.Context, i int) error {
		return streams[i].Append(ctx, frames)
	})
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	if s, ok := b.Server.(dialer); ok {
		raw, err := b.appendRaw(ctx, s, len(streams), calls, frames)
		if err != nil {
			return err
		}
		f := r.Figures
		f[measure.RawPerSec], f[measure.RawServer] = raw[measure.Throughput], raw[measure.ServerItem]
		f[measure.RawRatio] = f[measure.Throughput] / raw[measure.Throughput]
	}
	b.done("", r.Figures, r.Commands)
	return nil
}

// dialer is a server of single commands.
type dialer interface {
	Dial() (rueidis.Client, error)
}

// appendAll makes calls appends to each of n streams, after a tenth of them as warm-up.
func (b *Bench) appendAll(ctx context.Context, variant string, n, calls int,
	appendTo func(context.Context, int) error) (Round, error) {
	if _, err := repeat(ctx, n, max(calls/warmShare, 1), appendTo); err != nil {
		return Round{}, fmt.Errorf("append: %w", err)
	}
	m, err := b.start(ctx, variant)
	if err != nil {
		return Round{}, err
	}
	took, err := repeat(ctx, n, calls, appendTo)
	if err != nil {
		return Round{}, fmt.Errorf("append: %w", err)
	}
	f, commands, err := m.Stop(ctx, n*calls*b.Batch)
	if err != nil {
		return Round{}, err
	}
	f.Latencies(took)
	return Round{Figures: f, Commands: commands}, nil
}

// appendRaw is the ceiling: the same frames to as many streams, without functions, fences or sequences.
func (b *Bench) appendRaw(ctx context.Context, s dialer, n, calls int, frames [][]byte) (measure.Figures, error) {
	client, err := s.Dial()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	r, err := b.appendAll(ctx, "raw", n, calls, func(ctx context.Context, i int) error {
		key := "raw:" + strconv.Itoa(i)
		commands := make(rueidis.Commands, len(frames))
		for j, frame := range frames {
			commands[j] = client.B().Xadd().Key(key).Id("*").FieldValue().FieldValue("p",
				rueidis.BinaryString(frame)).Build()
		}
		for _, answer := range client.DoMulti(ctx, commands...) {
			if err := answer.Error(); err != nil {
				return err
			}
		}
		return nil
	})
	return r.Figures, err
}

// tail measures append until seen: with one follower of one job, with many followers of a job each, and with many
// followers of the same job, where the last of them counts.
func tail(ctx context.Context, b *Bench) error {
	if _, ok := b.Store.(driver.Streamer); !ok {
		return b.lacks("jobs put out no frames")
	}
	many := strconv.Itoa(b.Tailers)
	for _, v := range []struct {
		name               string
		streams, perStream int
		samples            int
	}{
		{"1 follower", 1, 1, perJob * b.Samples},
		{many + " followers of " + many + " jobs", b.Tailers, 1, perJob * b.Samples},
		{many + " followers of one job", 1, b.Tailers, max(b.Samples/5, 1)},
	} {
		if err := b.open(ctx); err != nil {
			return err
		}
		if err := b.follow(ctx, v.name, v.streams, v.perStream, v.samples); err != nil {
			return err
		}
	}
	return nil
}

// follow appends one frame at a time, to one stream after the other, and waits until all its followers have it.
func (b *Bench) follow(ctx context.Context, variant string, n, followers, samples int) error {
	streams, stop, err := b.Store.(driver.Streamer).Streams(ctx, n)
	if err != nil {
		return err
	}
	tailing, endTails := context.WithCancelCause(ctx)
	audience := newAudience(followers)
	standing := make(chan struct{}, n*followers) // one for every follower that is there
	tails := pool.New().WithErrors().WithFirstError()
	for _, s := range streams {
		for range followers {
			tails.Go(func() error {
				err := s.Tail(tailing, func() { standing <- struct{}{} }, audience.seen)
				if err != nil {
					endTails(err)
				}
				return err
			})
		}
	}
	r, err := b.appendAndWait(tailing, variant, streams, audience, samples, standing)
	endTails(nil)
	if err := errors.Join(err, tails.Wait(), stop()); err != nil {
		return err
	}
	b.done(variant, r.Figures, r.Commands)
	return nil
}

func (b *Bench) appendAndWait(ctx context.Context, variant string, streams []driver.Stream, a *audience, samples int,
	standing <-chan struct{}) (Round, error) {
	for range cap(standing) {
		select {
		case <-standing:
		case <-ctx.Done():
			return Round{}, fmt.Errorf("followers: %w", context.Cause(ctx))
		}
	}
	frame := b.payloads(1)[0]
	if len(frame) < 8 {
		frame = make([]byte, 8)
	}
	warm := max(samples/warmShare, 1)
	var m *measure.Meter
	took := make([]time.Duration, 0, samples)
	for i := range warm + samples {
		if i == warm {
			var err error
			if m, err = b.start(ctx, variant); err != nil {
				return Round{}, err
			}
		}
		binary.BigEndian.PutUint64(frame, uint64(i))
		a.expect(uint64(i))
		began := time.Now()
		if err := streams[i%len(streams)].Append(ctx, [][]byte{frame}); err != nil {
			return Round{}, err
		}
		select {
		case at := <-a.complete:
			if i >= warm {
				took = append(took, at.Sub(began))
			}
		case <-ctx.Done():
			return Round{}, fmt.Errorf("frame %d was not seen by everybody: %w", i, context.Cause(ctx))
		}
	}
	f, commands, err := m.Stop(ctx, samples)
	if err != nil {
		return Round{}, err
	}
	f.Latencies(took)
	return Round{Figures: f, Commands: commands}, nil
}

// audience counts who has seen the frame that is expected.
type audience struct {
	size     int64
	number   atomic.Uint64
	missing  atomic.Int64
	complete chan time.Time // capacity 1: when the last follower had it
}

func newAudience(size int) *audience {
	return &audience{size: int64(size), complete: make(chan time.Time, 1)}
}

func (a *audience) expect(number uint64) {
	a.missing.Store(a.size)
	a.number.Store(number)
}

func (a *audience) seen(frame []byte) {
	if binary.BigEndian.Uint64(frame) == a.number.Load() && a.missing.Add(-1) == 0 {
		a.complete <- time.Now()
	}
}
