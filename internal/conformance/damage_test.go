package conformance

import (
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/flowfabric/flowfabric-go/internal/record"
)

// inflict does one damage of a table. It is a raw command, or an edit of what a key encodes:
//
//	record ID s=A1 -pc n+1    sets, removes and adds to fields of a record
//	suspension ID c=O         the same for a suspension
//	waitpoint ID POINT=x      the same for waitpoints
//	edges ID UPSTREAM=x       the same for the near edges into a member
//	group ID TEXT             sets the group of a member
//	dependants ID             removes the near dependants of a member
//
// A space within a word is \x1e.
func (w *env) inflict(damage string) {
	w.Helper()
	args := strings.Fields(damage)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "\x1e", " ")
	}
	id, _ := uuid.Parse(args[1])
	switch args[0] {
	case "record":
		w.editRecord(id, func(f fields) { change(f, args[2:]) })
	case "suspension":
		w.editWaits(id, func(x record.Waits) { change(x.Suspension, args[2:]) })
	case "waitpoint":
		w.editWaits(id, func(x record.Waits) { change(x.Waitpoints, args[2:]) })
	case "edges":
		w.editLinks(id, func(l *record.Links) { change(l.Edges, args[2:]) })
	case "group":
		w.editLinks(id, func(l *record.Links) { l.Group = args[2] })
	case "dependants":
		w.editLinks(id, func(l *record.Links) { l.To = nil })
	default:
		w.set(args...)
	}
}

// change makes edits: name=value, -name or name+number.
func change(f fields, edits []string) {
	for _, edit := range edits {
		if name, value, ok := strings.Cut(edit, "="); ok {
			f[name] = value
		} else if name, ok := strings.CutPrefix(edit, "-"); ok {
			delete(f, name)
		} else if name, n, ok := strings.Cut(edit, "+"); ok {
			by, _ := strconv.Atoi(n)
			raise(f, name, by)
		}
	}
}

// raise adds to a field that counts.
func raise(f fields, name string, by int) {
	n, _ := strconv.Atoi(f[name])
	f[name] = strconv.Itoa(n + by)
}

// without is a list less the first entry of this text.
func without(list []string, text string) []string {
	if i := slices.Index(list, text); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
