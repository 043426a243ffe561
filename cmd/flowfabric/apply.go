package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
)

var applyVerb = verb{
	use: "apply", short: "Apply lanes, gates, schedules, triggers and the index from a file",
	long: `apply reads one JSON file of settings, prints what differs from the store, and changes that. The
members of the file are: "gates" (budgets, quotas and governors of services, by name), "attached" (scopes with
their gates), "lanes", "index" (the tags that can be asked for), "schedules" by name with their "owner", and
"triggers". Each has the members of its call of the HTTP API. 'flowfabric settings' prints such a file.

The server checks the whole file first. If anything in it is wrong, nothing is changed, and the error names
the place. What the file does not name stays as it is. A second run changes nothing, and says so. A run that was
cut short is finished by the next one. --prune also removes what the file no longer names: schedules of its
owner, and tags of its index; nothing else is ever removed. Without --yes a question comes first, on a
terminal.`,
	example: `  flowfabric apply -f settings.json --dry-run
  flowfabric apply -f settings.json --yes --by anna --reason 'the autumn sale'`,
	route: "POST /v1/settings:plan", first: mayBoot, mute: true, lasting: true,
	flags: []member{
		{flag: "file", letter: "f", usage: "the `file`, or - for stdin; required", kind: textKind},
		yes("", "dry-run", "print what would change, and change nothing"),
		yes("", "yes", "do not ask"),
		yes("", "prune", "also remove schedules of the owner and tags of the index that the file does not name"),
	},
	needed: [][]string{{"file"}}, exclusive: [][]string{{"dry-run", "yes"}},
	run: apply,
}

var settingsVerb = verb{
	use: "settings", short: "Print lanes, gates, schedules, triggers and the index as a file for apply",
	long: `settings prints all settings of the store, of all namespaces, as the file that apply takes. Applied to the
same store it changes nothing; applied to another one it makes the same settings there. It has the inputs of
schedules. What was used of gates, pauses of schedules and the keys of tokens are no settings. What only programs
can say, such as a flow that may grow, is left out and told on stderr. If all schedules have one owner, the file
names it and can be applied with --prune, unless one of them was left out.`,
	example: `  flowfabric settings >settings.json
  flowfabric settings --profile staging | flowfabric apply --profile prod -f - --dry-run`,
	route: "GET /v1/settings",
	run: func(ctx context.Context, q *request) error {
		var file struct {
			Settings json.RawMessage `json:"settings"`
			LeftOut  []struct {
				On   string `json:"on"`
				Name string `json:"name"`
				Why  string `json:"why"`
			} `json:"left_out"`
		}
		if err := q.do(ctx, &file); err != nil {
			return err
		}
		for _, x := range file.LeftOut {
			fmt.Fprintf(q.app.err, "left out: %s %s: %s\n", x.On, printable(x.Name), printable(x.Why))
		}
		if q.app.json {
			return q.app.line(file.Settings)
		}
		var text bytes.Buffer
		if err := json.Indent(&text, file.Settings, "", "  "); err != nil {
			return err
		}
		return q.app.write(text.String() + "\n")
	},
}

// settings is a file of settings, as far as the command looks into it. The server judges the rest.
type settings map[string]json.RawMessage

// settingsPlan is what the server says of a file.
type settingsPlan struct {
	Changes []plannedChange `json:"changes"`
	Same    int             `json:"same"`
	Made    int             `json:"made"`
	DryRun  bool            `json:"dry_run"`
}

type plannedChange struct {
	On        string         `json:"on"`
	Name      string         `json:"name"`
	Namespace string         `json:"namespace,omitempty"`
	Action    string         `json:"action"`
	Field     string         `json:"field"`
	Revision  uint64         `json:"revision,omitempty"`
	Fields    []plannedField `json:"fields,omitempty"`
}

type plannedField struct {
	Name string          `json:"name"`
	Was  json.RawMessage `json:"was,omitempty"`
	Is   json.RawMessage `json:"is,omitempty"`
}

func apply(ctx context.Context, q *request) error {
	a, file := q.app, q.text("file")
	dry := q.said("dry-run")
	if !dry && !q.said("yes") && (a.json || !isTerminal(a.in)) {
		return usage("nothing was changed: apply needs --dry-run or --yes")
	}
	s, err := q.settings(file)
	if file == "-" {
		file = "stdin"
	}
	if err != nil {
		return err
	}
	plan := settingsPlan{DryRun: dry}
	if err := q.door.ask(ctx, http.MethodPost, q.path, nil, s, &plan); err != nil {
		return fmt.Errorf("%s: nothing was changed: %w", file, err)
	}
	if !a.json {
		p := &page{colour: a.colour()}
		plan.text(p)
		if _, err := p.WriteTo(a.out); err != nil {
			return err
		}
	}
	if !dry && len(plan.Changes) > 0 && !q.said("yes") {
		if sure, err := a.sure(ctx, "Make "+count(len(plan.Changes), "change")+"?"); err != nil || !sure {
			return cmp.Or(err, usage("nothing was changed"))
		}
	}
	for _, x := range plan.Changes {
		if dry {
			break
		}
		if err := q.makeChange(ctx, s, filepath.Base(file), x); err != nil {
			return fmt.Errorf("%d of %s made, run apply again for the rest: %s: %w", plan.Made,
				count(len(plan.Changes), "change"), x.title(), err)
		}
		plan.Made++
	}
	if a.json {
		return a.line(plan)
	}
	switch {
	case len(plan.Changes) == 0:
		return a.write(fmt.Sprintf("nothing to change: %s as the file says\n", count(plan.Same, "setting")))
	case dry:
		return a.write(count(len(plan.Changes), "change") + " to make, nothing was changed\n")
	}
	return a.write(count(plan.Made, "change") + " made\n")
}

// settings reads the file. Lanes, scopes of lanes and schedules without a namespace get that of --namespace.
func (q *request) settings(file string) (settings, error) {
	name := "@" + file
	if file == "-" {
		name = file
	}
	text, err := q.app.read("--file", name)
	if err != nil {
		return nil, err
	}
	s := settings{}
	if err := jsonv2.Unmarshal(text, &s); err != nil {
		return nil, usage("%s: want one JSON object: %v", file, err)
	}
	if _, said := s["prune"]; said {
		return nil, usage("%s: prune: it is no member of a file, use --prune", file)
	}
	if q.said("prune") {
		s["prune"] = json.RawMessage("true")
	}
	if !q.cmd.Flags().Changed("namespace") && q.app.namespace == "default" {
		return s, nil
	}
	return s, s.within(q.app.namespace)
}

// within names the namespace where nothing else does. What is not of the right form is left to the server.
func (s settings) within(namespace string) error {
	named, err := json.Marshal(namespace)
	if err != nil {
		return err
	}
	fill := func(text json.RawMessage) json.RawMessage {
		object := settings{}
		if jsonv2.Unmarshal(text, &object) != nil || object["namespace"] != nil {
			return text
		}
		object["namespace"] = named
		return encoded(json.Marshal(object))
	}
	var lanes []json.RawMessage
	if json.Unmarshal(s["lanes"], &lanes) == nil {
		for i := range lanes {
			lanes[i] = fill(lanes[i])
		}
		s["lanes"] = encoded(json.Marshal(lanes))
	}
	var attached []settings
	if jsonv2.Unmarshal(s["attached"], &attached) == nil {
		for _, x := range attached {
			scope := settings{}
			if jsonv2.Unmarshal(x["scope"], &scope) == nil && scope["lane"] != nil {
				x["scope"] = fill(x["scope"])
			}
		}
		s["attached"] = encoded(json.Marshal(attached))
	}
	var triggers []json.RawMessage
	if json.Unmarshal(s["triggers"], &triggers) == nil {
		for i := range triggers {
			triggers[i] = fill(triggers[i])
		}
		s["triggers"] = encoded(json.Marshal(triggers))
	}
	schedules := settings{}
	if jsonv2.Unmarshal(s["schedules"], &schedules) == nil && len(schedules) > 0 {
		for name := range schedules {
			schedules[name] = fill(schedules[name])
		}
		s["schedules"] = encoded(json.Marshal(schedules))
	}
	return nil
}

// encoded is for values that come from JSON.
func encoded(text []byte, err error) json.RawMessage {
	if err != nil {
		panic(err)
	}
	return text
}

// part is what a file has at a place such as /lanes/0.
func (s settings) part(field string) (settings, error) {
	section, name, nested := strings.Cut(strings.TrimPrefix(field, "/"), "/")
	text := s[section]
	if nested {
		var list []json.RawMessage
		all := settings{}
		var i int
		if jsonv2.Unmarshal(text, &all) == nil {
			text = all[name]
		} else if _, err := fmt.Sscan(name, &i); err == nil && json.Unmarshal(text, &list) == nil && i < len(list) {
			text = list[i]
		}
	}
	out := settings{}
	if err := jsonv2.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("the server named %s, which the file does not have: %w", field, err)
	}
	return out, nil
}

// makeChange makes one change, by the call of its single command.
func (q *request) makeChange(ctx context.Context, s settings, file string, x plannedChange) error {
	reason := cmp.Or(q.app.reason, "apply "+file)
	if x.Action == "remove" {
		return q.door.ask(ctx, http.MethodDelete, at("/v1/schedules/*", x.Name),
			url.Values{"reason": {shorten(reason, keptReason)}}, nil, nil)
	}
	body, err := s.part(x.Field)
	if err != nil {
		return err
	}
	put := func(name string, value any) { body[name] = encoded(json.Marshal(value)) }
	put("reason", reason)
	method, path := http.MethodPost, ""
	switch x.On {
	case "gate":
		method, path = http.MethodPut, at("/v1/gates/*", x.Name)
		put("revision", x.Revision)
	case "scope":
		path = "/v1/gates:attach"
	case "lane":
		path = at("/v1/lanes/*:set", x.Name)
		delete(body, "name")
	case "store":
		path = "/v1/index:set"
		for _, f := range x.Fields { // with the tags that stay although the file does not name them
			if f.Name == "tags" {
				body[f.Name] = f.Is
			}
		}
	case "schedule":
		method, path = http.MethodPut, at("/v1/schedules/*", x.Name)
		if body["owned_by"] == nil {
			body["owned_by"] = s["owner"]
		}
		if x.Action == "create" {
			put("if_new", true)
		}
	case "trigger":
		method, path = http.MethodPut, at("/v1/triggers/*", x.Name)
		delete(body, "name")
	default:
		return fmt.Errorf("this version cannot change a %s", x.On)
	}
	return q.door.ask(ctx, method, path, nil, body, nil)
}

// title names a change in a line.
func (x plannedChange) title() string {
	return x.On + " " + join("/", x.Namespace, x.Name)
}

func (s settingsPlan) text(p *page) {
	signs := map[string]cell{"create": styled(green, "+"), "change": styled(yellow, "~"), "remove": styled(red, "-")}
	for _, x := range s.Changes {
		p.put(signs[x.Action])
		p.say(" %s", x.title())
		for _, f := range x.Fields {
			if x.Action == "create" || f.Was == nil {
				p.say("    %s: %s", f.Name, cmp.Or(string(f.Is), "not set"))
				continue
			}
			p.say("    %s: %s -> %s", f.Name, string(f.Was), cmp.Or(string(f.Is), "not set"))
		}
	}
}

// sure asks a person, who says y or yes.
func (a *app) sure(ctx context.Context, question string) (bool, error) {
	fmt.Fprint(a.err, question+" [y/N] ")
	var text string
	_, _ = fmt.Fscanln(a.in, &text)
	return strings.EqualFold(text, "y") || strings.EqualFold(text, "yes"), ctx.Err()
}
