package httpapi

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// This file is the write side of the Durable Streams protocol, a draft: streams that programs make, append to, close,
// delete and fork over HTTP. They are no executions (docs/adr/0097-written-streams.md).

const (
	maxStreamName = 512               // bytes
	maxAppend     = limits.MaxPayload // bytes of a body
	maxUnread     = 16 << 20          // bytes of one that is refused, which are taken all the same
	streamsPath   = "/v1/streams/"
)

// Headers of the protocol that pages of other origins send, and see.
const (
	streamAsks = "Stream-TTL, Stream-Expires-At, Stream-Seq, Stream-Closed, Stream-Forked-From, " +
		"Stream-Fork-Offset, Stream-Fork-Sub-Offset, Producer-Id, Producer-Epoch, Producer-Seq"
	streamAnswers = "Stream-Next-Offset, Stream-Up-To-Date, Stream-Closed, Stream-Cursor, " +
		"Stream-SSE-Data-Encoding, Stream-TTL, Stream-Expires-At, Producer-Epoch, Producer-Seq, " +
		"Producer-Expected-Seq, Producer-Received-Seq"
)

// streamRef is the stream that the path names.
func (c *call) streamRef() (engine.StreamRef, error) { return c.streamNamed(c.r.PathValue("name")) }

func (c *call) streamNamed(name string) (s engine.StreamRef, err error) {
	bad := func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' }
	if name == "" || len(name) > maxStreamName || strings.ContainsFunc(name, bad) {
		return s, invalid("name", "it has %d bytes, want 1..%d without control characters", len(name), maxStreamName)
	}
	namespace, err := c.namespace(c.r.URL.Query().Get("namespace"))
	if err == nil && namespace != "" {
		err = valid.Name("namespace", namespace)
	}
	if err != nil {
		return s, err
	}
	return c.h.conn.Engine.Written(cmp.Or(namespace, limits.DefaultNamespace), name), nil
}

// unit says what a stream of a media type counts: messages of JSON, or bytes.
func unit(media string) (essence string, messages bool) {
	essence, _, _ = strings.Cut(media, ";")
	return essence, essence == "application/json"
}

// media is the content type of a request as it is stored: in lower case, but for the values of parameters.
func (c *call) media() (string, error) {
	given := c.r.Header.Get("Content-Type")
	if given == "" {
		return "", nil
	}
	essence, params, err := mime.ParseMediaType(given)
	media := mime.FormatMediaType(essence, params)
	if err != nil || media == "" || len(media) > 255 || !strings.Contains(essence, "/") {
		return "", invalid("Content-Type", "%.80q is no media type", given)
	}
	return media, nil
}

// closes tells whether a request closes the stream.
func (c *call) closes() bool { return strings.EqualFold(c.r.Header.Get("Stream-Closed"), "true") }

// content reads the body.
func (c *call) content() ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxAppend))
	if err == nil {
		return body, nil
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		// who sends much more does not read the answer before it has sent it
		_, _ = io.CopyN(io.Discard, c.r.Body, maxUnread)
		c.w.Header().Set("Connection", "close")
		return nil, err
	}
	c.w.Header().Set("Connection", "close")
	return nil, invalid("", "the body could not be read to its end")
}

// payload is a body as a stream of a media type stores it, and how many units it has. Of JSON an array is its elements,
// which are kept as they are but for the white space between tokens, a line each.
func payload(media string, body []byte) (stored []byte, units int, err error) {
	if _, messages := unit(media); !messages || len(body) == 0 {
		return body, len(body), nil
	}
	var list []json.RawMessage
	if !json.Valid(body) {
		return nil, 0, invalid("", "the body is no JSON")
	}
	if json.Unmarshal(body, &list) != nil || list == nil {
		list = []json.RawMessage{body}
	}
	var out bytes.Buffer
	for i, m := range list {
		if i > 0 {
			out.WriteByte('\n')
		}
		if err = json.Compact(&out, m); err != nil {
			return nil, 0, invalid("", "the body is no JSON")
		}
	}
	return out.Bytes(), len(list), nil
}

// whole is a number as the protocol has them.
var whole = regexp.MustCompile(`^(0|[1-9][0-9]{0,15})$`)

// number reads a header that has a number up to most; nil when it is not there.
func (c *call) number(header string, most int) (*int, error) {
	values := c.r.Header.Values(header)
	if len(values) == 0 {
		return nil, nil
	}
	n, err := strconv.Atoi(values[0])
	if len(values) > 1 || err != nil || !whole.MatchString(values[0]) || n > most {
		return nil, invalid(header, "it is %.64q, want a whole number up to %d", values[0], most)
	}
	return &n, nil
}

const (
	maxWhole     = 1<<53 - 1
	maxStreamTTL = 315360000 // seconds: ten years
)

// lifetime reads when a stream that is made shall expire.
func (c *call) lifetime(q *engine.NewStream) (err error) {
	if q.TTL, err = c.number("Stream-TTL", maxStreamTTL); err != nil {
		return err
	}
	if text := c.r.Header.Get("Stream-Expires-At"); text != "" {
		if q.TTL != nil {
			return invalid("Stream-Expires-At", "there is a Stream-TTL, want one of the two")
		}
		if q.Expires, err = time.Parse(time.RFC3339, text); err != nil || q.Expires.UnixMilli() > maxWhole {
			return invalid("Stream-Expires-At", "it is %.64q, want a time like 2026-01-31T17:00:00Z", text)
		}
		if q.Expires.IsZero() { // which is none
			q.Expires = time.UnixMilli(0)
		}
	}
	return nil
}

// source reads what a stream that is made shall be a fork of.
func (c *call) source(q *engine.NewStream, s engine.StreamRef) error {
	header := c.r.Header
	from, at := header.Get("Stream-Forked-From"), header.Get("Stream-Fork-Offset")
	sub, err := c.number("Stream-Fork-Sub-Offset", maxWhole)
	switch {
	case err != nil:
		return err
	case from == "" && (at != "" || sub != nil):
		return invalid("Stream-Forked-From", "it is missing: a fork needs a source")
	case from == "":
		return nil
	case sub != nil && *sub > 0 && at == "":
		return invalid("Stream-Fork-Offset", "it is missing: Stream-Fork-Sub-Offset counts from it")
	case at == "-1":
		q.At = new(int)
	case at != "":
		n, err := parsePosition(at)
		if err != nil {
			return invalid("Stream-Fork-Offset", "%.80q is none that a read returned", at)
		}
		q.At = &n
	}
	if sub != nil {
		q.Sub = *sub
	}
	name, err := url.PathUnescape(from)
	if _, behind, found := strings.Cut(name, streamsPath); found {
		name = behind
	}
	if err != nil {
		return invalid("Stream-Forked-From", "%.80q is no path", from)
	}
	source, err := c.streamNamed(strings.TrimPrefix(name, "/"))
	if err != nil {
		return err
	}
	family, _, _ := strings.Cut(s.Name, "/")
	if first, _, _ := strings.Cut(source.Name, "/"); first != family {
		return invalid("Stream-Forked-From", "the first segments of the names differ: a fork stays beside its source")
	}
	q.Source = &source
	return nil
}

// openStream creates a stream.
func (c *call) openStream() error {
	s, err := c.streamRef()
	if err != nil {
		return err
	}
	q := engine.NewStream{Closed: c.closes()}
	if q.Media, err = c.media(); err != nil {
		return err
	}
	if err = errors.Join(c.lifetime(&q), c.source(&q, s)); err != nil {
		return err
	}
	media := q.Media
	if q.Source == nil {
		q.Media = cmp.Or(q.Media, octets)
		media = q.Media
	}
	body, err := c.content()
	if err != nil {
		return err
	}
	if media == "" && len(body) > 0 { // what it is, the source says
		source, _, err := c.h.conn.Engine.ReadStream(c.ctx(), *q.Source, engine.StreamPart{})
		if err != nil && !errors.Is(err, denied.StreamGone) && !errors.Is(err, denied.NoStream) {
			return err
		}
		// a source of another type that comes between is refused; without one, the fork may be there
		media, q.Media = source.Media, source.Media
	}
	if q.Payload, q.Units, err = payload(media, body); err != nil {
		return err
	}
	made, already, err := c.h.conn.Engine.OpenStream(c.ctx(), s, q)
	if err != nil {
		return refusedStream(err)
	}
	header, status := c.w.Header(), http.StatusOK
	if !already {
		status = http.StatusCreated
		header.Set("Location", c.address())
	}
	header.Set("Content-Type", made.Media)
	c.streamEnd(made.End, made.Closed)
	c.w.WriteHeader(status)
	return nil
}

// address is the URL of the request, as far as it can be known behind a proxy.
func (c *call) address() string {
	scheme := "http"
	if c.r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + c.r.Host + c.r.URL.EscapedPath()
}

func (c *call) streamEnd(end int, closed bool) {
	c.w.Header().Set("Stream-Next-Offset", positionText(end))
	if closed {
		c.w.Header().Set("Stream-Closed", "true")
	}
}

// producer reads who appends, where that is said.
func (c *call) producer(q *engine.StreamWrite) error {
	header := c.r.Header
	said := 0
	for _, name := range []string{"Producer-Id", "Producer-Epoch", "Producer-Seq"} {
		if len(header.Values(name)) > 0 {
			said++
		}
	}
	if said == 0 {
		return nil
	}
	q.Producer = header.Get("Producer-Id")
	if said < 3 || q.Producer == "" || len(q.Producer) > 256 {
		return invalid("Producer-Id", "want it with 1..256 bytes, Producer-Epoch and Producer-Seq, or none of them")
	}
	epoch, err := c.number("Producer-Epoch", maxWhole)
	number, err2 := c.number("Producer-Seq", maxWhole)
	if err = errors.Join(err, err2); err != nil {
		return err
	}
	q.Epoch, q.Number = *epoch, *number
	return nil
}

// writeStream appends to a stream, or closes it.
func (c *call) writeStream() error {
	s, err := c.streamRef()
	if err != nil {
		return err
	}
	q := engine.StreamWrite{Close: c.closes(), Seq: c.r.Header.Get("Stream-Seq")}
	if len(q.Seq) > 256 {
		return invalid("Stream-Seq", "it has %d bytes, want at most 256", len(q.Seq))
	}
	if err = c.producer(&q); err != nil {
		return err
	}
	body, err := c.content()
	switch {
	case err != nil:
		return err
	case len(body) == 0 && !q.Close:
		return invalid("", "the body is empty: there is nothing to append")
	case len(body) > 0:
		if q.Media, err = c.media(); err != nil {
			return err
		}
		if q.Media == "" {
			return invalid("Content-Type", "it is missing")
		}
		if q.Payload, q.Units, err = payload(q.Media, body); err != nil {
			return err
		}
		if q.Units == 0 {
			return invalid("", "the array is empty: there is nothing to append")
		}
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	q.Call = hex.EncodeToString(random[:])
	wrote, err := c.h.conn.Engine.WriteStream(c.ctx(), s, q)
	if err != nil {
		return c.unwritten(q, refusedStream(err))
	}
	c.streamEnd(wrote.End, wrote.Closed)
	status := http.StatusNoContent
	if q.Producer != "" {
		header := c.w.Header()
		header.Set("Producer-Epoch", strconv.Itoa(wrote.Epoch))
		header.Set("Producer-Seq", strconv.Itoa(wrote.Number))
		if !wrote.Already && q.Units > 0 {
			status = http.StatusOK
		}
	}
	c.w.WriteHeader(status)
	return nil
}

// unwritten adds to a refusal what the protocol has in headers.
func (c *call) unwritten(q engine.StreamWrite, err error) error {
	e, ok := errors.AsType[*flowfabric.Error](err)
	if !ok {
		return err
	}
	header, value := c.w.Header(), denied.Slot(e, 1)
	switch what := denied.Slot(e, 0); {
	case errors.Is(err, denied.StreamClosed):
		if end, wrong := strconv.Atoi(what); wrong == nil {
			c.streamEnd(end, true)
		}
	case errors.Is(err, denied.StreamConflict) && what == "epoch":
		header.Set("Producer-Epoch", value)
		return &problem{Status: http.StatusForbidden, Code: e.Code,
			Detail: "the producer has a later epoch by now: " + value}
	case errors.Is(err, denied.StreamConflict) && what == "gap":
		header.Set("Producer-Expected-Seq", value)
		header.Set("Producer-Received-Seq", strconv.Itoa(q.Number))
	}
	return err
}

// refusedStream is an error in words of the protocol.
func refusedStream(err error) error {
	e, ok := errors.AsType[*flowfabric.Error](err)
	if !ok || !errors.Is(err, denied.StreamConflict) {
		return err
	}
	detail := map[string]string{"media": "the stream has another content type",
		"settings": "the stream was made with other settings",
		"closed":   "it differs whether the stream is closed",
		"gone":     "the stream was deleted, and is kept for its forks",
		"source":   "the source was deleted, and is kept for its forks",
		"seq":      "Stream-Seq is not above the last one",
		"gap":      "earlier ones of the producer have not come"}[denied.Slot(e, 0)]
	if detail == "" {
		return err
	}
	return &conflict{problem{Status: http.StatusConflict, Code: e.Code, Detail: detail}, e}
}

// conflict is a problem that knows what the server said.
type conflict struct {
	problem
	cause *flowfabric.Error
}

func (x *conflict) Unwrap() []error { return []error{&x.problem, x.cause} }

// dropStream deletes a stream. Who repeats it, because the answer was lost, is told that there is none.
func (c *call) dropStream() error {
	s, err := c.streamRef()
	if err != nil {
		return err
	}
	kept, already, err := c.h.conn.Engine.DropStream(c.ctx(), s)
	switch {
	case err == nil && already && kept:
		err = denied.New("delete", "stream_gone")
	case err == nil && already:
		err = denied.New("delete", "stream_not_found")
	}
	return c.nothingToSay(err)
}
