package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// maxInput bounds what is read from a file or from stdin: more than any payload may have.
const maxInput = 4 << 20

// read resolves the value of a flag or an argument: "-" is stdin, "@file" the content of a file, anything else
// itself. The value never gets into an error, it may be a secret.
func (a *app) read(name, value string) ([]byte, error) {
	from, path := io.Reader(nil), ""
	switch {
	case value == "-":
		from = a.in
	case strings.HasPrefix(value, "@"):
		path = value[1:]
		f, err := os.Open(path)
		if err != nil {
			return nil, usage("%s: %v", name, err)
		}
		defer func() { _ = f.Close() }()
		from = f
	default:
		return []byte(value), nil
	}
	data, err := io.ReadAll(io.LimitReader(from, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxInput {
		return nil, usage("%s has more than %d bytes", name, maxInput)
	}
	return data, nil
}

// secret is read for a token: what stands around it is dropped.
func (a *app) secret(name, value string) (string, error) {
	data, err := a.read(name, value)
	return strings.TrimSpace(string(data)), err
}

// executionID reads an argument that names an execution.
func executionID(text string) (flowfabric.ExecutionID, error) {
	id, err := flowfabric.ParseExecutionID(strings.TrimSpace(text))
	if err != nil {
		return id, usage("%v; an id looks like 3-0197f3a0-…", redact(err.Error()))
	}
	return id, nil
}

// pairs reads "k=v" flags.
func pairs(flag string, values []string) (map[string]string, error) {
	if len(values) == 0 {
		return nil, nil
	}
	m := make(map[string]string, len(values))
	for _, text := range values {
		k, v, ok := strings.Cut(text, "=")
		if !ok || k == "" {
			return nil, usage("%s %q, want key=value", flag, text)
		}
		if another := anotherPair.FindString(v); another != "" {
			return nil, usage("%s %q has another pair behind a comma, which is part of the value: repeat %s for it",
				flag, text, flag)
		}
		m[k] = v
	}
	return m, nil
}

// anotherPair is what no value of a tag has, but what people write who want two.
var anotherPair = regexp.MustCompile(`,[a-z][a-z0-9_]*\.[a-z0-9_.]+=`)

// exactly wants as many arguments as the names after the command, and names the one that is missing.
func exactly(names ...string) cobra.PositionalArgs {
	return between(len(names), names...)
}

// between wants at least some of the named arguments.
func between(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage("%s: %s is missing; usage: %s", cmd.Name(), names[len(args)], cmd.UseLine())
		case len(args) > len(names):
			return usage("%s takes %s, got %d; usage: %s", cmd.Name(), count(len(names), "argument"), len(args),
				cmd.UseLine())
		}
		return nil
	}
}
