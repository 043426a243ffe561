// Package browsertoken makes and reads the tokens with which a page follows one thing, or takes part in it, without the
// secret of the application that made them. What a token is good for is in it, signed, and nothing is stored.
package browsertoken

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The bounds of a token.
const (
	MostName    = 64 // bytes of [Token].Name
	MostLife    = time.Hour
	DefaultLife = 5 * time.Minute
)

// Token is what one is good for. The zero value of each member but For is valid.
type Token struct {
	// For is the one thing that it opens, by whatever name the door knows it. It is not in the token: who reads one
	// says for what.
	For   string
	Until time.Time // to the second; from then on it is over
	// Maker is by what its maker is known, no secret, so that a token ends with the rights of its maker.
	Maker string
	// As is the role of the maker. "" for a token that only reads, whoever made it.
	As string
	// Name is the person at the page, as the maker says: for a trail, and no right follows from it.
	Name string
}

// Writes says that its bearer may change something.
func (t Token) Writes() bool { return t.As != "" }

// The errors of [Read].
var (
	ErrInvalid = errors.New("it is no token for this")
	ErrOver    = errors.New("the token is over")
)

// Mint writes a token, signed with key: "<unix seconds>.<maker>[.<role>.<name>].<mac>", where all but the first are in
// base64. It is fit for a query and for a header.
func Mint(key []byte, t Token) string {
	said := strconv.FormatInt(t.Until.Unix(), 10) + "." + encoding.EncodeToString([]byte(t.Maker))
	if t.Writes() {
		said += "." + encoding.EncodeToString([]byte(t.As)) + "." + encoding.EncodeToString([]byte(t.Name))
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("flowfabric stream token\n" + t.For + "\n" + said))
	return said + "." + encoding.EncodeToString(mac.Sum(nil))
}

// Read reads a token for one thing. What it was made of is made again and compared as a text, since others decode to
// the same bytes. Errors: ErrInvalid, also if it is for something else; ErrOver, of one that was good.
func Read(key []byte, text, what string, now time.Time) (Token, error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 && len(parts) != 5 {
		return Token{}, ErrInvalid
	}
	seconds, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return Token{}, ErrInvalid
	}
	t := Token{For: what, Until: time.Unix(seconds, 0)}
	for i, into := range []*string{&t.Maker, &t.As, &t.Name}[:len(parts)-2] {
		part, err := encoding.DecodeString(parts[i+1])
		if err != nil {
			return Token{}, ErrInvalid
		}
		*into = string(part)
	}
	switch {
	case !hmac.Equal([]byte(text), []byte(Mint(key, t))):
		return Token{}, ErrInvalid
	case !now.Before(t.Until):
		return Token{}, ErrOver
	}
	return t, nil
}

var encoding = base64.RawURLEncoding

// CheckLife says what is wrong with how long a token is to be good, in whole seconds; 0 is DefaultLife.
func CheckLife(seconds int64) (time.Duration, error) {
	if seconds == 0 {
		return DefaultLife, nil
	}
	if most := int64(MostLife / time.Second); seconds < 1 || seconds > most {
		return 0, fmt.Errorf("it is %d, want 1..%d", seconds, most)
	}
	return time.Duration(seconds) * time.Second, nil
}

// CheckName says what is wrong with the name of a person; "" is none.
func CheckName(name string) error {
	if len(name) > MostName || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return fmt.Errorf("it is %.80q, want at most %d bytes of printable text", name, MostName)
	}
	return nil
}
