package store

import (
	"fmt"
	"math/rand"
	"strconv"
	"strings"
)

// zsetShapes is a random command on sorted sets. The keys "z…" hold sorted sets, of which "zlex" has one score for
// all members, since Redis does not say what a lexical range of others is. "str" holds a text.
func zsetShapes(r *rand.Rand) []string {
	shape := zsetTable[r.Intn(len(zsetTable))]
	return fill(r, shape, zsetWords)
}

// zsetTable are commands: a word in capitals is sent as it is, one in small letters is one of zsetWords.
var zsetTable = strings.Split(strings.TrimSpace(`
ZADD key score member
ZADD key score member
ZADD key score member score member score member score member
ZADD key score member score member score member score member score member score member score member score member
ZADD key option score member score member
ZADD key option option score member
ZADD key score member score
ZADD lex 0 member 0 member 0 member 0 member
ZINCRBY key score member
ZREM key member
ZREM key member member member
ZREM lex member
ZSCORE key member
ZMSCORE key member member member
ZCARD key
ZCOUNT key limit limit
ZRANGE key rank rank
ZRANGE key rank rank WITHSCORES
ZREVRANGE key rank rank
ZREVRANGE key rank rank clause
ZRANGEBYSCORE key limit limit
ZRANGEBYSCORE key limit limit clause LIMIT rank rank
ZRANGEBYLEX lex bound bound
ZRANGEBYLEX lex bound bound LIMIT rank rank
ZRANK key member
ZPOPMIN key
ZPOPMIN key rank
ZREMRANGEBYSCORE key limit limit
ZREMRANGEBYRANK key rank rank
ZUNIONSTORE zsum 1 key
ZUNIONSTORE z1 1 key WEIGHTS weight
ZUNIONSTORE zbig 1 zbig WEIGHTS weight
ZADD key score
ZCOUNT key limit
`), "\n")

var zsetWords = map[string]func(r *rand.Rand) string{
	"key": func(r *rand.Rand) string { return oneOf(r, "z1", "z2", "z3", "z4", "zbig", "zbig", "zbig", "str") },
	"lex": func(r *rand.Rand) string { return oneOf(r, "zlex", "zlex", "zlex", "zlex", "str", "none") },
	"score": func(r *rand.Rand) string {
		switch r.Intn(12) {
		case 0:
			return oneOf(r, "inf", "-inf", "+inf", "Infinity", "1e3", "0x10", "nan", "x", "", " 1", "1 ", "1e400")
		case 1, 2:
			return strconv.FormatFloat(float64(r.Intn(80)-40)/8, 'g', -1, 64)
		default:
			return strconv.Itoa(r.Intn(60) - 20)
		}
	},
	// No weight makes -0 of a score, which Redis writes in one way in small sets and in another in large ones.
	"weight": func(r *rand.Rand) string { return oneOf(r, "1", "2", "0.5", "1e3", "inf", "x", "nan") },
	"member": func(r *rand.Rand) string {
		if r.Intn(40) == 0 {
			return oneOf(r, "", "\x00", "\xff", "m\x00", "ein längerer Text mit Zeichen")
		}
		return fmt.Sprintf("m%d", r.Intn(400))
	},
	"limit": func(r *rand.Rand) string {
		if r.Intn(20) == 0 {
			return oneOf(r, "", "(", "x", "(x", " 3", "1e400", "nan", "(-inf", "(+inf", "(inf", "-0", "3 ")
		}
		return oneOf(r, "-inf", "+inf", number10(r), number10(r), "("+number10(r))
	},
	"bound": func(r *rand.Rand) string {
		if r.Intn(20) == 0 {
			return oneOf(r, "", "m1", "[", "(", "++", "-x", "[\x00", "(m\xff")
		}
		return oneOf(r, "-", "+", "[m"+number10(r), "(m"+number10(r), fmt.Sprintf("[m%d", r.Intn(400)))
	},
	"rank": func(r *rand.Rand) string {
		if r.Intn(40) == 0 {
			return oneOf(r, "x", "", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1.5")
		}
		return oneOf(r, "0", "-1", "1", "2", strconv.Itoa(r.Intn(200)-80), strconv.Itoa(r.Intn(14)-5))
	},
	"option": func(r *rand.Rand) string { return oneOf(r, "NX", "XX", "nx") },
	"clause": func(r *rand.Rand) string {
		return oneOf(r, "WITHSCORES", "withscores", "LIMIT")
	},
}

func number10(r *rand.Rand) string { return strconv.Itoa(r.Intn(60) - 20) }
