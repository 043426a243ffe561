package httpapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/fault"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/stream"
)

// positionText is a position in a written stream as offset. The first number is always 0, and the second in as many
// digits as the largest one has.
func positionText(n int) string { return fmt.Sprintf("%016d_%016d", 0, n) }

func parsePosition(text string) (int, error) {
	digits, found := strings.CutPrefix(text, "0000000000000000_")
	n, err := strconv.ParseUint(digits, 10, 53)
	if !found || err != nil || len(digits) != 16 {
		return 0, errOffset
	}
	return int(n), nil
}

// readWritten answers a read of a stream that is written over HTTP.
func (c *call) readWritten() error {
	d, _, err := c.durable()
	if err != nil {
		return err
	}
	l := &writtenLog{d: d, first: true}
	from, err := d.from(l)
	if err != nil {
		return err
	}
	if l.ref, err = c.streamRef(); err != nil {
		return err
	}
	s, _, err := c.h.conn.Engine.ReadStream(c.ctx(), l.ref, engine.StreamPart{})
	if err != nil {
		return err
	}
	d.view = streamView(s.Media)
	c.w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'") // whoever wrote it chose its type
	if c.h.cfg.Redact != nil {
		l.shown = &redactor{c, Redaction{Reader: c.who, Namespace: l.ref.Namespace, Kind: l.ref.Name}}
	}
	d.tag, d.own = l.ref.ID.String()+"."+strconv.FormatInt(s.Made.UnixMilli(), 36), l.shown != nil
	if c.r.Method == http.MethodHead {
		if s.TTL > 0 {
			c.w.Header().Set("Stream-TTL", strconv.Itoa(int(s.TTL/time.Second)))
		}
		if !s.Expires.IsZero() {
			c.w.Header().Set("Stream-Expires-At", s.Expires.Format(time.RFC3339Nano))
		}
	}
	return d.serve(from)
}

// streamView is how a stream of a media type is read.
func streamView(media string) view {
	essence, messages := unit(media)
	v := view{media: media, json: messages, line: dataLines}
	if !messages && !strings.HasPrefix(essence, "text/") {
		v.coded, v.line = true, func(b *strings.Builder, one []byte) {
			b.WriteString("data:" + base64.StdEncoding.EncodeToString(one) + "\n")
		}
	}
	return v
}

// writtenLog is a stream that is written over HTTP. A position is the text of its offset.
type writtenLog struct {
	d     *durable
	ref   engine.StreamRef
	shown *redactor
	first bool // the first read of a request, which begins the TTL anew
}

func (l *writtenLog) offset(p stream.Position) string {
	if p == "" {
		return positionText(0)
	}
	return string(p)
}

func (l *writtenLog) position(offset string) (stream.Position, error) {
	_, err := parsePosition(offset)
	return stream.Position(offset), err
}

func (l *writtenLog) tail() (chunk, error) {
	s, _, err := l.d.c.h.conn.Engine.ReadStream(l.d.c.ctx(), l.ref,
		engine.StreamPart{Touch: l.d.c.r.Method != http.MethodHead})
	l.first = false
	return chunk{next: stream.Position(positionText(s.End)), upToDate: true, closed: s.Closed}, err
}

func (l *writtenLog) read(from stream.Position, most int) (chunk, error) {
	q := engine.StreamPart{Most: most, Touch: l.first}
	l.first = false
	var err error
	if q.After, err = parsePosition(l.offset(from)); err != nil {
		return chunk{}, err
	}
	return readChunk(l.d.c.ctx(), l.d.c.h.conn.Engine, l.ref, q, l.message)
}

// message is what a reader is shown of one.
func (l *writtenLog) message(m []byte) []byte {
	if l.shown == nil {
		return m
	}
	shown := l.shown.shown("stream", m)
	if shown == nil {
		shown = []byte(withheld)
	}
	if l.d.view.json {
		return asJSON(string(shown))
	}
	return shown
}

// readChunk reads a chunk of a stream that is written over HTTP, as show makes it of each message.
func readChunk(ctx context.Context, e *engine.Engine, ref engine.StreamRef, q engine.StreamPart,
	show func([]byte) []byte) (out chunk, err error) {
	s, entries, err := e.ReadStream(ctx, ref, q)
	if err != nil {
		return out, err
	}
	_, messages := unit(s.Media)
	after := q.After
	if q.Most > 0 && after < s.End && len(entries) == 0 { // or readers would ask for ever
		return out, fmt.Errorf("%w: nothing is stored behind %d of %d of the stream", flowfabric.ErrCorrupt, after,
			s.End)
	}
	for i, x := range entries {
		first, last := max(after, x.From)-x.From, x.To-x.From
		out.cut = out.cut || i == 0 && first > 0
		out.messages = append(out.messages, pieces(x, messages, first, last, show)...)
		after = x.To
	}
	out.next = stream.Position(positionText(after))
	out.upToDate = after >= s.End
	out.closed = out.upToDate && s.Closed
	return out, nil
}

// pieces are what is read of an entry: some of its messages, or a part of its bytes, as show makes it. One that cannot
// be opened is told of once, at its end. Bytes are given to show as they were appended, because a reader chooses where
// it begins: of what show changes there is no part.
func pieces(x engine.StreamEntry, messages bool, first, last int, show func([]byte) []byte) (out [][]byte) {
	switch {
	case sealed.Is(x.Payload) && messages:
		text, _ := json.Marshal(flowfabric.Payload(x.Payload))
		return [][]byte{show(text)}
	case sealed.Is(x.Payload):
		return [][]byte{show([]byte(sealed.Text(x.Payload)))}
	case messages:
		for _, m := range bytes.Split(x.Payload, []byte("\n"))[first:last] {
			out = append(out, show(m))
		}
		return out
	}
	shown := show(x.Payload)
	switch {
	case bytes.Equal(shown, x.Payload):
		return [][]byte{x.Payload[first:last]}
	case last-first < len(x.Payload):
		return [][]byte{[]byte(withheld)}
	}
	return [][]byte{shown}
}

func (l *writtenLog) wait(from stream.Position, most time.Duration) error {
	r := l.d.c.h.rooms.join(l.d.c.h.conn.Engine, l.ref)
	defer l.d.c.h.rooms.leave(r)
	ctx, cancel := context.WithTimeout(l.d.c.ctx(), most)
	defer cancel()
	for {
		changed := r.changes()
		x, err := r.page(ctx, l.offset(from))
		if err != nil || len(x.messages) > 0 || x.closed {
			return unlessOver(ctx, l.d.c.ctx(), err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// unlessOver is an error, unless a wait ended with its time.
func unlessOver(wait, request context.Context, err error) error {
	if wait.Err() != nil && request.Err() == nil {
		return nil
	}
	return err
}

func (l *writtenLog) follow(ctx context.Context, out *eventWriter, from stream.Position) {
	r := l.d.c.h.rooms.join(l.d.c.h.conn.Engine, l.ref)
	defer l.d.c.h.rooms.leave(r)
	for {
		changed := r.changes()
		x, err := r.page(ctx, l.offset(from))
		if err != nil || x.cut && l.shown != nil {
			return // the reader comes back, and is told why, or shown no part
		}
		if len(x.messages) > 0 || x.closed {
			if !l.send(out, x) || x.closed {
				return
			}
			from = x.next
		}
		if !x.upToDate {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// send sends a page, of which what all readers get alike is written once.
func (l *writtenLog) send(out *eventWriter, x *page) bool {
	if l.shown == nil {
		return out.add(x.text(l.d)) == nil && out.add(l.d.state(x.chunk)) == nil && out.flush() == nil
	}
	own := x.chunk
	own.messages = nil
	for _, m := range x.messages {
		own.messages = append(own.messages, l.message(m))
	}
	return l.d.c.broken == nil && l.d.send(out, own) == nil
}

// rooms are the written streams that are read live. Readers of one share its subscription, and what they read.
type rooms struct {
	mu    sync.Mutex
	named map[string]*room
	tasks conc.WaitGroup
}

// room is one of them.
type room struct {
	e       *engine.Engine
	ref     engine.StreamRef
	channel string
	readers int // guarded by rooms.mu
	stop    context.CancelFunc

	mu      sync.Mutex
	changed chan struct{} // closed with the next news
	pages   map[string]*page
}

// page is what was read behind an offset since the last news.
type page struct {
	chunk
	err  error
	done chan struct{}

	once sync.Once
	sse  []byte
}

// text is the page as Server-Sent Events, but for the end of the last one.
func (p *page) text(d *durable) []byte {
	p.once.Do(func() { p.sse = d.text(p.chunk) })
	return p.sse
}

// maxPages are kept of a room: readers that are further apart read for themselves.
const maxPages = 8

func (h *rooms) join(e *engine.Engine, ref engine.StreamRef) *room {
	h.mu.Lock()
	defer h.mu.Unlock()
	channel := engine.StreamChannel(ref)
	r := h.named[channel]
	if r == nil {
		ctx, stop := context.WithCancel(context.Background())
		r = &room{e: e, ref: ref, channel: channel, stop: stop, changed: make(chan struct{}), pages: map[string]*page{}}
		if h.named == nil {
			h.named = map[string]*room{}
		}
		h.named[channel] = r
		h.tasks.Go(func() { r.listen(ctx) })
	}
	r.readers++
	return r
}

func (h *rooms) leave(r *room) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.readers--; r.readers == 0 {
		r.stop()
		delete(h.named, r.channel)
	}
}

// close waits for subscriptions that have ended with their readers.
func (h *rooms) close() {
	h.mu.Lock()
	for _, r := range h.named {
		r.stop()
	}
	h.mu.Unlock()
	h.tasks.Wait()
}

// listen keeps the subscription. When it stands, readers look again: something may have come before.
func (r *room) listen(ctx context.Context) {
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
	for ctx.Err() == nil {
		err := r.e.Subscribe(ctx, r.ref.Partition, []string{r.channel}, func() {
			pauses.Reset()
			r.news()
		}, func(string, string) { r.news() })
		if class := denied.ClassOf(err); ctx.Err() != nil || class != 0 && class != fault.Retry {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(pauses.NextBackOff()):
		}
	}
}

func (r *room) news() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed, r.pages = make(chan struct{}), map[string]*page{}
}

// changes is closed with the next news.
func (r *room) changes() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// forget lets the next reader read what could not be read.
func (r *room) forget(from string, p *page) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pages[from] == p {
		delete(r.pages, from)
	}
}

// page is what lies behind an offset, as it was read since the last news.
func (r *room) page(ctx context.Context, from string) (*page, error) {
	r.mu.Lock()
	p := r.pages[from]
	own := p == nil
	if own {
		p = &page{done: make(chan struct{})}
		if len(r.pages) < maxPages {
			r.pages[from] = p
		}
	}
	r.mu.Unlock()
	if own { // others wait for it, whether or not this reader stays
		var after int
		if after, p.err = parsePosition(from); p.err == nil {
			p.chunk, p.err = readChunk(context.WithoutCancel(ctx), r.e, r.ref,
				engine.StreamPart{After: after, Most: durableChunk}, func(m []byte) []byte { return m })
		}
		if p.err != nil {
			r.forget(from, p)
		}
		close(p.done)
	}
	select {
	case <-p.done:
		return p, p.err
	case <-ctx.Done():
		return p, ctx.Err()
	}
}
