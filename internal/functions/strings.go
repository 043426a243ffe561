package functions

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// exact writes a number as C's %.17g.
func exact(n float64) string {
	switch {
	case math.IsNaN(n):
		return "nan"
	case math.IsInf(n, 0):
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(n, 'g', -1, 64), "+"))
	}
	text := strconv.FormatFloat(n, 'g', 17, 64)
	mantissa, exponent, scientific := strings.Cut(text, "e")
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	if scientific {
		return mantissa + "e" + exponent
	}
	return mantissa
}

// format is string.format. gopher-lua writes what our library writes in a roundabout way.
func format(general lua.LGFunction) lua.LGFunction {
	return func(l *lua.LState) int {
		n, ok := l.Get(2).(lua.LNumber)
		switch layout := l.CheckString(1); {
		case ok && layout == "%d":
			l.Push(lua.LString(strconv.FormatInt(whole(float64(n)), 10)))
		case ok && layout == "%.0f":
			l.Push(lua.LString(strconv.FormatFloat(float64(n), 'f', 0, 64)))
		default:
			return general(l)
		}
		return 1
	}
}

// toNumber is tonumber, which reads what C's strtod reads.
func toNumber(l *lua.LState) int {
	v := l.CheckAny(1)
	if base := l.OptInt(2, 10); base != 10 {
		n, err := strconv.ParseUint(strings.Trim(lua.LVAsString(v), blanks), base, 64)
		return pushNumber(l, float64(n), err == nil)
	}
	switch v := v.(type) {
	case lua.LNumber:
		l.Push(v)
		return 1
	case lua.LString:
		n, ok := number(string(v))
		return pushNumber(l, n, ok)
	}
	return pushNumber(l, 0, false)
}

func pushNumber(l *lua.LState, n float64, ok bool) int {
	if ok {
		l.Push(lua.LNumber(n))
	} else {
		l.Push(lua.LNil)
	}
	return 1
}

const blanks = " \t\n\v\f\r"

// number reads a text as a number, as Lua 5.1 does.
func number(text string) (float64, bool) {
	if n, ok := digits(text); ok {
		return n, true
	}
	text = strings.Trim(text, blanks)
	if strings.Contains(text, "_") {
		return 0, false
	}
	bare := strings.TrimLeft(text, "+-")
	if len(text)-len(bare) <= 1 && len(bare) > 2 && (bare[:2] == "0x" || bare[:2] == "0X") {
		n, err := strconv.ParseUint(bare[2:], 16, 64)
		if text[0] == '-' {
			return -float64(n), err == nil
		}
		return float64(n), err == nil
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil || math.IsInf(n, 0)
}

// digits reads what is nothing but a few digits, which is most of what there is to read.
func digits(text string) (float64, bool) {
	if len(text) == 0 || len(text) > 15 {
		return 0, false
	}
	n := 0
	for i := range len(text) {
		c := text[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int(c)
	}
	return float64(n), true
}
