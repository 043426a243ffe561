package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/fault"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/stream"
)

// liveFrames is how many frames for those who listen now a stream holds.
const liveFrames = 1000

// framesBody has the frames of one execution, or batches of several.
type framesBody struct {
	Lease   string      `json:"lease,omitempty" jsonschema:"of the execution, as it came with the claim. Required without batches"`
	First   uint64      `json:"first,omitempty" jsonschema:"sequence of the first frame; they count from 1 in an attempt, without gaps. What was sent before is recognised by it"`
	Frames  []frameBody `json:"frames,omitempty" jsonschema:"1..100, at most 512 KiB together"`
	Batches []batchBody `json:"batches,omitempty" jsonschema:"instead: frames of several executions, 1..100 of them, each on its own"`
}

type batchBody struct {
	leased
	First  uint64      `json:"first" jsonschema:"as without batches"`
	Frames []frameBody `json:"frames" jsonschema:"as without batches"`
}

type frameBody struct {
	Type        string          `json:"type,omitempty" jsonschema:"at most 128 bytes, such as token; default token"`
	Text        *string         `json:"text,omitempty" jsonschema:"either text, or json, or base64; at most 64 KiB"`
	JSON        json.RawMessage `json:"json,omitempty"`
	Base64      []byte          `json:"base64,omitempty"`
	Correlation string          `json:"correlation,omitempty"`
	Source      string          `json:"source,omitempty" jsonschema:"who wrote it, for example a model or a tool: at most 64 bytes"`
	LiveMs      int64           `json:"live_ms,omitempty" jsonschema:"only for those who listen now, and gone after twice so long: 1000..60000"`
}

type framesAnswer struct {
	LastSequence uint64        `json:"last_sequence,omitempty" jsonschema:"absent with batches"`
	Batches      []batchFrames `json:"batches,omitempty" jsonschema:"what became of them, in their order"`
}

type batchFrames struct {
	Lease        string `json:"lease"`
	Held         bool   `json:"held" jsonschema:"the execution is this worker's. Else stop working on it, and tell nobody"`
	LastSequence uint64 `json:"last_sequence,omitempty"`
	Code         string `json:"code,omitempty" jsonschema:"why the frames of this batch, all of them, are not stored; absent: they are"`
}

// batchOf is the frames of one execution, on their way.
type batchOf struct {
	fence  flowfabric.Fence
	first  uint64
	frames []stream.Frame
	last   uint64
	err    error
}

func (c *call) appendFrames(b *framesBody) (none framesAnswer, err error) {
	s, err := c.session(-1)
	if err != nil {
		return none, err
	}
	if b.Batches != nil {
		return c.appendBatches(s, b)
	}
	f, err := s.fence("/lease", b.Lease)
	if err != nil {
		return none, err
	}
	x := batchOf{fence: f, first: b.First}
	if x.frames, err = toAppend("", b.First, b.Frames); err != nil {
		return none, err
	}
	c.appendBatch(&x)
	return framesAnswer{LastSequence: x.last}, x.err
}

func (c *call) appendBatch(x *batchOf) {
	r, err := c.h.conn.Engine.AppendFrames(c.ctx(), x.fence, x.first, x.frames)
	x.last, x.err = r.LastSequence, hidden("frames", err)
}

// appendBatches appends to several streams at once. What is wrong with a batch as it is written refuses all of them,
// before any is sent; an error of which nobody knows what it did is that of the call, which may be repeated.
func (c *call) appendBatches(s *workerSession, b *framesBody) (none framesAnswer, err error) {
	if b.Lease != "" || b.First != 0 || b.Frames != nil {
		return none, invalid("/batches", "lease, first and frames stand alone")
	}
	if len(b.Batches) < 1 || len(b.Batches) > limits.MaxBatch {
		return none, invalid("/batches", "there are %d, want 1..%d", len(b.Batches), limits.MaxBatch)
	}
	list, places := make([]batchOf, len(b.Batches)), make(map[string]int, len(b.Batches))
	for i, x := range b.Batches {
		list[i].first = x.First
		if list[i].fence, list[i].err, err = s.fenceOfMany("/batches", x.Lease, i, places); err != nil {
			return none, err
		}
		if list[i].frames, err = toAppend(fmt.Sprintf("/batches/%d", i), x.First, x.Frames); err != nil {
			return none, err
		}
	}
	appending := pool.New().WithMaxGoroutines(16)
	for i := range list {
		if list[i].err == nil {
			appending.Go(func() { c.appendBatch(&list[i]) })
		}
	}
	appending.Wait()
	out := framesAnswer{Batches: make([]batchFrames, len(list))}
	for i, x := range list {
		held, code, err := verdict(x.err)
		if err != nil {
			return none, err
		}
		out.Batches[i] = batchFrames{Lease: b.Batches[i].Lease, Held: held, LastSequence: x.last, Code: code}
	}
	return out, nil
}

// verdict is what is told of one of several: whether the execution is still the worker's, and the code of what is
// wrong. An error says nothing of it: the call is to be repeated.
func verdict(err error) (held bool, code string, again error) {
	class := denied.ClassOf(err)
	if _, told := errors.AsType[*problem](err); class == fault.Retry || class == 0 && err != nil && !told {
		return false, "", err
	}
	if err != nil {
		code = problemOf(err).Code
	}
	held = err == nil || class != 0 && class != fault.Stop || errors.Is(err, denied.FrameGap)
	return held, code, nil
}

// toAppend reads the frames of a body. place is where they are in it.
func toAppend(place string, first uint64, list []frameBody) ([]stream.Frame, error) {
	if len(list) < 1 || len(list) > limits.MaxAppendFrames {
		return nil, invalid(place+"/frames", "there are %d, want 1..%d", len(list), limits.MaxAppendFrames)
	}
	if first < 1 {
		return nil, invalid(place+"/first",
			"it is missing: frames count from 1 in an attempt, and go on after last_sequence of the claim")
	}
	out := make([]stream.Frame, len(list))
	for i, x := range list {
		var err error
		if out[i], err = x.frame(fmt.Sprintf("%s/frames/%d", place, i)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (x *frameBody) frame(place string) (stream.Frame, error) {
	frame := stream.Frame{Type: x.Type, Correlation: x.Correlation, Source: x.Source}
	if frame.Type == "" {
		frame.Type = "token"
	}
	given := 0
	if x.Text != nil {
		frame.Payload, frame.Encoding, given = []byte(*x.Text), stream.UTF8, given+1
	}
	if x.JSON != nil {
		frame.Payload, frame.Encoding, given = x.JSON, stream.JSON, given+1
	}
	if x.Base64 != nil {
		frame.Payload, frame.Encoding, given = x.Base64, stream.Bytes, given+1
	}
	if given != 1 {
		return frame, invalid(place, "it has %d of text, json and base64, want one", given)
	}
	if x.LiveMs != 0 {
		frame.Mode, frame.TTL, frame.Keep = stream.ModeBestEffort, ms(x.LiveMs), liveFrames
	}
	if x.Type == limits.FrameOfChild {
		return frame, invalid(place+"/type", "frames of type %s are the server's own", x.Type)
	}
	if err := framelog.Validate(frame); errors.Is(err, flowfabric.ErrInvalidInput) {
		return frame, invalid(place, "%v", err)
	}
	return frame, nil
}
