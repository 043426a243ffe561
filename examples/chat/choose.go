package main

import (
	"cmp"
	"time"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/anthropic"
	"github.com/flowfabric/flowfabric-go/agent/openai"
)

// choose makes the model that the environment names: with a key the one of a service, else the built-in one. Worker and web server see the same environment.
func choose(env func(string) string, pace time.Duration) (agent.Model, error) {
	switch {
	case env("OPENAI_API_KEY") != "" || env("OPENAI_BASE_URL") != "":
		return openai.New(openai.Config{Model: cmp.Or(env("OPENAI_MODEL"), "gpt-5-mini")})
	case env("ANTHROPIC_API_KEY") != "":
		return anthropic.New(anthropic.Config{Model: cmp.Or(env("ANTHROPIC_MODEL"), "claude-sonnet-5")})
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
