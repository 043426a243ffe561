package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The operators. Each makes a small change that the server loads and that breaks what the function does.
//
//	negate    if a == b → if a ~= b, if a then → if not (a) then; each part of "and" and "or" by itself
//	bound     a < b → a <= b, and the other way round
//	constant  a whole number is one more; not an index, nor a place in a text or among the arguments, which everything would notice
//	drop      an assignment, a call, a break or an early return goes
//	write     redis.call as a statement goes
//	swap      the last two arguments of a call change places; not literals
//
// They leave out what no test can notice, or should: < or <= in a comparator of table.sort, which differ only for what
// is equal, and > or >= where a list must not be empty, which negate breaks; a number of thousand and more that is
// added, as of milliseconds, and the seconds of an expiry; one more unit of effort in a counter that only decides when
// a call leaves the rest to the next.
const (
	negate   = "negate"
	bound    = "bound"
	constant = "constant"
	drop     = "drop"
	write    = "write"
	swap     = "swap"
)

// chunk is a parsed Lua file.
type chunk struct {
	File   string // path in directory lua
	Source string
	// where each block begins and ends: functions, branches, loops; what is inside another comes after it
	Blocks  [][2]int
	Mutants []Mutant
}

// top is the block of what is in no function.
const top = -1

// blockOf is the innermost block with a part of the text.
func (c *chunk) blockOf(from, to int) int {
	for i, b := range slices.Backward(c.Blocks) {
		if b[0] <= from && to <= b[1] {
			return i
		}
	}
	return top
}

// parseChunk reads a Lua file and lists its mutants in the order of the text.
func parseChunk(file, source string) (c *chunk, err error) {
	tokens, err := scan(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	p := &luaParser{chunk: &chunk{File: file, Source: source}, tokens: tokens, block: top}
	defer func() {
		if r := recover(); r != nil {
			problem, ok := r.(syntaxError)
			if !ok {
				panic(r)
			}
			c, err = nil, fmt.Errorf("%s:%d: %s", file, 1+strings.Count(source[:problem.at], "\n"), problem.text)
		}
	}()
	p.statements()
	if p.now().kind != end {
		p.fail("a statement")
	}
	p.name()
	return p.chunk, nil
}

type syntaxError struct {
	at   int
	text string
}

// luaParser finds statements, expressions and arguments. Precedence does not matter to the operators, so an
// expression is a flat list.
type luaParser struct {
	chunk    *chunk
	tokens   []word
	at       int
	function string // "claim.run"
	block    int
	nested   bool // the block is inside another of its function
	index    int  // depth of square brackets
}

func (p *luaParser) now() word        { return p.tokens[p.at] }
func (p *luaParser) is(s string) bool { return p.now().kind == symbol && p.now().text == s }
func (p *luaParser) last() int        { return p.tokens[p.at-1].to }
func (p *luaParser) next() word       { p.at++; return p.tokens[p.at-1] }
func (p *luaParser) fail(wants string) {
	panic(syntaxError{p.now().from, "wants " + wants + ", has " + p.now().text})
}

func (p *luaParser) accept(s string) bool {
	if p.is(s) {
		p.at++
		return true
	}
	return false
}

func (p *luaParser) want(s string) {
	if !p.accept(s) {
		p.fail(s)
	}
}

func (p *luaParser) wantName() string {
	if p.now().kind != name {
		p.fail("a name")
	}
	return p.next().text
}

// add notes a mutant: the text from..to becomes another.
func (p *luaParser) add(operator string, from, to int, text string) {
	p.chunk.Mutants = append(p.chunk.Mutants,
		Mutant{File: "lua/" + p.chunk.File, Function: p.function, Operator: operator,
			From: from, To: to, New: text, Block: p.block})
}

// inside parses a block that begins here.
func (p *luaParser) inside(nested bool) {
	outer, was := p.block, p.nested
	p.block, p.nested = len(p.chunk.Blocks), nested
	p.chunk.Blocks = append(p.chunk.Blocks, [2]int{p.last(), 0})
	p.statements()
	p.chunk.Blocks[p.block][1] = p.last()
	p.block, p.nested = outer, was
}

func (p *luaParser) statements() {
	for p.now().kind != end && !p.is("end") && !p.is("else") && !p.is("elseif") && !p.is("until") {
		p.statement()
		p.accept(";")
	}
}

func (p *luaParser) statement() {
	from, first := p.now().from, len(p.chunk.Mutants)
	head := func() { p.said(first, from, p.last()) } // the words that name the mutants of this statement
	switch {
	case p.accept("if"):
		p.expression(true)
		p.want("then")
		head()
		p.inside(true)
		for p.is("elseif") {
			from, first = p.next().from, len(p.chunk.Mutants)
			p.expression(true)
			p.want("then")
			head()
			p.inside(true)
		}
		if p.accept("else") {
			p.inside(true)
		}
		p.want("end")
	case p.accept("while"):
		p.expression(true)
		p.want("do")
		head()
		p.inside(true)
		p.want("end")
	case p.accept("repeat"):
		p.inside(true)
		p.want("until")
		from, first = p.last(), len(p.chunk.Mutants)
		p.expression(true)
		head()
	case p.accept("do"):
		p.inside(true)
		p.want("end")
	case p.accept("for"):
		p.wantName()
		for p.accept(",") {
			p.wantName()
		}
		if !p.accept("=") {
			p.want("in")
		}
		p.expressions()
		p.want("do")
		head()
		p.inside(true)
		p.want("end")
	case p.accept("function"):
		called := p.wantName()
		for p.accept(".") {
			called += "." + p.wantName()
		}
		p.body(called)
	case p.accept("local"):
		if p.accept("function") {
			p.body(p.wantName())
			return
		}
		p.wantName()
		for p.accept(",") {
			p.wantName()
		}
		if p.accept("=") {
			p.expressions()
		}
		head()
	case p.accept("return"):
		if p.now().kind != end && !p.is("end") && !p.is("else") && !p.is("elseif") && !p.is("until") && !p.is(";") {
			p.expressions()
		}
		if p.nested {
			p.add(drop, from, p.last(), "")
		}
		head()
	case p.accept("break"):
		p.add(drop, from, p.last(), "")
		head()
	default:
		p.simple(false)
		operator := drop
		if p.is("=") || p.is(",") {
			for p.accept(",") {
				p.simple(false)
			}
			counts := effort[p.tokens[p.at-1].text]
			p.want("=")
			p.expressions()
			if counts {
				p.without(constant, from, p.last())
			}
		} else if strings.HasPrefix(p.chunk.Source[from:], "redis.call(") {
			operator = write
		}
		if p.block != top {
			p.add(operator, from, p.last(), "")
		}
		head()
	}
}

// effort are the names of counters of what a call has done.
var effort = map[string]bool{"touched": true, "cost": true}

// without takes back the mutants of an operator in a part of the text.
func (p *luaParser) without(operator string, from, to int) {
	p.chunk.Mutants = slices.DeleteFunc(p.chunk.Mutants, func(m Mutant) bool {
		return m.Operator == operator && from <= m.From && m.To <= to
	})
}

// body parses parameters and statements of a function. One without a name belongs to the function that it is in.
func (p *luaParser) body(called string) {
	outer, index := p.function, p.index
	if called != "" {
		p.function = called
	}
	p.index = 0
	p.want("(")
	for !p.accept(")") {
		p.next()
	}
	p.inside(false)
	p.want("end")
	p.function, p.index = outer, index
}

func (p *luaParser) expressions() {
	p.expression(false)
	for p.accept(",") {
		p.expression(false)
	}
}

var (
	comparisons = map[string]string{"==": "~=", "~=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">"}
	binary      = []string{"+", "-", "*", "/", "%", "^", "..", "and", "or", "==", "~=", "<", "<=", ">", ">="}
)

// term is a part of an expression between "and" and "or".
type term struct {
	from, to   int
	inverted   word // a "not" that it begins with
	compared   []word
	compound   bool // it is a list in parentheses, whose parts are looked at themselves
	operations int
}

// expression parses terms. Of a test each of them is negated; of a value those that are tests: what "and" follows,
// what compares, what begins with "not".
func (p *luaParser) expression(test bool) {
	for {
		t := p.term(test)
		p.negate(t, test || p.is("and"))
		for _, c := range t.compared {
			filled := p.chunk.Source[t.from] == '#' && strings.HasSuffix(p.chunk.Source[t.from:t.to], " > 0")
			if (c.text[0] == '<' || c.text[0] == '>') && !filled {
				p.add(bound, c.from, c.to, comparisons[c.text])
			}
		}
		if !p.accept("and") && !p.accept("or") {
			return
		}
	}
}

func (p *luaParser) term(test bool) term {
	t := term{from: p.now().from}
	if p.is("not") {
		t.inverted = p.now()
	}
	for {
		for p.accept("not") || p.accept("-") || p.accept("#") {
		}
		group := p.is("(")
		p.simple(test)
		t.to = p.last()
		if p.now().kind != symbol || !slices.Contains(binary, p.now().text) || p.is("and") || p.is("or") {
			t.compound = group && t.operations == 0 && p.chunk.Source[t.from] == '(' && p.chunk.Source[t.to-1] == ')'
			return t
		}
		if comparisons[p.now().text] != "" {
			t.compared = append(t.compared, p.now())
		}
		t.operations++
		p.next()
	}
}

func (p *luaParser) negate(t term, test bool) {
	if literal(p.chunk.Source[t.from:t.to]) {
		return
	}
	switch {
	case t.compound || !test && t.compared == nil && t.inverted.text == "":
	case t.inverted.text != "" && t.operations == 0:
		p.add(negate, t.inverted.from, t.inverted.to, "")
	case len(t.compared) == 1 && (t.compared[0].text == "==" || t.compared[0].text == "~="):
		p.add(negate, t.compared[0].from, t.compared[0].to, comparisons[t.compared[0].text])
	default:
		p.add(negate, t.from, t.to, "not ("+p.chunk.Source[t.from:t.to]+")")
	}
}

// unbounded is the largest whole number. As a bound it means that there is none.
const unbounded = 1<<53 - 1

// simple parses a constant, a table, a function, or a name with all that follows it: fields, indexes and calls.
func (p *luaParser) simple(test bool) {
	from := p.now().from
	switch t := p.now(); {
	case t.kind == number:
		added := slices.Contains([]string{"+", "-"}, p.tokens[max(0, p.at-1)].text)
		p.next()
		added = added || p.is("+") || p.is("-")
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err == nil && p.index == 0 && n < unbounded && !(added && n >= 1000) {
			p.add(constant, t.from, t.to, strconv.FormatInt(n+1, 10))
		}
		return
	case t.kind == text, p.is("nil"), p.is("true"), p.is("false"), p.is("..."):
		p.next()
		if t.kind == text && p.is(":") {
			break
		}
		return
	case p.accept("function"):
		p.body("")
		return
	case p.accept("{"):
		p.table()
		return
	case p.accept("("):
		p.expression(test)
		p.want(")")
	default:
		p.wantName()
	}
	for {
		switch {
		case p.accept("."):
			p.wantName()
		case p.accept("["):
			p.index++
			p.expression(false)
			p.index--
			p.want("]")
		case p.accept(":"):
			p.wantName()
		case p.is("("):
			called := p.chunk.Source[from:p.last()]
			p.next()
			p.arguments(called)
		default:
			return
		}
	}
}

func (p *luaParser) table() {
	for !p.accept("}") {
		switch {
		case p.accept("["):
			p.index++
			p.expression(false)
			p.index--
			p.want("]")
			p.want("=")
		case p.now().kind == name && p.tokens[p.at+1].text == "=" && p.tokens[p.at+1].kind == symbol:
			p.at += 2
		}
		p.expression(false)
		if !p.accept(",") {
			p.accept(";")
		}
	}
}

// plain tells functions on texts, on arguments and on the numbers of a reply: they stop at once, or do not care, when
// their arguments change places.
func plain(called string) bool {
	library, _, _ := strings.Cut(called, ".")
	return slices.Contains([]string{"args", "math", "reply", "string"}, library)
}

// position is the argument of a function of the library that is the list of arguments.
const position = "argv"

func (p *luaParser) arguments(called string) {
	var spans [][2]int
	for !p.accept(")") {
		from := p.now().from
		p.expression(false)
		spans = append(spans, [2]int{from, p.last()})
		p.accept(",")
	}
	source := func(i int) string { return p.chunk.Source[spans[i][0]:spans[i][1]] }
	if strings.HasPrefix(called, "string.") || len(spans) > 0 && source(0) == position {
		p.chunk.Mutants = slices.DeleteFunc(p.chunk.Mutants, func(m Mutant) bool {
			return m.From >= spans[0][0] && m.Operator == constant && slices.Contains(spans, [2]int{m.From, m.To})
		})
	}
	switch {
	case called == "table.sort":
		p.without(bound, spans[0][0], p.last())
	case called == "redis.call" && source(0) == "'EXPIRE'":
		p.without(constant, spans[0][0], p.last())
	}
	n, least := len(spans), 2
	if called == "redis.call" {
		least = 4 // the command and the key stay
	}
	if n < least || plain(called) {
		return
	}
	a, b := source(n-2), source(n-1)
	if a == b || a == "ctx" || a == "k" || literal(a) || literal(b) {
		// the state of the call, or the keys, in the wrong place stops every call
		return
	}
	p.add(swap, spans[n-2][0], spans[n-1][1], b+p.chunk.Source[spans[n-2][1]:spans[n-1][0]]+a)
}

// literal tells a text, a number, a table, a function, true, false and nil.
func literal(source string) bool {
	return strings.ContainsAny(source[:1], "'\"{-0123456789") || strings.HasPrefix(source, "function") ||
		slices.Contains([]string{"true", "false", "nil"}, source)
}

// said gives the mutants of a statement, those of functions inside it apart, the words of the statement.
func (p *luaParser) said(first, from, to int) {
	words, _ := squeeze(p.chunk.Source[from:to])
	for i := first; i < len(p.chunk.Mutants); i++ {
		if p.chunk.Mutants[i].statement == "" {
			p.chunk.Mutants[i].statement = words
		}
	}
}

// name gives each mutant its name. It has no line in it, so what is written elsewhere does not change it: file,
// function, operator, a hash of the statement, and which of the mutants it is of which all these are the same.
func (p *luaParser) name() {
	seen := map[string]int{}
	for i := range p.chunk.Mutants {
		m := &p.chunk.Mutants[i]
		hash := sha256.Sum256([]byte(m.statement))
		id := fmt.Sprintf("%s:%s:%s:%s", p.chunk.File, m.Function, m.Operator, hex.EncodeToString(hash[:3]))
		seen[id]++
		m.Name = fmt.Sprintf("%s:%d", id, seen[id])
	}
}
