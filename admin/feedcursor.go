package admin

import (
	"fmt"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/stream"
)

// feedCursor is a place in the feeds of all partitions. Users see its text form, which [parseFeedCursor] reads back.
// The zero value is no place.
type feedCursor struct{ at []feedPlace }

// feedPlace is the last entry that was consumed of one partition: the zero place is before the first that ever was.
// Without an id, it is before the oldest that is kept, and number is that of the entry in front of it.
type feedPlace struct {
	id     stream.Cursor
	number uint64
}

const feedCursorVersion = "f1"

// String is the text form; "" for the zero cursor.
func (c feedCursor) String() string {
	if len(c.at) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(feedCursorVersion)
	for _, p := range c.at {
		b.WriteByte(' ')
		if p != (feedPlace{}) {
			fmt.Fprintf(&b, "%s.%d", p.id, p.number)
		}
	}
	return b.String()
}

// parseFeedCursor reads what [feedCursor.String] wrote; anything else is flowfabric.ErrInvalidInput.
func parseFeedCursor(text string) (feedCursor, error) {
	if text == "" {
		return feedCursor{}, nil
	}
	words := strings.Split(text, " ")
	if words[0] != feedCursorVersion || len(words) < 2 {
		return feedCursor{}, fmt.Errorf("%w: feed cursor does not begin with %q and a place",
			flowfabric.ErrInvalidInput, feedCursorVersion)
	}
	c := feedCursor{at: make([]feedPlace, len(words)-1)}
	for i, word := range words[1:] {
		if word == "" {
			continue
		}
		id, number, _ := strings.Cut(word, ".")
		parsed, err := engine.ParseStreamID(id)
		if err != nil {
			return feedCursor{}, fmt.Errorf("feed cursor: place %d: %w", i, err)
		}
		n, err := strconv.ParseUint(number, 10, 63)
		if err != nil {
			return feedCursor{}, fmt.Errorf("feed cursor: %w: place %d: %q is no number of an entry",
				flowfabric.ErrInvalidInput, i, number)
		}
		c.at[i] = feedPlace{parsed, n}
	}
	return c, nil
}
