package openai_test

import (
	"testing"

	"github.com/flowfabric/flowfabric-go/agent/openai"
)

func TestDescribe(t *testing.T) {
	m, err := openai.New(openai.Config{Model: "m-1", APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	if provider, model := m.Describe(); provider != "openai" || model != "m-1" {
		t.Errorf("%s, %s", provider, model)
	}
}
