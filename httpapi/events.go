package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/words"
	"github.com/flowfabric/flowfabric-go/stream"
)

// events follows an execution. The id of each event is its position, so a browser that was cut off goes on behind the
// last one it has seen.
func (c *call) events() error {
	q := c.query()
	var opts []client.TailOption
	field, text := "after", q.text("after")
	if last := c.r.Header.Get("Last-Event-ID"); last != "" {
		field, text = "Last-Event-ID", last
	}
	after, err := stream.ParsePosition(text)
	if err != nil {
		q.wrong(field, "it is no id of an event")
	}
	if after != "" {
		opts = append(opts, client.From(after))
	}
	if q.text("attempt") != "" {
		opts = append(opts, client.OnlyAttempt(uint32(q.number("attempt", 1, 1<<32-1, 1))))
	}
	if q.flag("from_now") && after == "" { // who comes back goes on where they were
		opts = append(opts, client.FromNow())
	}
	if q.flag("durable") {
		opts = append(opts, client.WithoutBestEffort())
	}
	if q.err != nil {
		return q.err
	}
	id, err := c.id()
	if err != nil {
		return err
	}
	s, err := c.h.client.Execution(id).Get(c.ctx())
	if err != nil { // what is not there is no stream
		return err
	}
	if done, err := c.nothingAfter(id, after, opts); err != nil || done {
		return err
	}
	shown := c.redactorOf(id, s.Route)
	out := newEventWriter(c, eventMedia)
	defer out.close()
	for e, err := range c.h.client.Execution(id).Tail(c.ctx(), opts...) {
		e = shown.event(e)
		if err = cmp.Or(err, c.broken); err != nil {
			out.end(err)
			return nil
		}
		if out.send(e) != nil {
			return nil // the reader is gone, or too slow
		}
	}
	return nil
}

// nothingAfter answers 204 to a browser that comes back behind the last event: it would come back for ever.
func (c *call) nothingAfter(id flowfabric.ExecutionID, after stream.Position,
	opts []client.TailOption) (done bool, err error) {
	if after == "" {
		return false, nil
	}
	s, err := c.h.client.Execution(id).Get(c.ctx())
	if err != nil || !s.State.Terminal() {
		return false, err
	}
	for _, err := range c.h.client.Execution(id).Tail(c.ctx(), append(opts, client.Stored())...) {
		return false, err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return true, nil
}

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
	closed  bool
	err     error
}

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
	out.write(": follow\nretry: 1000\n\n")
	out.beat = time.AfterFunc(c.h.cfg.Heartbeat, out.comment)
	out.again = time.AfterFunc(c.h.again, out.askAgain)
	return out
}

// askAgain ends the stream of a reader whose token is gone, or may not any more what it could when the stream began.
func (o *eventWriter) askAgain() {
	who, err := o.c.identify()
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

// write sends a piece at once. The caller holds mu.
func (o *eventWriter) write(text string) {
	if o.err != nil || o.closed {
		return
	}
	_ = o.control.SetWriteDeadline(time.Now().Add(o.c.h.cfg.WriteTimeout)) // not every writer knows how
	if _, o.err = o.c.w.Write([]byte(text)); o.err == nil {
		o.err = o.control.Flush()
	}
}

// comment keeps the connection alive.
func (o *eventWriter) comment() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.write(": \n\n")
	if o.err == nil && !o.closed {
		o.beat.Reset(o.c.h.cfg.Heartbeat)
	}
}

// told is an event as all who may follow an execution see it, the bearer of a stream token among them.
func told(e stream.TailEvent) stream.TailEvent { return words.Blanked(e, "operator", "viewer") }

// send writes an event of an execution.
func (o *eventWriter) send(e stream.TailEvent) error {
	return o.emit(string(e.Position), string(e.Kind), told(e))
}

// emit writes an event; without an id the one before it stays the last.
func (o *eventWriter) emit(id, name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.Grow(len(data) + len(id) + 48)
	if id != "" {
		b.WriteString("id: ")
		b.WriteString(id)
		b.WriteString("\n")
	}
	b.WriteString("event: ")
	b.WriteString(name)
	b.WriteString("\ndata: ")
	b.Write(data) // JSON has no line ends
	b.WriteString("\n\n")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.write(b.String())
	if o.err == nil {
		o.beat.Reset(o.c.h.cfg.Heartbeat)
	}
	return o.err
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
	o.write("event: problem\ndata: " + string(data) + "\n\n")
}

func (o *eventWriter) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.beat.Stop()
	o.again.Stop()
	o.stop()
	_ = o.control.SetWriteDeadline(time.Time{}) // the connection may answer other requests
}

type streamTokenRequest struct {
	LifeS int64 `json:"life_s,omitempty" jsonschema:"how long it is valid, 1..3600 s, default 300"`
}

type streamTokenAnswer struct {
	AccessToken string    `json:"access_token"`
	ExpiresAt   time.Time `json:"expires_at"`
}

func (c *call) makeStreamToken() error {
	var b streamTokenRequest
	if err := c.body(&b); err != nil {
		return err
	}
	if b.LifeS == 0 {
		b.LifeS = 300
	}
	if b.LifeS < 1 || b.LifeS > 3600 {
		return invalid("/life_s", "it is %d, want 1..3600", b.LifeS)
	}
	id, err := c.id()
	if err != nil {
		return err
	}
	if _, err := c.h.client.Execution(id).Get(c.ctx()); err != nil {
		return err
	}
	until := time.Now().Add(time.Duration(b.LifeS) * time.Second).UTC().Truncate(time.Second)
	return c.answerJSON(http.StatusCreated, streamTokenAnswer{c.h.streamToken(id.String(), c.who.Token, until), until})
}
