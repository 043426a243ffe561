//go:build no_anthropic

package main

import (
	"errors"

	"github.com/flowfabric/flowfabric-go/agent"
)

// claude tells how to get the adapter, which this program leaves out.
func claude(func(string) string) (agent.Model, error) {
	return nil, errors.New("ANTHROPIC_API_KEY is set, but this program was built with the tag no_anthropic; " +
		"start it with `make chat`, or build it without that tag")
}
