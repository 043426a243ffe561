package suspend

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/denied"
)

// numbered makes n different texts.
func numbered(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(prefix, i))
	}
	return list
}

func members(n int, one Condition) []Condition { return slices.Repeat([]Condition{one}, n) }

// The form that lua/lib/condition.lua reads: members before their group, waitpoints numbered as they come.
func TestConditionsAsTheServerReadsThem(t *testing.T) {
	for what, x := range map[string]struct {
		cond Condition
		text string
		keys string
	}{
		"signal":        {Signal("a"), "L|1|1|", "a"},
		"named":         {Signal("a").Named("go"), "L|1|1|go", "a"},
		"signals":       {Signals("a", 2, "go", "go", ""), "L|1|2|go|go|", "a"},
		"count":         {Count(2, Waitpoints, "a", "b", "c"), "C|2|w||1|2|3", "a b c"},
		"count signals": {Count(3, SignalCount, "a").Named("vote"), "C|3|s|vote|1", "a"},
		"count sources": {Count(3, Sources, "a", "b"), "C|3|c||1|2", "a b"},
		"all":           {AllOf(Signal("a"), Signal("b")), "L|1|1|;L|2|1|;G|2|1|2", "a b"},
		"any":           {AnyOf(Signal("a"), Signal("b")), "L|1|1|;L|2|1|;G|1|1|2", "a b"},
		"nested": {AllOf(Signal("a"), AnyOf(Count(1, Waitpoints, "b", "a"), Signal("c"))),
			"L|1|1|;C|1|w||2|1;L|3|1|;G|1|2|3;G|2|1|4", "a b c"},
		"operator": {Operator(), "O", ""},
		"timeout":  {Timeout(), "T", ""},
		"64 names": {Signals("a", 64, numbered("n", 64)...), "L|1|64|" + strings.Join(numbered("n", 64), "|"),
			"a"},
		"n of 1000": {Count(1000, SignalCount, "a"), "C|1000|s||1", "a"},
		"32 parts": {AllOf(members(31, Signal("a"))...),
			strings.Repeat("L|1|1|;", 31) + "G|31|" + strings.Join(numbered("", 32)[1:], "|"), "a"},
		"16 waitpoints": {Count(16, Waitpoints, numbered("k", 16)...),
			"C|16|w||" + strings.Join(numbered("", 17)[1:], "|"), strings.Join(numbered("k", 16), " ")},
		"four levels": {AllOf(AllOf(AllOf(Signal("a")))), "L|1|1|;G|1|1;G|1|2;G|1|3", "a"},
		"key of 256":  {Signal(strings.Repeat("k", 256)), "L|1|1|", strings.Repeat("k", 256)},
	} {
		text, keys, err := x.cond.Compile()
		text = strings.NewReplacer("\x1f", "|", "\x1e", ";").Replace(text)
		if err != nil || text != x.text || strings.Join(keys, " ") != x.keys {
			t.Errorf("%s: %q %v, %v; want %q %s", what, text, keys, err, x.text, x.keys)
		}
	}
}

// What can never be met is refused, with the path of the part.
func TestConditionsThatAreRefused(t *testing.T) {
	deep := AllOf(AllOf(AllOf(AllOf(Signal("a")))))
	for what, x := range map[string]struct {
		cond Condition
		says string
	}{
		"zero":        {Condition{}, "condition: it is empty"},
		"zero member": {AllOf(Signal("a"), Condition{}), "condition.members[1]: it is empty"},
		"empty group": {AllOf(), "condition: allof_empty_members"},
		"empty any":   {AnyOf(), "condition: allof_empty_members"},
		"empty group inside": {AllOf(Signal("a"), AnyOf(Signal("b"), AllOf())),
			"condition.members[1].members[1]: allof_empty_members"},
		"n 0":       {Count(0, Waitpoints, "a"), "condition: count_n_zero: n is 0, want 1..1000"},
		"n -1":      {Count(-1, SignalCount, "a"), "condition: count_n_zero"},
		"n 1001":    {Count(1001, SignalCount, "a"), "condition: n is 1001, want 1..1000"},
		"empty set": {Count(1, Sources), "condition: count_waitpoints_empty"},
		"n over set": {AllOf(Count(3, Waitpoints, "a", "b")),
			"condition.members[0]: count_exceeds_waitpoint_set: needs 3 of 2"},
		"key twice":   {Count(1, Waitpoints, "a", "a"), `condition: waitpoint "a" is named twice`},
		"counts what": {Count(1, "x", "a"), `condition: counts "x"`},
		"depth 5": {deep,
			"condition.members[0].members[0].members[0].members[0]: depth 5, want at most 4"},
		"33 parts":   {AllOf(members(32, Signal("a"))...), "condition: 33 parts, want at most 32"},
		"many parts": {AllOf(members(5000, Signal("a"))...), "more than 32 parts"},
		"17 waitpoints": {Count(1, Waitpoints, numbered("k", 17)...),
			"condition: 17 waitpoints, want at most 16"},
		"too long": {AllOf(members(3,
			Signals("a", 1, slices.Repeat([]string{strings.Repeat("n", 128)}, 64)...))...), "want at most 16384"},
		"operator inside": {AllOf(Signal("a"), Operator()),
			"condition.members[1]: Operator and Timeout stand alone"},
		"timeout inside":       {AnyOf(Timeout()), "condition.members[0]: Operator and Timeout stand alone"},
		"no names":             {Signals("a", 1), "condition: 0 names, want 1..64"},
		"65 names":             {Signals("a", 1, numbered("n", 65)...), "condition: 65 names, want 1..64"},
		"2 of 1":               {Signals("a", 2, "v"), "condition: needs 2 of 1 signals, so it can never be met"},
		"0 of 1":               {Signals("a", 0, "v"), "condition: needs 0 of 1 signals"},
		"name reserved":        {Signal("a").Named("__timeout"), "condition: invalid_input"},
		"name reserved, #44":   {Signals("a", 1, "__operator_only__"), "do not begin with __"},
		"name empty by choice": {Signal("a").Named(""), `condition: invalid_input`},
		"name of 129": {Signal("a").Named(strings.Repeat("n", 129)),
			"signal name has 129 bytes, want at most 128"},
		"name with separator": {Signal("a").Named("a\x1fb"), "signal name has control character 0x1f at 1"},
		"count name":          {Count(1, SignalCount, "a").Named("\x7f"), "control character 0x7f at 0"},
		"named group": {AllOf(Signal("a")).Named("x"),
			"condition: Named narrows Signal and Count, not a group"},
		"key empty": {Signal(""), "condition: invalid_input"},
		"key of 257": {Count(1, Waitpoints, strings.Repeat("k", 257)),
			"waitpoint key has 257 bytes, want at most 256"},
		"key with separator": {Signal("a\x1e"), "waitpoint key has control character 0x1e at 1"},
	} {
		text, keys, err := x.cond.Compile()
		if !errors.Is(err, denied.Condition) || !strings.Contains(err.Error(), x.says) || text != "" || keys != nil {
			t.Errorf("%s: %q %v, %.300v; want %q", what, text, keys, err, x.says)
		}
	}
}

// Conditions are values: narrowing one leaves the other as it was.
func TestNamedLeavesItsConditionAlone(t *testing.T) {
	any := Signals("a", 1, "x", "y")
	_ = any.Named("z")
	if text, _, err := any.Compile(); err != nil || !strings.HasSuffix(text, "x\x1fy") {
		t.Errorf("%q, %v", text, err)
	}
}
