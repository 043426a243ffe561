//go:build !no_anthropic

package main

import (
	"cmp"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/anthropic"
)

// claude is a model of Anthropic.
func claude(env func(string) string) (agent.Model, error) {
	return anthropic.New(anthropic.Config{Model: cmp.Or(env("ANTHROPIC_MODEL"), "claude-sonnet-5")})
}
