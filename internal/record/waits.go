package record

import (
	"maps"
	"slices"
	"strings"
)

// Waits is what one execution waits for: the fields of its current or last suspension, and its waitpoints by id, encoded.
type Waits struct {
	Suspension map[string]string
	Waitpoints map[string]string
}

var (
	waitEscape   = strings.NewReplacer("\x1b", "\x1be", "\x1e", "\x1br", "\x1f", "\x1bu")
	waitUnescape = strings.NewReplacer("\x1be", "\x1b", "\x1br", "\x1e", "\x1bu", "\x1f")
)

// DecodeWaits reads what lua/lib/waits.lua wrote. A part that is nothing of the kind is left out, as there.
func DecodeWaits(text string) Waits {
	w := Waits{map[string]string{}, map[string]string{}}
	head, points, _ := strings.Cut(text, "\x1e")
	parts := strings.Split(head, "\x1f")
	for i := 0; i+2 < len(parts); i += 2 {
		w.Suspension[parts[i]] = waitUnescape.Replace(parts[i+1])
	}
	for line := range strings.SplitSeq(points, "\x1e") {
		if id, point, ok := strings.Cut(line, "\x1f"); ok {
			w.Waitpoints[id] = point
		}
	}
	return w
}

// Encode is the inverse, with everything in the order of its names.
func (w Waits) Encode() string {
	var b strings.Builder
	for _, field := range slices.Sorted(maps.Keys(w.Suspension)) {
		b.WriteString(field + "\x1f" + waitEscape.Replace(w.Suspension[field]) + "\x1f")
	}
	for _, id := range slices.Sorted(maps.Keys(w.Waitpoints)) {
		b.WriteString("\x1e" + id + "\x1f" + w.Waitpoints[id])
	}
	return b.String()
}
