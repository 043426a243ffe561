package suspend

import (
	"crypto/rand"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// aToken is a token of partition 1, of a waitpoint and with a MAC of its own.
func aToken(t testing.TB) Token {
	t.Helper()
	var mac [32]byte
	_, _ = rand.Read(mac[:])
	token, err := ParseToken(fmt.Sprintf("1.%s.%s.k1:%x", ids.UUID(mint.ID(1)), mint.UUID(), mac))
	must.No(t, err)
	return token
}
