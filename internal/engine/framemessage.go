package engine

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/stream"
)

// FrameChannel is where appends publish frames while somebody listens.
func FrameChannel(id flowfabric.ExecutionID) string {
	return keys.Of(id.Partition()).Frames(ids.UUID(id))
}

// EventChannel is where transitions publish "<code> <attempt>".
func EventChannel(id flowfabric.ExecutionID) string {
	return keys.Of(id.Partition()).Events(ids.UUID(id))
}

// UrgentChannel is where all workers are told of work that should come next: "<priority> <route>".
func UrgentChannel(partition uint16) string { return keys.Of(partition).Urgent() }

// BellChannel is where a worker instance is rung: "w" work, with its priority behind it if it should come next, "r"
// routes changed, "l" lost notices, "t" timers.
func BellChannel(partition uint16, instance string) string {
	return keys.Of(partition).Doorbell(instance)
}

// FrameMessage is what one append publishes on a [FrameChannel].
type FrameMessage struct {
	Attempt uint32
	Frames  []stream.Frame
	Resumed *stream.Resumption // when a run begins with the first of the frames, and it is not the attempt's first run
}

// DecodeFrames parses a message of a [FrameChannel]: attempt, count, run, then length-prefixed what the entry of a
// run that begins says, and for each entry of frames six parts, how many payloads it has, and these, which share the
// memory of the message. The error wraps denied.Reply.
func DecodeFrames(message string) (FrameMessage, error) {
	d := text{rest: message}
	a, n, run, entry := d.number(' '), d.number(' '), d.number(' '), d.part()
	if d.bad || a > 1<<32-1 || n > limits.MaxAppendFrames || run > 1<<32-1 {
		return FrameMessage{}, fmt.Errorf("frame message: %w: head", denied.Reply)
	}
	m := FrameMessage{Attempt: uint32(a), Frames: make([]stream.Frame, n)}
	frames := m.Frames
	for i := 0; i < len(frames); {
		id, idErr := ParseStreamID(d.part())
		f := stream.Frame{ID: id, Sequence: id.Seq, Run: uint32(run), Type: d.part()}
		f.Encoding = cmp.Or(d.part(), "utf8")
		cutSource(&f, d.part())
		produced := d.part()
		placed, count := spelled(&f, d.part()), d.number(':')
		if d.bad || idErr != nil || !placed || !timed(&f, produced) || count < 1 || count > uint64(len(frames)-i) {
			return FrameMessage{}, fmt.Errorf("frame message: %w: frame %d", denied.Reply, i)
		}
		own := frames[i : i+int(count)]
		for k := range own {
			own[k].Payload = payload(d.part())
		}
		if d.bad || !places(own, f) {
			return FrameMessage{}, fmt.Errorf("frame message: %w: frame %d", denied.Reply, i)
		}
		i += len(own)
	}
	if d.rest != "" {
		return FrameMessage{}, fmt.Errorf("frame message: %w: %d bytes too many", denied.Reply, len(d.rest))
	}
	if entry != "" {
		r, ok := parseResumption(entry)
		if !ok || n == 0 {
			return FrameMessage{}, fmt.Errorf("frame message: %w: run %q", denied.Reply, clip(entry))
		}
		r.Run, r.First = uint32(run), frames[0].ID
		m.Resumed = &r
	}
	return m, nil
}

// text is a cursor over length-prefixed parts.
type text struct {
	rest string
	bad  bool
}

func (t *text) number(end byte) uint64 {
	i := strings.IndexByte(t.rest, end)
	if t.bad || i < 1 {
		t.bad = true
		return 0
	}
	n, err := strconv.ParseUint(t.rest[:i], 10, 63)
	if err != nil {
		t.bad = true
		return 0
	}
	t.rest = t.rest[i+1:]
	return n
}
func (t *text) part() string {
	n := t.number(':')
	if t.bad || n > uint64(len(t.rest)) {
		t.bad = true
		return ""
	}
	s := t.rest[:n]
	t.rest = t.rest[n:]
	return s
}
