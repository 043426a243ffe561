package waitwords

import (
	"strconv"
	"strings"
)

// ChildrenCondition is the part of a condition that enough children meet, as lua/lib/condition.lua reads it.
const ChildrenCondition = "K"

// TimeoutCondition is the condition that nothing but a time limit or an operator meets.
const TimeoutCondition = "T"

// ChildrenOr is the condition that waits for enough children or for another condition, whichever comes first. An
// operator, and a time limit, end every wait, so those conditions add nothing.
func ChildrenOr(condition string) string {
	if condition == "" || condition == "O" || condition == TimeoutCondition {
		return ChildrenCondition
	}
	n := strings.Count(condition, "\x1e") + 1
	return strings.Join([]string{condition, ChildrenCondition,
		"G\x1f1\x1f" + strconv.Itoa(n) + "\x1f" + strconv.Itoa(n+1)}, "\x1e")
}

// OfChildren reports that children are a part of a condition.
func OfChildren(condition string) bool {
	return strings.Contains("\x1e"+condition+"\x1e", "\x1e"+ChildrenCondition+"\x1e")
}
