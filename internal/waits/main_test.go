package waits_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Secrets of test keys, 32 bytes each.
var (
	secretA = strings.Repeat("a1", 32)
	secretB = strings.Repeat("b2", 32)
)

func keyring(t testing.TB, text string) *tokenkeys.Keyring {
	t.Helper()
	k, err := tokenkeys.Parse(text)
	must.No(t, err)
	return k
}
