package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A person who knows one form of a name knows all: each form of each command in the tree leads to that command.
func TestForms(t *testing.T) {
	root, found := rootCommand(&app{}), map[string]int{}
	var visit func(path []string, c *cobra.Command)
	visit = func(path []string, c *cobra.Command) {
		for _, words := range forms {
			if !slices.Contains(words, c.Name()) {
				continue
			}
			for _, word := range words {
				line := append(path[:len(path)-1:len(path)-1], word)
				if got, _, err := root.Find(line); err != nil || got != c {
					t.Errorf("%v leads to %v, %v", line, got.CommandPath(), err)
				}
				found[word]++
			}
		}
		for _, sub := range c.Commands() {
			visit(append(path[:len(path):len(path)], sub.Name()), sub)
		}
	}
	for _, c := range root.Commands() {
		visit([]string{c.Name()}, c)
	}
	for _, words := range forms {
		for _, word := range words {
			if found[word] == 0 {
				t.Errorf("no command has the form %s", word)
			}
		}
	}
	// groups that say nothing of it in the table would go unnoticed: a list is a list everywhere
	for _, line := range []string{"ls", "flows ls", "lanes ls", "worker ls", "schedule ls", "gates list",
		"key ls", "schedules rm", "gate remove", "lane update", "gate set", "schedule get"} {
		if c, rest, err := root.Find(strings.Fields(line)); err != nil || len(rest) > 0 || c.HasSubCommands() {
			t.Errorf("%s: %v, %v", line, rest, err)
		}
	}
}

// A command that changes only what is said names no default in its help: nothing is reset to it.
func TestUpdatesHaveNoDefaults(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		if slices.Contains([]string{"update", "set"}, c.Name()) {
			if text := c.LocalNonPersistentFlags().FlagUsages(); strings.Contains(text, "default") {
				t.Errorf("%s:\n%s", c.CommandPath(), text)
			}
			if !strings.Contains(strings.Join(strings.Fields(c.Long), " "), "keeps the others") {
				t.Errorf("%s does not say what it leaves: %s", c.CommandPath(), c.Long)
			}
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(rootCommand(&app{}))
}
