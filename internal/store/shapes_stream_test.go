package store

import (
	"math/rand"
	"strconv"
	"strings"
)

// streamShapes is a random command on streams. No id is chosen by a clock, since there are two.
func streamShapes(r *rand.Rand) []string {
	return fill(r, streamTable[r.Intn(len(streamTable))], streamWords)
}

// streamTable are commands: a word in small letters is one of streamWords. About ("~") trims exactly here, and not in
// Redis, so no shape has it. Versions of Redis differ in what XSETID refuses.
var streamTable = strings.Split(strings.TrimSpace(`
XADD stream id f value
XADD stream id f value
XADD stream id f value g value
XADD stream id f value
XADD stream MAXLEN few id f value
XADD stream MAXLEN = few id f value
XADD stream MINID id id f value
XADD stream id f
XLEN stream
XRANGE stream from to
XRANGE stream - + COUNT few
XRANGE stream from to COUNT few
XREVRANGE stream to from
XREVRANGE stream + - COUNT few
XREVRANGE stream to from COUNT few
XTRIM stream MAXLEN few
XTRIM stream MINID id
XTRIM stream MAXLEN = few
XTRIM stream word few
XDEL stream id
XDEL stream id id id
DEL stream
`), "\n")

var streamWords = map[string]func(r *rand.Rand) string{
	"stream": func(r *rand.Rand) string { return oneOf(r, "x1", "x1", "x1", "x2", "x2", "x3", "str", "z1") },
	"id": func(r *rand.Rand) string {
		switch r.Intn(20) {
		case 0:
			return oneOf(r, "x", "", "0-0", "-", "1-x", "1-2-3", "1-18446744073709551616", "5-*-", "-1")
		case 1:
			return strconv.Itoa(r.Intn(40)) + "-*"
		}
		return strconv.Itoa(r.Intn(400)) + "-" + strconv.Itoa(r.Intn(4))
	},
	"from": func(r *rand.Rand) string {
		return oneOf(r, "0", "0-0", strconv.Itoa(r.Intn(400)), strconv.Itoa(r.Intn(400))+"-2", "bad")
	},
	"to": func(r *rand.Rand) string {
		return oneOf(r, "+", "-", strconv.Itoa(r.Intn(400)), "("+strconv.Itoa(r.Intn(400)), "18446744073709551615", "(")
	},
	"few":   func(r *rand.Rand) string { return oneOf(r, "0", "1", "2", "3", "10", "100", "-1", "x") },
	"word":  func(r *rand.Rand) string { return oneOf(r, "MAXLEN", "minid", "LEN") },
	"value": func(r *rand.Rand) string { return oneOf(r, "", "v", "a longer value", "\x00\r\n") },
}
