package anthropic_test

import (
	"testing"

	"github.com/flowfabric/flowfabric-go/agent/anthropic"
)

func TestDescribe(t *testing.T) {
	m, err := anthropic.New(anthropic.Config{Model: "m-1", APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	if provider, model := m.Describe(); provider != "anthropic" || model != "m-1" {
		t.Errorf("%s, %s", provider, model)
	}
}
