// Package sealed encrypts what programs store, on its way to the store and back. What is sealed says so by how it
// begins, so that a process without the key knows it as well.
package sealed

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// mark begins what is sealed. Neither JSON nor any other UTF-8 text begins so.
const mark = "\xffFFS1"

// textMark begins what is sealed and stored as a text; base64 for URLs follows.
const textMark = "sealed:1:"

// Room is how many bytes a cipher may add, mark included.
const Room = 256

// Hidden stands for a text that this process cannot read.
const Hidden = "(encrypted)"

// lost stands for a text that could not be sealed.
const lost = "(left out: it could not be encrypted)"

var (
	// ErrNoKey: this process has no key, or not the one it takes; another may.
	ErrNoKey = errors.New("this process does not have the key")
	// ErrDamaged: the key is there, and does not fit: the bytes were changed, cut short, or sealed with another secret
	// under the same key id.
	ErrDamaged = errors.New("the bytes are not as they were encrypted, or another secret has the same key id")
)

// Cipher is flowfabric.Cipher.
type Cipher interface {
	Seal(plain []byte) ([]byte, error)
	Open(sealed []byte) ([]byte, error)
}

// Error is what went wrong with a cipher.
type Error struct {
	verb string
	err  error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.verb, e.err) }
func (e *Error) Unwrap() error { return e.err }

// Final tells that the same bytes will not open tomorrow either.
func (e *Error) Final() bool { return errors.Is(e.err, ErrDamaged) }

// Box seals and opens. The nil box has no cipher: it seals nothing, and opens only what is not sealed. Safe for
// concurrent use, as its cipher must be.
type Box struct{ cipher Cipher }

// New is a box with a cipher; nil for none.
func New(c Cipher) *Box {
	if c == nil {
		return nil
	}
	return &Box{c}
}

// Is tells whether data is sealed.
func Is(data []byte) bool { return len(data) >= len(mark) && string(data[:len(mark)]) == mark }

// Room is how many bytes sealing adds at most.
func (b *Box) Room() int {
	if b == nil {
		return 0
	}
	return Room
}

// InText tells whether a text has something in it that OpenText would open.
func InText(text string) bool { return strings.Contains(text, textMark) }

// Seal returns plain sealed. Nothing stays nothing, and what is sealed stays as it is. The error is an [*Error].
func (b *Box) Seal(plain []byte) ([]byte, error) {
	if b == nil || len(plain) == 0 || Is(plain) {
		return plain, nil
	}
	own, err := b.cipher.Seal(plain)
	if err == nil && len(own)+len(mark) > len(plain)+Room {
		err = fmt.Errorf("the cipher adds %d bytes, want at most %d", len(own)-len(plain), Room-len(mark))
	}
	if err != nil {
		return nil, &Error{"encrypt", err}
	}
	return append(append(make([]byte, 0, len(mark)+len(own)), mark...), own...), nil
}

// Open returns what was sealed; what is not sealed as it is. The error is an [*Error].
func (b *Box) Open(data []byte) ([]byte, error) {
	if !Is(data) {
		return data, nil
	}
	if b == nil {
		return nil, &Error{"decrypt", ErrNoKey}
	}
	plain, err := b.cipher.Open(data[len(mark):])
	if err != nil {
		return nil, &Error{"decrypt", err}
	}
	return plain, nil
}

// Shown is Open, but what cannot be opened stays as it is: who needs it asks Open why.
func (b *Box) Shown(data []byte) []byte {
	if b == nil || !Is(data) {
		return data
	}
	plain, err := b.Open(data)
	if err != nil {
		return data
	}
	return plain
}

// Text is a payload for people: of one that is sealed only how long it is.
func Text(data []byte) string {
	if !Is(data) {
		return string(data)
	}
	return "(encrypted, " + strconv.Itoa(len(data)) + " bytes)"
}

// SealText is Seal for a text of at most so many bytes as it is stored: one that would be longer is cut first. It has
// no error, for a reason must not keep what it is the reason of from being stored: what cannot be sealed is left out.
func (b *Box) SealText(text string, most int) string {
	if b == nil || text == "" {
		return text
	}
	if strings.HasPrefix(text, textMark) && b.OpenText(text) != text {
		return text
	}
	for plain := text; plain != ""; {
		own, err := b.cipher.Seal([]byte(plain))
		if err != nil {
			break
		}
		out := textMark + base64.RawURLEncoding.EncodeToString(own)
		if len(out) <= most {
			return out
		}
		plain = cut(plain, len(plain)-max(1, (len(out)-most)*3/4))
	}
	return cut(lost, most)
}

// cut is a text of at most so many bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	most = max(most, 0)
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// OpenText opens what is sealed in a text, wherever it stands; what cannot be opened is [Hidden].
func (b *Box) OpenText(text string) string {
	at := strings.Index(text, textMark)
	if at < 0 {
		return text
	}
	var out strings.Builder
	for at >= 0 {
		out.WriteString(text[:at])
		text = text[at+len(textMark):]
		end := strings.IndexFunc(text, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
		})
		if end < 0 {
			end = len(text)
		}
		out.WriteString(b.openText(text[:end]))
		text = text[end:]
		at = strings.Index(text, textMark)
	}
	return out.String() + text
}

func (b *Box) openText(coded string) string {
	own, err := base64.RawURLEncoding.DecodeString(coded)
	if err != nil || b == nil {
		return Hidden
	}
	plain, err := b.cipher.Open(own)
	if err != nil {
		return Hidden
	}
	return string(plain)
}
