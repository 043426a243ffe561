package contract

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Value is a slot with its text, and where it stands.
type Value struct {
	Slot Slot
	Text string
	At   int
}

// Decode reads slots as a header says them. The error tells which slot does not fit.
func Decode(s Sequence, slots []string) ([]Value, error) {
	m := match{slots: slots}
	if s.fit(&m, 0, func(at int) bool { return at == len(slots) || m.failed(at, "the end") }) {
		return m.values, nil
	}
	if m.far >= len(slots) {
		return nil, fmt.Errorf("%d slots, want %s behind them", len(slots), strings.Join(m.want, " or "))
	}
	return nil, fmt.Errorf("slot %d is %.200q, want %s", m.far, slots[m.far], strings.Join(m.want, " or "))
}

// match compares slots with a shape. Where it fails, far is the last place that was looked at, and want what would
// have fitted there.
type match struct {
	slots  []string
	values []Value
	far    int
	want   []string
}

func (m *match) failed(at int, want string) bool {
	if at > m.far {
		m.far, m.want = at, nil
	}
	if at == m.far && !slices.Contains(m.want, want) {
		m.want = append(m.want, want)
	}
	return false
}

func (s Slot) fit(m *match, at int, rest func(at int) bool) bool {
	if at >= len(m.slots) || (!s.None || m.slots[at] != "") && !s.Type.Holds(m.slots[at]) {
		return m.failed(at, s.String())
	}
	m.values = append(m.values, Value{s, m.slots[at], at})
	if rest(at + 1) {
		return true
	}
	m.values = m.values[:len(m.values)-1]
	return false
}

func (t Text) fit(m *match, at int, rest func(at int) bool) bool {
	if at < len(m.slots) && slices.Contains(t, m.slots[at]) {
		return rest(at + 1)
	}
	return m.failed(at, strings.Join(t, "|"))
}

func (r Rows) fit(m *match, at int, rest func(at int) bool) bool {
	if r.Counted {
		n, err := strconv.Atoi(m.slots[at-1])
		return err == nil && n <= len(m.slots) && r.times(m, n, at, rest)
	}
	more := func(end int) bool { return end > at && r.fit(m, end, rest) }
	return r.Part.fit(m, at, more) || rest(at)
}

func (r Rows) times(m *match, n, at int, rest func(at int) bool) bool {
	if n == 0 {
		return rest(at)
	}
	return r.Part.fit(m, at, func(end int) bool { return r.times(m, n-1, end, rest) })
}

func (o Maybe) fit(m *match, at int, rest func(at int) bool) bool {
	return o.Part.fit(m, at, rest) || rest(at)
}

func (g Group) fit(m *match, at int, rest func(at int) bool) bool { return g.Part.fit(m, at, rest) }

func (a As) fit(m *match, at int, rest func(at int) bool) bool { return a.Part.fit(m, at, rest) }

func (s Sequence) fit(m *match, at int, rest func(at int) bool) bool {
	if len(s) == 0 {
		return rest(at)
	}
	return s[0].fit(m, at, func(end int) bool { return s[1:].fit(m, end, rest) })
}

func (e Either) fit(m *match, at int, rest func(at int) bool) bool {
	return slices.ContainsFunc(e, func(s Sequence) bool { return s.fit(m, at, rest) })
}

// String is the slot as a header has it.
func (s Slot) String() string {
	if s.None {
		return s.Name + ":" + s.Type.String() + "?"
	}
	return s.Name + ":" + s.Type.String()
}
