// Command flowfabric is the command line of FlowFabric.
//
//	flowfabric dev       run a development server: in memory, nothing to install
//	flowfabric version   print version, protocol and build
//
// Exit codes: 0 success (also after an interrupt), 1 the command failed, 2 it was called or configured wrongly.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process the hard way
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main without the process: it executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(stderr, "flowfabric:", err)
	if _, ran := errors.AsType[*commandError](err); !ran {
		fmt.Fprintln(stderr, "See 'flowfabric --help'.")
		return exitUsage
	}
	if errors.Is(err, flowfabric.ErrConfig) {
		return exitUsage
	}
	return exitFailed
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "flowfabric",
		Short: "Durable execution on Valkey and Redis",
		Long: `FlowFabric runs durable executions on Valkey or Redis: handlers that survive crashes,
stream their output, and wait for days without holding a process.

Exit codes: 0 success, 1 the command failed, 2 it was called or configured wrongly.`,
		Example: `  flowfabric dev                          # in one terminal
  export FLOWFABRIC_URL=redis://127.0.0.1:7700
  go run ./my-worker                      # in another`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(devCommand(), versionCommand())
	return root
}

// commandError marks what a command itself returned, as against a command line that could not be understood.
type commandError struct{ error }

func (e *commandError) Unwrap() error { return e.error }

// ran adapts a command's body.
func ran(body func(cmd *cobra.Command) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		if err := body(cmd); err != nil {
			return &commandError{err}
		}
		return nil
	}
}
