package main

import (
	"encoding/json"
	"time"

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
	textsKind = plain(func(f *pflag.FlagSet, name, usage string) { f.StringArray(name, nil, usage) },
		(*pflag.FlagSet).GetStringArray)
	listKind = plain(func(f *pflag.FlagSet, name, usage string) { f.StringSlice(name, nil, usage) },
		(*pflag.FlagSet).GetStringSlice)
	spanKind = kind{func(f *pflag.FlagSet, name, usage string) { f.Duration(name, 0, usage) },
		func(_ *app, flags *pflag.FlagSet, name string) (any, error) {
			d, err := flags.GetDuration(name)
			if err == nil && d%time.Millisecond != 0 {
				err = usage("--%s is %s, want whole milliseconds", name, d)
			}
			return d.Milliseconds(), err
		}}
	pairsKind = kind{textsKind.add, func(_ *app, flags *pflag.FlagSet, name string) (any, error) {
		values, _ := flags.GetStringArray(name)
		return pairs("--"+name, values)
	}}
	momentKind = kind{textKind.add, func(_ *app, flags *pflag.FlagSet, name string) (any, error) {
		text, _ := flags.GetString(name)
		t, err := moment("--"+name, text)
		return t.UTC().Format(time.RFC3339Nano), err
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

// A text; a whole number; whether or not; a duration, which is in milliseconds in a request; texts, a flag each; texts
// that commas part; key=value, a flag each; and a time, or how long ago it was.
func text(to, flag, usage string) member {
	return member{to: to, flag: flag, usage: usage, kind: textKind}
}
func whole(to, flag, usage string) member {
	return member{to: to, flag: flag, usage: usage, kind: wholeKind}
}
func yes(to, flag, usage string) member {
	return member{to: to, flag: flag, usage: usage, kind: yesKind}
}
func millis(to, flag, usage string) member {
	return member{to: to, flag: flag, usage: usage, kind: spanKind}
}
func texts(to, flag, usage string) member {
	return member{to: to, flag: flag, usage: usage, kind: textsKind}
}
func list(to, flag, usage string) member {
	return member{to: to, flag: flag, usage: usage, kind: listKind}
}
func tagged(to, flag, usage string) member {
	return member{to: to, flag: flag, usage: usage, kind: pairsKind}
}
func since(to, flag, usage string) member {
	return member{to: to, flag: flag, usage: usage, kind: momentKind}
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
