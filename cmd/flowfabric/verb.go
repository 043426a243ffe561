package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/internal/prose"
)

// verb is a command that is a request of the HTTP API. Verbs are rows of tables: how it is written, which route it is,
// what flags and arguments are in the request, and what the answer looks like.
type verb struct {
	use                  string // the name, and arguments in capitals, the last maybe with "..." or in brackets
	short, long, example string
	aliases              []string
	route                string            // method and path; what is in braces is an argument
	args                 map[string]member // arguments that are not in the path
	flags                []member
	namespace            string // where the request says the namespace, as member.to; "" for nowhere
	all                  bool   // it may be all namespaces
	exclusive            [][]string
	needed               [][]string // flags of which there is one
	first                boots
	lasting              bool   // it goes on by itself
	mute                 bool   // its request has no place for --reason
	free                 bool   // it takes any number of arguments, none of them included
	done                 string // what was done to what the first argument names, if that is all there is to say; else:
	show                 func(q *request, answer json.RawMessage) error
	run                  func(ctx context.Context, q *request) error // instead of the request
}

// command is the verb for one run.
func (v verb) command(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: v.use, Short: v.short, Long: v.long, Example: v.example, Aliases: v.aliases}
	names := v.names()
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		least, most := len(names), len(names)
		if least > 0 && strings.HasPrefix(strings.Fields(v.use)[least], "[") {
			least--
		}
		switch {
		case v.free:
		case len(args) < least:
			return usage("%s: %s is missing; usage: %s", cmd.Name(), names[len(args)], cmd.UseLine())
		case len(args) > most && !strings.HasSuffix(v.use, "..."):
			if most == 0 {
				return cobra.NoArgs(cmd, args)
			}
			hint := ""
			if v.what() == "gate" && cmd.Flags().Lookup("limit") != nil && strings.Contains(args[most], "=") {
				hint = "; amounts go into --limit"
			}
			return usage("%s takes %s, got %d%s; usage: %s", cmd.Name(), count(most, "argument"), len(args), hint,
				cmd.UseLine())
		}
		return nil
	}
	for _, m := range v.flags {
		own := newFlags()
		m.kind.add(own, m.flag, m.usage)
		f := own.Lookup(m.flag)
		if m.usual != "" {
			f.DefValue = m.usual
		}
		f.Shorthand = m.letter
		cmd.Flags().AddFlag(f)
		if m.words != nil {
			_ = cmd.RegisterFlagCompletionFunc(m.flag,
				cobra.FixedCompletions(m.words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	if v.all {
		cmd.Flags().Bool("all-namespaces", false, "of all namespaces")
	}
	for _, group := range v.exclusive {
		cmd.MarkFlagsMutuallyExclusive(group...)
	}
	for _, group := range v.needed {
		if len(group) == 1 {
			_ = cmd.MarkFlagRequired(group[0])
			continue
		}
		cmd.MarkFlagsOneRequired(group...)
	}
	run := a.once
	if v.lasting {
		run = a.lasting
	}
	cmd.RunE = run(func(ctx context.Context, args []string) error {
		q, err := a.request(v, cmd, args)
		if err != nil {
			return err
		}
		first := v.first
		if dry := cmd.Flags().Lookup("dry-run"); dry != nil && dry.Changed {
			first = mustExist // which would be a change
		}
		if q.door, err = a.door(ctx, first); err != nil {
			return err
		}
		defer q.door.close()
		if v.run != nil {
			return v.run(ctx, q)
		}
		var answer json.RawMessage
		if err := q.do(ctx, &answer); err != nil {
			return err
		}
		if v.done != "" {
			return q.changed(v.done, "")
		}
		return v.show(q, answer)
	})
	return cmd
}

// names are those of the arguments.
func (v verb) names() (names []string) {
	for _, word := range strings.Fields(v.use)[1:] {
		names = append(names, strings.Trim(word, "[.]"))
	}
	return names
}

// commands are those of a table.
func (a *app) commands(verbs []verb) (list []*cobra.Command) {
	for _, v := range verbs {
		list = append(list, v.command(a))
	}
	return list
}

// group is a command that has those of a table, and lists what the first of them lists when nothing else is said.
func (a *app) group(use, short, long string, verbs []verb) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long}
	list := a.commands(verbs)
	cmd.AddCommand(list...)
	listsAlone(cmd, list[0])
	return cmd
}

// keptReason is how much of --reason the audit trail keeps of what is removed, which has no history; a query takes no
// more than 8 KiB.
const keptReason = 1024

// request is one request of a verb, put together from its command line.
type request struct {
	app   *app
	verb  verb
	cmd   *cobra.Command
	door  *door
	args  []string
	path  string
	query url.Values
	body  map[string]any
}

// request puts arguments and flags where the route has them. Nothing that was not said is in it.
func (a *app) request(v verb, cmd *cobra.Command, args []string) (*request, error) {
	q := &request{app: a, verb: v, cmd: cmd, args: args, query: url.Values{}, body: map[string]any{}}
	method, path, _ := strings.Cut(v.route, " ")
	for i, name := range v.names() {
		if i >= len(args) {
			break
		}
		value := args[i]
		m, other := v.args[name]
		if !utf8.ValidString(value) && (!other || m.to != "") {
			return nil, usage("%s is not UTF-8", name)
		}
		if other {
			if err := q.argument(name, m, args[i:]); err != nil {
				return nil, err
			}
			continue
		}
		if name == "ID" || name == "FLOW" {
			id, err := executionID(value)
			if err != nil {
				return nil, err
			}
			value = id.String()
			q.args[i] = value
		}
		if value == "" || value == "." || value == ".." { // which no path can have
			return nil, usage("%s is %q, want a name", name, value)
		}
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
	}
	q.path = path
	for _, m := range v.flags {
		if !cmd.Flags().Changed(m.flag) {
			continue
		}
		if m.to != "" && !utf8.ValidString(cmd.Flags().Lookup(m.flag).Value.String()) { // JSON would be other bytes
			return nil, usage("--%s is not UTF-8", m.flag)
		}
		value, err := m.kind.read(a, cmd.Flags(), m.flag)
		if err != nil {
			return nil, err
		}
		if value != nil {
			q.put(m.to, value)
		}
	}
	switch {
	case v.all && q.said("all-namespaces"):
		if cmd.Root().PersistentFlags().Changed("namespace") && !a.byProfile {
			return nil, usage("--all-namespaces and --namespace exclude each other")
		}
		q.put(v.namespace, "*")
	case v.namespace != "" && cmd.Root().PersistentFlags().Changed("namespace"):
		q.put(v.namespace, a.namespace)
	}
	if !utf8.ValidString(a.reason) {
		return nil, usage("--reason is not UTF-8")
	}
	if a.reason != "" && !v.mute {
		switch method {
		case http.MethodDelete:
			q.query.Set("reason", shorten(a.reason, keptReason))
		case http.MethodPost, http.MethodPut:
			q.body["reason"] = a.reason
		}
	}
	return q, nil
}

// argument reads one that is not in the path, or the last one and all behind it, as the flag of its kind would be.
func (q *request) argument(name string, m member, args []string) error {
	flags := newFlags()
	m.kind.add(flags, name, "")
	if !strings.HasSuffix(q.verb.use, "...") {
		args = args[:1]
	}
	for _, text := range args {
		if err := flags.Set(name, text); err != nil {
			return usage("%s %q, want %s", name, text, m.usage)
		}
	}
	value, err := m.kind.read(q.app, flags, name)
	q.put(m.to, value)
	return err
}

// put sets a member of the body, or a parameter.
func (q *request) put(to string, value any) {
	name, parameter := strings.CutPrefix(to, "?")
	switch {
	case name == "":
	case !parameter:
		q.body[name] = value
	default:
		switch v := value.(type) {
		case []string:
			q.query[name] = append(q.query[name], v...)
		case map[string]string:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				q.query.Add(name, k+"="+v[k])
			}
		default:
			q.query.Set(name, fmt.Sprint(v))
		}
	}
}

// said is a flag of the verb that is no part of the request.
func (q *request) said(flag string) bool { return q.cmd.Flags().Lookup(flag).Value.String() == "true" }

func (q *request) text(flag string) string { return q.cmd.Flags().Lookup(flag).Value.String() }

func (q *request) number(flag string) int {
	n, _ := strconv.Atoi(q.text(flag))
	return n
}

// do makes the request of the verb.
func (q *request) do(ctx context.Context, answer any) error {
	method, _, _ := strings.Cut(q.verb.route, " ")
	var body any
	if method == http.MethodPost || method == http.MethodPut {
		body = q.body
	}
	return q.named(q.door.ask(ctx, method, q.path, q.query, body, answer))
}

// get reads something else.
func (q *request) get(ctx context.Context, answer any, path string, names ...string) error {
	return q.named(q.door.ask(ctx, http.MethodGet, at(path, names...), nil, nil, answer))
}

// at puts names into a path, in the place of its stars.
func at(path string, names ...string) string {
	for _, name := range names {
		path = strings.Replace(path, "*", url.PathEscape(name), 1)
	}
	return path
}

// named writes the members of a request in an error as the command line has them.
func (q *request) named(err error) error {
	no, ok := errors.AsType[*refusal](err)
	if !ok {
		return err
	}
	words := map[string]string{}
	say := func(to, name string) {
		member := strings.TrimPrefix(to, "?")
		if member == "" {
			return
		}
		if at := strings.TrimPrefix(no.Field, "/"); at == member || strings.HasPrefix(at, member+"/") {
			no.Field = name
		}
		if strings.Contains(member, "_") { // it can be no word of English
			no.Detail = regexp.MustCompile(`\b`+member+`\b`).ReplaceAllString(no.Detail, name)
			return
		}
		for _, verb := range []string{" is", " has", " needs"} {
			words[member+verb] = name + verb
		}
		if member == "since" || member == "until" { // of which an error says what they are
			words[member] = name
		}
	}
	for name, m := range q.verb.args {
		say(m.to, name)
	}
	for _, m := range q.verb.flags {
		say(m.to, "--"+m.flag)
	}
	say(q.verb.namespace, "--namespace")
	if len(words) > 0 {
		no.Detail = prose.Renamer(words)(no.Detail)
	}
	return err
}

// changed is what a change did: to what, and the past participle.
type changed struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	Done string `json:"done"`
	Note string `json:"note,omitempty"` // what may not be meant
}

// changed says what was done to what the first argument names; what is what that is, if its name does not say it.
func (q *request) changed(done, note string) error {
	v, what := changed{Name: q.args[0], Done: done, Note: note}, q.verb.what()
	if first := q.verb.names()[0]; first == "ID" || first == "FLOW" {
		v = changed{ID: q.args[0], Done: done, Note: note}
	}
	return q.app.show(v, func(p *page) {
		if what != "" {
			p.say("%s %s %s", what, q.args[0], done)
		} else {
			p.say("%s %s", done, q.args[0])
		}
		if note != "" {
			p.say("note: %s", note)
		}
	})
}

// what is the kind of thing that a verb is about where its name alone does not tell: gates.
func (v verb) what() string {
	if strings.Contains(v.route, "/v1/gates/") {
		return "gate"
	}
	return ""
}

// told has an answer shown as text.
func told[T any](text func(p *page, q *request, v T)) func(*request, json.RawMessage) error {
	return func(q *request, answer json.RawMessage) error {
		var v T
		if err := json.Unmarshal(answer, &v); err != nil {
			return fmt.Errorf("%s: the server's answer is not understood by this version: %w", q.path, err)
		}
		return q.app.show(answer, func(p *page) { text(p, q, v) })
	}
}
