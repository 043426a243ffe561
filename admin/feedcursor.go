package admin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// FeedCursor is a place in the feeds of all partitions. Its text form (about 25 bytes a partition) can be stored and read
// back with [ParseFeedCursor]. The zero value is no place.
type FeedCursor struct{ at []feedPlace }

// feedPlace is the last entry that was consumed of one partition: the zero place is before the first that ever was. Without an id,
// it is before the oldest that is kept, and number is that of the entry in front of it.
type feedPlace struct {
	id     engine.StreamID
	number uint64
}

const feedCursorVersion = "f1"

func (c FeedCursor) clone() FeedCursor { return FeedCursor{slices.Clone(c.at)} }

// IsZero reports whether the cursor is no place.
func (c FeedCursor) IsZero() bool { return len(c.at) == 0 }

// String is the text form; "" for the zero cursor.
func (c FeedCursor) String() string {
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

// MarshalText is [FeedCursor.String].
func (c FeedCursor) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText is [ParseFeedCursor].
func (c *FeedCursor) UnmarshalText(text []byte) (err error) {
	*c, err = ParseFeedCursor(string(text))
	return err
}

// ParseFeedCursor reads what [FeedCursor.String] wrote; anything else is flowfabric.ErrInvalidInput.
func ParseFeedCursor(text string) (FeedCursor, error) {
	if text == "" {
		return FeedCursor{}, nil
	}
	words := strings.Split(text, " ")
	if words[0] != feedCursorVersion || len(words) < 2 {
		return FeedCursor{}, fmt.Errorf("%w: feed cursor does not begin with %q and a place", flowfabric.ErrInvalidInput, feedCursorVersion)
	}
	c := FeedCursor{at: make([]feedPlace, len(words)-1)}
	for i, word := range words[1:] {
		if word == "" {
			continue
		}
		id, number, _ := strings.Cut(word, ".")
		parsed, err := engine.ParseStreamID(id)
		if err != nil {
			return FeedCursor{}, fmt.Errorf("feed cursor: place %d: %w", i, err)
		}
		n, err := strconv.ParseUint(number, 10, 63)
		if err != nil {
			return FeedCursor{}, fmt.Errorf("feed cursor: %w: place %d: %q is no number of an entry", flowfabric.ErrInvalidInput, i, number)
		}
		c.at[i] = feedPlace{parsed, n}
	}
	return c, nil
}
