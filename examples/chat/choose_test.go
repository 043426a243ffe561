//go:build !no_openai && !no_anthropic

package main

import "testing"

// The environment names the model. A key of OpenAI comes first.
func TestChoose(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "small built-in model"},
		{map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "gpt-5-mini"},
		{map[string]string{"OPENAI_API_KEY": "k", "OPENAI_MODEL": "m", "ANTHROPIC_API_KEY": "k"}, "m"},
		{map[string]string{"ANTHROPIC_API_KEY": "k"}, "claude-sonnet-5"},
	} {
		for _, name := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"} {
			t.Setenv(name, c.env[name]) // the adapters read it themselves
		}
		m, err := choose(func(name string) string { return c.env[name] }, 0)
		if err != nil || nameOf(m) != c.want {
			t.Errorf("%v: %v, %v, want %s", c.env, m, err, c.want)
		}
	}
}
