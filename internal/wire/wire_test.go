package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// A slot of another form stops the reader, which then answers zero values and says where that was.
func TestReader(t *testing.T) {
	for want, read := range map[string]func(r *Reader){
		`slot 1 is "x", want a number`:   func(r *Reader) { r.Text(); r.Int() },
		`slot 1 is "x", want 0 or 1`:     func(r *Reader) { r.Text(); r.Flag() },
		`slot 0 is "", want "done"`:      func(r *Reader) { r.Fixed("done") },
		"slot 0: invalid UUID length: 0": func(r *Reader) { r.UUID() },
		`slot 3 of 3`: func(r *Reader) {
			for range 4 {
				r.Text()
			}
		},
		`slot 2 announces 7 elements, 0 slots are left`: func(r *Reader) {
			r.Text()
			r.Text()
			r.Count(1)
		},
		`slot 2 is "99999999999999999999", want a number`:           nil,
		`slot 0 is "` + strings.Repeat("y", 40) + `…", want "done"`: nil,
	} {
		slots := []string{"", "x", "7"}
		if read == nil {
			slots = []string{strings.Repeat("y", 50), "", "99999999999999999999"}
			read = func(r *Reader) { r.Fixed("done") }
			if strings.HasPrefix(want, "slot 2") {
				read = func(r *Reader) { r.Text(); r.Text(); r.Int() }
			}
		}
		r := NewReader(Texts(slots), 0)
		read(&r)
		if r.Err == nil || r.Err.Error() != want {
			t.Errorf("%v, want %s", r.Err, want)
		}
		if r.Int() != 0 || r.Text() != "" || r.Flag() || !r.Instant().IsZero() || r.Count(1) != 0 || r.More() ||
			r.UUID() != uuid.Nil || r.Millis() != 0 || len(r.Pairs()) > 0 || r.Err.Error() != want {
			t.Errorf("it goes on behind %v", r.Err)
		}
	}
	r := NewReader(Texts{"", "", "0", "1500", "1", "a", "b", "rest"}, 0)
	if r.UUIDOr0() != uuid.Nil || !r.InstantOr0().IsZero() || !r.Instant().IsZero() ||
		r.Millis() != 1500*time.Millisecond || r.Pairs()["a"] != "b" || r.Left() != 1 ||
		r.Text() != "rest" || r.At() != 7 || r.More() || r.Err != nil {
		t.Errorf("%+v", r)
	}
}
