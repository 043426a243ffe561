package anthropic

import (
	"errors"

	"github.com/flowfabric/flowfabric-go/agent"
)

// Assemble is the answer that events come to, and its blocks as they go back.
func Assemble(events []string, delta func(agent.Delta) error) (agent.Response, int, error) {
	a := newAnswer(delta)
	a.begin()
	for _, e := range events {
		if done, err := a.event("", []byte(e)); err != nil {
			return agent.Response{}, 0, err
		} else if done {
			return a.response(), len(a.soFar()), nil
		}
	}
	return agent.Response{}, 0, errors.New("no end")
}
