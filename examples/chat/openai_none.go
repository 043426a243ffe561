//go:build no_openai

package main

import (
	"errors"

	"github.com/flowfabric/flowfabric-go/agent"
)

// openAI tells how to get the adapter, which this program leaves out.
func openAI(func(string) string) (agent.Model, error) {
	return nil, errors.New(
		"OPENAI_API_KEY or OPENAI_BASE_URL is set, but this program was built with the tag no_openai; " +
			"start it with `make chat`, or build it without that tag")
}
