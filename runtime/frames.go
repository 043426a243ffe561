package runtime

import (
	"context"
	"sync"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/stream"
)

// frames are those that a job's handler appends. Most handlers append none, so their writer is made by the first. It
// is a [tasks.FrameWriter]. Safe for concurrent use, as a handler may append from several goroutines.
type frames struct {
	job *job

	mu     sync.Mutex
	writer *framelog.Writer // nil before the first frame
	closed bool             // all frames are acknowledged, or given up with err
	err    error
}

// made is the writer, if there is one.
func (f *frames) made() *framelog.Writer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writer
}

// Append implements [tasks.FrameWriter]. A frame of a goroutine that outlived its handler is refused.
func (f *frames) Append(ctx context.Context, x stream.Frame) error { return f.make().Append(ctx, x) }

func (f *frames) make() *framelog.Writer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writer == nil {
		j := f.job
		f.writer = framelog.NewWriter(framelog.WriterConfig{
			Appender: j, Fence: j.held.Fence(), LastSequence: j.held.Claim().LastSequence, Context: j.jobs.ctx,
			Cancel: j.refused, Logger: j.jobs.log,
			Summaries: j.jobs.store, Room: j.jobs.box.Room(),
		})
		if f.closed {
			_ = f.writer.Close(j.jobs.ctx) // it has nothing to send, and takes nothing
		}
	}
	return f.writer
}

// Flush implements [tasks.FrameWriter].
func (f *frames) Flush(ctx context.Context) error {
	if w := f.made(); w != nil {
		return w.Flush(ctx)
	}
	return nil
}

// LastAcknowledged implements [tasks.FrameWriter].
func (f *frames) LastAcknowledged() uint64 {
	if w := f.made(); w != nil {
		return w.LastAcknowledged()
	}
	return f.job.held.Claim().LastSequence
}

// close waits until all frames are acknowledged, and takes no more. The writer repeats what is not answered for as
// long as the hold lasts: AppendFrames of the job refuses once it is lost. Further calls return the same. It is
// called by the goroutine of the job alone.
func (f *frames) close() error {
	f.mu.Lock()
	w, closed := f.writer, f.closed
	f.closed = true
	f.mu.Unlock()
	if w == nil || closed {
		return f.err
	}
	f.err = w.Close(f.job.jobs.ctx)
	f.job.jobs.metrics.unsent(w)
	return f.err
}

// AppendFrames implements [framelog.Appender] under the hold: nothing is sent once it is lost.
func (j *job) AppendFrames(ctx context.Context, fence flowfabric.Fence, first uint64,
	frames []stream.Frame) (engine.Appended, error) {
	if err := j.held.Check(); err != nil {
		return engine.Appended{}, err
	}
	reply, err := j.jobs.store.AppendFrames(ctx, fence, first, frames)
	if err == nil {
		j.jobs.metrics.appended(frames)
	}
	return reply, err
}
