package main

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/flowfabric/flowfabric-go/examples/corpus"
)

// Provider stands for a service with a language model behind it. This one answers out of a book.
type Provider struct {
	Name   string
	Book   string // of the corpus
	Slow   int    // a token takes so many times the pace of the demo
	NapsAt int    // the token before which it stalls; 0 none
	Nap    int    // for so many times the pace
}

// providers are who races. Nobody can know beforehand that the quickest one stalls today: that is what a race is for.
var providers = []Provider{
	{Name: "hare", Book: "alice", Slow: 1, NapsAt: 24, Nap: 10_000},
	{Name: "tortoise", Book: "woods", Slow: 2},
	{Name: "snail", Book: "species", Slow: 7},
}

func providerNamed(name string) (Provider, error) {
	for _, p := range providers {
		if p.Name == name {
			return p, nil
		}
	}
	return Provider{}, fmt.Errorf("there is no provider %q", name)
}

const maxTokens = 400 // the shortest book has some more

// Stream emits an answer token by token: the paragraph of the book that has most of the question's words, and what
// follows it.
func (p Provider) Stream(ctx context.Context, q Question, pace time.Duration, emit func(token string) error) error {
	said, err := p.passage(q.Text)
	if err != nil {
		return err
	}
	for i, token := range said[:min(max(q.Tokens, 1), len(said))] {
		pause := pace * time.Duration(p.Slow)
		if i+1 == p.NapsAt {
			pause = pace * time.Duration(p.Nap)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := emit(token); err != nil {
			return err
		}
	}
	return nil
}

// passage is the book from its best paragraph on, round to where it began, word by word.
func (p Provider) passage(question string) (tokens []string, err error) {
	texts, err := corpus.Texts()
	if err != nil {
		return nil, fmt.Errorf("read corpus: %w", err)
	}
	for _, text := range texts {
		if text.Name != p.Book {
			continue
		}
		best, most := 0, 0
		for i, paragraph := range text.Paragraphs {
			if n := common(question, paragraph); n > most {
				best, most = i, n
			}
		}
		for i := range text.Paragraphs {
			for _, word := range strings.Fields(text.Paragraphs[(best+i)%len(text.Paragraphs)]) {
				if len(tokens) > 0 {
					word = " " + word
				}
				tokens = append(tokens, word)
			}
		}
		return tokens, nil
	}
	return nil, fmt.Errorf("the corpus has no %q", p.Book)
}

// common counts the words of the question that the paragraph has too, the short ones apart.
func common(question, paragraph string) (n int) {
	has := map[string]bool{}
	for _, word := range words(paragraph) {
		has[word] = true
	}
	for _, word := range words(question) {
		if len(word) > 3 && has[word] {
			n++
		}
	}
	return n
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) })
}
