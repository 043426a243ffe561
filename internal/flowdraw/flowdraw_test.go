package flowdraw

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// drawing is a flow with a node in most states, whose names are these.
func drawing(name, kind, input string) Graph {
	id := flowfabric.FlowID(mint.Join(3, uuid.MustParse("019cb000-0000-7000-8000-000000000001")))
	s := Graph{FlowRecord: engine.FlowRecord{FlowSummary: flowfabric.FlowSummary{ID: id,
		State: flowfabric.FlowCancelled, Seal: string(engine.SealGrowing), Namespace: "default", Kind: kind,
		CreatedAt: noon.Add(-time.Hour), ReleasedAt: noon.Add(-time.Hour), Members: 7,
		Count: map[flowfabric.PublicState]int{flowfabric.Completed: 1, flowfabric.Failed: 1, flowfabric.Cancelled: 1,
			flowfabric.Active: 1, flowfabric.WaitingChildren: 2}},
		Edges: 6, Purged: 1,
		Policy: flowfabric.CancelPending, Cancelled: noon, CancelBy: "anna", Reason: "too late", Backlog: 2,
		Siblings: engine.SiblingCancels{Cancelled: 1, Spared: 2}, Tags: map[string]string{"team.name": name}}}
	add := func(node string, code codes.Code, m engine.MemberRecord) flowfabric.ExecutionID {
		m.ID, m.Number, m.Node, m.Kind, m.State = id.Member(node+kind), int64(len(s.Nodes)), node, "write",
			codes.Shown(code)
		s.Nodes = append(s.Nodes, m)
		return m.ID
	}
	fast := add("fast", "T1",
		engine.MemberRecord{Attempt: 0, StartedAt: noon, EndedAt: noon.Add(1500 * time.Millisecond)})
	slow := add(name, "T3", engine.MemberRecord{Attempt: 2})
	bad := add("bad", "T2", engine.MemberRecord{Attempt: 3, Category: "handler_error", StartedAt: noon,
		EndedAt: noon.Add(time.Minute)})
	gone := id.Member("gone")
	join := add("join", "A1", engine.MemberRecord{Group: &engine.GroupRecord{Policy: codes.Quorum, K: 1, Total: 3,
		Succeeded: 1, Failed: 2, Satisfied: true, CancelRest: true},
		Edges: []engine.EdgeRecord{{From: slow, Input: input, Outcome: flowfabric.Cancelled},
			{From: bad, Outcome: flowfabric.Failed},
			{From: fast, Input: "left", Outcome: flowfabric.Completed}}})
	add("late", "R3f", engine.MemberRecord{Attempt: -1,
		Group: &engine.GroupRecord{Policy: codes.AllOf, Total: 2, Pending: true, Succeeded: 1},
		Edges: []engine.EdgeRecord{{From: join}, {From: gone, Outcome: flowfabric.Completed}}})
	add("parent", "S8", engine.MemberRecord{Wait: &engine.WaitRecord{Mode: string(engine.WaitFirstSuccess), Total: 3,
		Others: 1, Pending: true}})
	add("purged", "", engine.MemberRecord{Attempt: -1})
	return s
}

func TestFlowDrawings(t *testing.T) {
	s := drawing("a \"quoted\"\nname", "race", `<b>`)
	for file, write := range map[string]func(io.Writer) error{"flow.txt": s.Text, "flow.mmd": s.Mermaid,
		"flow.dot": s.Graphviz} {
		var b bytes.Buffer
		must.No(t, write(&b))
		path := filepath.Join("testdata", file)
		if os.Getenv("FLOWFABRIC_GOLDEN") == "write" {
			must.No(t, os.WriteFile(path, b.Bytes(), 0o644))
			continue
		}
		if want, err := os.ReadFile(path); err != nil || b.String() != string(want) {
			t.Errorf("%s is not what is drawn (FLOWFABRIC_GOLDEN=write writes it): %v\n%s", path, err, b.String())
		}
	}
	if err := s.Text(full{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("%v", err)
	}
	var b bytes.Buffer
	if err := (Graph{}).Text(&b); err != nil || strings.Contains(b.String(), "level") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

var (
	mermaidLine = regexp.MustCompile(
		`^(flowchart TD|  n\d+\["(?:[\pL\p{Nd} \-_.:/,+]|#\d+;|<br/>)*"\]:::[a-z_]+|  n\d+ (?:-->|-\.->)(?:\|"(?:[\pL\p{Nd} \-_.:/,+]|#\d+;)+"\|)? n\d+|  classDef [a-z_]+ [a-z#0-9:,]+)$`)
	dotLine = regexp.MustCompile(
		`^(digraph flow \{|\}|  label="(?:[^"\\]|\\.)*";|  node \[shape=box, style="rounded,filled"\];|  n\d+ \[label="(?:[^"\\]|\\.)*", color="#[0-9a-f]{6}", fillcolor="#[0-9a-f]{6}"\];|  n\d+ -> n\d+ \[label="(?:[^"\\]|\\.)*", style=(?:solid|dashed)\];)$`)
)

// Whatever a name holds, a drawing has the lines it has with a plain one, and each is well formed.
func FuzzFlowDrawings(f *testing.F) {
	for _, text := range []string{"plain", `"];`, "a\nb", `\`, `\"`, "]:::x", "|", "#quot;", "<script>", "%%{init}%%",
		"\x00\xff", "end", "ü\u2028\u202e", "--> n1", "`"} {
		f.Add(text, text, text)
	}
	lines := func(t *testing.T, write func(io.Writer) error) []string {
		t.Helper()
		var b bytes.Buffer
		must.No(t, write(&b))
		return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	}
	base := drawing("x", "y", "z")
	f.Fuzz(func(t *testing.T, name, kind, input string) {
		if input == "" {
			input = "z"
		}
		s := drawing(name, kind, input)
		for what, c := range map[string]struct {
			write, want func(io.Writer) error
			line        *regexp.Regexp
		}{"text": {s.Text, base.Text, nil}, "mermaid": {s.Mermaid, base.Mermaid, mermaidLine},
			"dot": {s.Graphviz, base.Graphviz, dotLine}} {
			got, want := lines(t, c.write), lines(t, c.want)
			if len(got) != len(want) {
				t.Fatalf("%s has %d lines, want %d:\n%s", what, len(got), len(want), strings.Join(got, "\n"))
			}
			for _, l := range got {
				if c.line != nil && !c.line.MatchString(l) {
					t.Errorf("%s: %q", what, l)
				}
			}
		}
	})
}
