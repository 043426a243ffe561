// Package demotest runs an example that prints and ends by itself, on the embedded server and on Redis: to its end,
// interrupted, and with flags that it refuses.
package demotest

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// Program is the example without its process.
type Program func(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) error

// Demo is an example on one kind of server.
type Demo struct {
	t       *testing.T
	program Program
	url     string // "" with the embedded server, which ends with the program
}

// On tests the program on each kind of server. No goroutine may be left.
func On(t *testing.T, program Program, test func(*testing.T, Demo)) {
	for name, url := range map[string]func(testing.TB) string{
		"embedded": func(testing.TB) string { return "" },
		"redis":    func(t testing.TB) string { return testserver.Redis(t) },
	} {
		t.Run(name, func(t *testing.T) {
			d := Demo{t, program, url(t)}
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			test(t, d)
		})
	}
}

// Output is what the program prints from its start to its end.
func (d Demo) Output(args ...string) string {
	d.t.Helper()
	return d.run(&terminal{}, args)
}

// Interrupt ends the program, as Ctrl-C does, when it has printed at. The last of its output must be last.
func (d Demo) Interrupt(at, last string, args ...string) {
	d.t.Helper()
	if out := d.run(&terminal{at: at}, args); !strings.HasSuffix(out, last) {
		d.t.Errorf("it does not end with %q:\n%s", last, out)
	}
}

func (d Demo) run(out *terminal, args []string) string {
	d.t.Helper()
	ctx, cancel := testwait.Context(d.t, d.t.Context())
	defer cancel()
	out.interrupt = cancel
	env := func(name string) string { return map[string]string{"FLOWFABRIC_URL": d.url}[name] }
	if err := d.program(ctx, args, env, out, os.Stderr); err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
	if strings.ContainsRune(out.String(), '\x1b') {
		d.t.Error("control codes in plain output")
	}
	return out.String()
}

// left looks at what the program left on its server, if the server is still there.
func (d Demo) left(look func(*admin.Admin)) {
	d.t.Helper()
	if d.url == "" {
		return
	}
	c, err := client.Connect(d.t.Context(), client.Config{URL: d.url})
	if err != nil {
		d.t.Fatal(err)
	}
	defer c.Close()
	look(admin.New(c))
}

// OneFlowCancelled wants one flow of the kind, cancelled.
func (d Demo) OneFlowCancelled(kind string) {
	d.t.Helper()
	d.left(func(a *admin.Admin) {
		seen := 0
		for f, err := range a.Flows(d.t.Context(), admin.FlowQuery{Kind: kind}) {
			if err != nil {
				d.t.Fatal(err)
			}
			if seen++; f.State != flowfabric.FlowCancelled {
				d.t.Errorf("flow %s is %s, want cancelled", f.ID, f.State)
			}
		}
		if seen != 1 {
			d.t.Errorf("%d flows, want 1", seen)
		}
	})
}

// NoGates wants no gate and nothing attached to one.
func (d Demo) NoGates() {
	d.t.Helper()
	d.left(func(a *admin.Admin) {
		if gates, err := a.Gates(d.t.Context()); err != nil || len(gates) != 0 {
			d.t.Errorf("%d gates are left, %v", len(gates), err)
		}
		if all, err := a.Gated(d.t.Context()); err != nil || len(all.Attached) != 0 {
			d.t.Errorf("attached: %v, %v", all.Attached, err)
		}
	})
}

// Refuses wants an error for each of these lines of arguments, for an unknown flag and for servers that are not there.
func Refuses(t *testing.T, program Program, lines ...string) {
	t.Helper()
	for _, line := range append(lines, "-no-such-flag", "-url ftp://nowhere", "-url redis://127.0.0.1:1") {
		err := program(t.Context(), strings.Fields(line), func(string) string { return "" }, io.Discard, io.Discard)
		if err == nil {
			t.Errorf("%q was accepted", line)
		}
	}
}

// terminal is what the program prints to. It interrupts the program once it has printed at.
type terminal struct {
	bytes.Buffer
	at        string
	interrupt func()
}

func (w *terminal) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if w.at != "" && strings.Contains(w.String(), w.at) {
		w.at = ""
		w.interrupt()
	}
	return n, err
}
