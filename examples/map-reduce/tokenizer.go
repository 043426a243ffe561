package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/flowfabric/flowfabric-go/handler"
)

// What goes wrong in this example, by the number of the part.
const (
	broken = 13 // is damaged and will never be counted
	stuck  = 37 // takes for ever
)

var flaky = []int{7, 21, 42} // fail at first

// The errors of the tokenizer.
var (
	errDamaged = errors.New("the text is damaged")
	errBusy    = errors.New("the tokenizer is busy")
)

// Tokenizer stands for a service that takes texts apart, with the faults that services have.
type Tokenizer struct {
	Pace time.Duration // how long a text takes
}

// Words returns the words of a part in lower case.
func (x Tokenizer) Words(ctx context.Context, p Part, attempt int) ([]string, error) {
	done := time.After(x.Pace)
	if p.Number == stuck {
		done = nil
	}
	select {
	case <-done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	switch {
	case p.Number == broken:
		return nil, handler.Permanent(errDamaged) // nothing to retry
	case attempt == 1 && slices.Contains(flaky, p.Number):
		return nil, errBusy // the policy retries
	}
	words := strings.FieldsFunc(strings.ToLower(p.Text), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' })
	for i, word := range words {
		words[i] = strings.Trim(word, "'") // quotation marks, not apostrophes
	}
	return slices.DeleteFunc(words, func(word string) bool { return word == "" }), nil
}
