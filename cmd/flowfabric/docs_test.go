package main

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// docs/reference/cli.md is made from the command tree, so that it cannot drift; FLOWFABRIC_GOLDEN=write makes it anew.
func TestDocs(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# The command line

Made from the command tree by a test of cmd/flowfabric: ` +
		"`FLOWFABRIC_GOLDEN=write go test ./cmd/flowfabric -run TestDocs`" + `.
Install it with ` + "`go install ./cmd/flowfabric`" + ` in a clone of the repository.

`)
	root := rootCommand(&app{})
	intro, _, _ := strings.Cut(root.Long, "\n\nExit codes:")
	b.WriteString(intro + "\n\n## Exit codes\n\n| Code | Meaning |\n|---|---|\n")
	rows := slices.Clone(exits)
	slices.SortFunc(rows, func(x, y exit) int { return cmp.Compare(x.code, y.code) })
	for _, row := range rows {
		fmt.Fprintf(&b, "| %d | %s |\n", row.code, row.meaning)
	}
	b.WriteString("\n## Flags of all commands\n\n")
	flagTable(&b, root.PersistentFlags())
	b.WriteString(`
Colours are shown on a terminal only, and never with ` + "`NO_COLOR`" +
		` set. Passwords in URLs, tokens and token keys appear in no
output. Field names of JSON do not change within a major version; new ones may come.

## Completion

    source <(flowfabric completion bash)          # zsh, fish, powershell: flowfabric completion --help

`)
	for _, group := range root.Groups() {
		fmt.Fprintf(&b, "## %s\n\n", strings.TrimSuffix(group.Title, ":"))
		for _, c := range root.Commands() {
			if c.GroupID == group.ID && !c.Hidden && c.Name() != "help" && c.Name() != "completion" {
				document(t, &b, c)
			}
		}
	}
	compare(t, filepath.Join("..", "..", "docs", "reference", "cli.md"), strings.TrimRight(b.String(), "\n")+"\n")
}

// document writes a command, and those below it.
func document(t *testing.T, b *strings.Builder, c *cobra.Command) {
	t.Helper()
	if c.Short == "" || c.Runnable() && !c.HasSubCommands() && c.Example == "" && c.Name() != "version" {
		t.Errorf("%s has no summary, or no example", c.CommandPath())
	}
	fmt.Fprintf(b, "### %s\n\n", c.CommandPath())
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	b.WriteString(text + "\n\n")
	if !c.HasSubCommands() {
		fmt.Fprintf(b, "    %s\n\n", c.UseLine())
	}
	if len(c.Aliases) > 0 {
		fmt.Fprintf(b, "Also: %s.\n\n", strings.Join(c.Aliases, ", "))
	}
	if c.Example != "" {
		b.WriteString("```sh\n" + unindent(c.Example) + "\n```\n\n")
	}
	if c.LocalNonPersistentFlags().HasAvailableFlags() {
		flagTable(b, c.LocalNonPersistentFlags())
		b.WriteByte('\n')
	}
	for _, sub := range c.Commands() {
		document(t, b, sub)
	}
}

func unindent(text string) string {
	return strings.TrimSpace(strings.ReplaceAll(text, "\n  ", "\n"))
}

func flagTable(b *strings.Builder, flags *pflag.FlagSet) {
	b.WriteString("| Flag | |\n|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := strings.TrimSpace("--" + f.Name + " " + value)
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "0s" && f.DefValue != "[]" {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", name, strings.ReplaceAll(usage, "|", "\\|"))
	})
}

// Help is part of the interface: the whole of it is held against a file.
func TestHelp(t *testing.T) {
	var b strings.Builder
	var visit func(path []string, c *cobra.Command)
	visit = func(path []string, c *cobra.Command) {
		var out bytes.Buffer
		if code := run(t.Context(), append(path, "--help"), strings.NewReader(""), &out, &out); code != exitOK {
			t.Errorf("%v --help: exit %d: %s", path, code, &out)
		}
		fmt.Fprintf(&b, "$ flowfabric %s\n%s\n", strings.Join(append(path, "--help"), " "), &out)
		for _, sub := range c.Commands() {
			visit(append(path[:len(path):len(path)], sub.Name()), sub)
		}
	}
	visit(nil, rootCommand(&app{}))
	compare(t, filepath.Join("testdata", "help.golden"), b.String())
}

// The scripts are made, and what they ask for is answered: commands and flags.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var out, errOut bytes.Buffer
		if code := run(t.Context(), []string{"completion", shell}, strings.NewReader(""), &out,
			&errOut); code != exitOK || out.Len() < 1000 || errOut.Len() > 0 {
			t.Errorf("%s: exit %d, %d bytes, %s", shell, code, out.Len(), &errOut)
		}
	}
	for line, want := range map[string]string{"lane ": "retention", "submit --pri": "--priority",
		"schedules ": "remove", "": "doctor", "ls --state ": "suspended", "lane pause --": "--by"} {
		var out, errOut bytes.Buffer
		run(t.Context(), append([]string{"__complete"}, strings.Split(line, " ")...), strings.NewReader(""), &out,
			&errOut)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q completes to %s, want %s", line, &out, want)
		}
	}
}
