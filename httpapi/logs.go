package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/joblog"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/stream"
)

// logQuery are the parameters of both ways to read a log, but for where to begin.
var logQuery = []param{
	{name: "attempt", text: "Only this attempt, 1 for the first; default all", kind: "integer"},
	{name: "level", text: "Leave out lines below it: debug (default), info, warn or error", kind: "string"}}

// logRange reads them.
func (q *query) logRange(after string) stream.LogRange {
	in := stream.LogRange{Level: q.text("level"), After: after}
	if q.text("attempt") != "" {
		in.Attempt = uint32(q.number("attempt", 1, 1<<32-1, 1))
	}
	if in.Level != "" && !slices.Contains(joblog.Levels, in.Level) {
		q.wrong("level", "it is %.40q, want one of %s", in.Level, strings.Join(joblog.Levels, ", "))
	}
	return in
}

type logPage admin.Page[stream.LogLine]

// logs are a page of what handlers logged.
func (c *call) logs(id flowfabric.ExecutionID) (out logPage, err error) {
	q := c.query()
	in, limit := q.logRange(q.text("cursor")), int(q.number("limit", 1, maxPage, defaultPage))
	if q.err != nil {
		return out, q.err
	}
	shown, err := c.redactor(id)
	if err != nil {
		return out, err
	}
	page, err := c.h.conn.Engine.ReadLogLines(c.ctx(), id, in, limit)
	if err != nil {
		return out, err
	}
	out.Items = make([]stream.LogLine, len(page.Lines))
	for i, line := range page.Lines {
		out.Items[i] = shown.line(line)
	}
	if page.More || len(page.Lines) == limit {
		out.Cursor = page.After
	}
	return out, nil
}

// logEvents follows what handlers log. The id of each event is the cursor of its line.
func (c *call) logEvents() error {
	q := c.query()
	_, after := c.resumed(q)
	in := q.logRange(after)
	if q.err != nil {
		return q.err
	}
	id, s, err := c.existing()
	if err != nil { // what is not there has no log
		return err
	}
	page, err := c.h.conn.Engine.ReadLogLines(c.ctx(), id, in, 1)
	if err != nil {
		return err
	}
	if page.Over && len(page.Lines) == 0 { // a browser would come back for ever
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	in.Follow = true
	shown := c.redactorOf(id, s.Route)
	out := newEventWriter(c, eventMedia)
	defer out.close()
	for page, err := range c.h.conn.Engine.Log(c.ctx(), id, in) {
		if err != nil {
			out.end(err)
			return nil
		}
		for _, line := range page.Lines {
			data, err := json.Marshal(shown.line(line))
			if c.broken != nil {
				out.end(c.broken)
				return nil
			}
			if err == nil {
				err = out.add(eventText(line.Cursor, "line", data))
			}
			if err != nil {
				return nil // the reader is gone or too slow
			}
		}
		if out.flush() != nil {
			return nil
		}
	}
	return nil
}

// line shows a line without its message and attributes if these are withheld: time and level stay.
func (r *redactor) line(x stream.LogLine) stream.LogLine {
	if r == nil || x.Message == "" && x.Attributes == nil {
		return x
	}
	type said struct {
		Message    string          `json:"message"`
		Attributes json.RawMessage `json:"attributes,omitempty"`
	}
	whole, err := json.Marshal(said{x.Message, x.Attributes})
	x.Message, x.Attributes = "", nil
	if err != nil {
		return x
	}
	shown := r.shown("log", whole)
	var own said
	switch {
	case shown == nil:
	case json.Unmarshal(shown, &own) == nil && (own.Attributes == nil || own.Attributes[0] == '{'):
		x.Message, x.Attributes = own.Message, own.Attributes
	default:
		x.Message = string(shown)
	}
	return x
}

// logBody has lines that a handler logged.
type logBody struct {
	leased
	First   uint64     `json:"first" jsonschema:"number of the first line; under one lease they count from 1, also what may not have been stored. What was sent before is recognised by it"`
	Dropped int        `json:"dropped,omitempty" jsonschema:"lines that came before these and were not sent"`
	Lines   []lineBody `json:"lines" jsonschema:"1..100. An attempt keeps its last 1,000 lines and 256 KiB"`
}

type lineBody struct {
	At         time.Time                  `json:"at,omitzero" jsonschema:"when it was logged; default now"`
	Level      string                     `json:"level,omitempty" jsonschema:"debug, info (default), warn or error"`
	Message    string                     `json:"message,omitempty" jsonschema:"cut, with the attributes, to 8 KiB"`
	Attributes map[string]json.RawMessage `json:"attributes,omitempty"`
}

func (c *call) appendLog(f flowfabric.Fence, b *logBody) (*nothing, error) {
	switch {
	case len(b.Lines) < 1 || len(b.Lines) > limits.MaxAppendLines:
		return nil, invalid("/lines", "there are %d, want 1..%d", len(b.Lines), limits.MaxAppendLines)
	case b.First < 1 || b.First > 1<<52:
		return nil, invalid("/first", "it is %d: count lines from 1 under a lease", b.First)
	case b.Dropped < 0 || b.Dropped > 1e9:
		return nil, invalid("/dropped", "it is %d, want 0..1000000000", b.Dropped)
	}
	lines := make([]stream.LogLine, len(b.Lines))
	for i, x := range b.Lines {
		line, err := x.line(fmt.Sprintf("/lines/%d", i))
		if err != nil {
			return nil, err
		}
		lines[i] = line
	}
	lines[0].Dropped = b.Dropped
	return nil, hidden("log", c.h.conn.Engine.AppendLog(c.ctx(), f, b.First, lines))
}

func (x *lineBody) line(place string) (stream.LogLine, error) {
	line := stream.LogLine{At: x.At, Level: x.Level}
	if line.Level == "" {
		line.Level = joblog.Info
	}
	if !slices.Contains(joblog.Levels, line.Level) {
		return line, invalid(place+"/level", "it is %.40q, want one of %s", x.Level, strings.Join(joblog.Levels, ", "))
	}
	if line.At.IsZero() {
		line.At = time.Now()
	}
	if ms := line.At.UnixMilli(); ms < 0 || ms > 1<<53-1 {
		return line, invalid(place+"/at", "it is %s, want a time from 1970 on", line.At)
	}
	attrs := make([]joblog.Attr, 0, len(x.Attributes))
	for _, name := range slices.Sorted(maps.Keys(x.Attributes)) {
		value, err := json.Marshal(x.Attributes[name]) // as the store has it
		if err != nil {
			return line, invalid(place+"/attributes", "%.40q: %v", name, err)
		}
		attrs = append(attrs, joblog.Attr{Name: name, Value: value})
	}
	joblog.Fill(&line, x.Message, attrs)
	return line, nil
}
