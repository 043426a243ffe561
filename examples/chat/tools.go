package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/examples/corpus"
)

// Query is what search is called with.
type Query struct {
	Query string `json:"query" jsonschema:"words to look for"`
}

// Found is what search answers.
type Found struct {
	Found    int       `json:"found"` // passages with one of the words
	Passages []Passage `json:"passages"`
}

// Passage is a paragraph of a book.
type Passage struct {
	Book string `json:"book"`
	Text string `json:"text"`
}

// Sum is what calculator is called with.
type Sum struct {
	Expression string `json:"expression" jsonschema:"for example (3 + 4) * 12"`
}

// Note is what publish is called with.
type Note struct {
	Title string `json:"title" jsonschema:"one line"`
	Text  string `json:"text" jsonschema:"plain text"`
}

// newTools are the tools of the conversation. What is published goes into a directory.
func newTools(published string) []agent.Tool {
	return []agent.Tool{
		agent.NewTool("search", "Finds passages in the bundled old books.",
			func(_ context.Context, in Query) (Found, error) { return search(in.Query) }),
		agent.NewTool("calculator", "Works out an arithmetic expression: numbers, + - * / % and parentheses.",
			func(_ context.Context, in Sum) (string, error) { return calculate(in.Expression) }),
		agent.NewTool("publish", "Publishes a note, where everybody can read it. A person approves it first.",
			func(ctx context.Context, in Note) (string, error) {
				call, ok := agent.CallFrom(ctx)
				if !ok {
					return "", errors.New("publish works for an agent only")
				}
				return publish(published, call.Key, in)
			}, agent.Needs(func(Note) agent.Decision { return agent.Decision{Ask: true} })),
	}
}

// search ranks the paragraphs of the corpus by how many of the words they have.
func search(query string) (Found, error) {
	texts, err := corpus.Texts()
	if err != nil {
		return Found{}, err
	}
	words := wordsOf(query)
	if len(words) == 0 {
		return Found{}, errors.New("the query has no word of three letters")
	}
	type hit struct {
		Passage
		score int
	}
	var hits []hit
	for _, text := range texts {
		for _, p := range text.Paragraphs {
			if score := score(p, words); score > 0 {
				hits = append(hits, hit{Passage{text.Name, shorten(strings.Join(strings.Fields(p), " "), 600)}, score})
			}
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	out := Found{Found: len(hits), Passages: []Passage{}}
	for _, h := range hits[:min(3, len(hits))] {
		out.Passages = append(out.Passages, h.Passage)
	}
	return out, nil
}

// wordsOf are the words of a text that tell something.
func wordsOf(text string) (out []string) {
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if len([]rune(word)) > 2 &&
			!slices.Contains([]string{"the", "and", "for", "about", "with", "from", "texts", "books"}, word) {
			out = append(out, word)
		}
	}
	return out
}

// score counts the words that a paragraph has; several times is worth a little more.
func score(paragraph string, words []string) (n int) {
	low := strings.ToLower(paragraph)
	for _, word := range words {
		if times := strings.Count(low, word); times > 0 {
			n += 10 + min(times, 9)
		}
	}
	return n
}

// shorten cuts a text behind a word.
func shorten(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	cut := string(runes[:limit])
	if at := strings.LastIndex(cut, " "); at > 0 {
		cut = cut[:at]
	}
	return cut + " …"
}

// publish writes a note. Its name follows from the key of the call, so a call that is repeated after a crash writes
// the same file again: nothing is published twice.
func publish(dir, key string, n Note) (string, error) {
	sum := sha256.Sum256([]byte(key))
	name := hex.EncodeToString(sum[:6]) + ".txt"
	draft, err := os.CreateTemp(dir, "draft-")
	if err != nil {
		return "", fmt.Errorf("publish: %w", err)
	}
	_, err = fmt.Fprintf(draft, "%s\n\n%s\n", n.Title, n.Text)
	err = errors.Join(err, draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("publish: %w", err), os.Remove(draft.Name()))
	}
	return "published as /published/" + name, nil
}
