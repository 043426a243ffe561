// Package agenttest tests and judges agents: a [Recording] is a model that answers from files, so that a test needs no
// key and no network, and a [Score] is what somebody thinks of an execution later.
//
//	//go:embed testdata
//	var recorded embed.FS
//
//	folder, _ := fs.Sub(recorded, "testdata/refund")
//	model := &agenttest.Recording{FS: folder}
//	r := fftest.Run(t, Support, handlerWith(model), "I want my money back.")
//
// Files are made by asking a real model once, and are JSON to be read in a review: 1.json is the first call of the
// model, with the request and the answer, 2.json the second.
//
//	model := &agenttest.Recording{Record: real, Dir: "testdata/refund"}
package agenttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/handler"
)

// categoryDiffers is the category of an execution whose agent asks what was not recorded; not retried.
const categoryDiffers = "agent_recording"

const maxInline = 1 << 10 // bytes of an image or a file that a recording has; of more it has the digest

// Recording is an [agent.Model] of one conversation. The n-th call of the model is that whose request has n-1 answers
// in it, so a call that a crash repeats gets the same answer. It may be used concurrently and must not be changed.
//
// A request that is not the recorded one fails for good, category agent_recording, with the lines that differ. What
// changes from run to run is not compared: the key of Request.Cache, and messages' ID and Private.
type Recording struct {
	FS fs.FS // where the files are; needed without Record
	// Record is the model that is asked, and Dir the folder into which calls are written, over what is there; it is
	// made if need be. An error of the model is returned, and not recorded.
	Record agent.Model
	Dir    string
	// Ignore may take out of a request what else changes, for example a date, before it is compared or written. It gets
	// a copy of its own; the model is asked the whole. Default nil.
	Ignore func(*agent.Request)
}

var (
	_ agent.Model      = (*Recording)(nil)
	_ agent.Structured = (*Recording)(nil)
)

// call is a file.
type call struct {
	Request  json.RawMessage `json:"request"`
	Deltas   []agent.Delta   `json:"deltas,omitempty"`
	Response agent.Response  `json:"response"`
}

// TakesSchema implements [agent.Structured]: as the model that is, or was, asked.
func (r *Recording) TakesSchema(schema *jsonschema.Schema) bool {
	if s, ok := r.Record.(agent.Structured); ok || r.Record != nil {
		return ok && s.TakesSchema(schema)
	}
	first, err := r.load(1)
	var asked struct{ Schema json.RawMessage }
	return err == nil && json.Unmarshal(first.Request, &asked) == nil && len(asked.Schema) > 0 &&
		string(asked.Schema) != "null"
}

// Generate implements [agent.Model]. The pieces of an answer come as they were recorded.
func (r *Recording) Generate(ctx context.Context, req agent.Request,
	delta func(agent.Delta) error) (agent.Response, error) {
	n := 1
	for _, m := range req.Messages {
		if m.Role == agent.Assistant {
			n++
		}
	}
	asked, err := r.written(req)
	if err != nil {
		return agent.Response{}, differs(n, err)
	}
	if r.Record != nil {
		return r.record(ctx, n, req, asked, delta)
	}
	recorded, err := r.load(n)
	if err != nil {
		return agent.Response{}, differs(n, fmt.Errorf("is not recorded: %w; the request is\n%s", err, asked))
	}
	if want := indented(recorded.Request); !bytes.Equal(want, asked) {
		return agent.Response{}, differs(n, fmt.Errorf("differs from the recorded one (- recorded, + asked):\n%s",
			difference(want, asked)))
	}
	for _, d := range recorded.Deltas {
		if err := delta(d); err != nil {
			return agent.Response{}, err
		}
	}
	return recorded.Response, context.Cause(ctx)
}

func (r *Recording) record(ctx context.Context, n int, req agent.Request, asked []byte,
	delta func(agent.Delta) error) (agent.Response, error) {
	c := call{Request: asked}
	var err error
	c.Response, err = r.Record.Generate(ctx, req, func(d agent.Delta) error {
		c.Deltas = append(c.Deltas, d)
		return delta(d)
	})
	if err != nil {
		return c.Response, err
	}
	data, err := encoded(c)
	if err == nil {
		err = os.MkdirAll(r.Dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(r.Dir, file(n)), data, 0o644)
	}
	if err != nil {
		return c.Response, differs(n, fmt.Errorf("is not written: %w", err))
	}
	return c.Response, nil
}

func (r *Recording) load(n int) (c call, err error) {
	if r.FS == nil {
		return c, errors.New("Recording.FS is nil")
	}
	data, err := fs.ReadFile(r.FS, file(n))
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	return c, err
}

func file(n int) string { return fmt.Sprintf("%d.json", n) }

// written is a request as a file has it.
func (r *Recording) written(req agent.Request) ([]byte, error) {
	req.Messages, req.Tools = slices.Clone(req.Messages), slices.Clone(req.Tools)
	for i := range req.Messages {
		req.Messages[i].Parts = slices.Clone(req.Messages[i].Parts)
	}
	if r.Ignore != nil {
		r.Ignore(&req)
	}
	req.Cache.Key = ""
	for i := range req.Messages {
		req.Messages[i].ID, req.Messages[i].Private = "", nil
		for j := range req.Messages[i].Parts {
			if p := &req.Messages[i].Parts[j]; len(p.Data) > maxInline {
				p.Blob, p.Data = blob.Ref(p.Data), nil
			}
		}
	}
	data, err := encoded(req)
	return indented(data), err
}

func encoded(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "\t")
	err := encoder.Encode(value)
	return b.Bytes(), err
}

// indented is JSON as files have it, wherever it stood in one.
func indented(data []byte) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "\t"); err != nil {
		return data
	}
	return bytes.TrimSpace(b.Bytes())
}

func differs(n int, err error) error {
	err = fmt.Errorf("agenttest: call %d of the model %w", n, err)
	return handler.Category(categoryDiffers, handler.Permanent(err))
}

const (
	around   = 3   // lines before the first difference
	mostLine = 400 // bytes of a line
	mostDiff = 10  // lines of each side
)

// difference is what lies between the first and the last line that differ, its beginning if that is long.
func difference(want, got []byte) string {
	a, b := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	first := 0
	for first < min(len(a), len(b)) && a[first] == b[first] {
		first++
	}
	last := 0
	for last < min(len(a), len(b))-first && a[len(a)-1-last] == b[len(b)-1-last] {
		last++
	}
	var out strings.Builder
	write := func(mark string, lines []string) {
		for i, line := range lines {
			if i == mostDiff {
				fmt.Fprintf(&out, "%s … %d more lines\n", mark, len(lines)-i)
				break
			}
			if len(line) > mostLine {
				line = strings.ToValidUTF8(line[:mostLine], "") + "…"
			}
			fmt.Fprintf(&out, "%s %s\n", mark, line)
		}
	}
	write(" ", a[max(0, first-around):first])
	write("-", a[first:len(a)-last])
	write("+", b[first:len(b)-last])
	return out.String()
}
