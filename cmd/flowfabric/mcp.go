package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	mcpProgram = "flowfabric-mcp"
	mcpInstall = "cd mcp && go install ./cmd/flowfabric-mcp"
	// mcpStop is how long the program may take to end after it was asked to.
	mcpStop = 10 * time.Second
)

// mcpCommand runs a program of another module: the SDK that it needs is no dependency of this one.
func mcpCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp [flags of " + mcpProgram + "]",
		Short: "Let an assistant operate FlowFabric, or serve kinds of work as MCP tools (runs " + mcpProgram + ")",
		Long: `mcp serves tools of the Model Context Protocol to the client that starts it (standard input and output)
or over HTTP. Without --config the tools operate FlowFabric: list, explain, replay, answer and so on. They only read
unless --write is given, and each change asks the user of the client. With --config a file names kinds of work, and
each becomes a tool. It runs the program flowfabric-mcp with the same arguments; that program is in a module of its
own, and "flowfabric-mcp -h" lists its flags. With --profile it serves a deployment of 'flowfabric profile': its URL
and token go to the program as environment, and its namespace as -namespace. Install the program in a clone of the
repository with
    ` + mcpInstall,
		Example: `  flowfabric mcp --url redis://127.0.0.1:6379
  FLOWFABRIC_TOKEN=… flowfabric mcp --url https://flows.example.com --write
  flowfabric mcp --profile prod
  flowfabric mcp --config tools.json --http 127.0.0.1:7789 --tokens /etc/flowfabric/tokens.json`,
		DisableFlagParsing: true,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
			return cmd.Help()
		}
		args, env, err := a.profiled(cmd, args)
		if err != nil {
			return err
		}
		return marked(cmd.Context(), a.mcp(cmd.Context(), args, env))
	}
	return cmd
}

// profiled replaces --profile by what the profile says. Its token is in the environment, which others cannot see.
func (a *app) profiled(cmd *cobra.Command, args []string) (rest, env []string, err error) {
	bound := false
	for i := 0; i < len(args); i++ {
		name, value, whole := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		switch {
		case args[i][:min(1, len(args[i]))] != "-":
		case name == "profile" && !whole && i+1 == len(args):
			return nil, nil, usage("flag needs an argument: --profile")
		case name == "profile":
			if !whole {
				i++
				value = args[i]
			}
			if a.profile = value; value == "" {
				return nil, nil, usage("--profile: it is empty")
			}
			continue
		case name == "url":
			a.url = "of the program"
		case name == "namespace":
			bound = true
		}
		rest = append(rest, args[i])
	}
	if a.profile == "" {
		return args, nil, nil
	}
	if err := a.choose(cmd); err != nil {
		return nil, nil, err
	}
	env = []string{"FLOWFABRIC_URL=" + a.chosen.URL}
	if a.chosen.Token != "" {
		env = append(env, "FLOWFABRIC_TOKEN="+a.chosen.Token)
	}
	if a.chosen.Namespace != "" && !bound {
		rest = append(rest, "-namespace", a.chosen.Namespace)
	}
	return rest, env, nil
}

func (a *app) mcp(ctx context.Context, args, env []string) error {
	program, err := exec.LookPath(mcpProgram)
	if err != nil {
		return fmt.Errorf("mcp needs the program %s, which is not in PATH; in a clone of the repository: %s",
			mcpProgram, mcpInstall)
	}
	process := exec.CommandContext(ctx, program, args...)
	process.Env = append(os.Environ(), env...)
	process.Stdin, process.Stdout, process.Stderr = a.in, a.out, a.err
	process.Cancel = func() error { return process.Process.Signal(os.Interrupt) }
	process.WaitDelay = mcpStop
	err = process.Run()
	if exited, ok := errors.AsType[*exec.ExitError](err); ok && exited.ExitCode() > 0 {
		return &programError{exited.ExitCode()}
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", program, err)
	}
	return nil
}

// programError is the exit code of another program, which has said what went wrong.
type programError struct{ code int }

func (e *programError) Error() string {
	return fmt.Sprintf("%s ended with exit code %d", mcpProgram, e.code)
}
