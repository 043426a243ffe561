package tokenkeys

import (
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/suspend"
	"go.uber.org/goleak"

	"strings"
	"testing"
)

// Secrets of test keys, 32 bytes each.
var (
	secretA = strings.Repeat("a1", 32)
	secretB = strings.Repeat("b2", 32)
)

func keyring(t testing.TB, text string) *Keyring {
	t.Helper()
	k, err := Parse(text)
	must.No(t, err)
	return k
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// aToken is a token of partition 1 for the key "approve".
func aToken(t testing.TB) suspend.Token {
	t.Helper()
	_, token, err := keyring(t, "k1:"+secretA).Mint(mint.ID(1), "approve")
	must.No(t, err)
	return token
}
