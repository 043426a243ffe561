package httpapi

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/stream"
)

// events sends what is there and what comes, for a minute.
func (d *durable) events(from stream.Position) error {
	first, err := d.log.read(from, durableChunk)
	if err != nil {
		return err
	}
	if d.view.coded {
		d.c.w.Header().Set("Stream-SSE-Data-Encoding", "base64")
	}
	d.c.w.Header().Set("Cache-Control", "no-cache, no-store")
	out := newEventWriter(d.c, "text/event-stream")
	defer out.close()
	for x := first; ; {
		if d.send(out, x) != nil || x.closed && x.upToDate {
			return nil
		}
		from = x.next
		if x.upToDate {
			break
		}
		if x, err = d.log.read(from, durableChunk); err != nil {
			return nil // the reader comes back
		}
	}
	ctx, cancel := context.WithTimeout(d.c.ctx(), durableSSE)
	defer cancel()
	d.log.follow(ctx, out, from)
	return nil
}

func (t *tailLog) follow(ctx context.Context, out *eventWriter, from stream.Position) {
	o := framelog.TailOptions{From: from, WithoutBestEffort: true, WithoutChildren: true}
	for e, err := range t.d.c.h.conn.Tails.Follow(ctx, t.id, o) {
		if err != nil || !t.pass(out, e) {
			return
		}
	}
}

// pass sends an event of a tail, and tells whether to go on.
func (t *tailLog) pass(out *eventWriter, e *framelog.Event) bool {
	if e.Idle {
		t.said = nil
		return out.flush() == nil
	}
	if t.shown == nil && e.Kind == stream.TailFrame { // mostly the same for all readers
		if t.said == nil {
			t.said = t.d.state(chunk{upToDate: true})
		}
		text := e.Text(t.d.view.form, t.frameText)
		return len(text) == 0 || out.add(text) == nil && out.add(t.said) == nil
	}
	x := chunk{upToDate: true}
	if t.take(&x, e.TailEvent); t.d.c.broken != nil {
		return false
	}
	return len(x.messages) == 0 && !x.closed || t.d.send(out, x) == nil && !x.closed
}

// frameText is the message of a frame, if it has one, with the offset behind it.
func (t *tailLog) frameText(e stream.TailEvent) []byte {
	m := t.d.view.of(e)
	if m == nil {
		return nil
	}
	return t.d.text(chunk{messages: [][]byte{m}, next: e.Position})
}

// send writes data, if there is any, and where the reader is behind it.
func (d *durable) send(out *eventWriter, x chunk) error {
	if err := out.add(append(d.text(x), d.state(x)...)); err != nil {
		return err
	}
	return out.flush()
}

// text is the data of a chunk and the offset behind it, which all readers get; its state follows.
func (d *durable) text(x chunk) []byte {
	var b strings.Builder
	if len(x.messages) > 0 {
		b.WriteString("event: data\n")
		if d.view.json {
			b.WriteString("data:")
			for _, piece := range lineEnds.Split(string(d.body(x.messages)), -1) {
				// of JSON that somebody wrote in several lines
				b.WriteString(piece)
			}
			b.WriteString("\n")
		} else {
			d.view.line(&b, bytes.Join(x.messages, nil))
		}
		b.WriteString("\n")
	}
	b.WriteString(`event: control` + "\n" + `data:{"streamNextOffset":"` + d.log.offset(x.next) + `"`)
	return []byte(b.String())
}

// state is the rest of what a reader is told behind a chunk.
func (d *durable) state(x chunk) []byte {
	var text []byte
	closed := x.closed && x.upToDate
	if !closed {
		text = append(append(append(text, `,"streamCursor":"`...), d.nextCursor(time.Now())...), '"')
	}
	if x.upToDate {
		text = append(text, `,"upToDate":true`...)
	}
	if closed {
		text = append(text, `,"streamClosed":true`...)
	}
	return append(text, "}\n\n"...)
}

// nextCursor is the number of an interval of 20 seconds, and always above the one that the reader sent, so that no
// cache answers it for ever.
func (d *durable) nextCursor(now time.Time) string {
	n := uint64(now.Sub(time.Date(2024, 10, 9, 0, 0, 0, 0, time.UTC)) / (20 * time.Second))
	if given, err := strconv.ParseUint(d.cursor, 10, 62); err == nil && given >= n {
		n = given + 1 + rand.Uint64N(180)
	}
	return strconv.FormatUint(n, 10)
}
