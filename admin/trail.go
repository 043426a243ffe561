package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Change is an entry of the audit trail: something that was changed by a call of this package or of package client,
// by the command, or over the HTTP API. A call that found everything as it should be changed nothing.
type Change struct {
	At     time.Time `json:"at"`                           // by the server's clock
	Action string    `json:"action" jsonschema:"the verb"` // cancel, replay, set lane, …
	// execution, executions (in bulk), flow, lane, schedule, gate, scope, worker, partition, token key or store
	On   string `json:"on" jsonschema:"to what kind of thing"`
	Name string `json:"name" jsonschema:"its id or name; the filter of a bulk action"`
	// Namespace in which it is; "" for what is in none, and for executions, flows and schedules that were changed by
	// id or name from Go or with the command.
	Namespace string `json:"namespace,omitempty"`
	// By is who: flowfabric.By, the name of the token of the HTTP API, or else client.Config.Creator; "" for nobody.
	By string `json:"by" jsonschema:"author of the change; over the API the name of the token; empty if unknown"`
	// api, cli, go or link (of a waitpoint's token), with the address or host; before it an assistant by its name
	From   string `json:"from,omitempty" jsonschema:"api, cli, go or link, with address or host; or an assistant first"`
	Why    string `json:"why,omitempty" jsonschema:"the reason that was given"` // flowfabric.Reason
	Detail string `json:"detail,omitempty" jsonschema:"details, for example the new value"`
	Text   string `json:"text" jsonschema:"all of it in a sentence"`
}

// String is Text.
func (c Change) String() string { return c.Text }

// told is the change as one line.
func (c Change) told() string {
	line := c.At.UTC().Format("2006-01-02T15:04:05.000Z") + " " + c.Action + " " + c.On
	if c.Name != "" {
		line += " " + c.Name
	}
	if c.Detail != "" {
		line += " (" + c.Detail + ")"
	}
	var who []string
	if c.By != "" {
		who = append(who, "by "+c.By)
	}
	if c.From != "" {
		who = append(who, "from "+c.From)
	}
	if len(who) > 0 {
		line += ", " + strings.Join(who, " ")
	}
	if c.Why != "" {
		line += ": " + c.Why
	}
	return line
}

// TrailQuery chooses entries of the audit trail. The zero value is all of them.
type TrailQuery struct {
	Namespace, By, On, Name string    // "" is any
	Since, Until            time.Time // from Since on, and before Until; the zero time is no bound
}

func (q TrailQuery) has(c engine.Change) bool {
	fits := func(wanted, is string) bool { return wanted == "" || wanted == is }
	return fits(q.Namespace, c.Namespace) && fits(q.By, c.By) && fits(q.On, c.On) && fits(q.Name, c.Name) &&
		!c.At.Before(q.Since) && (q.Until.IsZero() || c.At.Before(q.Until))
}

// TrailPage lists who changed what, the newest first: limit entries (1..1,000; 0 is 100), beginning behind the place
// that cursor names: "", or the Cursor of the page before, with the same query. What is done to one execution is in
// its [Admin.History] as well, and stays there as long as the execution; of the trail each partition keeps the newest
// 10,000 entries or so. An entry is written together with the change. A change that takes calls to several partitions
// is one entry, but for its parts that fall on two pages. Answers of people to waitpoints are in the trail, also those
// by link. Submissions, messages and other signals are not: executions and waitpoints say who made them. A page
// looks at 10,000 entries at most, and may be short with a cursor.
//
// Errors: flowfabric.ErrInvalidInput for a limit or cursor that is not legal, before any call; ErrTransport;
// [client.ErrClosed].
func (a *Admin) TrailPage(ctx context.Context, q TrailQuery, cursor string, limit int) (Page[Change], error) {
	page, err := a.trailPage(ctx, q, cursor, cmp.Or(limit, limits.DefaultListPage))
	if err != nil {
		return Page[Change]{}, fmt.Errorf("audit trail: %w", err)
	}
	return page, nil
}

func (a *Admin) trailPage(ctx context.Context, q TrailQuery, cursor string, limit int) (page Page[Change], err error) {
	page.Items = []Change{}
	if a.closed() {
		return page, client.ErrClosed
	}
	if limit < 1 || limit > limits.MaxListPage {
		return page, fmt.Errorf("%w: limit %d, want 1..%d", flowfabric.ErrInvalidInput, limit, limits.MaxListPage)
	}
	n := a.store.TrailSources()
	mark := strings.Join([]string{"trail", strconv.Itoa(n), q.Namespace, q.By, q.On, q.Name, q.Since.UTC().String(),
		q.Until.UTC().String()}, "\x1f")
	at, err := parsePlace(cursor, mark, a.store.Partitions())
	if err != nil {
		return page, err
	}
	looked, over, seen := 0, false, map[string]bool{}
	m := merging[engine.Change]{newest: true, full: func() bool {
		return len(page.Items) >= limit || looked >= maxLooked || over
	}}
	for i := range n {
		m.sources = append(m.sources, &source[engine.Change]{partition: uint16(i)})
	}
	m.take = func(c engine.Change) {
		at.after = c.Position()
		looked++
		over = !q.Since.IsZero() && c.At.Before(q.Since.Add(-clockSpare))
		if q.has(c) && !seen[c.Request] {
			x := Change{c.At, c.Action, c.On, c.Name, c.Namespace, c.By, c.From, c.Why, c.Detail, ""}
			x.Text = x.told()
			page.Items = append(page.Items, x)
			seen[c.Request] = true
		}
	}
	m.read = func(ctx context.Context, s *source[engine.Change]) (err error) {
		s.buffer, s.more, err = a.store.ReadTrail(ctx, int(s.partition), s.after, s.chunk)
		return err
	}
	more, err := m.run(ctx, at.after, limit)
	if err != nil {
		return Page[Change]{}, err
	}
	if more && !over {
		page.Cursor = at.text(mark)
	}
	return page, nil
}

// clockSpare is how far the clocks of servers, and one clock before and after a step, may differ.
const clockSpare = time.Minute

// tagWords says which tags were changed.
func tagWords(set map[string]string, remove []string) []string {
	words := slices.Sorted(maps.Keys(set))
	for _, key := range slices.Sorted(slices.Values(remove)) {
		words = append(words, "without "+key)
	}
	return words
}

func amountWords(amounts map[string]int64) (words []string) {
	for _, dim := range slices.Sorted(maps.Keys(amounts)) {
		words = append(words, fmt.Sprintf("%s %+d", dim, amounts[dim]))
	}
	return words
}

func gateWords(gates []flowfabric.Gate) (words []string) {
	for _, g := range gates {
		words = append(words, g.String())
	}
	return words
}

func scopeWords(s admission.Scope) string {
	switch {
	case s.TagKey != "":
		return "tag " + s.TagKey + "=" + s.Tag
	case s.Lane != "":
		return "lane " + s.Lane
	case s.Namespace != "":
		return "namespace"
	}
	return "everywhere"
}

func (c LaneChange) words() (words []string) {
	if c.State != "" {
		words = append(words, string(c.State))
	}
	for _, outcome := range slices.Sorted(maps.Keys(c.Retention)) {
		words = append(words, fmt.Sprintf("retention of %s %s", outcome, c.Retention[outcome]))
	}
	if c.Ageing != nil {
		words = append(words, "ageing "+c.Ageing.String())
	}
	if c.Weight != nil {
		words = append(words, "weight "+strconv.Itoa(*c.Weight))
	}
	return words
}

// words is the filter for a reader.
func (f Filter) words() string {
	var words []string
	add := func(name, value string) {
		if value != "" {
			words = append(words, name+"="+value)
		}
	}
	add("namespace", f.Namespace)
	for _, s := range f.States {
		add("state", string(s))
	}
	add("lane", f.Lane)
	add("kind", f.Kind)
	for _, c := range f.Categories {
		add("category", string(c))
	}
	for _, k := range slices.Sorted(maps.Keys(f.Tags)) {
		add("tag", k+"="+f.Tags[k])
	}
	add("error", f.ErrorText)
	add("shape", f.narrow.Shape)
	add("version", f.narrow.Version)
	if !f.Flow.IsZero() {
		add("flow", f.Flow.String())
	}
	add("held_by", f.HeldBy)
	if !f.Since.IsZero() {
		add("since", f.Since.UTC().Format(time.RFC3339))
	}
	if !f.Until.IsZero() {
		add("until", f.Until.UTC().Format(time.RFC3339))
	}
	return strings.Join(words, " ")
}
