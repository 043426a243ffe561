package suspend

import (
	"encoding/json"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

func TestATokenReadsBack(t *testing.T) {
	token := aToken(t)
	again, err := ParseToken(token.Reveal())
	if err != nil || again != token || again.Digest() != token.Digest() || again.Execution() != token.Execution() ||
		again.Waitpoint() != token.Waitpoint() {
		t.Errorf("%v, %v", again, err)
	}
	if len(token.Digest()) != 64 || strings.Contains(token.Reveal(), token.Digest()) {
		t.Error("the digest is not a digest")
	}
	var zero Token
	if !zero.IsZero() || token.IsZero() || zero.Reveal() != "" || zero.String() != "<REDACTED:malformed>" ||
		zero == token {
		t.Errorf("the zero token: %q, %s", zero.Reveal(), zero)
	}
}

// The same for the text that people hold.
func TestTokensThatAreNone(t *testing.T) {
	good := aToken(t).Reveal()
	head, secret := good[:strings.LastIndex(good, ".")+1], good[strings.LastIndex(good, ".")+1:]
	mac := strings.TrimPrefix(secret, "k1:")
	for what, text := range map[string]string{
		"no dots":        "k1" + mac,
		"three parts":    strings.SplitN(good, ".", 2)[1],
		"no colon":       head + "k1" + mac,
		":x":             head + ":" + mac,
		"k:":             head + "k1:",
		"short":          head + secret[:len(secret)-1],
		"long":           good + "0",
		"upper case":     head + "k1:" + strings.Repeat("A", 64),
		"not hex":        head + "k1:" + strings.Repeat("g", 64),
		"kid of 33":      head + strings.Repeat("k", 33) + ":" + mac,
		"kid with space": head + "k 1:" + mac,
		"two colons":     head + "k1:k1:" + mac,
		"partition":      "01" + good[1:],
		"partition +":    "+" + good,
		"partition big":  "65536" + good[1:],
		"execution":      strings.Replace(good, "-", "", 1),
		"braces":         "1.{" + good[2:38] + "}" + good[38:],
		"space":          " " + good,
		"newline":        good + "\n",
		"waitpoint":      strings.Replace(good, aToken(t).Waitpoint().String(), "", 1) + ".",
	} {
		_, err := ParseToken(text)
		if err != flowfabric.ErrInvalidToken {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := ParseToken(""); err != denied.NoToken {
		t.Errorf("empty: %v", err)
	}
}

// A token that was marshalled has lost its secret; reading it back must not look like a success.
func TestMarshalledTokensDoNotReadBack(t *testing.T) {
	text, err := json.Marshal(struct{ T Token }{aToken(t)})
	if err != nil || string(text) != `{"T":"k1:\u003cREDACTED:len=64\u003e"}` {
		t.Errorf("%s, %v", text, err)
	}
	var back struct{ T Token }
	if err := json.Unmarshal(text, &back); err == nil || !back.T.IsZero() {
		t.Errorf("%v, %v", back, err)
	}
}
