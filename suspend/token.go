package suspend

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"unique"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// Token is the right to signal one waitpoint. Whatever prints, logs or marshals it gets a redacted form; [Token.Reveal]
// gives the text to mail, and [ParseToken] reads it. A token is not stored: handler.Task.Pending makes the same one
// again in every run. The zero value opens nothing. Comparable; safe for concurrent use.
type Token struct {
	execution flowfabric.ExecutionID
	waitpoint flowfabric.UUID
	// "<kid>:<64 hex>". Printers go past methods where a token is in somebody's unexported field; behind a handle
	// they find an address.
	secret unique.Handle[string]
}

func newToken(execution flowfabric.ExecutionID, waitpoint flowfabric.UUID, secret string) Token {
	return Token{execution, waitpoint, unique.Make(secret)}
}

// text is the secret part, "" of the zero value.
func (t Token) text() string {
	if t.IsZero() {
		return ""
	}
	return t.secret.Value()
}

// macDigits is how long the MAC of a token is in hex.
const macDigits = 2 * sha256.Size

// ParseToken reads what [Token.Reveal] gave. flowfabric.ErrInvalidToken for an empty text, ErrInvalidToken for one
// that no token has; neither error contains the text.
func ParseToken(text string) (Token, error) {
	if text == "" {
		return Token{}, denied.NoToken
	}
	parts := strings.SplitN(text, ".", 4)
	if len(parts) != 4 {
		return Token{}, flowfabric.ErrInvalidToken
	}
	partition, err1 := strconv.ParseUint(parts[0], 10, 16)
	execution, err2 := ids.ParseUUID(parts[1])
	waitpoint, err3 := ids.ParseUUID(parts[2])
	kid, mac, ok := strings.Cut(parts[3], ":")
	if err1 != nil || err2 != nil || err3 != nil || !ok || !waitwords.ValidKid(kid) || len(mac) != macDigits ||
		!lowerHex(mac) || strconv.FormatUint(partition, 10) != parts[0] {
		return Token{}, flowfabric.ErrInvalidToken
	}
	return newToken(mint.Join(uint16(partition), execution), flowfabric.UUID(waitpoint), parts[3]), nil
}

func lowerHex(s string) bool {
	return strings.Trim(s, "0123456789abcdef") == ""
}

// Reveal is the text of the token, for a mail, a header or a body; never for a log. It is
// "<partition>.<execution>.<waitpoint>.<kid>:<64 hex>", safe in a URL, where only links for package approval should
// carry it.
func (t Token) Reveal() string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatUint(uint64(t.execution.Partition()), 10) + "." + ids.UUID(t.execution).String() + "." +
		t.waitpoint.String() + "." + t.text()
}

// Execution returns the execution of the waitpoint that the token opens.
func (t Token) Execution() flowfabric.ExecutionID { return t.execution }

// Waitpoint is the id of the waitpoint.
func (t Token) Waitpoint() flowfabric.UUID { return t.waitpoint }

// IsZero reports a token that opens nothing.
func (t Token) IsZero() bool { return t.secret == unique.Handle[string]{} }

// Digest returns the part that a sender presents: SHA-256 of the secret part in hex. It opens the waitpoint just as the
// token does.
func (t Token) Digest() string {
	sum := sha256.Sum256([]byte(t.text()))
	return hex.EncodeToString(sum[:])
}

// redacted is what every printer shows.
func (t Token) redacted() string {
	kid, mac, ok := strings.Cut(t.text(), ":")
	if !ok {
		return "<REDACTED:malformed>"
	}
	return fmt.Sprintf("%s:<REDACTED:len=%d>", kid, len(mac))
}

// String implements fmt.Stringer without the secret.
func (t Token) String() string { return t.redacted() }

// GoString implements fmt.GoStringer without the secret.
func (t Token) GoString() string { return t.redacted() }

// Format implements fmt.Formatter without the secret, whatever the verb.
func (t Token) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(t.redacted())) }

// LogValue implements slog.LogValuer without the secret.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.redacted()) }

// MarshalText implements encoding.TextMarshaler without the secret, which also covers JSON.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.redacted()), nil }

// UnmarshalText refuses: a marshalled token has lost its secret, which nobody should find out later.
func (t *Token) UnmarshalText([]byte) error {
	return errors.New("suspend: a token does not survive marshalling; keep Token.Reveal, or ask Pending for it again")
}

// EnvTokenKeys is the environment variable that workers and clients read token keys from by default.
const EnvTokenKeys = "FLOWFABRIC_TOKEN_KEYS"
