package waits

import "github.com/flowfabric/flowfabric-go/suspend"

// Choices are those of a question, approve and reject when it names none.
func Choices(q suspend.Question) []suspend.Choice {
	if len(q.Choices) > 0 {
		return q.Choices
	}
	return []suspend.Choice{{Name: "approve", Label: "Approve"}, {Name: "reject", Label: "Reject"}}
}

// Answered is the condition that one of the choices of a question comes to a waitpoint.
func Answered(q suspend.Question, key string) suspend.Condition {
	var names []string
	for _, c := range Choices(q) {
		names = append(names, c.Name)
	}
	return suspend.Signals(key, 1, names...)
}
