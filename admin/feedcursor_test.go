package admin

import (
	"errors"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

func TestFeedCursorRefuses(t *testing.T) {
	for _, text := range []string{"f2 1-1.1", "f1", "1-1.1", "f1 1-1", "f1 x", "f1 1-1.-1", "f1 1-1.1x", "t1 1-1.1"} {
		if got, err := parseFeedCursor(text); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func FuzzFeedCursor(f *testing.F) {
	f.Add("f1 1-1.1  5-0.7")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseFeedCursor(text)
		if err != nil {
			return
		}
		again, err := parseFeedCursor(c.String())
		if err != nil || again.String() != c.String() {
			t.Errorf("%q reads as %q, then %v", text, c, err)
		}
	})
}
