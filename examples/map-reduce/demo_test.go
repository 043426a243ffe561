package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/demotest"
)

// ranked counts the words of all parts but the two that are never counted, in another way than the example does.
func ranked(t *testing.T, letters int) (words int, lines []string) {
	t.Helper()
	texts, err := split()
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for i, text := range texts {
		if i+1 == broken || i+1 == stuck {
			continue
		}
		for _, word := range regexp.MustCompile(`[\p{L}']*\p{L}[\p{L}']*`).FindAllString(text, -1) {
			words++
			if word = strings.Trim(strings.ToLower(word), "'"); len(word) >= letters {
				times[word]++
			}
		}
	}
	for word := range times {
		lines = append(lines, word)
	}
	slices.SortFunc(lines, func(a, b string) int { return cmp.Or(times[b]-times[a], strings.Compare(a, b)) })
	for i, word := range lines {
		lines[i] = fmt.Sprintf("%2d. %-12s %3d ", i+1, word, times[word])
	}
	return words, lines
}

// 48 of 50 parts are counted, among them those that failed at first; the result is theirs and nobody else's.
func TestMapReduce(t *testing.T) {
	demotest.On(t, run, func(t *testing.T, d demotest.Demo) {
		out := d.Output("-pace", "1ms", "-top", "5", "-text", "-mermaid")
		words, lines := ranked(t, 5)
		for _, want := range append(slices.Clone(lines[:5]),
			"part-07: the tokenizer is busy; it is tried again.", "part-21: the", "part-42: the",
			"part-13: the text is damaged; no retry would help.",
			"part-37 was cut off; its context ended because of this: cancelled: the execution was cancelled.",
			fmt.Sprintf("was given 48 of 50 counts, all but part-13 and part-37: %d words.", words),
			"; nodes: 1 cancelled, 1 failed, 49 completed.", "completed after ", "\nflowchart ",
		) {
			if !strings.Contains(out, want) {
				t.Errorf("no %q", want)
			}
		}
		if strings.Contains(out, lines[5]) {
			t.Errorf("a sixth word is shown: %q", lines[5])
		}
		counted := map[string]bool{}
		for _, row := range regexp.MustCompile(`(?m)^(?:counted)? +((?:\d\d ?)+)$`).FindAllStringSubmatch(out, -1) {
			for _, part := range strings.Fields(row[1]) {
				counted[part] = true
			}
		}
		if len(counted) != enough || counted["13"] || counted["37"] {
			t.Errorf("%d parts were counted: %v", len(counted), counted)
		}
		for n := range parts {
			if strings.Count(out, nodeName(n+1)) < 2 {
				t.Errorf("%s is not in text and diagram", nodeName(n+1))
			}
		}
		if t.Failed() {
			t.Log(out)
		}
	})
}

// Ctrl-C ends the demo without an error, and the flow with it.
func TestInterrupt(t *testing.T) {
	demotest.On(t, run, func(t *testing.T, d demotest.Demo) {
		d.Interrupt("\ncounted", "You interrupted it, so the flow was cancelled.\n", "-pace", "20ms")
		d.OneFlowCancelled("map-reduce")
	})
}

func TestBadFlags(t *testing.T) { demotest.Refuses(t, run, "-top 0", "-letters 0", "extra") }
