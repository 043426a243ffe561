package embedded

import (
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

// form is what a client that speaks RESP3 gets in place of the lists and texts of RESP2, which functions see.
type form uint8

const (
	asIs     form = iota
	asMap         // field, value, field, value …
	asSet         // members
	asDouble      // a score, or a list of them
	asScored      // member, score
	asPairs       // [member, score], [member, score] …
	asFields      // [field, value], [field, value] …
)

// forms are the commands whose replies have another form, some only with an option.
var forms = map[string]form{
	"HGETALL": asMap, "SMEMBERS": asSet, "SINTER": asSet, "ZPOPMIN": asScored, "HRANDFIELD": asFields,
	"ZSCORE": asDouble, "ZINCRBY": asDouble, "ZMSCORE": asDouble,
	"ZRANGE": asPairs, "ZREVRANGE": asPairs, "ZRANGEBYSCORE": asPairs,
}

// formOf is the form of the reply to a command in RESP3.
func formOf(name string, args []string) form {
	f := forms[name]
	switch {
	case f == asScored && len(args) > 2:
		return asPairs
	case f == asPairs && !option(args, "WITHSCORES"), f == asFields && !option(args, "WITHVALUES"):
		return asIs
	}
	return f
}

func option(args []string, name string) bool {
	for _, a := range args[1:] {
		if strings.EqualFold(a, name) {
			return true
		}
	}
	return false
}

// encoder appends replies in the protocol of a connection.
type encoder struct {
	out   []byte
	resp3 bool
}

func (e *encoder) head(kind byte, n int) {
	e.out = append(e.out, kind)
	e.out = strconv.AppendInt(e.out, int64(n), 10)
	e.out = append(e.out, "\r\n"...)
}

func (e *encoder) text(s string) {
	e.head('$', len(s))
	e.out = append(e.out, s...)
	e.out = append(e.out, "\r\n"...)
}

func (e *encoder) number(n int64) { e.head(':', int(n)) }

// line is a reply without a length. What it is made of may have line ends, which it must not.
func (e *encoder) line(kind byte, s string) {
	e.out = append(e.out, kind)
	begin := len(e.out)
	e.out = append(e.out, s...)
	for i, c := range e.out[begin:] {
		if c == '\r' || c == '\n' {
			e.out[begin+i] = ' '
		}
	}
	e.out = append(e.out, "\r\n"...)
}

func (e *encoder) status(s string) { e.line('+', s) }
func (e *encoder) fail(s string)   { e.line('-', s) }

func (e *encoder) null() {
	if e.resp3 {
		e.out = append(e.out, "_\r\n"...)
	} else {
		e.out = append(e.out, "$-1\r\n"...)
	}
}

// entries begins a map of n fields with their values.
func (e *encoder) entries(n int) {
	if e.resp3 {
		e.head('%', n)
	} else {
		e.head('*', 2*n)
	}
}

// push begins what RESP3 sends outside of replies.
func (e *encoder) push(n int) { e.head(e.kind('>'), n) }

func (e *encoder) kind(resp3 byte) byte {
	if e.resp3 {
		return resp3
	}
	return '*'
}

// reply appends a reply.
func (e *encoder) reply(r *functions.Reply, f form) {
	if !e.resp3 {
		f = asIs
	}
	switch {
	case r.Kind == functions.KindList:
		e.list(r.List, f)
	case r.Kind == functions.KindInt:
		e.number(r.Int)
	case r.Kind == functions.KindBulk && f == asDouble:
		e.line(',', r.Text)
	case r.Kind == functions.KindBulk:
		e.text(r.Text)
	case r.Kind == functions.KindStatus:
		e.status(r.Text)
	case r.Kind == functions.KindError:
		e.fail(r.Text)
	default:
		e.null()
	}
}

func (e *encoder) list(all []functions.Reply, f form) {
	switch f {
	case asMap:
		e.head('%', len(all)/2)
	case asSet:
		e.head('~', len(all))
	case asPairs, asFields:
		e.head('*', len(all)/2)
	default:
		e.head('*', len(all))
	}
	for i := range all {
		if (f == asPairs || f == asFields) && i%2 == 0 {
			e.head('*', 2)
		}
		item := asIs
		if f == asDouble || (f == asPairs || f == asScored) && i%2 == 1 {
			item = asDouble
		}
		e.reply(&all[i], item)
	}
}
