package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/wire"
	"github.com/flowfabric/flowfabric-go/stream"
)

// ParseStreamID reads "<ms>-<seq>" of plain decimal digits; the error wraps ErrInvalidInput.
func ParseStreamID(text string) (stream.Cursor, error) {
	ms, seq, ok := strings.Cut(text, "-")
	a, err1 := strconv.ParseUint(ms, 10, 64)
	b, err2 := strconv.ParseUint(seq, 10, 64)
	if !ok || err1 != nil || err2 != nil || ms[0] == '+' || seq[0] == '+' {
		return stream.Cursor{}, fmt.Errorf("%w: stream id %q is not <ms>-<seq>", flowfabric.ErrInvalidInput, clip(text))
	}
	return stream.Cursor{Ms: a, Seq: b}, nil
}

// AppendFrames appends 1..100 frames, at most 512 KiB, to the stream of the held attempt
// (lua/stream/ff_append_frames.lua). Neighbours that differ in nothing but their payloads are sent as one group.
// frames[i] has producer sequence first+i; sequences start at 1 and have no gaps, so a repeated batch is recognised
// (Duplicate) and an overlapping one is completed. All or nothing. Summary deltas are compared and set: the first of
// the batch must make the version after the stored one, and the last one's Document is stored with it.
//
// Errors: denied.StaleAppend (slot 0: expired, revoked or superseded), denied.StreamClosed, denied.NotActive,
// denied.FrameGap, denied.SummaryConflict (slot 0: the stored version), denied.SummaryTooLarge, ErrPayloadTooLarge,
// ErrInvalidInput.
func (e *Engine) AppendFrames(ctx context.Context, f flowfabric.Fence, first uint64,
	frames []stream.Frame) (Appended, error) {
	frames, err := e.sealFrames(frames)
	if err != nil {
		return Appended{}, err
	}
	args := fenceArgs(append(make([]string, 0, 18+len(frames)), protocol), f)
	args = frameArgs(append(args, strconv.FormatUint(first, 10)), frames)
	r, err := e.call(ctx, fnAppend, f.Execution.Partition(), args...)
	if err != nil {
		return Appended{}, err
	}
	var x wire.AppendFramesReply
	x.Read(&r.Reader)
	last, err := ParseStreamID(x.ID)
	if err != nil {
		r.Stop("%w", err)
	}
	return Appended{LastID: last, Count: uint64(x.Frames), LastSequence: uint64(x.Sequence),
		Summary: uint64(x.Version), Duplicate: r.Already}, r.fail()
}

// frameArgs adds the frames of a batch: how many groups they form, the groups, and what the modes of the frames need.
func frameArgs(args []string, frames []stream.Frame) []string {
	at, groups := len(args), 0
	args = append(args, "")
	for rest := frames; len(rest) > 0; groups++ {
		n := 1
		for n < len(rest) && sameGroup(&rest[n], &rest[0]) {
			n++
		}
		args = groupArgs(args, rest[:n])
		rest = rest[n:]
	}
	args[at] = strconv.Itoa(groups)
	return modeArgs(args, frames)
}

// sameGroup tells whether two frames differ in nothing that the server is told but their payloads.
func sameGroup(a, b *stream.Frame) bool {
	return a.Mode == b.Mode && a.TTL == b.TTL && a.Type == b.Type && a.Encoding == b.Encoding &&
		a.Correlation == b.Correlation && a.Source == b.Source && a.ProducedAt.Equal(b.ProducedAt)
}

// groupArgs adds one group: what its frames have in common, how many they are, and their payloads.
func groupArgs(args []string, frames []stream.Frame) []string {
	x := &frames[0]
	encoding, produced := x.Encoding, ""
	if encoding == "utf8" {
		encoding = "" // the default is not stored
	}
	if !x.ProducedAt.IsZero() {
		produced = strconv.FormatInt(x.ProducedAt.UnixMilli(), 10)
	}
	args = append(args, modeWord(x), x.Type, encoding, joinSource(x), produced, strconv.Itoa(len(frames)))
	for i := range frames {
		args = append(args, rueidis.BinaryString(frames[i].Payload))
	}
	return args
}

// UnitSeparator stands between the correlation and the source of a frame: the library stores both as one text, of which
// it makes nothing, so that a frame without a source costs nothing more.
const UnitSeparator = "\x1f"

func joinSource(f *stream.Frame) string {
	if f.Source == "" {
		return f.Correlation
	}
	return f.Correlation + UnitSeparator + f.Source
}

// cutSource takes apart what joinSource has joined.
func cutSource(f *stream.Frame, stored string) {
	f.Correlation, f.Source, _ = strings.Cut(stored, UnitSeparator)
}

// ReadAttemptStream tells what is known about an attempt's stream (lua/read/ff_read_attempt_stream.lua). An
// attempt that wrote nothing has Exists false and still reports Closed once it has ended.
func (e *Engine) ReadAttemptStream(ctx context.Context, id flowfabric.ExecutionID, attempt uint32) (StreamMeta, error) {
	r, _, err := ask[wire.ReadAttemptStreamReply](ctx, e, id.Partition(),
		wire.ReadAttemptStream{ID: ids.UUID(id).String(), Attempt: int(attempt)})
	if err != nil {
		return StreamMeta{}, err
	}
	last, err1 := ParseStreamID(r.LastID)
	trimmed, err2 := ParseStreamID(r.TrimmedID)
	recorded, err3 := ParseStreamID(r.RecordedID)
	if err = errors.Join(err1, err2, err3); err != nil {
		return StreamMeta{}, fmt.Errorf("ff_read_attempt_stream: %w: %w", denied.Reply, err)
	}
	var owner flowfabric.ExecutionID
	if r.Owner != (uuid.UUID{}) {
		owner = mint.Join(id.Partition(), r.Owner)
	}
	return StreamMeta{Owner: owner, Exists: r.Exists, Count: uint64(r.Frames), Bytes: uint64(r.Bytes),
		LastSequence: uint64(r.Sequence), LastID: last, Trimmed: uint64(r.Trimmed), TrimmedID: trimmed,
		Closed: r.Closed, ClosedAt: r.ClosedAt, ClosedReason: r.Reason, Attempts: uint32(r.Attempts),
		Code: codes.Code(r.Code), Summary: uint64(r.Version), Live: uint64(r.Live), Runs: uint32(r.Runs),
		Recorded: FramePlace{Sequence: uint64(r.Recorded), ID: recorded}, Type: flowfabric.AttemptType(r.Type),
		BeganAt: r.Began, EndedAt: r.EndedAt, Category: flowfabric.Category(r.Category), Message: e.text(r.Message),
		By: r.By, Due: r.Due,
		Epoch: uint64(r.Epoch), Kept: uint32(r.Kept), Now: r.Now, End: StreamEnd{At: r.EndAt,
			Category: flowfabric.Category(r.EndCategory),
			Message:  e.text(r.EndMessage), By: r.EndBy, Source: r.EndSource}}, nil
}

// readsOf is the connection for what is read of an attempt, limit entries at most.
func (e *Engine) readsOf(ctx context.Context, op string, id flowfabric.ExecutionID, attempt uint32,
	limit int) (rueidis.Client, error) {
	if limit < 1 || limit > limits.MaxReadFrames {
		return nil, fmt.Errorf("%s: %w: limit %d, want 1..%d", op, flowfabric.ErrInvalidInput, limit,
			limits.MaxReadFrames)
	}
	if attempt == 0 {
		return nil, fmt.Errorf("%s: %w: attempts count from 1", op, flowfabric.ErrInvalidInput)
	}
	if err := e.exists(op, id.Partition()); err != nil {
		return nil, err
	}
	return e.reads(ctx)
}

// behind is where a range begins that excludes an entry; the zero id is the beginning.
func behind(id stream.Cursor) string {
	if id == (stream.Cursor{}) {
		return "-"
	}
	return "(" + id.String()
}

// ReadRuns reads, in order, up to limit (1..10,000) of an attempt's resumptions whose first frame comes after the
// given id (exclusive; the zero id is the beginning). Only attempts whose [StreamMeta] has more than one run have
// any, and one for each of about as many runs as it keeps frames. Plain XRANGE; no lease is needed.
//
// Of an attempt that a fork has taken over the frames and runs are those of [StreamMeta].Owner, up to its LastID.
func (e *Engine) ReadRuns(ctx context.Context, id flowfabric.ExecutionID, attempt uint32, after stream.Cursor,
	limit int) ([]stream.Resumption, error) {
	client, err := e.readsOf(ctx, "read runs", id, attempt, limit)
	if err != nil {
		return nil, err
	}
	entries, err := e.plainOn(ctx, client, func(c rueidis.Client) rueidis.Completed {
		return c.B().Xrange().Key(keys.Of(id.Partition()).Runs(ids.UUID(id),
			attempt)).Start(behind(after)).End("+").Count(
			int64(limit)).Build()
	}).AsXRange()
	if err != nil {
		return nil, CallError("read runs", err)
	}
	out := make([]stream.Resumption, 0, len(entries))
	for _, entry := range entries {
		v := entry.FieldValues
		first, err := ParseStreamID(entry.ID)
		run, runErr := strconv.ParseUint(v["n"], 10, 32)
		if err = errors.Join(err, runErr); err != nil {
			return nil, fmt.Errorf("read runs: %w: run %s: %w", denied.Reply, clip(entry.ID), err)
		}
		r, ok := parseResumption(v["e"] + " " + v["w"] + " " + v["r"] + " " + v["d"])
		if !ok {
			return nil, fmt.Errorf("read runs: %w: run %s says %q", denied.Reply, entry.ID, v)
		}
		r.First, r.Run = first, uint32(run)
		out = append(out, r)
	}
	return out, nil
}

// parseResumption reads "<epoch> <reason> <recorded sequence> <recorded id> <durable frames before it>".
func parseResumption(text string) (r stream.Resumption, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != 5 {
		return r, false
	}
	epoch, err1 := strconv.ParseUint(parts[0], 10, 64)
	sequence, err2 := strconv.ParseUint(parts[2], 10, 64)
	_, err3 := ParseStreamID(parts[3])
	before, err4 := strconv.ParseUint(parts[4], 10, 64)
	r.Epoch, r.Reason, r.Recorded, r.Durables = epoch, parts[1], sequence, before
	return r, err1 == nil && err2 == nil && err3 == nil && err4 == nil
}

// chunk is how many entries one XRANGE asks for: even the largest stay within the byte cap.
const chunk = limits.MaxReadBytes / limits.MaxFrame

// LogRange is a part of one of an attempt's three logs: durable frames, summary deltas and best-effort frames have a
// log each. Their ids are from one order, so that frames read from several logs are merged by it.
type LogRange struct {
	Execution flowfabric.ExecutionID
	Attempt   uint32
	Mode      stream.FrameMode
	After     stream.Cursor  // exclusive; zero is the beginning
	To        *stream.Cursor // inclusive; nil is the end
	Limit     int            // 1..10,000 frames
}

// ReadFrames is ReadLog for durable frames, up to the end.
func (e *Engine) ReadFrames(ctx context.Context, id flowfabric.ExecutionID, attempt uint32, after stream.Cursor,
	limit int) ([]stream.Frame, error) {
	return e.ReadLog(ctx, LogRange{Execution: id, Attempt: attempt, Mode: stream.ModeDurable, After: after,
		Limit: limit})
}

// ReadLog reads frames in order. A reply is cut at 4 MiB of payload. Plain XRANGE, on a connection of its own, so
// that a long read never delays a claim or a renewal; no lease is needed.
func (e *Engine) ReadLog(ctx context.Context, q LogRange) ([]stream.Frame, error) {
	client, err := e.readsOf(ctx, "read frames", q.Execution, q.Attempt, q.Limit)
	if err != nil {
		return nil, err
	}
	key := logOf(q.Mode, q.Execution, q.Attempt)
	after, end := q.After, "+"
	if q.To != nil { // which may be in the middle of an entry, whose id is that of its last frame
		end = stream.Cursor{Ms: q.To.Ms, Seq: q.To.Seq + limits.MaxAppendFrames - 1}.String()
	}
	var out []stream.Frame
	left := limits.MaxReadBytes
	for len(out) < q.Limit && left >= limits.MaxFrame {
		want := min(q.Limit-len(out), chunk, left/limits.MaxFrame)
		entries, err := e.plainOn(ctx, client, func(c rueidis.Client) rueidis.Completed {
			return c.B().Xrange().Key(key).Start(behind(after)).End(end).Count(int64(want)).Build()
		}).AsXRangeSlices()
		if err != nil {
			return nil, CallError("read frames", err)
		}
		for _, entry := range entries {
			read := len(out)
			if out, err = parseFrames(out, entry, q.Mode); err != nil {
				return nil, err
			}
			e.OpenFrames(out[read:])
			first, last := read, len(out)
			for first < last && out[first].ID.Compare(after) <= 0 {
				first++
			}
			for last > first && q.To != nil && out[last-1].ID.Compare(*q.To) > 0 {
				last--
			}
			over := last < len(out)
			if out = slices.Delete(out[:last], read, first); over || len(out) >= q.Limit {
				return out[:min(len(out), q.Limit)], nil
			}
			for _, f := range out[read:] {
				after = f.ID
				left -= len(f.Payload)
			}
		}
		if len(entries) < want {
			break
		}
	}
	return out, nil
}

// parseFrames adds the frames of an entry of the log of a mode: one for each payload, of which the last is what the
// entry says. An entry is a list of texts (lua/lib/frames.lua).
func parseFrames(out []stream.Frame, entry rueidis.XRangeSlice, mode stream.FrameMode) ([]stream.Frame, error) {
	id, err := ParseStreamID(entry.ID)
	if err != nil {
		return nil, fmt.Errorf("read frames: %w: %w", denied.Reply, err)
	}
	d := pairs{rest: entry.FieldValues}
	word := d.next()
	if word == "p" {
		word = d.next()
	}
	f := stream.Frame{ID: id, Sequence: id.Seq, Type: d.next(), Encoding: cmp.Or(d.next(), "utf8")}
	cutSource(&f, d.next())
	produced, count := d.next(), d.next()
	if !timed(&f, produced) {
		return nil, fmt.Errorf("read frames: %w: time %q of %s", denied.Reply, clip(produced), entry.ID)
	}
	if !spelled(&f, word) || f.Mode != mode {
		return nil, fmt.Errorf("read frames: %w: place of %s", denied.Reply, entry.ID)
	}
	if count != strconv.Itoa(d.left()) {
		return nil, fmt.Errorf("read frames: %w: %s has %d payloads of %q", denied.Reply, entry.ID, d.left(),
			clip(count))
	}
	first := len(out)
	for d.left() > 0 {
		out = append(out, stream.Frame{Payload: payload(d.next())})
	}
	if !places(out[first:], f) {
		return nil, fmt.Errorf("read frames: %w: place of %s", denied.Reply, entry.ID)
	}
	return out, nil
}

// pairs is a cursor over the texts of an entry, which a stream stores two by two.
type pairs struct {
	rest []rueidis.XRangeFieldValue
	half bool // the first text of the first pair was read
}

// next returns the next text, empty if there is none.
func (p *pairs) next() string {
	if len(p.rest) == 0 {
		return ""
	}
	own := p.rest[0]
	if p.half = !p.half; p.half {
		return own.Field
	}
	p.rest = p.rest[1:]
	return own.Value
}

// left is how many texts are left.
func (p *pairs) left() int {
	n := 2 * len(p.rest)
	if p.half {
		n--
	}
	return n
}

// timed sets when a frame was produced; no text stands for no time.
func timed(f *stream.Frame, produced string) bool {
	if produced == "" {
		return true
	}
	ms, err := strconv.ParseInt(produced, 10, 64)
	f.ProducedAt = time.UnixMilli(ms).UTC()
	return err == nil
}

// payload is what a frame carries, empty rather than nil.
func payload(text string) []byte {
	if text == "" {
		return []byte{}
	}
	return owned(text)
}

// places gives frames of one entry what they have in common and their places, of which last has that of the last one.
// It returns false for more frames than there can be up to that place.
func places(frames []stream.Frame, last stream.Frame) bool {
	behind := uint64(len(frames))
	if behind == 0 || behind > last.Sequence || last.Mode == stream.ModeDurable && behind > last.Durables ||
		last.Mode == stream.ModeSummary && behind > last.SummaryVersion {
		return false
	}
	for i := range frames {
		behind--
		f, own := &frames[i], frames[i].Payload
		*f = last
		f.Payload, f.Sequence, f.ID.Seq = own, last.Sequence-behind, last.ID.Seq-behind
		switch f.Mode {
		case stream.ModeDurable:
			f.Durables -= behind
		case stream.ModeSummary:
			f.SummaryVersion -= behind
		}
	}
	return true
}
