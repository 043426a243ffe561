package record

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Near is how many upstreams, and how many dependants, are part of the links of a member. More have keys of their own.
const Near = 16

// Links is what a member of a flow depends on, and who depends on it.
type Links struct {
	Group string            // as lua/lib/group.lua has it; empty if it depends on nobody
	Edges map[string]string // upstream and "mark,attempt,input", if they are few
	Leads int               // how many depend on it
	Aside int               // of those, how many are o
	To    []string          // d, o or w and who, if they are few
}

// DecodeLinks reads what lua/lib/links.lua wrote.
func DecodeLinks(text string) (Links, error) {
	head, outs, ok := strings.Cut(text, "\x1e")
	parts := strings.Split(head, "\n")
	group, leads, ok2 := strings.Cut(parts[0], "\x1f")
	l := Links{Group: group, Edges: map[string]string{}}
	var err error
	leads, aside, some := strings.Cut(leads, "o")
	if l.Aside, err = strconv.Atoi(cmp.Or(aside, "0")); err != nil || some && l.Aside < 1 {
		return Links{}, fmt.Errorf("no links of a member: %.60q", text)
	}
	if l.Leads, err = strconv.Atoi(leads); err != nil || !ok || !ok2 || l.Leads < l.Aside {
		return Links{}, fmt.Errorf("no links of a member: %.60q", text)
	}
	if l.Group == "-" {
		l.Group = ""
	}
	for _, edge := range parts[1:] {
		if len(edge) < 36 {
			return Links{}, fmt.Errorf("an edge is %q", edge)
		}
		l.Edges[edge[:36]] = edge[36:]
	}
	want := 0
	if l.Leads <= Near {
		want = l.Leads
	}
	if len(outs) != 37*want {
		return Links{}, fmt.Errorf("%d bytes of %d dependants", len(outs), l.Leads)
	}
	for to := range slices.Chunk([]byte(outs), 37) {
		l.To = append(l.To, string(to))
	}
	return l, nil
}

// Encode is the inverse, with the edges in the order of their upstreams.
func (l Links) Encode() string {
	var b strings.Builder
	if l.Group == "" {
		b.WriteByte('-')
	}
	b.WriteString(l.Group + "\x1f" + strconv.Itoa(l.Leads))
	if l.Aside > 0 {
		b.WriteString("o" + strconv.Itoa(l.Aside))
	}
	for _, up := range slices.Sorted(maps.Keys(l.Edges)) {
		b.WriteString("\n" + up + l.Edges[up])
	}
	return b.String() + "\x1e" + strings.Join(l.To, "")
}
