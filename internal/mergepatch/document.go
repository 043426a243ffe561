// Package mergepatch is RFC 7396 on the summary documents of attempts: it parses deltas, merges them into a document,
// and composes two of them into one.
package mergepatch

import (
	"fmt"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// The words of a delta that stand for what a merge patch cannot say, see stream.MergeSummary.
const (
	Null = "__ff_null__"
	Text = "__ff_text__"
)

// Apply is what stream.MergeSummary says.
func Apply(document, delta []byte) ([]byte, error) {
	target, err := ParseDocument(document)
	if err != nil {
		return nil, fmt.Errorf("summary document: %w", err)
	}
	patch, err := Parse(delta)
	if err != nil {
		return nil, fmt.Errorf("summary delta: %w", err)
	}
	next, err := Merge(target, patch)
	if err != nil {
		return nil, err
	}
	return next.Append(make([]byte, 0, next.Size)), nil
}

// Empty is the document {}.
func Empty() *Value { return object(nil) }

// ParseDocument reads a document; an empty text is {}.
func ParseDocument(text []byte) (*Value, error) {
	if len(text) == 0 {
		return Empty(), nil
	}
	return Parse(text)
}

// Merge is the document with a patch applied. The error wraps [denied.SummaryTooLarge].
func Merge(document, patch *Value) (*Value, error) {
	next := merged(document, patch)
	if next.Size > limits.MaxSummary {
		return nil, fmt.Errorf("summary: %w: the document would have %d bytes, want at most %d",
			denied.SummaryTooLarge, next.Size, limits.MaxSummary)
	}
	return next, nil
}
