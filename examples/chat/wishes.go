package main

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/flowfabric/flowfabric-go/agent"
)

// wish is something that a text asks for: a tool, or a story.
type wish struct {
	tool  string
	story bool
	about string
}

var (
	joint = regexp.MustCompile(`(?i)\n+|;\s*|[.!?]\s+|,?\s+(?:and|then)\s+`)
	seek  = regexp.MustCompile(
		`(?is)^(?:please\s+)?(?:search|find|look)\b(?:\s+up)?(?:\s+the\s+(?:texts|books))?(?:\s+for)?\s+(.+)$`)
	tell = regexp.MustCompile(
		`(?is)^(?:please\s+)?(?:tell|write)\b(?:\s+me)?(?:\s+something|\s+a\s+story|\s+more)?(?:\s+about)?\s*(.*)$`)
	public  = regexp.MustCompile(`(?is)^(?:please\s+)?publish\b(?:\s+(?:a|the)\s+note)?:?\s*(.*)$`)
	sum     = regexp.MustCompile(`[-+(\s]*\d[\d.,]*(?:[\s)]*[-+*/%×·÷−][\s(+−-]*\d[\d.,]*)+[\s)]*`)
	pointer = regexp.MustCompile(`(?i)^(?:it|that|this|the answer|the result)?[.!]?$`)
)

// wishes reads a text. A part of it that asks for nothing belongs to the wish before it.
func wishes(text string) (out []wish) {
	from, before := 0, ""
	for _, at := range append(joint.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		part := text[from:at[0]]
		if w, ok := wishOf(strings.TrimSpace(part)); ok {
			out = append(out, w)
		} else if n := len(out); n > 0 && strings.TrimSpace(part) != "" && out[n-1].tool != "calculator" {
			out[n-1].about += before + part
		}
		from, before = at[1], text[at[0]:at[1]]
	}
	return out
}

func wishOf(part string) (w wish, ok bool) {
	if m := public.FindStringSubmatch(part); m != nil {
		return wish{tool: "publish", about: m[1]}, true
	}
	if m := seek.FindStringSubmatch(part); m != nil {
		return wish{tool: "search", about: strings.Trim(m[1], `.!?"“” `)}, true
	}
	if expression := sum.FindString(part); expression != "" {
		return wish{tool: "calculator", about: strings.Trim(strings.ReplaceAll(expression, ",", ""), ". ")}, true
	}
	if m := tell.FindStringSubmatch(part); m != nil {
		return wish{story: true, about: strings.Trim(m[1], ".!? ")}, true
	}
	return wish{}, false
}

// refers tells whether it means something that was said, and not what it says itself.
func (w wish) refers() bool { return pointer.MatchString(strings.TrimSpace(w.about)) }

// says is the wish in the words of the model.
func (w wish) says() string {
	switch w.tool {
	case "search":
		return "search the books for “" + w.about + "”"
	case "calculator":
		return "calculate " + w.about
	}
	return "publish a note, if you approve"
}

// call is the call of the tool.
func (w wish) call() agent.ToolCall {
	var in any
	switch w.tool {
	case "search":
		in = Query{w.about}
	case "calculator":
		in = Sum{w.about}
	default:
		title, _, _ := strings.Cut(strings.TrimSpace(w.about), "\n")
		in = Note{Title: shorten(title, 60), Text: strings.TrimSpace(w.about)}
	}
	arguments, err := json.Marshal(in)
	if err != nil { // strings always encode
		arguments = []byte("{}")
	}
	return agent.ToolCall{Name: w.tool, Arguments: arguments}
}
