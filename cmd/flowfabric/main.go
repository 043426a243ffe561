// Command flowfabric is the command line of FlowFabric: it runs a development server, submits work, follows it,
// explains it and repairs it. https://github.com/flowfabric/flowfabric-go/blob/main/docs/reference/cli.md lists every
// command and flag; `flowfabric doctor` is where to begin when something is wrong.
//
// Everything goes through packages client, engine and maintain; this package only reads flags and prints. One file is
// one command or one group of them, and app.go is what they share.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process the hard way
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main without the process: it executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{in: stdin, out: stdout, err: stderr}
	root := rootCommand(a)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(&redacting{stderr})
	return a.conclude(root.ExecuteContext(ctx))
}
