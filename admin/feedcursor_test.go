package admin

import "testing"

// A cursor that is read says the same when it is written.
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
