package httpapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/tailpos"
	"github.com/flowfabric/flowfabric-go/stream"
)

// This file is the read side of the Durable Streams protocol, a draft: a stream of which every offset always means the
// same. That is what an execution puts out, or what was written over HTTP (streams.go).
// https://github.com/durable-streams/durable-streams/blob/main/PROTOCOL.md
//
// The stream of an execution is a tail without what does not last: frames that were not meant to, and what is said of a
// wait or a coming retry. An offset is a position of that tail, written so that offsets sort as texts.

const (
	durableChunk = 1 << 20          // bytes of a catch-up read, about
	durablePoll  = 20 * time.Second // that a long poll waits
	durableSSE   = time.Minute      // that Server-Sent Events last; the reader comes back
)

// view is how messages are made of a tail's events.
type view struct {
	form  string // of a frame's text: see framelog.Event.Text
	coded bool   // Server-Sent Events have it in base64
	media string
	json  bool                                 // a read answers an array
	of    func(stream.TailEvent) []byte        // nil: nothing
	line  func(b *strings.Builder, one []byte) // of Server-Sent Events
}

// octets is the media type of bytes.
const octets = "application/octet-stream"

// durableFrame is the payload of a frame that lasts.
func durableFrame(e stream.TailEvent) (stream.Frame, bool) {
	return e.Frame, e.Kind == stream.TailFrame && e.Frame.Mode == stream.ModeDurable
}

var views = map[string]view{
	"events": {form: "stream events", media: "application/json", json: true, of: func(e stream.TailEvent) []byte {
		if e.Kind == stream.TailSuspended || e.Kind == stream.TailRetry {
			return nil
		}
		text, _ := json.Marshal(told(e))
		return text
	}},
	"json": {form: "stream json", media: "application/json", json: true, of: func(e stream.TailEvent) []byte {
		f, ok := durableFrame(e)
		switch {
		case !ok:
			return nil
		case f.Encrypted:
			text, _ := json.Marshal(flowfabric.Payload(f.Payload))
			return text
		case f.Encoding == stream.JSON:
			return f.Payload
		case f.Encoding == stream.Bytes:
			text, _ := json.Marshal(f.Payload)
			return text
		}
		text, _ := json.Marshal(string(f.Payload))
		return text
	}},
	"text": {form: "stream text", media: "text/plain", of: func(e stream.TailEvent) []byte {
		f, ok := durableFrame(e)
		if f.Encrypted && ok {
			return []byte(sealed.Text(f.Payload))
		}
		if !ok || f.Encoding == stream.Bytes {
			return nil
		}
		return f.Payload
	}, line: dataLines},
	"bytes": {form: "stream bytes", coded: true, media: octets, of: func(e stream.TailEvent) []byte {
		f, ok := durableFrame(e)
		if !ok {
			return nil
		}
		return f.Payload
	}, line: func(b *strings.Builder, one []byte) {
		b.WriteString("data:" + base64.StdEncoding.EncodeToString(one) + "\n")
	}},
}

// dataLines writes a text as data of an event, line by line.
func dataLines(b *strings.Builder, text []byte) {
	for _, line := range lineEnds.Split(string(text), -1) {
		if strings.HasPrefix(line, " ") { // readers take one space away
			line = " " + line
		}
		b.WriteString("data:" + line + "\n")
	}
}

var lineEnds = regexp.MustCompile(`\r\n|\r|\n`)

// durable is one read.
type durable struct {
	c      *call
	log    durableLog
	tag    string // what is read, for the ETag
	own    bool   // what this reader sees is not for others
	view   view
	offset string // as it was given; "" is none
	live   string
	cursor string
}

// durableLog is what is read.
type durableLog interface {
	// read takes what is stored behind a position, a chunk of it at most.
	read(from stream.Position, most int) (chunk, error)
	// tail is where it ends now, and no messages.
	tail() (chunk, error)
	// wait returns when there is a message behind a position, nothing comes any more, or the time is over.
	wait(from stream.Position, most time.Duration) error
	// follow sends what comes behind a position until ctx ends, or nothing comes any more.
	follow(ctx context.Context, out *eventWriter, from stream.Position)
	// offset is a position as readers get it, and position the other way round.
	offset(stream.Position) string
	position(offset string) (stream.Position, error)
}

// chunk is what a read found.
type chunk struct {
	messages [][]byte
	next     stream.Position
	upToDate bool
	closed   bool
	cut      bool // it begins in the middle of what was appended at once
}

// durable reads what the query of a read says.
func (c *call) durable() (*durable, url.Values, error) {
	c.w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	values, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, nil, invalid("", "the query is not well formed")
	}
	d := &durable{c: c, live: values.Get("live"), cursor: values.Get("cursor")}
	if offsets, given := values["offset"]; given {
		if len(offsets) > 1 || offsets[0] == "" {
			return nil, nil, invalid("offset", "want one that a read returned, -1 or now")
		}
		d.offset = offsets[0]
	}
	if d.live != "" && d.live != "long-poll" && d.live != "sse" {
		return nil, nil, invalid("live", "it is %.32q, want long-poll or sse", d.live)
	}
	if d.live != "" && d.offset == "" {
		return nil, nil, invalid("offset", "it is missing: a live read needs a position to begin at")
	}
	return d, values, nil
}

// from is where a read begins; "" is the beginning, or the end if that is asked for.
func (d *durable) from(log durableLog) (stream.Position, error) {
	if d.log = log; d.offset == "" || d.offset == "-1" || d.offset == "now" {
		return "", nil
	}
	from, err := log.position(d.offset)
	if err != nil {
		return "", invalid("offset", "%.80q is none that a read returned", d.offset)
	}
	return from, nil
}

// durableStream answers a read of the Durable Streams protocol of an execution. Parameters that it does not know are
// none of its business.
func (c *call) durableStream() error {
	d, values, err := c.durable()
	if err != nil {
		return err
	}
	name := "events"
	if values.Has("as") {
		name = values.Get("as")
	}
	var known bool
	if d.view, known = views[name]; !known {
		return invalid("as", "it is %.32q, want events, text, json or bytes", name)
	}
	t := &tailLog{d: d}
	from, err := d.from(t)
	if err != nil {
		return err
	}
	if t.id, err = c.id(); err != nil {
		return err
	}
	s, err := c.h.client.Execution(t.id).Get(c.ctx())
	if err != nil {
		return err
	}
	t.shown = c.redactorOf(t.id, s.Route)
	d.tag, d.own = t.id.String()+":"+name, t.shown != nil
	return d.serve(from)
}

// serve answers a read.
func (d *durable) serve(from stream.Position) (err error) {
	now := d.offset == "now"
	d.c.w.Header().Set("Content-Type", d.view.media)
	var tail chunk
	if now || d.c.r.Method == http.MethodHead {
		if tail, err = d.log.tail(); err != nil {
			return err
		}
		from = tail.next
	}
	switch {
	case d.c.r.Method == http.MethodHead:
		d.headers(chunk{next: tail.next, closed: tail.closed})
		d.c.w.WriteHeader(http.StatusOK)
		return nil
	case d.live == "long-poll":
		return d.poll(from)
	case d.live == "sse":
		return d.events(from)
	case now:
		return d.answer(tail)
	}
	return d.catchUp(from)
}

// tailLog is the tail of an execution.
type tailLog struct {
	d     *durable
	id    flowfabric.ExecutionID
	shown *redactor
	said  []byte // the state behind the frames that are ready
}

func (t *tailLog) read(from stream.Position, most int) (out chunk, err error) {
	out.next = from
	size := 0
	for e, err := range t.d.c.h.client.Execution(t.id).Tail(t.d.c.ctx(), t.options(from, client.Stored())...) {
		if err != nil {
			return out, err
		}
		if size >= most { // there is more
			return out, nil
		}
		size += t.take(&out, e)
		if t.d.c.broken != nil {
			return out, t.d.c.broken
		}
	}
	out.upToDate, out.closed = true, over(out.next)
	return out, nil
}

// over tells whether the end of the execution lies before a position; who replays it opens the stream again.
func over(p stream.Position) bool {
	parts, err := tailpos.Parse(string(p))
	return err == nil && parts.Stage == tailpos.Over
}

func (t *tailLog) options(from stream.Position, more ...client.TailOption) []client.TailOption {
	return append(more, client.From(from), client.WithoutBestEffort(), client.WithoutChildren())
}

// pass moves a chunk behind an event, if that lasts: no offset is behind one that does not.
func (x *chunk) pass(e stream.TailEvent) bool {
	if e.Kind == stream.TailSuspended || e.Kind == stream.TailRetry {
		return false
	}
	x.next, x.closed = e.Position, over(e.Position)
	return true
}

// take adds an event to a chunk, and returns how many bytes it has.
func (t *tailLog) take(out *chunk, e stream.TailEvent) (size int) {
	if !out.pass(e) {
		return 0
	}
	if m := t.d.view.of(t.shown.event(e)); m != nil {
		out.messages = append(out.messages, m)
		return len(m)
	}
	return 0
}

// tail walks over what is stored.
func (t *tailLog) tail() (chunk, error) {
	out := chunk{upToDate: true}
	for e, err := range t.d.c.h.client.Execution(t.id).Tail(t.d.c.ctx(), t.options("", client.Stored())...) {
		if err != nil {
			return out, err
		}
		out.pass(e)
	}
	return out, nil
}

// headers say where the reader is.
func (d *durable) headers(x chunk) {
	header := d.c.w.Header()
	header.Set("Stream-Next-Offset", d.log.offset(x.next))
	if x.upToDate {
		header.Set("Stream-Up-To-Date", "true")
	}
	if x.closed {
		header.Set("Stream-Closed", "true")
	}
	if d.live != "" {
		header.Set("Stream-Cursor", d.nextCursor(time.Now()))
	}
}

// body puts messages together.
func (d *durable) body(messages [][]byte) []byte {
	if d.view.json {
		return append(append([]byte("["), bytes.Join(messages, []byte(","))...), ']')
	}
	return bytes.Join(messages, nil)
}

func (d *durable) answer(x chunk) error {
	d.headers(x)
	d.c.w.WriteHeader(http.StatusOK)
	_, _ = d.c.w.Write(d.body(x.messages))
	return nil
}

// catchUp answers what is there. Only a chunk that more lies behind is the same for ever.
func (d *durable) catchUp(from stream.Position) error {
	x, err := d.log.read(from, durableChunk)
	if err != nil {
		return err
	}
	if d.own { // what one reader sees is not for another, and may change
		return d.answer(x)
	}
	header := d.c.w.Header()
	header.Set("Cache-Control", "private, no-cache")
	if !x.upToDate {
		header.Set("Cache-Control", "private, max-age=60, stale-while-revalidate=300")
	}
	tag := d.tag + ":" + d.log.offset(from) + ":" + d.log.offset(x.next)
	if x.closed {
		tag += ":c"
	}
	tag = `"` + tag + `"`
	header.Set("ETag", tag)
	header.Add("Vary", "Authorization") // it decides what may be seen, and in which namespace a name is
	for given := range strings.SplitSeq(d.c.r.Header.Get("If-None-Match"), ",") {
		if given = strings.TrimPrefix(strings.TrimSpace(given), "W/"); given == tag || given == "*" {
			d.headers(x)
			d.c.w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	return d.answer(x)
}

// poll answers what is there, or waits until there is something.
func (d *durable) poll(from stream.Position) error {
	x, err := d.log.read(from, durableChunk)
	if err == nil && len(x.messages) == 0 && x.upToDate && !x.closed {
		if err = d.log.wait(x.next, d.c.h.poll); err == nil {
			x, err = d.log.read(x.next, durableChunk)
		}
	}
	switch {
	case err != nil:
		return err
	case len(x.messages) == 0:
		d.headers(x)
		d.c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return d.answer(x)
}

func (t *tailLog) wait(from stream.Position, most time.Duration) error {
	ctx, cancel := context.WithTimeout(t.d.c.ctx(), most)
	defer cancel()
	for e, err := range t.d.c.h.client.Execution(t.id).Tail(ctx, t.options(from)...) {
		if err != nil {
			if ctx.Err() != nil && t.d.c.ctx().Err() == nil {
				return nil
			}
			return err
		}
		if e.Kind == stream.TailEnd || t.d.view.of(e) != nil {
			return nil
		}
	}
	return nil
}

func (t *tailLog) offset(p stream.Position) string { return offsetText(p) }

func (t *tailLog) position(offset string) (stream.Position, error) { return parseOffset(offset) }

// An offset is the parts of a position in hexadecimal, those in front that grow first, without the mark of a wait,
// behind which no offset is. What is over comes before the attempt that a replay adds.
const offsetFormat = "%08x%01x%016x%016x%08x%016x%016x"

const offsetLength = 8 + 1 + 16 + 16 + 8 + 16 + 16

var stages = [...]tailpos.Stage{tailpos.Awaited, tailpos.Announced, tailpos.Over, tailpos.Begun}

func offsetText(p stream.Position) string {
	parts, err := tailpos.Parse(string(p))
	if err != nil { // a tail made it
		parts = tailpos.Parts{}
	}
	stage := 0
	for i, s := range stages {
		if s == parts.Stage {
			stage = i
		}
	}
	return fmt.Sprintf(offsetFormat, parts.Attempt, stage, parts.Ms, parts.Seq, parts.Run, parts.Sequence,
		parts.Durables)
}

var errOffset = errors.New("no offset")

func parseOffset(text string) (stream.Position, error) {
	if len(text) != offsetLength || strings.Trim(text, "0123456789abcdef") != "" {
		return "", errOffset
	}
	var parts tailpos.Parts
	var stage int
	if _, err := fmt.Sscanf(text, offsetFormat, &parts.Attempt, &stage, &parts.Ms, &parts.Seq, &parts.Run,
		&parts.Sequence, &parts.Durables); err != nil || stage >= len(stages) {
		return "", errOffset
	}
	parts.Stage = stages[stage]
	p := tailpos.Text(parts)
	if again, err := stream.ParsePosition(p); err != nil || offsetText(again) != text {
		return "", errOffset
	}
	return stream.Position(p), nil
}
