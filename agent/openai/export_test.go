package openai

import "github.com/flowfabric/flowfabric-go/agent"

// Assemble is the answer that events come to.
func Assemble(events []string, delta func(agent.Delta) error) (agent.Response, error) {
	a := newAnswer(delta, true)
	for _, e := range events {
		if done, err := a.event([]byte(e)); err != nil {
			return agent.Response{}, err
		} else if done {
			break
		}
	}
	return a.response()
}
