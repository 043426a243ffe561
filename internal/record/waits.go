package record

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Waits is what one execution waits for: the fields of its current or last suspension, and its waitpoints by id, each
// with all its parts joined by the unit separator (lua/lib/waitpoint.lua names them).
type Waits struct {
	Suspension map[string]string
	Waitpoints map[string]string
	Steps      map[string]string // what records a waitpoint, by its id: attempt, number and maybe name of the step
	Signals    []Signal          // those that have no keys of their own, in the order in which they came
}

// Signal is one of them: until when, ms, a repeat of it is known, and its parts as lua/lib/signals.lua joins them.
type Signal struct{ Expiry, Text string }

var (
	waitEscape   = strings.NewReplacer("\x1b", "\x1be", "\x1c", "\x1bf", "\x1d", "\x1bg")
	waitUnescape = strings.NewReplacer("\x1be", "\x1b", "\x1bf", "\x1c", "\x1bg", "\x1d")
)

// unit joins the parts of a waitpoint; one of them is when it was created.
const (
	unit        = "\x1f"
	createdPart = 5
)

// reasons and behaviours are stored as letters.
var (
	reasons = map[string]string{"s": "waiting_for_signal", "a": "waiting_for_approval", "c": "waiting_for_callback",
		"t": "waiting_for_tool_result", "o": "waiting_for_operator_review", "m": "manual_pause", "b": "step_boundary",
		"p": "paused_by_policy", "u": "paused_by_budget", "k": "waiting_for_children"}
	behaviours = map[string]string{"f": "fail", "c": "cancel", "x": "expire", "r": "auto_resume",
		"t": "auto_resume_with_timeout_signal", "o": "auto_resume_open", "e": "escalate"}
)

// placed are the fields of a suspension that have a place instead of a name.
var placed = []string{"id", "nm", "rc", "ho", "cr", "to", "bh", "c", "wp"}

// DecodeWaits reads what lua/lib/wait_record.lua wrote. A part that is nothing of the kind is left out, as there.
func DecodeWaits(text string) Waits {
	w := Waits{Suspension: map[string]string{}, Waitpoints: map[string]string{}, Steps: map[string]string{}}
	text, signals, _ := strings.Cut(text, "\x1c\x1c")
	for signals != "" {
		p := strings.SplitN(signals, " ", 3)
		size, err := strconv.Atoi(p[0])
		if err != nil || len(p) < 3 || size < 0 || size > len(p[2]) {
			break
		}
		w.Signals, signals = append(w.Signals, Signal{p[1], p[2][:size]}), p[2][size:]
	}
	head, points, _ := strings.Cut(text, "\x1c")
	var order []string
	for line := range strings.SplitSeq(points, "\x1c") {
		if id, point, ok := strings.Cut(line, "\x1f"); ok {
			w.Waitpoints[id], order = point, append(order, id)
		}
	}
	if values := strings.Split(head, "\x1d"); len(values) >= len(placed) {
		for i, field := range placed {
			if values[i] != "" {
				w.Suspension[field] = waitUnescape.Replace(values[i])
			}
		}
		for _, text := range values[len(placed):] {
			if field, value, ok := strings.Cut(text, "="); ok {
				w.Suspension[field] = waitUnescape.Replace(value)
			}
		}
	}
	for field, words := range map[string]map[string]string{"rc": reasons, "bh": behaviours} {
		if word, ok := words[w.Suspension[field]]; ok {
			w.Suspension[field] = word
		}
	}
	if n, ok := strings.CutPrefix(w.Suspension["wp"], "*"); ok {
		listed, _ := strconv.Atoi(n)
		w.Suspension["wp"] = strings.Join(order[:max(0, min(listed, len(order)))], ",")
	}
	if w.Suspension["wp"] == "" {
		delete(w.Suspension, "wp")
	}
	for id, point := range w.Waitpoints {
		if p := strings.Split(point, unit); len(p) > createdPart {
			if created, step, ok := strings.Cut(p[createdPart], " "); ok {
				p[createdPart], w.Steps[id] = created, step
				point = strings.Join(p, unit)
			}
		}
		w.Waitpoints[id] = whole(point, w.Suspension)
	}
	return w
}

// Event is the key of a waitpoint, and of one that takes a published event what stands for its subject, and the
// subject. part is the key as it is stored.
func Event(part string) (key, id, subject string) {
	key, event, _ := strings.Cut(part, "\x1e")
	id, subject, _ = strings.Cut(event, " ")
	return key, id, subject
}

// Step is what the step of a waitpoint is called, its value, and what the log of steps says of it; ok is false if
// nothing records it.
func (w Waits) Step(id string) (name, value, log string, ok bool) {
	p := strings.Split(w.Waitpoints[id], unit)
	words := strings.SplitN(w.Steps[id], " ", 3)
	if len(p) < 15 || len(words) < 2 {
		return "", "", "", false
	}
	key, event, _ := Event(p[1])
	words = append(words, key)
	if event != "" {
		wanted := "0"
		if (p[0] == "p" || p[0] == "a") && p[9] == "0" {
			wanted = "1"
		}
		key += "\x1e" + wanted + event
	}
	if p[7] == "" {
		p[7] = "9999999999999"
	}
	if p[13] == "proactive_close" {
		p[7] = "0"
	}
	return "\x1fw:" + words[2], strings.Join([]string{id, p[2], p[4], p[7], key}, " "),
		words[0] + " " + p[createdPart] + " 0 " + words[1], true
}

// whole is a waitpoint with what it has in common with its suspension, and what one that got no signal leaves out.
func whole(point string, u map[string]string) string {
	p := strings.Split(point, "\x1f")
	if len(p) >= 9 {
		for i, field := range map[int]string{5: "cr", 6: "cr", 7: "to", 8: "id"} {
			before, ok := strings.CutPrefix(p[i], "=")
			if ok {
				p[i] = u[field]
			}
			ms, err := strconv.ParseInt(before, 10, 64)
			since, wrong := strconv.ParseInt(u[field], 10, 64)
			if ok && err == nil && wrong == nil {
				p[i] = strconv.FormatInt(since-ms, 10)
			}
		}
	}
	if len(p) == 9 {
		p = append(p, "0", "0", "", "", "", "0")
	}
	return strings.Join(p, "\x1f")
}

// Encode is the inverse, with everything in the order of its names.
func (w Waits) Encode() string {
	var b strings.Builder
	if len(w.Suspension) > 0 {
		for i, field := range placed {
			if i > 0 {
				b.WriteString("\x1d")
			}
			b.WriteString(waitEscape.Replace(w.Suspension[field]))
		}
	}
	for _, field := range slices.Sorted(maps.Keys(w.Suspension)) {
		if !slices.Contains(placed, field) {
			b.WriteString("\x1d" + field + "=" + waitEscape.Replace(w.Suspension[field]))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.Waitpoints)) {
		point := w.Waitpoints[id]
		if p := strings.Split(point, unit); w.Steps[id] != "" && len(p) > createdPart {
			p[createdPart] += " " + w.Steps[id]
			point = strings.Join(p, unit)
		}
		b.WriteString("\x1c" + id + unit + point)
	}
	if len(w.Signals) > 0 {
		b.WriteString("\x1c\x1c")
	}
	for _, g := range w.Signals {
		b.WriteString(strconv.Itoa(len(g.Text)) + " " + g.Expiry + " " + g.Text)
	}
	return b.String()
}
