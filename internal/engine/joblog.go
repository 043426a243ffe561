package engine

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/joblog"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/wire"
	"github.com/flowfabric/flowfabric-go/stream"
)

// LogChannel is where appends of log lines are told, by the number of the attempt.
func LogChannel(id flowfabric.ExecutionID) string {
	return keys.Of(id.Partition()).LogNews(ids.UUID(id))
}

// AppendLog adds 1..100 lines to the log of the held attempt (lua/stream/ff_append_log.lua), numbered from first on in
// its run: what is there is skipped, and numbers may have gaps. Errors of a fenced call; ErrInvalidInput.
func (e *Engine) AppendLog(ctx context.Context, f flowfabric.Fence, first uint64, lines []stream.LogLine) error {
	q := wire.AppendLog{Fence: fenceOf(f), First: int(first), Lines: make([]wire.AppendLogLine, len(lines))}
	for i, x := range lines {
		text, err := e.seal("ff_append_log", joblog.Text(x))
		if err != nil {
			return err
		}
		q.Lines[i] = wire.AppendLogLine{At: x.At, Level: x.Level, Dropped: x.Dropped, Text: rueidis.BinaryString(text)}
	}
	_, err := e.settled(ctx, f.Execution.Partition(), q)
	return err
}

// LogPage is a part of the log of an execution.
type LogPage struct {
	Lines []stream.LogLine
	After string // the place up to which it was read, for the next page
	More  bool   // there is more now
	Over  bool   // there will be no more: the execution has ended, or the attempt that was asked for
}

// ReadLogLines reads lines behind q.After, up to max (1..[MaxLogPage]) and about 256 KiB (lua/read/ff_read_log.lua). A
// page may be empty and have More. ErrInvalidInput; ErrNotFound; ErrResultPurged while a tombstone is left.
func (e *Engine) ReadLogLines(ctx context.Context, id flowfabric.ExecutionID, q stream.LogRange,
	max int) (out LogPage, err error) {
	attempt, after, err := logPlace(q)
	if err != nil {
		return out, fmt.Errorf("read log: %w", err)
	}
	level := cmp.Or(q.Level, joblog.Debug)
	if !slices.Contains(joblog.Levels, level) {
		return out, fmt.Errorf("read log: %w: level %s, want debug, info, warn or error", flowfabric.ErrInvalidInput,
			clip(q.Level))
	}
	r, _, err := ask[wire.ReadLogReply](ctx, e, id.Partition(), wire.ReadLog{ID: ids.UUID(id).String(),
		Attempt: int(attempt), After: after, Only: q.Attempt != 0, Level: level, Max: max})
	if err != nil {
		return out, err
	}
	out.More, out.After = r.More, logCursor(r.Attempt, r.After)
	state, _ := codes.Project(codes.Code(r.Code))
	out.Over = !r.More && (state.Terminal() || q.Attempt != 0 && r.Attempts > int(q.Attempt))
	for _, x := range r.Lines {
		line := stream.LogLine{Cursor: logCursor(x.Attempt, x.ID), Attempt: uint32(x.Attempt), At: x.At,
			Level: x.Level, Dropped: x.Dropped}
		text := e.cfg.Box.Shown([]byte(x.Text))
		if sealed.Is(text) {
			line.Message = sealed.Hidden
		} else if err := joblog.Read(&line, text); err != nil {
			return out, fmt.Errorf("ff_read_log: %w: line %s: %w", denied.Reply, line.Cursor, err)
		}
		out.Lines = append(out.Lines, line)
	}
	return out, nil
}

// How long a follower waits before it reads again although nobody told it of anything, and after an error that passes.
const (
	logRecheck = 30 * time.Second
	logAgain   = time.Second
)

// Log yields the pages of a log. With q.Follow it waits for more, told by [LogChannel] and [EventChannel], until there
// will be none; it reads again after errors that pass. It ends with the cause of ctx.
func (e *Engine) Log(ctx context.Context, id flowfabric.ExecutionID, q stream.LogRange) iter.Seq2[LogPage, error] {
	return func(yield func(LogPage, error) bool) {
		var news chan struct{}
		if q.Follow {
			var listening conc.WaitGroup
			defer listening.Wait()
			own, stop := context.WithCancel(ctx)
			defer stop()
			news = make(chan struct{}, 1)
			listening.Go(func() { e.hearLog(own, id, news) })
		}
		timer := time.NewTimer(logRecheck)
		defer timer.Stop()
		for {
			page, err := e.ReadLogLines(ctx, id, q, MaxLogPage)
			passes := err != nil && q.Follow && ctx.Err() == nil && flowfabric.Retryable(err)
			switch {
			case ctx.Err() != nil:
				yield(LogPage{}, context.Cause(ctx))
				return
			case err != nil && !passes:
				yield(LogPage{}, err)
				return
			case err == nil:
				q.After = page.After
				if len(page.Lines) > 0 && !yield(page, nil) {
					return
				}
			}
			if err == nil && page.More {
				continue
			}
			if page.Over || !q.Follow {
				return
			}
			timer.Reset(logRecheck)
			if passes {
				timer.Reset(logAgain)
			}
			select {
			case <-news:
			case <-timer.C:
			case <-ctx.Done():
			}
		}
	}
}

// MaxLogPage is how many lines a page of a log has at most.
const MaxLogPage = 1000

// hearLog tells of everything that may add lines to a log, or end it, and of each new subscription.
func (e *Engine) hearLog(ctx context.Context, id flowfabric.ExecutionID, news chan<- struct{}) {
	tell := func() {
		select {
		case news <- struct{}{}:
		default:
		}
	}
	for ctx.Err() == nil {
		_ = e.Subscribe(ctx, id.Partition(), []string{LogChannel(id), EventChannel(id)}, tell,
			func(string, string) { tell() })
		select {
		case <-time.After(logAgain):
		case <-ctx.Done():
		}
	}
}

// logCursor is a place in the log of an execution: "<attempt>.<id of a line>".
func logCursor(attempt int, id string) string {
	return strconv.Itoa(attempt) + "." + id
}

// logPlace is the attempt and the id behind which a range begins.
func logPlace(q stream.LogRange) (attempt uint32, after string, err error) {
	if q.After == "" {
		return max(q.Attempt, 1), "", nil
	}
	number, after, ok := strings.Cut(q.After, ".")
	n, err := strconv.ParseUint(number, 10, 32)
	if after != "" && ok && err == nil {
		_, err = ParseStreamID(after)
	}
	if !ok || err != nil || n == 0 {
		return 0, "", fmt.Errorf("%w: cursor %s is none of a log line", flowfabric.ErrInvalidInput, clip(q.After))
	}
	if q.Attempt != 0 && uint32(n) != q.Attempt {
		return 0, "", fmt.Errorf("%w: cursor %s is of another attempt than %d", flowfabric.ErrInvalidInput,
			clip(q.After), q.Attempt)
	}
	return uint32(n), after, nil
}
