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

// place sets what an entry says of a frame beyond its parts: how many durable frames there are up to it (as many as
// frames when it does not say), and its version or ttl. It returns false for what is no whole number.
func place(f *stream.Frame, durables, detail string) bool {
	ok := true
	number := func(text string) uint64 {
		n, err := strconv.ParseUint(text, 10, 53)
		ok = ok && err == nil
		return n
	}
	f.Durables = f.Sequence
	if durables != "" {
		f.Durables = number(durables)
	}
	switch f.Mode {
	case stream.ModeSummary:
		f.SummaryVersion = number(detail)
	case stream.ModeBestEffort:
		ms := number(detail)
		ok = ok && ms < 1<<40
		f.TTL = time.Duration(ms) * time.Millisecond
	}
	return ok
}

// spelled is place with the word of a live message: "" or "<d, s or l><version or ttl>,<durables>".
func spelled(f *stream.Frame, word string) bool {
	if word == "" {
		return place(f, "", "")
	}
	mode, durables, found := strings.Cut(word, ",")
	if !found || mode == "" || durables == "" {
		return false
	}
	switch mode[0] {
	case 'd':
		f.Mode = stream.ModeDurable
	case 's':
		f.Mode = stream.ModeSummary
	case 'l':
		f.Mode = stream.ModeBestEffort
	default:
		return false
	}
	return (f.Mode != stream.ModeDurable || mode == "d") && place(f, durables, mode[1:])
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
	s.Document, s.Version = []byte(v["d"]), version
	s.FirstAt, s.UpdatedAt = time.UnixMilli(first).UTC(), time.UnixMilli(last).UTC()
	return s, nil
}
