package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
	"unicode"

	"github.com/flowfabric/flowfabric-go/examples/corpus"
)

// LLM is a language model that can go on where it, or another copy of it, stopped.
type LLM interface {
	// Name is shown with the answer.
	Name() string
	// Stream produces the next part of the answer to in, of which soFar exists already. It calls emit for every
	// token as soon as there is one and stops with emit's error.
	Stream(ctx context.Context, in Prompt, soFar string, emit func(token string) error) (Part, error)
}

// Part is a stretch of an answer that is recorded as a whole: a sentence, or everything for a model that cannot
// be interrupted.
type Part struct {
	Text   string
	Tokens int
	Done   bool // the answer is complete
	Took   time.Duration
}

const (
	order       = 3  // words of context
	maxPart     = 24 // tokens after which a part ends even inside a sentence
	temperature = 0.9
	wander      = 0.45 // chance to look at one word less where the text knows only one way on
)

// window is the last words seen, right-aligned, -1 where there are fewer.
type window [order]int32

// choices are the words that followed a window in the corpus.
type choices struct {
	words []int32
	count []float64
}

// Markov is a word-level n-gram model of order 3 that backs off to shorter contexts. It is trained in a few
// milliseconds, answers equal prompts with equal seeds alike, and may be used concurrently.
type Markov struct {
	pace   time.Duration // mean pause between tokens; a real model is not instant either
	words  []string
	ids    map[string]int32
	next   map[window]*choices
	starts window // context of a sentence start
}

// NewMarkov trains the model on the bundled corpus. pace is the mean pause between two tokens, 0 for none.
func NewMarkov(pace time.Duration) (*Markov, error) {
	m := &Markov{pace: pace, ids: map[string]int32{}, next: map[window]*choices{}}
	m.starts = window{-1, -1, m.id(".")}
	texts, err := corpus.Texts()
	if err != nil {
		return nil, fmt.Errorf("read corpus: %w", err)
	}
	for _, text := range texts {
		for _, paragraph := range text.Paragraphs {
			m.train(paragraph)
		}
	}
	return m, nil
}

// Name implements LLM.
func (m *Markov) Name() string { return fmt.Sprintf("markov-%d (%d words)", order, len(m.words)) }

func (m *Markov) id(word string) int32 {
	id, ok := m.ids[word]
	if !ok {
		id = int32(len(m.words))
		m.ids[word] = id
		m.words = append(m.words, word)
	}
	return id
}

// train counts what follows every context of 0 to 3 words. Paragraphs begin like sentences.
func (m *Markov) train(paragraph string) {
	w := m.starts
	for _, word := range tokenize(paragraph) {
		id := m.id(word)
		for keep := 0; keep <= order; keep++ {
			if keep > 0 && w[order-keep] < 0 {
				break
			}
			m.count(shorten(w, keep), id)
		}
		w = shift(w, id)
	}
}

func (m *Markov) count(w window, id int32) {
	c := m.next[w]
	if c == nil {
		c = &choices{}
		m.next[w] = c
	}
	for i, known := range c.words {
		if known == id {
			c.count[i]++
			return
		}
	}
	c.words, c.count = append(c.words, id), append(c.count, 1)
}

// Stream implements LLM: one sentence per part. What it says depends only on the prompt, its seed and soFar, so
// another process that goes on after a crash says what the first one would have said.
func (m *Markov) Stream(ctx context.Context, in Prompt, soFar string, emit func(string) error) (Part, error) {
	echo := "" // the answer repeats the prompt and goes on with it
	if soFar == "" {
		soFar, echo = in.Text, in.Text
	}
	w, said := m.starts, tokenize(soFar)
	for _, word := range said {
		w = shift(w, m.lookup(word))
	}
	said = said[min(len(tokenize(in.Text)), len(said)):]
	rng := rand.New(rand.NewPCG(in.Seed, uint64(len(said))))
	begin := time.Now()
	var part Part
	var text strings.Builder
	for {
		w = shift(w, m.sample(rng, w))
		word := m.words[w[order-1]]
		piece := word
		if !isPunctuation(word) {
			piece = " " + word
		}
		piece, echo = echo+piece, ""
		if err := m.wait(ctx, rng); err != nil {
			return Part{}, err
		}
		if err := emit(piece); err != nil {
			return Part{}, err
		}
		text.WriteString(piece)
		part.Tokens++
		total, full := len(said)+part.Tokens, isSentenceEnd(word)
		part.Done = total >= in.MaxTokens || full && total >= in.MaxTokens*5/6
		if part.Done || full || part.Tokens == maxPart {
			part.Text, part.Took = text.String(), time.Since(begin)
			return part, nil
		}
	}
}

// lookup finds a word of the prompt as it is or capitalised as a sentence start would be; -1 when unknown.
func (m *Markov) lookup(word string) int32 {
	for _, form := range []string{word, strings.ToLower(word), capitalize(word)} {
		if id, ok := m.ids[form]; ok {
			return id
		}
	}
	return -1
}

// sample draws the next word: from the longest context that was ever seen, or from a shorter one when that knows a
// single continuation and chance says so. Without chance it would only recite.
func (m *Markov) sample(rng *rand.Rand, w window) int32 {
	for keep := order; keep > 0; keep-- {
		if w[order-keep] < 0 {
			continue
		}
		c := m.next[shorten(w, keep)]
		if c == nil || keep > 2 && len(c.words) == 1 && rng.Float64() < wander {
			continue
		}
		return c.draw(rng)
	}
	return m.next[shorten(m.starts, 1)].draw(rng) // nothing known: begin a sentence
}

func (c *choices) draw(rng *rand.Rand) int32 {
	weights, sum := make([]float64, len(c.count)), 0.0
	for i, n := range c.count {
		weights[i] = math.Pow(n, 1/temperature)
		sum += weights[i]
	}
	at := rng.Float64() * sum
	for i, weight := range weights {
		if at -= weight; at < 0 {
			return c.words[i]
		}
	}
	return c.words[len(c.words)-1]
}

// wait paces the answer, between 5/7 and 9/7 of the mean pause.
func (m *Markov) wait(ctx context.Context, rng *rand.Rand) error {
	pause := time.Duration((5 + 4*rng.Float64()) / 7 * float64(m.pace))
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func shift(w window, id int32) window {
	copy(w[:], w[1:])
	w[order-1] = id
	return w
}

// shorten keeps the last words of a window.
func shorten(w window, keep int) window {
	for i := range order - keep {
		w[i] = -1
	}
	return w
}

// tokenize splits text into words, with inner hyphens and apostrophes, and punctuation marks. Quotation marks and
// brackets are left out: a model of three words cannot close what it opened.
func tokenize(text string) []string {
	var tokens []string
	var word strings.Builder
	flush := func() {
		if t := strings.Trim(word.String(), "-"); t != "" {
			tokens = append(tokens, t)
		}
		word.Reset()
	}
	for _, r := range text {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '\'' || r == '-':
			word.WriteRune(r)
		case strings.ContainsRune(".,;:!?", r):
			if r == '.' && isTitle(word.String()) {
				word.WriteRune(r)
			} else {
				flush()
				tokens = append(tokens, string(r))
			}
		default:
			flush()
		}
	}
	flush()
	return tokens
}

func isTitle(word string) bool       { return word == "Mr" || word == "Mrs" }
func isPunctuation(word string) bool { return len(word) == 1 && strings.Contains(".,;:!?", word) }
func isSentenceEnd(word string) bool { return word == "." || word == "!" || word == "?" }

func capitalize(word string) string {
	if word == "" {
		return ""
	}
	return strings.ToUpper(word[:1]) + word[1:]
}
