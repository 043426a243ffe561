package store

import (
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"time"
)

// shapes make random commands, each on values of some types.
var shapes = []func(r *rand.Rand) []string{plainShapes, plainShapes, zsetShapes, streamShapes}

// plainShapes is a random command on keys, strings, hashes, lists and sets.
func plainShapes(r *rand.Rand) []string {
	args := fill(r, plainTable[r.Intn(len(plainTable))], plainWords)
	for i := 1; i < len(args); i++ { // the groups
		if group := plainGroups[args[i]]; group != nil {
			n := 1 + r.Intn(4)
			if r.Intn(20) == 0 {
				n = 1 + r.Intn(100)
			}
			args = slices.Delete(args, i, i+1)
			for range n {
				args = slices.Insert(args, i, fill(r, strings.Join(group, " "), plainWords)...)
			}
		}
	}
	if r.Intn(30) == 0 {
		spoil(r, &args)
	}
	if r.Intn(50) == 0 {
		args[0] = strings.ToLower(args[0])
	}
	return args
}

// spoil makes a command that is wrong, or has an unusual argument.
func spoil(r *rand.Rand, args *[]string) {
	a := *args
	switch i := r.Intn(len(a)); {
	case i == 0 && len(a) > 1:
		a = a[:len(a)-1]
	case i == 0 || r.Intn(4) == 0:
		a = append(a, oneOf(r, "", "bad", "1", "NX", "REPLACE"))
	default:
		a[i] = oneOf(r, "", "bad", "0", "-1", "+1", "01", "-0", " 1", "1.5", "1e3", "nan", "9223372036854775807",
			"9223372036854775808", "-9223372036854775808", "-9223372036854775807", "NX", "COUNT", "\x00\r\n")
	}
	*args = a
}

// plainTable are commands: a word in small letters is one of plainWords or plainGroups.
var plainTable = strings.Split(strings.TrimSpace(`
SET str value
SET str value
SET str number
SET any value
SET str value setting
SET str value setting setting
SET str value EX seconds
SET str value PX milliseconds
SET str value EXAT second
SET str value PXAT millisecond
SET str value PXAT millisecond setting
GET str
MGET anys
MSET sets
STRLEN str
INCR str
INCRBY str number
DEL anys
UNLINK any
EXISTS anys
TYPE any
EXPIRE any seconds
PEXPIRE any milliseconds
PEXPIREAT any millisecond
TTL any
PTTL any
PEXPIRETIME any
PERSIST any
RENAME any any
COPY any any
COPY any any REPLACE
KEYS pattern
SCAN 0
SCAN 0 MATCH pattern COUNT number
SCAN 0 TYPE type
DBSIZE
HSET hash pairs
HSET hash pairs
HSET hash pairs
HSET hash pairs
HSETNX hash field value
HGET hash field
HMGET hash fields
HGETALL hash
HDEL hash fields
HDEL hash fields
HEXISTS hash field
HLEN hash
HKEYS hash
HVALS hash
HINCRBY hash field number
HSTRLEN hash field
HSCAN hash 0
HSCAN hash 0 COUNT number
HSCAN hash 0 MATCH pattern
HRANDFIELD hash
HRANDFIELD hash number
HRANDFIELD hash number WITHVALUES
RPUSH list values
RPUSH list values
LRANGE list index index
LRANGE list 0 -1
LTRIM list index index
LSET list index value
LREM list index value
LLEN list
SADD set fields
SADD set fields
SADD set fields
SREM set fields
SMEMBERS set
SISMEMBER set field
SCARD set
SINTER setkeys
SSCAN set 0
SSCAN set 0 COUNT number MATCH pattern
FLUSHALL
`), "\n")

// plainGroups repeat some words some times.
var plainGroups = map[string][]string{"anys": {"any"}, "sets": {"str", "value"}, "pairs": {"field", "value"},
	"fields": {"field"}, "values": {"value"}, "setkeys": {"set"}}

// start is when the test began, in seconds.
var start = time.Now().Unix()

// turns makes times of which no two are near each other, so that two clocks compare them in the same way.
var turns int64

func distant(r *rand.Rand) int64 {
	turns++
	if r.Intn(8) == 0 {
		return -1000 - turns
	}
	return 10_000_000 + 600*(turns*7919%100_003)
}

var plainWords = map[string]func(r *rand.Rand) string{
	"any": func(r *rand.Rand) string {
		return oneOf(r, anyKeys...)
	},
	"str":  func(r *rand.Rand) string { return often(r, "s1", "s2", "s3") },
	"hash": func(r *rand.Rand) string { return often(r, "h1", "h2", "h3") },
	"list": func(r *rand.Rand) string { return often(r, "l1", "l2") },
	"set":  func(r *rand.Rand) string { return often(r, "e1", "e2", "e3") },
	"field": func(r *rand.Rand) string {
		switch r.Intn(12) {
		case 0:
			return oneOf(r, "", "field\r\n", "\x00", "\xff", strings.Repeat("long", 40))
		case 1, 2, 3:
			return fmt.Sprintf("f%d", r.Intn(300))
		default:
			return fmt.Sprintf("f%d", r.Intn(20))
		}
	},
	"value": func(r *rand.Rand) string {
		switch r.Intn(12) {
		case 0:
			return oneOf(r, "", "\r\n", "\x00", "9223372036854775807", strings.Repeat("long", 200))
		case 1, 2, 3, 4:
			return strconv.Itoa(r.Intn(5))
		default:
			return fmt.Sprintf("value %d", r.Intn(50))
		}
	},
	"number": func(r *rand.Rand) string {
		if r.Intn(12) == 0 {
			return oneOf(r, "9223372036854775807", "-9223372036854775808", "-1", "0", "x")
		}
		return strconv.Itoa(r.Intn(20))
	},
	"index":        func(r *rand.Rand) string { return strconv.Itoa(r.Intn(14) - 6) },
	"seconds":      func(r *rand.Rand) string { return itoa(distant(r)) },
	"milliseconds": func(r *rand.Rand) string { return itoa(1000 * distant(r)) },
	"second":       func(r *rand.Rand) string { return itoa(start + 300 + distant(r)) },
	"millisecond":  func(r *rand.Rand) string { return itoa(1000 * (start + 300 + distant(r))) },
	"setting": func(r *rand.Rand) string {
		return oneOf(r, "NX", "XX", "nx", "EX", "PX", "10000000")
	},
	"type": func(r *rand.Rand) string { return oneOf(r, "string", "hash", "list", "set", "HASH") },
	"pattern": func(r *rand.Rand) string {
		return oneOf(r, "*", "s*", "f1*", "?1", "[a-h]*", "[^s]?", "f[1-3]", `\s1`, "*1*", "s[", "**2", "f?", "[]1",
			"h1")
	},
}

var anyKeys = []string{"s1", "s2", "s3", "h1", "h2", "h3", "l1", "l2", "e1", "e2", "e3", ""}

// often is one of some keys, and sometimes one of any type.
func often(r *rand.Rand, keys ...string) string {
	if r.Intn(12) == 0 {
		return oneOf(r, anyKeys...)
	}
	return oneOf(r, keys...)
}
