package httpapi

import (
	"fmt"

	"github.com/flowfabric/flowfabric-go/suspend"
)

// conditionBody has exactly one of its forms. Members of a group may be groups once.
type conditionBody struct {
	conditionLeaf
	All      []conditionGroup `json:"all,omitempty" jsonschema:"all of these"`
	Any      []conditionGroup `json:"any,omitempty" jsonschema:"one of these"`
	Mailbox  string           `json:"mailbox,omitempty" jsonschema:"a message of this mailbox, for receive to take …"`
	Number   int              `json:"number,omitempty" jsonschema:"… under this number"`
	Operator bool             `json:"operator,omitempty" jsonschema:"only an operator resumes it"`
	Timeout  bool             `json:"timeout,omitempty" jsonschema:"only the time does"`
}

type conditionGroup struct {
	conditionLeaf
	All []conditionLeaf `json:"all,omitempty"`
	Any []conditionLeaf `json:"any,omitempty"`
}

type conditionLeaf struct {
	Signal string   `json:"signal,omitempty" jsonschema:"a signal on the waitpoint of this key"`
	Named  string   `json:"named,omitempty" jsonschema:"of this name only; with signal or count"`
	Count  int      `json:"count,omitempty" jsonschema:"so many signals …"`
	Of     []string `json:"of,omitempty" jsonschema:"… on the waitpoints of these keys"`
	By     string   `json:"by,omitempty" jsonschema:"… counted as waitpoints (default), signals or sources"`

	Message string `json:"message,omitempty" jsonschema:"a message in this mailbox, which stays there for receive to take"`
}

// there counts the forms that a condition has.
func there(forms ...bool) (n int) {
	for _, given := range forms {
		if given {
			n++
		}
	}
	return n
}

func (b *conditionLeaf) given() bool {
	return b.Signal != "" || b.Count != 0 || b.Of != nil || b.Message != ""
}

func (b *conditionLeaf) condition(place string) (cond suspend.Condition, err error) {
	if there(b.Signal != "", b.Count != 0 || b.Of != nil, b.Message != "") != 1 {
		return cond, invalid(place, "want one of signal, message, and count with of")
	}
	if b.Message != "" {
		if b.Named != "" || b.By != "" {
			return cond, invalid(place, "named and by do not belong to message")
		}
		return suspend.Mailbox(b.Message), nil
	}
	if cond = suspend.Signal(b.Signal); b.Signal == "" {
		by := map[string]suspend.Distinct{"": suspend.Waitpoints, "waitpoints": suspend.Waitpoints,
			"signals": suspend.SignalCount, "sources": suspend.Sources}
		distinct, ok := by[b.By]
		if !ok {
			return cond, invalid(place+"/by", "it is %.32q, want waitpoints, signals or sources", b.By)
		}
		cond = suspend.Count(b.Count, distinct, b.Of...)
	} else if b.By != "" {
		return cond, invalid(place+"/by", "it belongs to count")
	}
	if b.Named != "" {
		cond = cond.Named(b.Named)
	}
	return cond, nil
}

func (b *conditionGroup) condition(place string) (suspend.Condition, error) {
	if there(b.given(), b.All != nil, b.Any != nil) != 1 {
		return suspend.Condition{}, invalid(place, "want one of signal, count, message, all and any")
	}
	if b.given() {
		return b.conditionLeaf.condition(place)
	}
	return group(place, b.All, b.Any, (*conditionLeaf).condition)
}

func (b *conditionBody) condition(place string) (suspend.Condition, error) {
	if there(b.given(), b.All != nil, b.Any != nil, b.Operator, b.Timeout) != 1 {
		return suspend.Condition{},
			invalid(place, "want one of signal, count, message, all, any, mailbox, operator and timeout")
	}
	if b.Number != 0 {
		return suspend.Condition{}, invalid(place+"/number", "it belongs to mailbox")
	}
	switch {
	case b.Operator:
		return suspend.Operator(), nil
	case b.Timeout:
		return suspend.Timeout(), nil
	case b.given():
		return b.conditionLeaf.condition(place)
	}
	return group(place, b.All, b.Any, (*conditionGroup).condition)
}

// group is all of a list, or any of another; one of the two is there.
func group[T any](place string, all, some []T,
	member func(*T, string) (suspend.Condition, error)) (suspend.Condition, error) {
	list, name := all, "all"
	if some != nil {
		list, name = some, "any"
	}
	members := make([]suspend.Condition, len(list))
	for i := range list {
		var err error
		if members[i], err = member(&list[i], fmt.Sprintf("%s/%s/%d", place, name, i)); err != nil {
			return suspend.Condition{}, err
		}
	}
	if some != nil {
		return suspend.AnyOf(members...), nil
	}
	return suspend.AllOf(members...), nil
}
