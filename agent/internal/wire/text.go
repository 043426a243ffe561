package wire

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// String is a JSON string as the bytes that it stands for. Unlike a string of encoding/json it may end within a
// character: invalid UTF-8 stays as it is, and one half of a surrogate pair becomes three bytes that [Text] joins
// with the other half. Null decodes as nil.
type String []byte

// UnmarshalJSON implements json.Unmarshaler.
func (s *String) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	if len(data) < 2 || data[0] != '"' || data[len(data)-1] != '"' {
		return errors.New("not a string")
	}
	text, err := unquote(data[1 : len(data)-1])
	*s = text
	return err
}

// plain are the escapes of one character.
var plain = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func unquote(in []byte) ([]byte, error) {
	out := make([]byte, 0, len(in))
	for {
		i := bytes.IndexByte(in, '\\')
		if i < 0 {
			return append(out, in...), nil
		}
		out = append(out, in[:i]...)
		if in = in[i+1:]; len(in) == 0 {
			return nil, errors.New("a string ends within an escape")
		}
		if c, ok := plain[in[0]]; ok {
			out, in = append(out, c), in[1:]
			continue
		}
		if in[0] != 'u' || len(in) < 5 {
			return nil, errors.New("a string has an unknown escape")
		}
		unit, err := strconv.ParseUint(string(in[1:5]), 16, 16)
		if err != nil {
			return nil, errors.New("a string has an unknown escape")
		}
		out, in = appendUnit(out, rune(unit)), in[5:]
	}
}

// appendUnit appends a UTF-16 code unit; a surrogate takes the three bytes that a character of its number would take.
func appendUnit(out []byte, unit rune) []byte {
	if utf16.IsSurrogate(unit) {
		return append(out, 0xE0|byte(unit>>12), 0x80|byte(unit>>6)&0x3F, 0x80|byte(unit)&0x3F)
	}
	return utf8.AppendRune(out, unit)
}

// Text joins pieces of text to whole characters. The zero value is ready to use. How the text was cut into pieces
// does not show in what comes out.
type Text struct {
	rest    []byte // the first bytes of a character, at most five
	invalid bool   // what came out last stands for invalid bytes
}

// Add returns the whole characters up to the end of piece. Invalid bytes that follow each other become one U+FFFD.
func (t *Text) Add(piece []byte) string {
	if len(t.rest) == 0 && len(piece) > 0 && utf8.Valid(piece) {
		t.invalid = false
		return string(piece)
	}
	in := append(t.rest, piece...)
	var out strings.Builder
	for len(in) > 0 {
		r, size := utf8.DecodeRune(in)
		if r == utf8.RuneError && size == 1 {
			r, size = decodePair(in)
		}
		if size == 0 {
			break
		}
		if r >= 0 {
			out.Write(utf8.AppendRune(nil, r))
		} else if !t.invalid {
			out.WriteRune(utf8.RuneError)
		}
		t.invalid = r < 0
		in = in[size:]
	}
	t.rest = append([]byte(nil), in...)
	return out.String()
}

// End returns U+FFFD if the text ended within a character, and "" otherwise.
func (t *Text) End() string {
	cut := len(t.rest) > 0 && !t.invalid
	*t = Text{}
	if cut {
		return string(utf8.RuneError)
	}
	return ""
}

// decodePair decodes what is no UTF-8: the character of two surrogates, or -1 for invalid bytes, and how many bytes
// that took. A size of 0 says that more bytes must tell.
func decodePair(in []byte) (rune, int) {
	high, size := surrogate(in, 0xA0)
	switch {
	case size == 0, high == 0 && !utf8.FullRune(in):
		return 0, 0
	case high == 0:
		return -1, 1
	}
	low, size := surrogate(in[3:], 0xB0)
	switch {
	case size == 0:
		return 0, 0
	case low == 0:
		return -1, 3
	}
	return utf16.DecodeRune(high, low), 6
}

// surrogate decodes a surrogate whose second byte is from..from+15. It is 0 if in starts otherwise, and the size is 0
// if in is too short to tell.
func surrogate(in []byte, from byte) (unit rune, size int) {
	if len(in) > 0 && in[0] != 0xED || len(in) > 1 && in[1]&0xF0 != from || len(in) > 2 && in[2]&0xC0 != 0x80 {
		return 0, 1
	}
	if len(in) < 3 {
		return 0, 0
	}
	return 0xD000 | rune(in[1]&0x3F)<<6 | rune(in[2]&0x3F), 3
}
