package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

const eventMedia = "text/event-stream; charset=utf-8"

// eventWriter writes Server-Sent Events, and a comment whenever there was nothing to say for a while. What a reader
// does not take in time ends the stream.
type eventWriter struct {
	c       *call
	control *http.ResponseController
	mu      sync.Mutex
	beat    *time.Timer
	again   *time.Timer        // asks whether the reader still may read
	stop    context.CancelFunc // ends what is followed
	batch   *[]byte            // what was added and not sent; of batches, nil: nothing
	closed  bool
	err     error
}

// batchBytes is how much is collected before it is sent, if more is ready.
const batchBytes = 16 << 10

// batches are buffers for readers that have something to send; those that wait have none.
var batches = sync.Pool{New: func() any { return new(make([]byte, 0, batchBytes)) }}

func newEventWriter(c *call, media string) *eventWriter {
	header := c.w.Header()
	header.Set("Content-Type", media)
	header.Set("X-Accel-Buffering", "no") // proxies pass it on as it comes
	ctx, stop := context.WithCancel(c.ctx())
	c.r = c.r.WithContext(ctx)
	out := &eventWriter{c: c, control: http.NewResponseController(c.w), stop: stop}
	c.w.WriteHeader(http.StatusOK)
	out.mu.Lock()
	defer out.mu.Unlock()
	out.write([]byte(": follow\nretry: 1000\n\n"))
	out.beat = time.AfterFunc(c.h.cfg.Heartbeat, out.comment)
	out.again = time.AfterFunc(c.h.again, out.askAgain)
	return out
}

// askAgain ends the stream of a reader whose token is gone, or may not any more what it could when the stream began.
func (o *eventWriter) askAgain() {
	who, _, err := o.c.identify()
	if err != nil || !slices.Contains(o.c.route.need, who.Role) || !slices.Equal(who.Namespaces, o.c.who.Namespaces) {
		o.end(&problem{Status: http.StatusUnauthorized, Code: "unauthorized",
			Detail: "the token is not known here any more, or may not do this"})
		o.stop()
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.again.Reset(o.c.h.again)
	}
}

// write sends what was added, and a piece behind it, at once. The caller holds mu.
func (o *eventWriter) write(text []byte) {
	batch := o.batch
	o.batch = nil
	if o.err == nil && !o.closed {
		_ = o.control.SetWriteDeadline(time.Now().Add(o.c.h.cfg.WriteTimeout)) // not every writer knows how
		if batch != nil {
			_, o.err = o.c.w.Write(*batch)
		}
		if o.err == nil && len(text) > 0 {
			_, o.err = o.c.w.Write(text)
		}
		if o.err == nil {
			o.err = o.control.Flush()
		}
	}
	if batch != nil {
		*batch = (*batch)[:0]
		batches.Put(batch)
	}
}

// add sends a text with what is added after it: flush says when. It may be shared, and is not changed. No text is an
// error.
func (o *eventWriter) add(text []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.err != nil || o.closed:
	case len(text) == 0:
		return errNoText
	case len(text) >= batchBytes:
		o.write(text)
	default:
		if o.batch != nil && len(*o.batch)+len(text) > batchBytes {
			o.write(nil)
		}
		if o.batch == nil {
			o.batch = batches.Get().(*[]byte)
		}
		*o.batch = append(*o.batch, text...)
	}
	return o.err
}

var errNoText = errors.New("there is no text")

// flush sends what was added.
func (o *eventWriter) flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.batch != nil {
		o.write(nil)
	}
	if o.err == nil && !o.closed {
		o.beat.Reset(o.c.h.cfg.Heartbeat)
	}
	return o.err
}

// comment keeps the connection alive.
func (o *eventWriter) comment() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.write([]byte(": \n\n"))
	if o.err == nil && !o.closed {
		o.beat.Reset(o.c.h.cfg.Heartbeat)
	}
}

// emit sends an event at once; without an id the one before it stays the last.
func (o *eventWriter) emit(id, name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err = o.add(eventText(id, name, data)); err == nil {
		err = o.flush()
	}
	return err
}

// eventText is an event as it is sent.
func eventText(id, name string, data []byte) []byte {
	text := make([]byte, 0, len(data)+len(id)+len(name)+32)
	if id != "" {
		text = append(append(append(text, "id: "...), id...), '\n')
	}
	text = append(append(text, "event: "...), name...)
	text = append(append(text, "\ndata: "...), data...) // JSON has no line ends
	return append(text, "\n\n"...)
}

// end says why the stream ends before the execution: a problem document, behind which the reader may come back.
func (o *eventWriter) end(err error) {
	if o.c.ctx().Err() != nil || errors.Is(err, flowfabric.ErrTransport) {
		return // the browser comes back by itself
	}
	p := *problemOf(err)
	p.Type, p.Title, p.Request = "about:blank", http.StatusText(p.Status), identityOf(o.c.r).id
	data, _ := json.Marshal(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.write(eventText("", "problem", data))
}

func (o *eventWriter) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.batch != nil {
		o.write(nil)
	}
	o.closed = true
	o.beat.Stop()
	o.again.Stop()
	o.stop()
	_ = o.control.SetWriteDeadline(time.Time{}) // the connection may answer other requests
}
