package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// generate runs parts to the end, as the handler does, starting from what exists.
func generate(t *testing.T, m LLM, in Prompt, soFar string) (text string, parts []Part, tokens []string) {
	t.Helper()
	text = soFar
	for range maxParts {
		part, err := m.Stream(t.Context(), in, text, func(token string) error {
			tokens = append(tokens, token)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		text += part.Text
		parts = append(parts, part)
		if part.Done {
			return text, parts, tokens
		}
	}
	t.Fatal("the answer does not end")
	return
}

func newTestModel(t *testing.T) *Markov {
	t.Helper()
	m, err := NewMarkov(0)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMarkovIsDeterministicBySeed(t *testing.T) {
	in := Prompt{Text: "The White Rabbit", MaxTokens: 120, Seed: 7}
	first, parts, tokens := generate(t, newTestModel(t), in, "")
	again, _, _ := generate(t, newTestModel(t), in, "")
	if first != again {
		t.Errorf("two models, one seed:\n%s\n%s", first, again)
	}
	if joined := strings.Join(tokens, ""); joined != first {
		t.Errorf("tokens make %q, parts make %q", joined, first)
	}
	if len(parts) < 3 || !strings.HasPrefix(first, in.Text) {
		t.Errorf("%d parts: %q", len(parts), first)
	}
	if len(tokens) < 100 || len(tokens) > 120 {
		t.Errorf("%d tokens, want 100..120", len(tokens))
	}
	in.Seed = 8
	if other, _, _ := generate(t, newTestModel(t), in, ""); other == first {
		t.Error("another seed gives the same answer")
	}
}

// What the example promises: a run that goes on after a recorded part says what the first one would have said.
func TestMarkovGoesOnAfterEveryPart(t *testing.T) {
	in := Prompt{Text: "I went to the woods", MaxTokens: 100, Seed: 3}
	whole, parts, _ := generate(t, newTestModel(t), in, "")
	kept := ""
	for i, part := range parts[:len(parts)-1] {
		kept += part.Text
		if got, _, _ := generate(t, newTestModel(t), in, kept); got != whole {
			t.Errorf("after part %d:\n%s\nwant\n%s", i+1, got, whole)
		}
	}
}

func TestMarkovAnswersAnything(t *testing.T) {
	for _, text := range []string{"xyzzy", "…", "Was it the", "日本語", "\x1b[31mred"} {
		if got, _, _ := generate(t, newTestModel(t), Prompt{Text: text, MaxTokens: 5, Seed: 1},
			""); !strings.HasPrefix(got, text) || len(got) < len(text)+5 {
			t.Errorf("prompt %q: %q", text, got)
		}
	}
}

func TestMarkovStops(t *testing.T) {
	m := newTestModel(t)
	in := Prompt{Text: "Alice", MaxTokens: 50}
	full := errors.New("full")
	if _, err := m.Stream(t.Context(), in, "", func(string) error { return full }); !errors.Is(err, full) {
		t.Errorf("emit's error: %v", err)
	}
	m.pace = 1 << 40
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(full)
	if _, err := m.Stream(ctx, in, "", func(string) error { return nil }); !errors.Is(err, full) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestTokenize(t *testing.T) {
	got := tokenize(`"Well!" said Mr. O'Neil (who hadn't slept) - "rabbit-hole, please."`)
	want := []string{"Well", "!", "said", "Mr.", "O'Neil", "who", "hadn't", "slept", "rabbit-hole", ",", "please", "."}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
