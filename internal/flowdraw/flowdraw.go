// Package flowdraw writes flows for people: as text, as a Mermaid flowchart and in the language of Graphviz. Whatever
// names hold, a drawing keeps its shape.
package flowdraw

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/prose"
)

// Graph is a flow as it was read, with its members in an order in which those that depend on others come after them.
type Graph struct {
	engine.FlowRecord
	Nodes []engine.MemberRecord
}

// memberStates are the public states in the order in which summaries name them.
var memberStates = []flowfabric.PublicState{flowfabric.Completed, flowfabric.Failed, flowfabric.Cancelled,
	flowfabric.Expired, flowfabric.Skipped, flowfabric.Active, flowfabric.Waiting, flowfabric.WaitingGate,
	flowfabric.Delayed, flowfabric.Suspended, flowfabric.WaitingChildren}

// levels gives every node its distance from the nodes that depend on nothing, by the longest way.
func (s *Graph) levels() (of map[flowfabric.ExecutionID]int, most int) {
	of = make(map[flowfabric.ExecutionID]int, len(s.Nodes))
	for _, m := range s.Nodes { // members come after those they depend on
		level := 0
		for _, e := range m.Edges {
			if from, ok := of[e.From]; ok {
				level = max(level, from+1)
			}
		}
		of[m.ID], most = level, max(most, level)
	}
	return of, most
}

// names are the nodes by id.
func (s *Graph) names() map[flowfabric.ExecutionID]string {
	out := make(map[flowfabric.ExecutionID]string, len(s.Nodes))
	for _, m := range s.Nodes {
		out[m.ID] = m.Node
	}
	return out
}

// Text writes the flow for people: what it is and how it stands, and its nodes level by level, each with its state,
// what it waits for, and whom it depends on. Times are the server's, UTC. Names that could break a line are quoted.
// The layout may change between releases. It returns the first error of w.
func (s Graph) Text(w io.Writer) error {
	var b bytes.Buffer
	s.head(&b)
	level, most := s.levels()
	names := s.names()
	for l := range most + 1 {
		if len(s.Nodes) == 0 {
			break
		}
		fmt.Fprintf(&b, "\nlevel %d\n", l)
		t := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
		for _, m := range s.Nodes {
			if level[m.ID] == l {
				_, _ = fmt.Fprintf(t, "  %s\n",
					strings.TrimRight(strings.Join([]string{plain(m.Node), memberState(m), plain(m.Kind), remarks(m),
						from(m, names)}, "\t"), "\t"))
			}
		}
		_ = t.Flush() // a buffer does not fail
	}
	_, err := w.Write(b.Bytes())
	return err
}

// head is what is said of the flow as a whole.
func (s *Graph) head(b *bytes.Buffer) {
	fmt.Fprintf(b, "flow %s  %s  %s\n", s.ID, plain(s.Kind), s.State)
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(b, "  %-10s %s\n", name, text)
		}
	}
	row("namespace", plain(s.Namespace))
	row("growth", growth(s.FlowRecord))
	row("members", fmt.Sprintf("%s, %s%s", plural(s.Members, "member"), plural(s.Edges, "edge"), purged(s.Purged)))
	row("states", counts(s.Count))
	row("created", times(s.FlowRecord))
	if s.Policy != "" {
		row("cancelled", fmt.Sprintf("%s at %s by %s: %s", s.Policy, stamp(s.Cancelled),
			plain(cmp.Or(s.CancelBy, "nobody")), plain(prose.Folded(s.Reason))))
	}
	if x := s.Siblings; x != (engine.SiblingCancels{}) {
		row("siblings", fmt.Sprintf("%d cancelled, %d had ended, %d gone, %d spared", x.Cancelled, x.AlreadyTerminal,
			x.NotFound, x.Spared))
	}
	if s.Backlog > 0 {
		row("backlog", plural(s.Backlog, "piece")+" of unfinished work")
	}
	for _, k := range slices.Sorted(maps.Keys(s.Tags)) {
		row("tag", k+"="+plain(s.Tags[k]))
	}
}

func purged(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d of them purged", n)
}

// growth says whether the flow takes members.
func growth(r engine.FlowRecord) string {
	switch {
	case r.State == flowfabric.FlowStaging:
		return "staging: nothing runs until it is released"
	case r.State.Terminal() || engine.SealMode(r.Seal) == engine.SealClosed:
		return "sealed"
	case engine.SealMode(r.Seal) == engine.SealGrowing:
		return "its members may add members"
	}
	return "unsealed: members may be added, it does not end until it is sealed"
}

// counts lists how many members are in each state.
func counts(count map[flowfabric.PublicState]int) string {
	var parts []string
	for _, state := range memberStates {
		if n := count[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(parts, ", ")
}

func times(r engine.FlowRecord) string {
	text := stamp(r.CreatedAt)
	if !r.ReleasedAt.IsZero() {
		text += ", released " + stamp(r.ReleasedAt)
	}
	if !r.EndedAt.IsZero() {
		text += ", ended " + stamp(r.EndedAt)
	}
	return text
}

// memberState is the state of a node in one word.
func memberState(m engine.MemberRecord) string {
	if m.State.Public == "" {
		return "purged"
	}
	return string(m.State.Public)
}

// remarks is what there is to say about a node beside its state.
func remarks(m engine.MemberRecord) string {
	var parts []string
	if g := m.Group; g != nil {
		parts = append(parts, policyOf(g))
	}
	if w := m.Wait; w != nil && w.Pending {
		parts = append(parts, fmt.Sprintf("waits for %s, %d of %d ended", children(w), w.Succeeded+w.Others, w.Total))
	}
	if m.Attempt > 0 {
		parts = append(parts, fmt.Sprintf("attempt %d", m.Attempt))
	}
	if m.Category != "" && m.State.Public != flowfabric.Skipped {
		parts = append(parts, "("+plain(string(m.Category))+")")
	}
	if !m.StartedAt.IsZero() && !m.EndedAt.IsZero() {
		parts = append(parts, m.EndedAt.Sub(m.StartedAt).Round(time.Millisecond).String())
	}
	return strings.Join(parts, " ")
}

// children is what a wait for children wants.
func children(w *engine.WaitRecord) string {
	switch engine.WaitMode(w.Mode) {
	case engine.WaitFirst:
		return "the first child"
	case engine.WaitFirstSuccess:
		return "the first child that succeeds"
	}
	return "all children"
}

// policyOf is what a node needs, and how far that is.
func policyOf(g *engine.GroupRecord) string {
	text := fmt.Sprintf("all of %d", g.Total)
	switch g.Policy {
	case codes.AnyOf:
		text = fmt.Sprintf("any of %d", g.Total)
	case codes.Quorum:
		text = fmt.Sprintf("%d of %d", g.K, g.Total)
	case codes.AllEnded:
		text = fmt.Sprintf("after all %d", g.Total)
	case codes.AnyFailed:
		text = fmt.Sprintf("if one of %d failed", g.Total)
	}
	switch {
	case g.Satisfied:
		text += " satisfied"
	case g.Impossible:
		text += " impossible"
	}
	return text + fmt.Sprintf(" (%d succeeded, %d unsuccessful, %d skipped)", g.Succeeded, g.Failed, g.Skipped)
}

// maxFrom is how many upstreams a line of text names.
const maxFrom = 8

// from is whom a node depends on.
func from(m engine.MemberRecord, names map[flowfabric.ExecutionID]string) string {
	var parts []string
	for _, e := range ordered(m.Edges, names) {
		if len(parts) == maxFrom {
			parts = append(parts, fmt.Sprintf("%d more", len(m.Edges)-maxFrom))
			break
		}
		text := plain(nodeName(e.From, names))
		if e.Input != "" {
			text += " as " + plain(e.Input)
		}
		if e.Late {
			text += " (late)"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return ""
	}
	return "<- " + strings.Join(parts, ", ")
}

// ordered is the edges by the names of where they come from: the store has no order.
func ordered(edges []engine.EdgeRecord, names map[flowfabric.ExecutionID]string) []engine.EdgeRecord {
	return slices.SortedFunc(slices.Values(edges), func(a, b engine.EdgeRecord) int {
		return cmp.Or(strings.Compare(names[a.From], names[b.From]), strings.Compare(a.From.String(), b.From.String()))
	})
}

func nodeName(id flowfabric.ExecutionID, names map[flowfabric.ExecutionID]string) string {
	if name, ok := names[id]; ok {
		return name
	}
	return ids.UUID(id).String()
}

// plain is a text of a user's as it may stand in a line: quoted if it is empty, has blanks at its ends, or what is
// not printable.
func plain(text string) string {
	if text == "" || strings.TrimSpace(text) != text ||
		strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == '"' }) {
		return strconv.Quote(text)
	}
	return text
}

// visible replaces what is not printable by its Go escape.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// colours of the states, border and filling.
var colours = map[string][2]string{
	"completed": {"#2e7d32", "#c8e6c9"}, "failed": {"#c62828", "#ffcdd2"}, "cancelled": {"#6d4c41", "#d7ccc8"},
	"expired": {"#ad1457", "#f8bbd0"}, "skipped": {"#757575", "#eeeeee"}, "active": {"#1565c0", "#bbdefb"},
	"waiting": {"#f9a825", "#fff9c4"}, "delayed": {"#ef6c00", "#ffe0b2"}, "suspended": {"#6a1b9a", "#e1bee7"},
	"waiting_children": {"#546e7a", "#cfd8dc"}, "purged": {"#bdbdbd", "#ffffff"},
}

// Mermaid writes the flow as a Mermaid flowchart: nodes with name, kind and state, in the colour of the state, edges
// with the names of inputs. Whatever names hold, they stay labels. It returns the first error of w.
func (s Graph) Mermaid(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "flowchart TD\n")
	used := map[string]bool{}
	number := s.numbers()
	for i, m := range s.Nodes {
		state := memberState(m)
		used[state] = true
		fmt.Fprintf(&b, "  n%d[\"%s\"]:::%s\n", i, label(mermaid, "<br/>", m), state)
	}
	for i, m := range s.Nodes {
		for _, e := range drawn(m, number) {
			arrow := "-->"
			if loose(e) {
				arrow = "-.->"
			}
			text := ""
			if e.Input != "" {
				text = `|"` + mermaid(e.Input) + `"|`
			}
			fmt.Fprintf(&b, "  n%d %s%s n%d\n", number[e.From], arrow, text, i)
		}
	}
	for _, state := range slices.Sorted(maps.Keys(used)) {
		fmt.Fprintf(&b, "  classDef %s stroke:%s,fill:%s,color:#000\n", state, colours[state][0], colours[state][1])
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Graphviz writes the flow as a graph in the language of dot, with the same content as [Graph.Mermaid]. It returns
// the first error of w.
func (s Graph) Graphviz(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "digraph flow {\n  label=\"%s\";\n  node [shape=box, style=\"rounded,filled\"];\n",
		dot(fmt.Sprintf("%s %s %s", s.ID, s.Kind, s.State)))
	number := s.numbers()
	for i, m := range s.Nodes {
		state := memberState(m)
		fmt.Fprintf(&b, "  n%d [label=\"%s\", color=\"%s\", fillcolor=\"%s\"];\n", i, label(dot, `\n`, m),
			colours[state][0], colours[state][1])
	}
	for i, m := range s.Nodes {
		for _, e := range drawn(m, number) {
			style := "solid"
			if loose(e) {
				style = "dashed"
			}
			fmt.Fprintf(&b, "  n%d -> n%d [label=\"%s\", style=%s];\n", number[e.From], i, dot(e.Input), style)
		}
	}
	b.WriteString("}\n")
	_, err := w.Write(b.Bytes())
	return err
}

// numbers are the nodes by their place.
func (s *Graph) numbers() map[flowfabric.ExecutionID]int {
	out := make(map[flowfabric.ExecutionID]int, len(s.Nodes))
	for i, m := range s.Nodes {
		out[m.ID] = i
	}
	return out
}

// drawn is the edges into a node that lead from nodes which are still there, in the order of those.
func drawn(m engine.MemberRecord, number map[flowfabric.ExecutionID]int) (out []engine.EdgeRecord) {
	for _, e := range m.Edges {
		if _, ok := number[e.From]; ok {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b engine.EdgeRecord) int { return cmp.Compare(number[a.From], number[b.From]) })
	return out
}

// loose tells an edge that did not help its node: its upstream ended without success, or too late.
func loose(e engine.EdgeRecord) bool {
	return e.Late || e.Outcome != "" && e.Outcome != flowfabric.Completed
}

// label is the text of a node: what it is called, its kind, its state and what it needs.
func label(escape func(string) string, newline string, m engine.MemberRecord) string {
	lines := []string{escape(m.Node), escape(m.Kind), escape(memberState(m))}
	if g := m.Group; g != nil && g.Policy != codes.AllOf {
		lines = append(lines, escape(policyOf(g)))
	}
	return strings.Join(lines, newline)
}

// mermaid writes a text as the content of a quoted label: everything but letters, digits and harmless signs as its
// number.
func mermaid(text string) string {
	var b strings.Builder
	for _, r := range visible(text) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" -_.:/,+", r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}

// dot writes a text as the content of a quoted string.
func dot(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(visible(text))
}

// stamp is an instant as drawings write it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// plural counts things.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}
