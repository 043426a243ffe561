//go:build no_openai && no_anthropic

package main

import (
	"strings"
	"testing"
)

// A program without adapters needs no key, and says what to do when there is one.
func TestChooseWithoutAdapters(t *testing.T) {
	for key, want := range map[string]string{
		"": "", "OPENAI_API_KEY": "no_openai", "OPENAI_BASE_URL": "no_openai", "ANTHROPIC_API_KEY": "no_anthropic",
	} {
		m, err := choose(func(name string) string {
			if name == key {
				return "set"
			}
			return ""
		}, 0)
		switch {
		case want == "" && (err != nil || nameOf(m) != "small built-in model"):
			t.Errorf("no key: %v, %v", m, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v", key, err)
		}
	}
}
