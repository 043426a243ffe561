package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/sourcegraph/conc"
)

// keys has the terminal of stdin tell each key at once, until stop is called. It returns nil where there is no
// terminal, or no stty that can set it.
func (a *app) keys(ctx context.Context) (keys <-chan byte, stop func()) {
	in, ok := a.in.(*os.File)
	if !ok || a.json || !a.terminal() || !isTerminal(a.in) {
		return nil, func() {}
	}
	stty := func(args ...string) (string, error) {
		cmd := exec.Command("stty", args...)
		cmd.Stdin = in
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	before, err := stty("-g")
	if err == nil {
		// a read ends after a tenth of a second, so that its goroutine ends with the command
		_, err = stty("-icanon", "-echo", "min", "0", "time", "1")
	}
	if err != nil {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	told := make(chan byte)
	var reading conc.WaitGroup
	reading.Go(func() { readKeys(ctx, in, told) })
	return told, func() {
		cancel()
		reading.Wait()
		_, _ = stty(before)
	}
}

// readKeys tells keys until ctx ends. An arrow is the letter that does the same.
func readKeys(ctx context.Context, in io.Reader, told chan<- byte) {
	text := make([]byte, 64)
	for ctx.Err() == nil {
		n, err := in.Read(text)
		if err != nil && !errors.Is(err, io.EOF) {
			return
		}
		keys := bytes.ReplaceAll(bytes.ReplaceAll(text[:n], []byte("\x1b[A"), []byte("k")), []byte("\x1b[B"),
			[]byte("j"))
		for _, key := range keys {
			select {
			case told <- key:
			case <-ctx.Done():
				return
			}
		}
	}
}
