package joblog

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric-go/stream"
)

// Sink takes lines. It must not block. *Writer is one.
type Sink interface{ Add(line stream.LogLine) }

// Handler hands records on to another handler, if that wants them, and makes lines of those from a level on. It makes
// nothing of the rest.
type Handler struct {
	next  slog.Handler
	sink  Sink
	level slog.Level
	group string // what begins the names of attributes, with a dot at its end; "" outside of groups
	attrs []Attr
}

// NewHandler is a handler of a level.
func NewHandler(next slog.Handler, sink Sink, level slog.Level) Handler {
	return Handler{next: next, sink: sink, level: level}
}

// Enabled, Handle, WithAttrs and WithGroup implement [slog.Handler].
func (h *Handler) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level || h.next.Enabled(ctx, l)
}

func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= h.level {
		attrs := slices.Grow(slices.Clone(h.attrs), r.NumAttrs())
		r.Attrs(func(a slog.Attr) bool {
			attrs = flat(attrs, h.group, a)
			return true
		})
		line := stream.LogLine{At: cmp.Or(r.Time, time.Now()), Level: nameOf(r.Level)}
		Fill(&line, r.Message, attrs)
		h.sink.Add(line)
	}
	if !h.next.Enabled(ctx, r.Level) {
		return nil
	}
	return h.next.Handle(ctx, r)
}

func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	own := *h
	own.next, own.attrs = h.next.WithAttrs(attrs), slices.Clone(h.attrs)
	for _, a := range attrs {
		own.attrs = flat(own.attrs, h.group, a)
	}
	return &own
}

func (h *Handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	own := *h
	own.next, own.group = h.next.WithGroup(name), h.group+name+"."
	return &own
}

// flat adds an attribute, or those of a group, whose names get its name and a dot.
func flat(out []Attr, group string, a slog.Attr) []Attr {
	v := a.Value.Resolve()
	switch {
	case v.Kind() == slog.KindGroup:
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, inner := range v.Group() {
			out = flat(out, group, inner)
		}
	case a.Key != "" || !v.Equal(slog.Value{}):
		out = append(out, Attr{group + a.Key, valueOf(v)})
	}
	return out
}

func valueOf(v slog.Value) json.RawMessage {
	switch v.Kind() {
	case slog.KindString:
		return quote(v.String())
	case slog.KindInt64:
		return strconv.AppendInt(nil, v.Int64(), 10)
	case slog.KindUint64:
		return strconv.AppendUint(nil, v.Uint64(), 10)
	case slog.KindBool:
		return strconv.AppendBool(nil, v.Bool())
	case slog.KindDuration:
		return quote(v.Duration().String())
	case slog.KindTime:
		return quote(v.Time().Format(time.RFC3339Nano))
	}
	return encoded(v.Any())
}

// encoded is a value as JSON; one that has none, or panics, is a text. Logging must not end a handler.
func encoded(v any) (out json.RawMessage) {
	defer func() {
		if p := recover(); p != nil {
			out = quote(fmt.Sprintf("!PANIC: %v", p))
		}
	}()
	if err, ok := v.(error); ok {
		return quote(err.Error())
	}
	if text, err := json.Marshal(v); err == nil {
		return text
	}
	return quote(fmt.Sprintf("%+v", v))
}
