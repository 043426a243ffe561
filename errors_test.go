package flowfabric_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	ff "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/contract"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/fault"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// definitions reads code and class of every sentinel from errors.go, so that none is forgotten here.
func definitions(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	must.No(t, err)
	out := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if f, ok := c.Fun.(*ast.Ident); !ok || f.Name != "define" {
			return true
		}
		code, _ := strconv.Unquote(c.Args[0].(*ast.BasicLit).Value)
		if _, twice := out[code]; twice {
			t.Errorf("%s is defined twice", code)
		}
		out[code] = c.Args[1].(*ast.SelectorExpr).Sel.Name
		return true
	})
	return out
}

func TestErrorTable(t *testing.T) {
	classes := map[string]fault.Class{"Stop": fault.Stop, "Retry": fault.Retry, "Info": fault.Info,
		"Caller": fault.Caller, "Bug": fault.Bug}
	all := definitions(t)
	if len(all) < 40 {
		t.Fatalf("found %d sentinels", len(all))
	}
	for code, class := range all {
		e := denied.New("ff_x", code, "detail")
		if ff.CodeOf(e) != code || denied.ClassOf(e) != classes[class] {
			t.Errorf("%s: code %q, class %s", code, ff.CodeOf(e), denied.ClassOf(e))
		}
		if text := e.Error(); !strings.HasPrefix(text, "ff_x: "+code+": ") || !strings.HasSuffix(text, " (detail)") ||
			strings.Contains(text, "\n") {
			t.Errorf("%q is not one clear line", text)
		}
	}
}

func TestErrorComparisons(t *testing.T) {
	for _, c := range []struct {
		code     string
		sentinel error
		class    fault.Class
	}{
		{"invalid_input", ff.ErrInvalidInput, fault.Caller},
		{"execution_not_found", ff.ErrNotFound, fault.Stop},
		{"execution_not_active", denied.NotActive, fault.Stop},
		{"lease_expired", denied.LeaseExpired, fault.Stop},
		{"stale_lease", denied.StaleLease, fault.Stop},
		{"stream_closed", denied.StreamClosed, fault.Stop},
		{"partition_frozen", ff.ErrPartitionFrozen, fault.Retry},
		{"transport", ff.ErrTransport, fault.Retry},
		{"session_not_found", denied.NoSession, fault.Info},
		{"corrupt", ff.ErrCorrupt, fault.Bug},
		{"execution_deadline", ff.ErrDeadline, fault.Stop},
	} {
		e := denied.New("ff_op", c.code, "one", "two")
		for name, err := range map[string]error{"typed": e, "wrapped": fmt.Errorf("renew: %w", e),
			"joined": errors.Join(errors.New("x"), e), "sentinel": c.sentinel,
			"wrapped sentinel": fmt.Errorf("%w: more", c.sentinel)} {
			if !errors.Is(err, c.sentinel) {
				t.Errorf("%s %s: errors.Is says no", name, c.code)
			}
			if errors.Is(err, denied.TaskConsumed) {
				t.Errorf("%s %s: matches another sentinel", name, c.code)
			}
			if got := denied.ClassOf(err); got != c.class {
				t.Errorf("%s %s: class %s, want %s", name, c.code, got, c.class)
			}
			if got := ff.Retryable(err); got != (c.class == fault.Retry) {
				t.Errorf("%s %s of class %s: retryable %t", name, c.code, c.class, got)
			}
			if got := ff.CodeOf(err); got != c.code {
				t.Errorf("%s %s: code %s", name, c.code, got)
			}
		}
		var typed *ff.Error
		if !errors.As(fmt.Errorf("x: %w", e), &typed) || typed != e || typed.Op != "ff_op" ||
			denied.Slot(typed, 1) != "two" || denied.Slot(typed, 2) != "" {
			t.Errorf("%s: errors.As gives %+v", c.code, typed)
		}
		if errors.As(fmt.Errorf("x: %w", c.sentinel), &typed) {
			t.Errorf("%s: a bare sentinel has no detail", c.code)
		}
		same := func() error { return c.sentinel }
		if same() != c.sentinel {
			t.Errorf("%s: sentinels compare with ==", c.code)
		}
	}
}

func TestUnknownCode(t *testing.T) {
	e := denied.New("ff_op", "brand_new", "", "")
	if !errors.Is(e, denied.Reply) || e.Code != "brand_new" || denied.ClassOf(e) != fault.Bug ||
		ff.CodeOf(e) != "parse" {
		t.Errorf("%+v, class %s, code %s", e, denied.ClassOf(e), ff.CodeOf(e))
	}
	if got := e.Error(); got != "ff_op: brand_new" {
		t.Errorf("%q", got)
	}
	foreign := errors.New("foreign")
	if denied.ClassOf(foreign) != 0 || ff.CodeOf(foreign) != "" || denied.ClassOf(nil) != 0 || ff.CodeOf(nil) != "" ||
		ff.Retryable(foreign) || ff.Retryable(nil) {
		t.Error("a foreign error has a class")
	}
	for class, want := range map[fault.Class]string{fault.Stop: "stop", fault.Retry: "retry", fault.Info: "info",
		fault.Caller: "caller", fault.Bug: "bug", 0: "unknown"} {
		if class.String() != want {
			t.Errorf("class %d is %q, want %q", class, class, want)
		}
	}
}

// An error that stands for several codes matches each of them, and the precise ones match their own alone.
func TestErrorsThatStandForSeveralCodes(t *testing.T) {
	for _, c := range []struct {
		code          string
		kind, precise error
	}{
		{"gate_not_found", ff.ErrNotFound, denied.NoGate},
		{"flow_conflict", ff.ErrConflict, denied.FlowConflict},
		{"mailbox_full", ff.ErrLimit, denied.MailboxFull},
		{"execution_not_suspended", ff.ErrState, denied.NotSuspended},
		{"flow_already_terminal", ff.ErrTerminal, denied.FlowTerminal},
		{"cycle_detected", ff.ErrInvalidInput, denied.Cycle},
	} {
		for name, err := range map[string]error{"answer": denied.New("ff_x", c.code),
			"wrapped": fmt.Errorf("x: %w", denied.New("ff_x", c.code)), "found in Go": fmt.Errorf("%w: y", c.precise)} {
			if !errors.Is(err, c.kind) || !errors.Is(err, c.precise) {
				t.Errorf("%s, %s: matches its kind: %t, itself: %t", c.code, name, errors.Is(err, c.kind),
					errors.Is(err, c.precise))
			}
			if errors.Is(err, denied.NoExecution) || errors.Is(err, denied.Input) && c.kind != ff.ErrInvalidInput ||
				errors.Is(err, ff.ErrCorrupt) || ff.CodeOf(err) != c.code {
				t.Errorf("%s, %s: matches another, or has code %s", c.code, name, ff.CodeOf(err))
			}
		}
		if errors.Is(c.kind, c.precise) {
			t.Errorf("%s: the kind is not one of its codes", c.code)
		}
	}
}

// However an error that stands for several codes and one of its codes are wrapped together, the precise one is told; an
// error that stands for something else hides what it wraps.
func TestCodeOfTellsThePreciseCode(t *testing.T) {
	several := 0
	for code := range definitions(t) {
		one := fault.Of(code)
		if one.Kind == nil {
			continue
		}
		several++
		for name, err := range map[string]error{
			"itself": one, "wrapped": fmt.Errorf("tags: %w", one), "answered": denied.New("ff_x", code),
			"behind its kind": fmt.Errorf("%w: tags: key %q: %w", one.Kind, "A", one),
			"deep behind its kind": fmt.Errorf("%w: x: %w", one.Kind,
				fmt.Errorf("y: %w", errors.Join(errors.New("z"), one))),
			"joined with its kind":   errors.Join(errors.New("x"), one.Kind, one),
			"before its kind":        fmt.Errorf("%w: %w", one, one.Kind),
			"answered behind a kind": fmt.Errorf("%w: %w", one.Kind, denied.New("ff_x", code)),
		} {
			if got := ff.CodeOf(err); got != code || denied.ClassOf(err) != one.Class {
				t.Errorf("%s, %s: code %q, class %s", code, name, got, denied.ClassOf(err))
			}
		}
		if got := ff.CodeOf(fmt.Errorf("%w: %w", ff.ErrTransport, error(one))); got != "transport" {
			t.Errorf("%s behind what is not its kind: code %q", code, got)
		}
	}
	if several < 20 {
		t.Errorf("%d codes have an error that stands for them", several)
	}
}

// A code that nothing answers is a promise to those who handle errors that nobody keeps: each is in the header of a
// function, or made in Go. To compare with an error does not make one.
func TestEveryCodeIsAnswered(t *testing.T) {
	answered, names := map[string]bool{}, map[string]string{}
	for _, h := range contract.Functions() {
		for _, code := range h.Errors {
			answered[code] = true
		}
	}
	for code, name := range sentinels(t) {
		if name != "_" && fault.Of(code).Kind == nil {
			names["flowfabric."+name] = code
		}
	}
	files := token.NewFileSet()
	table, err := parser.ParseFile(files, "internal/denied/denied.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(table, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
			if c, ok := v.Values[0].(*ast.CallExpr); ok && len(c.Args) == 1 {
				code, _ := strconv.Unquote(c.Args[0].(*ast.BasicLit).Value)
				names["denied."+v.Names[0].Name] = code
			}
		}
		return true
	})
	err = filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(path, "_test.go") || !strings.HasSuffix(path, ".go") ||
			strings.HasPrefix(path, "internal/model") || strings.HasPrefix(path, "internal/conformance") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.CallExpr:
				if name, _ := x.Fun.(*ast.SelectorExpr); name == nil {
					return true
				} else if name.Sel.Name == "Is" {
					return false
				} else if name.Sel.Name == "New" && len(x.Args) > 1 {
					if code, ok := x.Args[1].(*ast.BasicLit); ok {
						text, _ := strconv.Unquote(code.Value)
						answered[text] = true
					}
				}
			case *ast.SelectorExpr:
				if from, ok := x.X.(*ast.Ident); ok {
					answered[names[from.Name+"."+x.Sel.Name]] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for code := range definitions(t) {
		if umbrella := slices.Contains(umbrellas, code); answered[code] == umbrella {
			t.Errorf("%s is answered: %t; it only stands for others: %t", code, answered[code], umbrella)
		}
	}
}

// umbrellas are codes that no error has: their errors only stand for others.
var umbrellas = []string{"conflict", "limit_reached", "wrong_state"}
