package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/examples/corpus"
)

// builtIn is the model that needs no key: a few rules. It answers the same request always with the same words.
type builtIn struct {
	pace time.Duration // for a word of middle length; 0 = at once
}

const honest = "I am the small built-in model of this example: a few rules, no intelligence, and I need no key. "

// Describe implements agent.Described.
func (builtIn) Describe() (provider, model string) { return "built-in", "small built-in model" }

// Generate implements agent.Model.
func (m builtIn) Generate(ctx context.Context, req agent.Request,
	delta func(agent.Delta) error) (agent.Response, error) {
	text, calls := reply(req.Messages)
	out := agent.Response{Model: "small built-in model", Stop: agent.StopEnd,
		Usage: agent.Usage{Input: tokens(req.System)}}
	for _, message := range req.Messages {
		out.Usage.Input += tokens(message.Text())
	}
	said := ""
	for _, word := range pieces(text) {
		if req.MaxTokens > 0 && out.Usage.Output+tokens(word) > req.MaxTokens {
			out.Stop, calls = agent.StopLength, nil
			break
		}
		if err := m.pause(ctx, word); err != nil {
			return agent.Response{}, err
		}
		if err := delta(agent.Delta{Text: word}); err != nil {
			return agent.Response{}, err
		}
		said += word
		out.Usage.Output += tokens(word)
	}
	out.Message.Parts = agent.Text(said)
	for i, c := range calls {
		c.ID = fmt.Sprintf("call-%d-%d", len(req.Messages), i+1)
		out.Message.Calls = append(out.Message.Calls, c)
		out.Usage.Output += tokens(string(c.Arguments))
		out.Stop = agent.StopTools
	}
	return out, nil
}

// pause takes the time that a person needs to read a word, and longer behind a sentence.
func (m builtIn) pause(ctx context.Context, word string) error {
	if m.pace == 0 {
		return ctx.Err()
	}
	d := m.pace/2 + m.pace*time.Duration(min(utf8.RuneCountInString(word), 12))/12
	if strings.HasSuffix(word, ".") || strings.HasSuffix(word, "\n") {
		d += 4 * m.pace
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var piece = regexp.MustCompile(`\s*\S+\s*`)

// pieces cuts a text into words, with the spaces that follow them.
func pieces(text string) []string { return piece.FindAllString(text, -1) }

// tokens estimates how many tokens a text has.
func tokens(text string) int64 { return int64(utf8.RuneCountInString(text)+3) / 4 }

// reply decides what to say and which tools to call.
func reply(messages []agent.Message) (string, []agent.ToolCall) {
	asked, before := split(messages)
	if asked[len(asked)-1].Role == agent.ToolRole {
		return report(asked, before)
	}
	return begin(said(asked), before)
}

// split finds what the user asked last, with everything that came of it, and what was before that.
func split(messages []agent.Message) (asked, before []agent.Message) {
	at := len(messages) - 1
	for at > 0 && messages[at].Role != agent.User {
		at--
	}
	for at > 0 && messages[at-1].Role == agent.User {
		at--
	}
	return messages[at:], messages[:at]
}

// said joins what the user wrote.
func said(messages []agent.Message) string {
	var lines []string
	for _, m := range messages {
		if m.Role == agent.User {
			lines = append(lines, m.Text())
		}
	}
	return strings.Join(lines, "\n")
}

// begin answers the user.
func begin(text string, before []agent.Message) (string, []agent.ToolCall) {
	var doing []string
	var calls []agent.ToolCall
	wants := wishes(text)
	for _, w := range wants {
		if w.tool == "" || w.tool == "publish" && w.refers() && len(wants) > 1 {
			continue // published when the rest is known
		}
		if w.tool == "publish" && w.refers() {
			w.about = lastAnswer(before)
		}
		c := w.call()
		calls, doing = append(calls, c), append(doing, w.says())
	}
	if len(calls) > 0 {
		return "I will " + strings.Join(doing, ", and ") + ".", calls
	}
	if len(wants) > 0 && wants[0].story {
		return story(wants[0].about, len(before)), nil
	}
	return honest +
			"I can do four things. “Search for the white rabbit” looks into old books. “What is 12 * (3 + 4)?” is calculated. “Publish a note: …” asks for your approval " +
			"first. “Tell me about the sea” streams a longer text, so that there is time to kill the worker in the middle of it. Ask for two things with “and”, and both tools run at once.",
		nil
}

// report says what the tools have found, and publishes it if that was asked.
func report(asked, before []agent.Message) (string, []agent.ToolCall) {
	called := map[string]agent.ToolCall{}
	published := false
	last := 0
	for i, m := range asked {
		for _, c := range m.Calls {
			called[c.ID], last = c, i
			published = published || c.Name == "publish"
		}
	}
	var lines []string
	for _, m := range asked[last+1:] {
		if m.Role == agent.ToolRole {
			lines = append(lines, outcome(called[m.Call], m))
		}
	}
	text := strings.Join(lines, "\n\n")
	for _, w := range wishes(said(asked)) {
		if w.tool == "publish" && w.refers() && !published {
			w.about = text
			return text + "\n\nI will publish this, if you approve.", []agent.ToolCall{w.call()}
		}
	}
	return text, nil
}

// outcome puts the result of a tool into words.
func outcome(c agent.ToolCall, result agent.Message) string {
	var args struct{ Query, Expression string }
	_ = json.Unmarshal(c.Arguments, &args)
	switch {
	case result.Failed && c.Name == "publish":
		return "I did not publish it: " + strings.TrimPrefix(result.Text(), "the call was not made: ") + "."
	case result.Failed:
		return "The tool " + c.Name + " failed: " + result.Text() + "."
	case c.Name == "calculator":
		return args.Expression + " = " + result.Text() + "."
	case c.Name == "publish":
		return "It is " + result.Text() + ", thank you."
	}
	var found Found
	if err := json.Unmarshal([]byte(result.Text()), &found); err != nil || len(found.Passages) == 0 {
		return "Nothing in the books has “" + args.Query + "”."
	}
	best := found.Passages[0]
	return fmt.Sprintf("“%s” is in %d passages. The best one is in %s: “%s”", args.Query, found.Found, best.Book,
		best.Text)
}

// lastAnswer is what the model said last.
func lastAnswer(messages []agent.Message) string {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == agent.Assistant && messages[i].Text() != "" {
			return messages[i].Text()
		}
	}
	return "There is no answer yet."
}

// story is a longer text about something: passages of the books.
func story(about string, turn int) string {
	found, err := search(about)
	if err == nil && len(found.Passages) > 0 {
		text := "This is what the old books say about " + about + "."
		for _, p := range found.Passages {
			text += "\n\nFrom " + p.Book + ": " + p.Text
		}
		return text
	}
	texts, err := corpus.Texts()
	if err != nil || len(texts) == 0 {
		return "The books are not there."
	}
	text := texts[turn%len(texts)]
	passage := text.Paragraphs[turn%len(text.Paragraphs)]
	return "The old books have nothing about that, so this is from " + text.Name + ".\n\n" +
		shorten(strings.Join(strings.Fields(passage), " "), 900)
}
