//go:build !no_openai

package main

import (
	"cmp"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/openai"
)

// openAI is a model of OpenAI, or of a server that speaks its protocol.
func openAI(env func(string) string) (agent.Model, error) {
	return openai.New(openai.Config{Model: cmp.Or(env("OPENAI_MODEL"), "gpt-5-mini")})
}
