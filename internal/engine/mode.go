package engine

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/stream"
)

// logOf is the key of an attempt's frames of a mode.
func logOf(m stream.FrameMode, id flowfabric.ExecutionID, attempt uint32) string {
	p := keys.Of(id.Partition())
	switch m {
	case stream.ModeSummary:
		return p.Deltas(ids.UUID(id), attempt)
	case stream.ModeBestEffort:
		return p.Live(ids.UUID(id), attempt)
	}
	return p.Stream(ids.UUID(id), attempt)
}

// modeWord is the mode of a group as the server is told it.
func modeWord(f *stream.Frame) string {
	switch f.Mode {
	case stream.ModeDurable:
		return "d"
	case stream.ModeSummary:
		return "s"
	case stream.ModeBestEffort:
		return "l" + strconv.FormatInt(f.TTL.Milliseconds(), 10)
	}
	return "?" // the server says what is wrong with it
}

// modeArgs adds what follows the groups of a batch: with deltas the version before the first and the document after
// the last, with best-effort frames how many of them are kept.
func modeArgs(args []string, frames []stream.Frame) []string {
	var first, delta, live *stream.Frame
	for i := range frames {
		switch x := &frames[i]; x.Mode {
		case stream.ModeSummary:
			first, delta = cmp.Or(first, x), x
		case stream.ModeBestEffort:
			live = x
		}
	}
	if delta != nil {
		args = append(args, strconv.FormatUint(first.SummaryVersion-1, 10), rueidis.BinaryString(delta.Document))
	}
	if live != nil {
		args = append(args, strconv.Itoa(live.Keep))
	}
	return args
}

// spelled sets the place that a word gives a frame: "" for a durable one with nothing but such before it, else
// "<d, s or l><version or ttl>,<durable frames so far>".
func spelled(f *stream.Frame, word string) bool {
	f.Durables = f.Sequence
	if word == "" {
		return true
	}
	mode, total, _ := strings.Cut(word[1:], ",")
	durables, err := strconv.ParseUint(total, 10, 53)
	f.Durables = durables
	if word[0] == 'd' {
		return mode == "" && err == nil
	}
	detail, detailErr := strconv.ParseUint(mode, 10, 53)
	switch word[0] {
	case 's':
		f.Mode, f.SummaryVersion = stream.ModeSummary, detail
	case 'l':
		f.Mode, f.TTL = stream.ModeBestEffort, time.Duration(detail)*time.Millisecond
		return err == nil && detailErr == nil && detail < 1<<40
	default:
		return false
	}
	return err == nil && detailErr == nil
}

// ReadSummary reads the summary document of an attempt; the zero Version says that there is none. A plain read of one
// hash, so that document and version fit; no lease is needed.
func (e *Engine) ReadSummary(ctx context.Context, id flowfabric.ExecutionID, attempt uint32) (stream.Summary, error) {
	client, err := e.readsOf(ctx, "read summary", id, attempt, 1)
	if err != nil {
		return stream.Summary{}, err
	}
	key := keys.Of(id.Partition()).Summary(ids.UUID(id), attempt)
	v, err := e.plainOn(ctx, client, func(c rueidis.Client) rueidis.Completed {
		return c.B().Hgetall().Key(key).Build()
	}).AsStrMap()
	if err != nil {
		return stream.Summary{}, CallError("read summary", err)
	}
	s := stream.Summary{Attempt: attempt}
	if len(v) == 0 {
		return s, nil
	}
	version, err1 := strconv.ParseUint(v["v"], 10, 53)
	first, err2 := strconv.ParseInt(v["f"], 10, 64)
	last, err3 := strconv.ParseInt(v["l"], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || v["d"] == "" {
		return stream.Summary{}, fmt.Errorf("read summary: %w: version %q, times %q and %q", denied.Reply, clip(v["v"]),
			clip(v["f"]), clip(v["l"]))
	}
	s.Document, s.Version = e.cfg.Box.Shown([]byte(v["d"])), version
	if s.Encrypted = sealed.Is(s.Document); s.Encrypted {
		s.Document = nil
	}
	s.FirstAt, s.UpdatedAt = time.UnixMilli(first).UTC(), time.UnixMilli(last).UTC()
	return s, nil
}
