package main

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/agent"
)

// What a text asks for becomes calls of tools, several at once where it asks for several things.
func TestWishes(t *testing.T) {
	for text, want := range map[string]string{
		"Search for the white rabbit and what is 12 * (3 + 4)?": `search{"query":"the white rabbit"} calculator{"expression":"12 * (3 + 4)"}`,
		"search rabbit and queen":                               `search{"query":"rabbit and queen"}`,
		"What is 1,000 - 1?":                                    `calculator{"expression":"1000 - 1"}`,
		"look up whales; then 2+2":                              `search{"query":"whales"} calculator{"expression":"2+2"}`,
		"Publish a note: the shop is open. Come in.":            `publish{"title":"the shop is open. Come in.","text":"the shop is open. Come in."}`,
		"publish it":                   `publish{"title":"before","text":"before"}`,
		"search whales and publish it": `search{"query":"whales"}`, // published when the rest is known
		"hello":                        "",
		"":                             "",
		"Tell me about 3 ships":        "",
	} {
		_, calls := reply([]agent.Message{{Role: agent.Assistant, Parts: agent.Text("before")}, asks(text)})
		var got []string
		for _, c := range calls {
			got = append(got, c.Name+string(c.Arguments))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q calls %s, want %s", text, got, want)
		}
	}
}

// Without tools it says what it is, or tells what is in the books.
func TestAnswersWithoutTools(t *testing.T) {
	if text, _ := reply([]agent.Message{asks("hello")}); !strings.HasPrefix(text, honest) {
		t.Error(text)
	}
	for _, about := range []string{"the sea", "qqqqq"} {
		if text, calls := reply([]agent.Message{asks("Tell me about " + about)}); len(text) < 300 ||
			calls != nil {
			t.Errorf("%s: %q %v", about, text, calls)
		}
	}
}

// The answer has at most as many tokens as it may, the words that came make it up, and the same request has the same
// answer.
func TestGenerate(t *testing.T) {
	generate := func(limit int64) (agent.Response, string) {
		var streamed strings.Builder
		r, err := builtIn{}.Generate(t.Context(), agent.Request{
			Messages: []agent.Message{asks("Tell me about the sea")}, MaxTokens: limit},
			func(d agent.Delta) error { streamed.WriteString(d.Text); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return r, streamed.String()
	}
	whole, streamed := generate(0)
	again, _ := generate(0)
	if whole.Message.Text() != streamed || again.Message.Text() != streamed || whole.Stop != agent.StopEnd ||
		whole.Usage.Input == 0 {
		t.Errorf("%+v\n%s\n%s", whole, streamed, again.Message.Text())
	}
	if short, streamed := generate(20); short.Usage.Output > 20 || short.Stop != agent.StopLength ||
		short.Message.Text() != streamed || !strings.HasPrefix(whole.Message.Text(), streamed) {
		t.Errorf("%+v", short)
	}
}

func asks(text string) agent.Message { return agent.Message{Role: agent.User, Parts: agent.Text(text)} }
