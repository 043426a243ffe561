package approval

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/suspend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// aToken is a token of partition 1, of a waitpoint and with a MAC of its own.
func aToken(t testing.TB) suspend.Token {
	t.Helper()
	var mac [32]byte
	_, _ = rand.Read(mac[:])
	token, err := suspend.ParseToken(fmt.Sprintf("1.%s.%s.k1:%x", ids.UUID(mint.ID(1)), mint.UUID(), mac))
	must.No(t, err)
	return token
}

// hides is what no output may contain: the MAC and the digest.
func hides(t *testing.T, what, output string, token suspend.Token) {
	t.Helper()
	_, mac, _ := strings.Cut(token.Reveal(), ":")
	for name, secret := range map[string]string{"MAC": mac, "digest": token.Digest(),
		"MAC in hex": hex.EncodeToString([]byte(mac))} {
		if strings.Contains(strings.ToLower(output), secret) {
			t.Errorf("%s shows the %s: %s", what, name, output)
		}
	}
}

// secret is the part of a token that nobody but its holder has.
func secret(token suspend.Token) string {
	text := token.Reveal()
	return text[strings.LastIndex(text, ".")+1:]
}
