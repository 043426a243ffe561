package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/explain"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/timeline"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Redaction is one piece of what a program stored, on its way to a reader. See [Config.Redact].
type Redaction struct {
	// What it is: "input", "result", "step" (the recorded value of one), "message" (of a mailbox), "summary" (the
	// document), "frame", "log" (a JSON object with the message and attributes of a line; withheld, the line has its
	// time and level), "progress" (the message), "failure" (the message of a failure, or why a worker
	// cancelled), or "stream" (a message, or the bytes of one append, of a stream that was written over HTTP). Later
	// versions may add others: withhold what you do not know.
	What string
	// Reader is who made the request. With a token of a browser it is always the viewer "stream".
	Reader Principal
	// Execution is whose it is. It has this Namespace, Lane and Kind. A written stream is none: its Kind is its name.
	Execution             flowfabric.ExecutionID
	Namespace, Lane, Kind string
	// Payload is what was stored, never empty. It is a copy: the function may change and return it.
	Payload []byte
}

// withheld stands for what a redactor does not show.
const withheld = "[withheld]"

// redactor shows what programs stored of one execution to the reader of one call. nil shows everything as it is.
type redactor struct {
	c     *call
	about Redaction
}

// redactor is the one of an execution, whose record it reads. Without Config.Redact it is nil, and nothing is read.
func (c *call) redactor(id flowfabric.ExecutionID) (*redactor, error) {
	if c.h.cfg.Redact == nil {
		return nil, nil
	}
	s, err := c.h.client.Execution(id).Get(c.ctx())
	if err != nil {
		return nil, err
	}
	return c.redactorOf(id, s.Route), nil
}

// reader is who reads, as a function that redacts is told.
func (c *call) reader() Principal {
	who := c.who
	if c.paged {
		who.Name = follower.Name
	}
	return who
}

// redactorOf is redactor for those who know the route.
func (c *call) redactorOf(id flowfabric.ExecutionID, route flowfabric.Route) *redactor {
	if c.h.cfg.Redact == nil {
		return nil
	}
	return &redactor{c, Redaction{Reader: c.reader(), Execution: id, Namespace: route.Namespace, Lane: route.Lane,
		Kind: route.Kind}}
}

// shown is what Config.Redact makes of a piece; nil is withheld. When it panics everything of the call is withheld
// from then on, and call.broken is set, with which the answer ends.
func (r *redactor) shown(what string, raw []byte) (out []byte) {
	if r.c.broken != nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil { // its text may have the payload
			r.c.h.cfg.Logger.ErrorContext(r.c.ctx(), "flowfabric: api: Config.Redact panicked", "request",
				identityOf(r.c.r).id, "what", what, "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			r.c.broken, out = &problem{Status: http.StatusInternalServerError, Code: "internal",
				Detail: "the answer could not be redacted, so it is withheld; the log has the request id"}, nil
		}
	}()
	about := r.about
	about.What, about.Payload = what, bytes.Clone(raw) // tailers share what is stored
	return r.c.h.cfg.Redact(about)
}

// payload is a value of a program that is mostly JSON.
func (r *redactor) payload(what string, raw []byte) flowfabric.Payload {
	if r == nil || len(raw) == 0 {
		return raw
	}
	shown := r.shown(what, raw)
	switch {
	case shown == nil:
		shown = asJSON(withheld)
	case json.Valid(raw):
		shown = asJSON(string(shown))
	}
	return shown
}

// document is a value that must stay JSON.
func (r *redactor) document(what string, raw json.RawMessage) json.RawMessage {
	if r == nil || len(raw) == 0 {
		return raw
	}
	return asJSON(r.text(what, string(raw)))
}

// asJSON is a text as it is if it is JSON, else as a string of JSON.
func asJSON(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text) // a string never fails
	return quoted
}

func (r *redactor) text(what, text string) string {
	if r == nil || text == "" {
		return text
	}
	shown := r.shown(what, []byte(text))
	if shown == nil {
		return withheld
	}
	return string(shown)
}

// frame keeps the encoding, unless what is shown is no JSON any more.
func (r *redactor) frame(f stream.Frame) stream.Frame {
	if r == nil || len(f.Payload) == 0 {
		return f
	}
	f.Payload = r.shown("frame", f.Payload)
	if f.Payload == nil {
		f.Payload = []byte(withheld)
	}
	f.Encrypted = sealed.Is(f.Payload)
	if f.Encoding == stream.JSON && !json.Valid(f.Payload) {
		f.Encoding = stream.UTF8
	}
	return f
}

// event is for one of a tail.
func (r *redactor) event(e stream.TailEvent) stream.TailEvent {
	if r == nil {
		return e
	}
	if e.Kind == stream.TailFrame {
		e.Frame = r.frame(e.Frame)
	}
	e.Message = r.ended(e.Source, e.Message)
	return e
}

// redactors are those of an execution and of the children among whose events its own are.
type redactors struct {
	own      *redactor
	children map[flowfabric.ExecutionID]*redactor
}

// event is for one of a tail, which is of the execution or a child. Of a child whose route cannot be read everything is
// withheld.
func (x *redactors) event(e stream.TailEvent) stream.TailEvent {
	if x.own == nil || e.Child == nil {
		return x.own.event(e)
	}
	r := x.children[e.Child.ID]
	if r == nil {
		var err error
		if r, err = x.own.c.redactor(e.Child.ID); err != nil {
			e.Frame.Payload, e.Frame.Encoding, e.Message = []byte(withheld), stream.UTF8, withheld
			return e
		}
		if x.children == nil {
			x.children = map[flowfabric.ExecutionID]*redactor{}
		}
		x.children[e.Child.ID] = r
	}
	return r.event(e)
}

// ended is the message of a failure, or the reason of a cancellation, which has a source: a person's is shown as it is.
func (r *redactor) ended(source, text string) string {
	if source != "" && source != engine.CancelOwner {
		return text
	}
	return r.text("failure", text)
}

func (r *redactor) snapshot(s flowfabric.Snapshot) flowfabric.Snapshot {
	if r == nil {
		return s
	}
	s.Failure.Message = r.text("failure", s.Failure.Message)
	s.CancelReason = r.ended(s.CancelSource, s.CancelReason)
	s.Progress.Message = r.text("progress", s.Progress.Message)
	s.AttemptLog = slices.Clone(s.AttemptLog)
	for i := range s.AttemptLog {
		s.AttemptLog[i].Message = r.text("failure", s.AttemptLog[i].Message)
	}
	return s
}

// past is for an entry of a history: what a program said is in the end of an attempt, and in a cancellation by its
// worker.
func (r *redactor) past(e flowfabric.Event) flowfabric.Event {
	switch e.Kind {
	case timeline.EventAttempt:
		e.Reason = r.text("failure", e.Reason)
	case timeline.EventCancelled:
		e.Reason = r.ended(e.Source, e.Reason)
	}
	return timeline.Told(e)
}

// explained says why an execution is where it is. The sentences quote programs, so they are made of what is shown.
func (c *call) explained(id flowfabric.ExecutionID) (flowfabric.Explanation, error) {
	if c.h.cfg.Redact == nil {
		return c.h.admin.Why(c.ctx(), id)
	}
	e, err := explain.Of(c.ctx(), redactedFacts{c.h.conn.Engine, c}, id)
	if err != nil {
		return flowfabric.Explanation{}, link.Operated("explain", id, err)
	}
	return e, nil
}

// redactedFacts are what an explanation is made of, as the reader may see it.
type redactedFacts struct {
	explain.Source
	c *call
}

// Explain is the source's, redacted.
func (x redactedFacts) Explain(ctx context.Context, id flowfabric.ExecutionID) (engine.Facts, error) {
	f, err := x.Source.Explain(ctx, id)
	if err == nil {
		f.Snapshot.Snapshot = x.c.redactorOf(id, f.Route).snapshot(f.Snapshot.Snapshot)
	}
	return f, err
}
