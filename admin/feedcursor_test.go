package admin

import (
	"encoding/base64"
	"errors"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

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

// Whatever stands behind a good checksum is a place of this store, or refused. A place that is read says the same when
// it is written.
func FuzzCursor(f *testing.F) {
	for _, seed := range []string{"0\x1f1\x1fq:1\x1f5\x1fa", "9999\x1f1\x1f\x1f5\x1f", "0\x1f4\x1f\x1f5\x1f", ""} {
		f.Add(seed)
	}
	const mark, partitions = "mark", 4
	f.Fuzz(func(t *testing.T, body string) {
		cursor := cursorVersion + base64.RawURLEncoding.EncodeToString([]byte(checksum(mark, body)+body))
		for _, text := range []string{cursor, body} {
			p, err := parsePlace(text, mark, partitions)
			if err != nil {
				if !errors.Is(err, flowfabric.ErrInvalidInput) {
					t.Errorf("%q: %v", text, err)
				}
				continue
			}
			if again, err := parsePlace(p.text(mark), mark, partitions); err != nil || again != p ||
				p.index >= len(indexes) || p.partition >= partitions {
				t.Errorf("%q reads as %+v, and that as %+v, %v", text, p, again, err)
			}
		}
	})
}
