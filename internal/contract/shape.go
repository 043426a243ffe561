package contract

import (
	"cmp"
	"fmt"
	"strings"
)

// Shape is a part of arguments or of a reply. The words of a header:
//
//	name:type       one slot of a type; with a ? behind it, it may be empty
//	OK 0 "a"        one slot with this text
//	name            what lua/groups.txt says for it
//	n:rows {a b}    a number of rows, and the slots in it so many times
//	{* a b}         the slots in it any number of times
//	[a b]           the slots in it, or nothing
//	(x or y)        one or the other, also within the other brackets
//	{as ff_x}       what ff_x answers behind its OK
//	!code           the slots behind it are refused with this code, and not with invalid_input
//	x; y            in replies: one or the other, by the first word; "the same" is what follows the first word of x
type Shape interface {
	// fit tells whether this part begins at a place, and the rest fits behind it.
	fit(m *match, at int, rest func(at int) bool) bool
}

type (
	// Slot is one text of a type.
	Slot struct {
		Name string
		Type Type
		None bool   // it may be ''
		Code string // with which it is refused
	}
	// Text is one of some fixed texts.
	Text []string
	// Group is what lua/groups.txt says for a name.
	Group struct {
		Name string
		Part Sequence
	}
	// As is what another function answers behind its OK.
	As struct {
		Function string
		Part     Sequence
	}
	// Rows are so many times the same slots.
	Rows struct {
		Part    Sequence
		Counted bool // the slot before tells how often; else it may be any number of times
	}
	// Maybe is there or not.
	Maybe struct{ Part Sequence }
	// Sequence is one part behind the other.
	Sequence []Shape
	// Either is one of its parts.
	Either []Sequence
)

type parser struct {
	text    string
	groups  map[string]string
	within  []string // groups that are being read
	code    string   // of refusals
	replies func(function string) (Sequence, error)
}

// next is the next word or bracket, "" at the end. A bracket directly behind a word, as in n(1..2), belongs to it.
func (p *parser) next() string {
	p.text = strings.TrimLeft(p.text, " ")
	n := 0
	for n < len(p.text) && !strings.ContainsRune(" {}[])", rune(p.text[n])) {
		if p.text[n] != '(' {
			n++
		} else if end := strings.IndexByte(p.text[n:], ')'); n > 0 && end > 0 {
			n += end + 1
		} else {
			break
		}
	}
	if p.text != "" {
		n = max(n, 1)
	}
	token := p.text[:n]
	p.text = p.text[n:]
	return token
}

func (p *parser) all() (Sequence, error) {
	s, end, err := p.parts()
	if err != nil {
		return nil, err
	}
	if end != "" {
		return nil, fmt.Errorf("%s without its other half", end)
	}
	return s, nil
}

// parts reads up to a closing bracket, which it returns.
func (p *parser) parts() (Sequence, string, error) {
	var e Either
	var s Sequence
	for {
		token := p.next()
		switch token {
		case "", "}", "]", ")":
			if e == nil {
				return s, token, nil
			}
			return Sequence{append(e, s)}, token, nil
		case "or":
			e, s = append(e, s), nil
			continue
		}
		part, err := p.part(token, s)
		if err != nil {
			return nil, "", err
		}
		s = append(s, part...)
	}
}

// part reads what begins with token, behind the parts before it.
func (p *parser) part(token string, before Sequence) (Sequence, error) {
	switch token {
	case "{":
		if name, ok := strings.CutPrefix(p.text, "as "); ok {
			name, p.text, _ = strings.Cut(name, "}")
			part, err := p.replies(name)
			return Sequence{As{name, part}}, err
		}
		var free bool
		if p.text, free = strings.CutPrefix(p.text, "* "); !free && !counts(before) {
			return nil, fmt.Errorf("nothing says how often { is repeated")
		}
		part, err := p.inside("{", "}")
		return Sequence{Rows{Part: part, Counted: !free}}, err
	case "[":
		part, err := p.inside("[", "]")
		return Sequence{Maybe{part}}, err
	case "(":
		return p.inside("(", ")")
	}
	if code, ok := strings.CutPrefix(token, "!"); ok {
		p.code = code
		return nil, nil
	}
	if text, ok := strings.CutPrefix(token, `"`); ok {
		return Sequence{Text{strings.TrimSuffix(text, `"`)}}, nil
	}
	name, rest, typed := strings.Cut(token, ":")
	switch {
	case typed:
		rest, none := strings.CutSuffix(rest, "?")
		t, err := parseType(rest)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", token, err)
		}
		return Sequence{Slot{Name: name, Type: t, None: none, Code: cmp.Or(p.code, "invalid_input")}}, nil
	case p.groups[token] != "":
		return p.group(token)
	case strings.Contains(token, "|"), strings.Trim(token, "0123456789") == "",
		strings.Trim(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "":
		return Sequence{Text(strings.Split(token, "|"))}, nil
	}
	return nil, fmt.Errorf("%s has no type, and is no group of lua/groups.txt", token)
}

func (p *parser) group(name string) (Sequence, error) {
	for _, outer := range p.within {
		if outer == name {
			return nil, fmt.Errorf("the group %s contains itself", name)
		}
	}
	inner := parser{text: p.groups[name], groups: p.groups, within: append(p.within, name), code: p.code,
		replies: p.replies}
	s, err := inner.all()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return Sequence{Group{name, s}}, nil
}

// inside is what stands before the other half of a bracket.
func (p *parser) inside(open, closed string) (Sequence, error) {
	s, end, err := p.parts()
	if err == nil && end != closed {
		err = fmt.Errorf("%s without its other half", open)
	}
	return s, err
}

// counts tells whether a sequence ends with a number of rows.
func counts(s Sequence) bool {
	if len(s) == 0 {
		return false
	}
	slot, ok := s[len(s)-1].(Slot)
	return ok && slot.Type.Name == "rows"
}
