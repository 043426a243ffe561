package suspend

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Secrets of test keys, 32 bytes each.
var (
	secretA = strings.Repeat("a1", 32)
	secretB = strings.Repeat("b2", 32)
)

func keyring(t testing.TB, text string) *Keyring {
	t.Helper()
	k, err := ParseKeyring(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// aToken is a token of partition 1 for the key "approve".
func aToken(t testing.TB) Token {
	t.Helper()
	_, token, err := keyring(t, "k1:"+secretA).mint(flowfabric.NewExecutionID(1), "approve")
	if err != nil {
		t.Fatal(err)
	}
	return token
}
