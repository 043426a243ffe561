package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric-go/examples/corpus"
)

// split cuts the corpus into parts of about as many words each.
func split() ([]string, error) {
	texts, err := corpus.Texts()
	if err != nil {
		return nil, fmt.Errorf("read corpus: %w", err)
	}
	var words []string
	for _, text := range texts {
		for _, paragraph := range text.Paragraphs {
			words = append(words, strings.Fields(paragraph)...)
		}
	}
	cut := make([]string, parts)
	for i := range cut {
		cut[i] = strings.Join(words[i*len(words)/parts:(i+1)*len(words)/parts], " ")
	}
	return cut, nil
}

// mostFrequent ranks the words that are long enough, the most frequent first.
func mostFrequent(times map[string]int, in Query) (top []Frequency) {
	maps.DeleteFunc(times, func(word string, _ int) bool { return utf8.RuneCountInString(word) < in.Letters })
	for word, n := range times {
		top = append(top, Frequency{word, n})
	}
	slices.SortFunc(top, func(a, b Frequency) int {
		return cmp.Or(cmp.Compare(b.Times, a.Times), cmp.Compare(a.Word, b.Word))
	})
	return top[:min(in.Top, len(top))]
}
