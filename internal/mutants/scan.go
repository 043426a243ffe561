package main

import (
	"fmt"
	"strings"
)

// kind says what a word of Lua is.
type kind int

const (
	end    kind = iota // of the file
	name               // and no keyword
	number             // 12
	text               // 'a', "a"
	symbol             // a keyword or an operator
)

// word is a word of a Lua file and where it is.
type word struct {
	kind     kind
	text     string
	from, to int
}

var keywords = map[string]bool{"and": true, "break": true, "do": true, "else": true, "elseif": true, "end": true,
	"false": true,
	"for":   true, "function": true, "if": true, "in": true, "local": true, "nil": true, "not": true, "or": true,
	"repeat": true,
	"return": true, "then": true, "true": true, "until": true, "while": true}

// symbols are the operators of more than one character, the longest first.
var symbols = []string{"...", "..", "==", "~=", "<=", ">="}

func letter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// scan splits a Lua file into tokens. It knows the subset that the library uses: no long strings and no long comments.
func scan(source string) ([]word, error) {
	var out []word
	for at := 0; at < len(source); {
		c, from := source[at], at
		take := func(k kind, to int) { out, at = append(out, word{k, source[from:to], from, to}), to }
		switch {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			at++
		case strings.HasPrefix(source[at:], "--"):
			if rest := strings.IndexByte(source[at:], '\n'); rest >= 0 {
				at += rest
			} else {
				at = len(source)
			}
		case letter(c):
			for at < len(source) && (letter(source[at]) || digit(source[at])) {
				at++
			}
			if keywords[source[from:at]] {
				take(symbol, at)
			} else {
				take(name, at)
			}
		case digit(c):
			for at < len(source) &&
				(letter(source[at]) || digit(source[at]) || source[at] == '.' && source[at-1] != '.') {
				at++
			}
			if dots := strings.Index(source[from:at], "."); dots >= 0 && at < len(source) && source[at] == '.' {
				at = from + dots // 1 .. x
			}
			take(number, at)
		case c == '\'' || c == '"':
			for at++; at < len(source) && source[at] != c && source[at] != '\n'; at++ {
				if source[at] == '\\' {
					at++
				}
			}
			if at >= len(source) || source[at] != c {
				return nil, fmt.Errorf("a string that begins at byte %d does not end", from)
			}
			take(text, at+1)
		default:
			to := at + 1
			for _, s := range symbols {
				if strings.HasPrefix(source[at:], s) {
					to = at + len(s)
					break
				}
			}
			take(symbol, to)
		}
	}
	return append(out, word{end, "", len(source), len(source)}), nil
}
