package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// StreamRef names a stream that is written from outside, and its partition.
type StreamRef struct {
	Namespace, Name string // the name: 1..512 bytes without control characters
	Partition       uint16
	ID              uuid.UUID
}

// Written refers to a stream that is written from outside. Those of a namespace whose names have the same first segment
// are in one partition.
func (e *Engine) Written(namespace, name string) StreamRef {
	partition, id := ids.Written(e.partitions, namespace, name)
	return StreamRef{namespace, name, partition, id}
}

// StreamChannel tells, without saying what, that such a stream has changed.
func StreamChannel(s StreamRef) string { return keys.Of(s.Partition).WrittenNews(s.ID) }

// WrittenStream is what is known of a stream that is written from outside. Positions in it count bytes, or messages of
// JSON.
type WrittenStream struct {
	Media   string
	Made    time.Time
	End     int
	Closed  bool
	TTL     time.Duration // after it was read or written last; 0: none
	Expires time.Time     // zero: never, or by its TTL
}

// NewStream is a stream that shall be.
type NewStream struct {
	Media   string // "" as the source has it
	TTL     *int   // seconds
	Expires time.Time
	Source  *StreamRef // of a fork: in the same partition
	At      *int       // where it begins in its source; nil: at its end
	Sub     int        // and so many units behind that, at most to the end of the next append
	Closed  bool
	Units   int // of the payload, which is what it begins with
	Payload []byte
}

// OpenStream makes a stream that is written from outside, or finds it (already) as it was asked for before
// (lua/stream/ff_open_stream.lua).
//
// Errors: denied.StreamConflict (slot 0: media, settings or closed, which is how it differs; gone, it was deleted and
// has forks; source, its source was), denied.NoStream (the source), ErrInvalidInput.
func (e *Engine) OpenStream(ctx context.Context, s StreamRef, q NewStream) (_ WrittenStream, already bool, err error) {
	c := wire.OpenStream{ID: s.ID.String(), Name: s.Namespace + "/" + s.Name, Media: q.Media, TTL: q.TTL,
		At: q.At, Sub: q.Sub, Closed: q.Closed, Units: q.Units}
	if !q.Expires.IsZero() {
		at := int(max(q.Expires.UnixMilli(), 0))
		c.Expires = &at
	}
	if q.Source != nil {
		if q.Source.Partition != s.Partition {
			return WrittenStream{}, false, fmt.Errorf("ff_open_stream: %w: the source is in another partition",
				flowfabric.ErrInvalidInput)
		}
		c.Source = q.Source.ID.String()
	}
	if c.Payload, err = e.sealStream("ff_open_stream", q.Payload); err != nil {
		return WrittenStream{}, false, err
	}
	r, already, err := ask[wire.OpenStreamReply](ctx, e, s.Partition, c)
	return writtenStream(r), already, err
}

// sealStream is a payload as it is stored. What comes from outside in the form of what is sealed is refused: it would
// be stored as it is, and opened for whoever reads it.
func (e *Engine) sealStream(op string, payload []byte) (string, error) {
	switch {
	case len(payload) == 0:
		return "", nil
	case sealed.Is(payload):
		return "", fmt.Errorf("%s: %w: payload: it begins like what is encrypted", op, flowfabric.ErrInvalidInput)
	}
	stored, err := e.seal(op, payload)
	return rueidis.BinaryString(stored), err
}

func writtenStream(r wire.OpenStreamReply) WrittenStream {
	s := WrittenStream{Media: r.Media, Made: r.Made, End: r.End, Closed: r.Closed,
		TTL: time.Duration(r.TTL) * time.Second}
	if r.Expires != 0 {
		s.Expires = time.UnixMilli(int64(r.Expires)).UTC()
	}
	return s
}

// StreamWrite appends to a stream, closes it, or both.
type StreamWrite struct {
	Call     string // 16 hexadecimal digits of its own, by which a repeat is known
	Media    string // that of the stream; not looked at without a payload
	Seq      string // above the last one that was given, byte by byte; "": none is given
	Close    bool
	Units    int
	Payload  []byte
	Producer string // "": none
	Epoch    int    // of the producer
	Number   int
}

// StreamWrote answers [Engine.WriteStream].
type StreamWrote struct {
	Already       bool // it had been written before, or was closed
	End           int
	Closed        bool
	Epoch, Number int // the last ones of the producer
}

// WriteStream appends to a stream that is written from outside (lua/stream/ff_write_stream.lua). It may be repeated.
//
// Errors: denied.NoStream, denied.StreamGone, denied.StreamClosed (slot 0: where it ends), denied.StreamConflict (slot
// 0: media; seq; epoch, with the later one that is known; gap, with the number that is expected), ErrInvalidInput.
func (e *Engine) WriteStream(ctx context.Context, s StreamRef, q StreamWrite) (StreamWrote, error) {
	c := wire.WriteStream{ID: s.ID.String(), Call: q.Call, Media: q.Media, Seq: q.Seq, Close: q.Close, Units: q.Units,
		Producer: q.Producer}
	if q.Producer != "" {
		c.Epoch, c.Number = &q.Epoch, &q.Number
	}
	var err error
	if c.Payload, err = e.sealStream("ff_write_stream", q.Payload); err != nil {
		return StreamWrote{}, err
	}
	r, already, err := ask[wire.WriteStreamReply](ctx, e, s.Partition, c)
	return StreamWrote{already, r.End, r.Closed, r.Epoch, r.Number}, err
}

// StreamEntry is what one append put into a stream.
type StreamEntry struct {
	From, To int // of the stream: what is behind To is not
	End      int // of the payload
	Payload  []byte
}

// StreamPart is what is read of a stream.
type StreamPart struct {
	After int  // a position
	Most  int  // bytes, about; at most 1 MiB
	Touch bool // its TTL begins anew
}

// ReadStream reads what a stream is and entries behind a position (lua/stream/ff_read_stream.lua). The first may begin
// before it.
//
// Errors: denied.NoStream, denied.StreamGone, ErrInvalidInput for a position behind its end, ErrCorrupt.
func (e *Engine) ReadStream(ctx context.Context, s StreamRef,
	q StreamPart) (_ WrittenStream, entries []StreamEntry, err error) {
	r, _, err := ask[wire.ReadStreamReply](ctx, e, s.Partition,
		wire.ReadStream{ID: s.ID.String(), After: q.After, Touch: q.Touch, Most: min(q.Most, limits.MaxPayload)})
	if err != nil {
		return WrittenStream{}, nil, err
	}
	for _, x := range r.Entries {
		units, cut, _ := strings.Cut(x.Units, " ")
		n, err := strconv.Atoi(units)
		missing := 0
		if err == nil && cut != "" {
			missing, err = strconv.Atoi(cut)
		}
		if err != nil || n < 1 || missing < 0 || missing >= n {
			return WrittenStream{}, nil, fmt.Errorf("ff_read_stream: %w: units %q", denied.Reply, clip(x.Units))
		}
		entries = append(entries, StreamEntry{From: x.End - n, To: x.End - missing, End: x.End,
			Payload: e.cfg.Box.Shown([]byte(x.Payload))})
	}
	return writtenStream(wire.OpenStreamReply{Media: r.Media, Made: r.Made, End: r.End, Closed: r.Closed, TTL: r.TTL,
		Expires: r.Expires}), entries, nil
}

// DropStream deletes a stream (lua/stream/ff_drop_stream.lua). What its forks have of it stays for them (kept), and its
// name is taken meanwhile. already: it was not there, or only kept. It may be repeated.
func (e *Engine) DropStream(ctx context.Context, s StreamRef) (kept, already bool, err error) {
	r, already, err := ask[wire.DropStreamReply](ctx, e, s.Partition, wire.DropStream{ID: s.ID.String()})
	return r.Kept, already, err
}
