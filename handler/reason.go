package handler

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// maxCauses bounds the walk through an error's causes; an error may hold itself.
const maxCauses = 32

// errorText is the text stored with a failed attempt: the error's message, followed by those wrapped causes that
// the message does not already contain, joined by ": "; valid UTF-8, cut to 1 KiB at a rune boundary.
func errorText(err error) string {
	text := fmt.Sprint(err) // like err.Error(), but survives an Error method that panics
	pending := []error{err}
	for seen := 0; len(pending) > 0 && seen < maxCauses && len(text) < limits.MaxReason; seen++ {
		next := pending[0]
		pending = pending[1:]
		if message := fmt.Sprint(next); !strings.Contains(text, message) {
			text += ": " + message
		}
		switch e := next.(type) {
		case *OverBudgetError: // says more than what it wraps
		case interface{ Unwrap() error }:
			if cause := e.Unwrap(); cause != nil {
				pending = append(pending, cause)
			}
		case interface{ Unwrap() []error }:
			for _, cause := range e.Unwrap() {
				if cause != nil {
					pending = append(pending, cause)
				}
			}
		}
	}
	return cut(text)
}

// cut makes text valid UTF-8 of at most limits.MaxReason bytes.
func cut(text string) string {
	const limit = limits.MaxReason
	if len(text) > limit {
		end := limit
		for end > limit-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	if utf8.ValidString(text) {
		return text
	}
	return strings.ToValidUTF8(text, "?") // one byte for at least one, so it does not grow
}
