package mcptools

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/handler"
)

// The bounds of what a server lists.
const (
	maxTools       = 128 // of a run
	maxListed      = 1024
	maxPages       = 64
	maxName        = 128       // bytes, of the server's name of a tool
	maxToolName    = 64        // bytes, of a model's
	maxDescription = 8 << 10   // bytes; longer ones are cut
	maxSchema      = 32 << 10  // bytes as JSON
	maxRecord      = 200 << 10 // bytes as JSON, of the tools of a server
	// maxAge is for how long a session believes a list, if the server does not say when it changes.
	maxAge = time.Minute
)

// definition is a tool as it is recorded.
type definition struct {
	Name        string               `json:"name"`
	Title       string               `json:"title,omitempty"`
	Description string               `json:"description,omitempty"`
	Schema      json.RawMessage      `json:"schema"`
	Annotations *sdk.ToolAnnotations `json:"annotations,omitempty"`
	Tasks       dialect              `json:"tasks,omitempty"`
	Headers     bool                 `json:"headers,omitempty"` // of arguments: the SDK must make the call
}

// Tools are the tools of servers, by name; without names of all of the pool. They are the same in all runs of an
// execution: the step "mcp tools NAME" records what each server lists, so call it once in a run, before the agent. A
// server is asked only if its step is not recorded.
//
// A tool is called SERVER_TOOL. Letters that models do not take in names become "_". A name that is longer than 64
// bytes, or taken by a tool before it, is cut and ends with six hexadecimal digits that stand for the server's name of
// the tool. Tools with a schema of more than 32 KiB, or a name of more than 128 bytes, are left out, and the log says
// so.
//
// Errors: flowfabric.ErrConfig for a name that the pool does not have, for more than 128 tools, or more than 200 KiB of
// them from a server, which [Server].Include makes less, and for a server that lists more than 1,024; these are
// permanent. A server that is away, or that answers with an error, fails the attempt, category
// mcp_away. And the errors of handler.Step.
func (p *Pool) Tools(ctx context.Context, t *handler.Task, servers ...string) ([]agent.Tool, error) {
	entries, err := p.named(servers)
	if err != nil {
		return nil, err
	}
	var tools []agent.Tool
	taken := map[string]bool{}
	for _, e := range entries {
		var bad error
		step := "mcp tools " + e.Name
		defs, err := handler.Step(ctx, t, step, func(ctx context.Context) (defs []definition, err error) {
			defs, bad = e.record(ctx)
			return defs, bad
		})
		if err != nil {
			return nil, cmp.Or(bad, err)
		}
		for _, d := range defs {
			if e.has(d.Name) {
				tools = append(tools, e.tool(d, nameOf(e.Name, d.Name, taken)))
			}
		}
	}
	if len(tools) > maxTools {
		return nil, tooMany("%d tools, want at most %d", len(tools), maxTools)
	}
	return tools, nil
}

func tooMany(format string, args ...any) error {
	return handler.Permanent(fmt.Errorf("mcptools: %w: %s; set Include or Exclude of the servers", flowfabric.ErrConfig,
		fmt.Sprintf(format, args...)))
}

func (p *Pool) named(servers []string) ([]*entry, error) {
	if len(servers) == 0 {
		return p.entries, nil
	}
	var entries []*entry
	for _, name := range servers {
		i := slices.IndexFunc(p.entries, func(e *entry) bool { return e.Name == name })
		if i < 0 {
			return nil, handler.Permanent(fmt.Errorf("mcptools: %w: the pool has no server %.40q", flowfabric.ErrConfig,
				name))
		}
		entries = append(entries, p.entries[i])
	}
	return entries, nil
}

// record asks a server for its tools.
func (e *entry) record(ctx context.Context) (defs []definition, err error) {
	err = e.with(ctx, func(ctx context.Context, s *session) error {
		all, err := s.ask(ctx)
		for _, d := range all {
			if err == nil && e.has(d.Name) {
				defs = append(defs, d)
			}
		}
		return err
	})
	var told *jsonrpc.Error
	switch {
	case ctx.Err() != nil:
		return nil, err
	case errors.As(err, new(*away)), errors.Is(err, errTimeout), errors.As(err, &told):
		return nil, e.fails(fmt.Errorf("the tools of %s: %w", e.Name, err))
	case errors.As(err, new(*refusal)):
		return nil, handler.Permanent(fmt.Errorf("mcptools: %w: %w", flowfabric.ErrConfig, err))
	case err != nil:
		return nil, err
	}
	text, err := json.Marshal(defs)
	if err == nil && len(text) > maxRecord {
		return nil, tooMany("the tools of %s have %d bytes, want at most %d", e.Name, len(text), maxRecord)
	}
	return defs, err
}

// ask lists the tools of the server, and keeps the list.
func (s *session) ask(ctx context.Context) ([]definition, error) {
	s.mu.Lock()
	changes := s.changes
	s.mu.Unlock()
	defs := []definition{}
	q := &sdk.ListToolsParams{}
	for page := 1; ; page++ {
		r, err := s.ListTools(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, t := range r.Tools[:min(len(r.Tools), maxListed+1)] {
			if d, why := s.define(t, defs); why == "" {
				defs = append(defs, d)
			} else {
				s.entry.pool.log.Warn("mcptools: a tool is left out", "server", s.entry.Name, "tool", cut(t.Name, 80),
					"why", why)
			}
		}
		if r.NextCursor == "" && len(r.Tools) <= maxListed && len(defs) <= maxListed {
			break
		}
		if page == maxPages || len(r.Tools) > maxListed || len(defs) > maxListed {
			return nil, &refusal{fmt.Sprintf("the server %s lists more than %d tools or %d pages", s.entry.Name,
				maxListed, maxPages)}
		}
		q = &sdk.ListToolsParams{Cursor: r.NextCursor}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes == changes {
		s.list, s.listed = defs, time.Now()
	}
	return defs, nil
}

// define makes the definition of a listed tool, or says why there is none.
func (s *session) define(t *sdk.Tool, before []definition) (d definition, why string) {
	switch {
	case t.Name == "" || len(t.Name) > maxName:
		return d, fmt.Sprintf("its name has %d bytes, want 1..%d", len(t.Name), maxName)
	case slices.ContainsFunc(before, func(d definition) bool { return d.Name == t.Name }):
		return d, "another one has the name, too"
	}
	schema, err := json.Marshal(t.InputSchema)
	if err != nil || len(schema) > maxSchema {
		return d, fmt.Sprintf("its schema has %d bytes, want at most %d", len(schema), maxSchema)
	}
	return definition{Name: t.Name, Title: cut(t.Title, 255), Description: cut(t.Description, maxDescription),
		Schema: schema, Annotations: t.Annotations, Tasks: s.dialect(t.Name),
		Headers: bytes.Contains(schema, []byte(`"x-mcp-header"`))}, ""
}

// knows is an error, for the model, unless the server still has a tool as it was recorded.
func (s *session) knows(ctx context.Context, d definition) error {
	select { // calls of a turn come at once
	case s.asking <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.asking }()
	s.mu.Lock()
	list, listed := s.list, s.listed
	s.mu.Unlock()
	if list == nil || time.Since(listed) > maxAge && !s.tells() {
		var err error
		if list, err = s.ask(ctx); err != nil {
			return err
		}
	}
	i := slices.IndexFunc(list, func(now definition) bool { return now.Name == d.Name })
	switch {
	case i < 0:
		return &refusal{fmt.Sprintf("the server %s does not have the tool %s any more", s.entry.Name, d.Name)}
	case !sameJSON(list[i].Schema, d.Schema):
		return &refusal{fmt.Sprintf("the server %s has changed the arguments of the tool %s since this conversation "+
			"began; the call was not made", s.entry.Name, d.Name)}
	}
	return nil
}

// sameJSON compares values, however they are written.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// tells reports that the server says when its tools change.
func (s *session) tells() bool {
	r := s.InitializeResult()
	return r != nil && r.Capabilities != nil && r.Capabilities.Tools != nil && r.Capabilities.Tools.ListChanged
}

// refusal is an error in words for the model.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

// nameOf is the model's name of a tool.
func nameOf(server, tool string, taken map[string]bool) string {
	name := server + "_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, tool)
	base := name
	for n := 0; len(name) > maxToolName || taken[name]; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d", server, tool, n))
		digits := hex.EncodeToString(sum[:])[:6]
		name = base[:min(len(base), maxToolName-1-len(digits))] + "_" + digits
	}
	taken[name] = true
	return name
}

// cut shortens a text to a number of bytes, at a letter.
func cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}
