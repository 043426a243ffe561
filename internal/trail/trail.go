// Package trail takes along who changes what, from a caller to the engine, which has the server keep it together with
// the change.
package trail

import (
	"cmp"
	"context"
	"os"
	"strings"
	"sync"

	"github.com/google/uuid"
)

// Note is what the audit trail keeps of a change.
type Note struct {
	Request   string // of the change: its calls count once in a partition
	Action    string // what was done, such as cancel; "" if the trail does not keep it, see As
	On, Name  string // to what: execution, lane, …, and its id or name
	Namespace string // in which that is; "" if it is in none, or not known
	By, From  string // who, and from where
	Why       string
	Detail    string
}

// Actor is on whose behalf a program acts.
type Actor struct {
	By        string // "": whoever the calls say
	From      string // such as "api 10.1.2.3"
	Namespace string // of what is changed, if it is known
}

// The longest parts, in bytes.
const (
	maxPart = 512
	maxFrom = 128
	maxBy   = 256 // the source of a signal is as long
	maxWhy  = 1024
)

const separator = "\x1f"

type actorKey struct{}
type noteKey struct{}

// said is a note as it stands behind the protocol number of a call.
type said struct {
	text string
	kept bool // in the trail
}

// Acting says who acts.
func Acting(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf is who acts; the zero Actor if that was not said.
func ActorOf(ctx context.Context) Actor {
	a, _ := ctx.Value(actorKey{}).(Actor)
	return a
}

// Program is what this program is in the trail: go, or cli for the command. It is set before the first change.
var Program = "go"

var here = sync.OnceValue(func() string {
	host, err := os.Hostname()
	if err != nil {
		return Program
	}
	return Program + " " + host
})

// With has what follows noted as one change. A change that is part of another one is that.
func With(ctx context.Context, n Note) context.Context {
	if before, _ := ctx.Value(noteKey{}).(said); before.kept {
		return ctx
	}
	a := ActorOf(ctx)
	if a.By != "" {
		n.By = a.By
	}
	if n.Action != "" {
		n.From = cmp.Or(a.From, here())
	}
	if n.Namespace == "" {
		n.Namespace = a.Namespace
	}
	if n.Request == "" {
		n.Request = strings.ReplaceAll(uuid.NewString(), "-", "")[:16]
	}
	return context.WithValue(ctx, noteKey{}, said{n.Text(), n.Action != ""})
}

// As says by whom and why the calls that follow are made, for what else than the trail keeps that: a history, a log,
// a record. They are no change that the trail keeps.
func As(ctx context.Context, by, why string) context.Context {
	return With(ctx, Note{By: by, Why: why})
}

// Of is the note as it stands behind the protocol number of a call; "" if there is none.
func Of(ctx context.Context) string {
	note, _ := ctx.Value(noteKey{}).(said)
	return note.text
}

// Text is a note as it stands behind the protocol number of a call.
func (n Note) Text() string {
	return separator + strings.Join([]string{plain(n.Request, 64), plain(n.By, maxBy), plain(n.From, maxFrom),
		plain(n.Action, 64), plain(n.On, 64),
		plain(n.Name, maxPart), plain(n.Namespace, 64), cut(unseparated(n.Why), maxWhy),
		plain(n.Detail, maxPart)}, separator)
}

// plain is a text without control characters, of at most so many bytes.
func plain(text string, most int) string {
	return cut(strings.Map(func(r rune) rune { // first, for a byte that is no character takes three then
		if r < 0x20 || r == 0x7f {
			return ' '
		}
		return r
	}, text), most)
}

// unseparated is a text that may have several lines.
func unseparated(text string) string {
	return strings.NewReplacer(separator, " ", "\x00", " ").Replace(text)
}

// cut is a text of at most so many bytes.
func cut(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// Parse reads what the server kept.
func Parse(text string) (n Note, ok bool) {
	p := strings.Split(text, separator)
	if len(p) != 9 {
		return n, false
	}
	return Note{Request: p[0], By: p[1], From: p[2], Action: p[3], On: p[4], Name: p[5], Namespace: p[6], Why: p[7],
		Detail: p[8]}, true
}
