package suspend

import (
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

// What is accepted is the one text of its token; what is refused is not repeated.
func FuzzParseToken(f *testing.F) {
	good := aToken(f).Reveal()
	for _, seed := range []string{"", good, good[1:], strings.ToUpper(good), strings.Replace(good, ":", "", 1),
		"65536" + good[1:], "0" + good, good + "\x00", "1.2.3.k:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		switch {
		case err == nil && token.Reveal() != text:
			t.Errorf("%q reads as %q", text, token.Reveal())
		case err == nil && (token.IsZero() ||
			token.Waitpoint() == [16]byte{} && !strings.Contains(text, "00000000-0000-0000-0000-000000000000")):
			t.Errorf("%q reads as nothing", text)
		case err != nil && err != flowfabric.ErrInvalidToken && err != denied.NoToken:
			t.Errorf("%q: %v", text, err)
		}
		if again, err2 := ParseToken(token.Reveal()); err == nil && (err2 != nil || again != token) {
			t.Errorf("%q does not read back: %v", text, err2)
		}
	})
}
