package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/pflag"
)

// member is a flag or an argument, and what it is of a request.
type member struct {
	to     string // a member of the body; with ? in front a parameter; "" for none: the verb reads the flag itself
	flag   string
	usage  string
	kind   kind
	usual  string   // what it is when it is not said, for the help
	letter string   // its short form
	words  []string // what shells complete it to
}

// kind is how a flag is written, and what becomes of it in a request.
type kind struct {
	add  func(flags *pflag.FlagSet, name, usage string)
	read func(a *app, flags *pflag.FlagSet, name string) (any, error)
}

func newFlags() *pflag.FlagSet { return pflag.NewFlagSet("", pflag.ContinueOnError) }

// plain is a kind whose values are the same in a request.
func plain[T any](add func(*pflag.FlagSet, string, string), get func(*pflag.FlagSet, string) (T, error)) kind {
	return kind{add, func(_ *app, flags *pflag.FlagSet, name string) (any, error) { return get(flags, name) }}
}

// The kinds.
var (
	textKind = plain(func(f *pflag.FlagSet, name, usage string) { f.String(name, "", usage) },
		(*pflag.FlagSet).GetString)
	wholeKind = plain(func(f *pflag.FlagSet, name, usage string) { f.Int64(name, 0, usage) },
		(*pflag.FlagSet).GetInt64)
	yesKind = plain(func(f *pflag.FlagSet, name, usage string) { f.Bool(name, false, usage) },
		(*pflag.FlagSet).GetBool)
	textsKind = kind{func(f *pflag.FlagSet, name, usage string) { f.StringArray(name, nil, usage) },
		func(_ *app, flags *pflag.FlagSet, name string) (any, error) { return said(flags, name), nil }}
	listKind = plain(func(f *pflag.FlagSet, name, usage string) { f.StringSlice(name, nil, usage) },
		(*pflag.FlagSet).GetStringSlice)
	spanKind = kind{func(f *pflag.FlagSet, name, usage string) { f.Duration(name, 0, usage) },
		func(_ *app, flags *pflag.FlagSet, name string) (any, error) {
			d, err := flags.GetDuration(name)
			if err == nil && d%time.Millisecond != 0 {
				err = usage("%s is %s, want whole milliseconds", spelled(name), d)
			}
			return d.Milliseconds(), err
		}}
	pairsKind = kind{textsKind.add, func(_ *app, flags *pflag.FlagSet, name string) (any, error) {
		return pairs("--"+name, said(flags, name))
	}}
	momentKind = kind{textKind.add, func(_ *app, flags *pflag.FlagSet, name string) (any, error) {
		text, _ := flags.GetString(name)
		if text == "" {
			return nil, nil
		}
		t, err := moment("--"+name, text)
		return t.UTC().Format(time.RFC3339Nano), err
	}}
	// a time as RFC 3339 has it; an empty text is none
	timeKind = kind{textKind.add, func(_ *app, flags *pflag.FlagSet, name string) (any, error) {
		text, _ := flags.GetString(name)
		if text == "" {
			return nil, nil
		}
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			return nil, usage("--%s %q is not a time like 2026-01-31T17:00:00Z", name, text)
		}
		return text, nil
	}}
	uuidKind = kind{textKind.add, func(_ *app, flags *pflag.FlagSet, name string) (any, error) {
		text, _ := flags.GetString(name)
		if id, err := uuid.Parse(text); err != nil || id.String() != text {
			return nil, usage("--%s %q is not a lower-case uuid", name, text)
		}
		return text, nil
	}}
	contentKind = kind{textKind.add, func(a *app, flags *pflag.FlagSet, name string) (any, error) {
		text, _ := flags.GetString(name)
		data, err := a.read("--"+name, text)
		if err == nil {
			data, err = compact("--"+name, data)
		}
		return json.RawMessage(data), err
	}}
)

// spelled is a flag as it is written; the name of an argument is in capitals.
func spelled(name string) string {
	if name == strings.ToUpper(name) {
		return name
	}
	return "--" + name
}

// said are the texts of a flag that may be repeated, as they were written: pflag's GetStringArray reads them back from
// CSV, which has no single empty text and no \r\n.
func said(flags *pflag.FlagSet, name string) []string {
	return flags.Lookup(name).Value.(pflag.SliceValue).GetSlice()
}

// of makes members of a kind.
func (k kind) of(to, flag, usage string) member {
	return member{to: to, flag: flag, usage: usage, kind: k}
}

// A text; a whole number; whether or not; a duration, which is in milliseconds in a request; texts, a flag each; texts
// that commas part; key=value, a flag each; a time; and a time, or how long ago it was.
var (
	text, whole, yes, millis = textKind.of, wholeKind.of, yesKind.of, spanKind.of
	texts, list, tagged      = textsKind.of, listKind.of, pairsKind.of
	timed, since             = timeKind.of, momentKind.of
)

// decimal is a whole number that is an argument: pflag would take 010 for eight.
func decimal(to, want string) member {
	return member{to: to, kind: kind{textKind.add, func(_ *app, flags *pflag.FlagSet, name string) (any, error) {
		text, _ := flags.GetString(name)
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, usage("%s %q, want %s", name, text, want)
		}
		return n, nil
	}}}
}

// or is the member with what it is when it is not said.
func (m member) or(usual string) member {
	m.usual = usual
	return m
}

// oneOf is the member with what shells complete it to.
func (m member) oneOf(words ...string) member {
	m.words = words
	return m
}
