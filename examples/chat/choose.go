package main

import (
	"cmp"
	"time"

	"github.com/flowfabric/flowfabric-go/agent"
)

// choose makes the model that the environment names: with a key the one of a service, else the built-in one. Worker
// and web server see the same environment. The SDK of a service takes minutes to compile, so a tag leaves it out.
func choose(env func(string) string, pace time.Duration) (agent.Model, error) {
	switch {
	case env("OPENAI_API_KEY") != "" || env("OPENAI_BASE_URL") != "":
		return openAI(env)
	case env("ANTHROPIC_API_KEY") != "":
		return claude(env)
	}
	return builtIn{pace}, nil
}

// nameOf is what the page calls a model.
func nameOf(m agent.Model) string {
	if d, ok := m.(agent.Described); ok {
		provider, model := d.Describe()
		return cmp.Or(model, provider)
	}
	return "a model"
}
