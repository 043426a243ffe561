package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/mcp"
)

// config is the file of -config.
type config struct {
	Name         string `json:"name"`
	Title        string `json:"title"`
	Instructions string `json:"instructions"`
	Tools        []tool `json:"tools"`
}

// tool is one kind of work.
type tool struct {
	Kind        string          `json:"kind"`
	Name        string          `json:"name"`  // default: made of the kind
	Title       string          `json:"title"` // what people see
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input"`  // a JSON Schema
	Output      json.RawMessage `json:"output"` // a JSON Schema; without one the result is only text

	// never or required; default: for clients that support them
	Tasks             mcp.TaskMode         `json:"tasks"`
	Progress          *[]string            `json:"progress"` // types of frames; default token and progress
	Waitpoints        map[string]waitpoint `json:"waitpoints"`
	AnsweredElsewhere bool                 `json:"answered_elsewhere"`

	Lane      string            `json:"lane"`
	Priority  *int              `json:"priority"`
	Retries   *int              `json:"retries"`
	Timeout   duration          `json:"timeout"`   // of one attempt
	Deadline  duration          `json:"deadline"`  // of the whole execution
	Retention duration          `json:"retention"` // of the result, and so of the task
	Tags      map[string]string `json:"tags"`
	Gates     []string          `json:"gates"`
}

// waitpoint is what is asked where the handler waits without a question.
type waitpoint struct {
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"schema"`
}

// duration is a text such as 90s.
type duration time.Duration

func (d *duration) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	n, err := time.ParseDuration(s)
	*d = duration(n)
	return err
}

// load reads the file. What the schemas and options are worth is for mcp.New to say.
func load(path string) (config, []mcp.Kind, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return config{}, nil, err
	}
	var c config
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return c, nil, fmt.Errorf("line %d: %w", 1+bytes.Count(text[:syntax.Offset], []byte("\n")), err)
		}
		return c, nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return c, nil, errors.New("something follows the JSON object")
	}
	if len(c.Tools) == 0 {
		return c, nil, errors.New("tools: at least one is needed")
	}
	var kinds []mcp.Kind
	for i, t := range c.Tools {
		if t.Kind == "" {
			return c, nil, fmt.Errorf("tools[%d]: kind is missing", i)
		}
		if len(t.Input) == 0 {
			return c, nil, fmt.Errorf(`tools[%d] (%s): input is missing; {"type":"object"} takes anything`, i, t.Kind)
		}
		kinds = append(kinds, mcp.RawTool(handler.Define[json.RawMessage, json.RawMessage](t.Kind, t.defaults()...),
			t.Description, t.Input, t.Output, t.options()...))
	}
	return c, kinds, nil
}

func (t *tool) options() []mcp.ToolOption {
	opts := []mcp.ToolOption{mcp.Tasks(t.Tasks)}
	if t.Name != "" {
		opts = append(opts, mcp.Name(t.Name))
	}
	if t.Title != "" {
		opts = append(opts, mcp.Title(t.Title))
	}
	if t.Progress != nil {
		opts = append(opts, mcp.ProgressFrames(*t.Progress...))
	}
	if t.AnsweredElsewhere {
		opts = append(opts, mcp.AnsweredElsewhere())
	}
	for _, key := range slices.Sorted(maps.Keys(t.Waitpoints)) {
		opts = append(opts, mcp.RawWaitpoint(key, t.Waitpoints[key].Message, t.Waitpoints[key].Schema))
	}
	return opts
}

// defaults are what a Go definition of the kind would say.
func (t *tool) defaults() (opts []handler.DefineOption) {
	if t.Lane != "" {
		opts = append(opts, flowfabric.Lane(t.Lane))
	}
	if t.Priority != nil {
		opts = append(opts, flowfabric.Priority(*t.Priority))
	}
	if t.Retries != nil {
		opts = append(opts, flowfabric.Retries(*t.Retries))
	}
	if t.Timeout != 0 {
		opts = append(opts, flowfabric.Timeout(time.Duration(t.Timeout)))
	}
	if t.Deadline != 0 {
		opts = append(opts, flowfabric.Deadline(time.Duration(t.Deadline)))
	}
	if t.Retention != 0 {
		opts = append(opts, flowfabric.Retention(time.Duration(t.Retention)))
	}
	if len(t.Tags) > 0 {
		opts = append(opts, flowfabric.Tags(t.Tags))
	}
	if len(t.Gates) > 0 {
		opts = append(opts, flowfabric.Gates(t.Gates...))
	}
	return opts
}

// released is the version that a release was built as; "" for other builds.
var released string

// version is that of the release, or of the module the command was built from.
func version() string {
	if released != "" {
		return released
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "(devel)"
}
