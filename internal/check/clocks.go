package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"slices"
)

// byDuration lists the files whose waiting must not move when somebody sets the host's clock. They reckon with
// durations of the server and of the monotonic clock, which every time.Time of time.Now carries until it is made into
// a date, a number or a rounded time. Leases ask both clocks on purpose (lease/clock.go).
var byDuration = []string{"internal/maintain/loop.go", "internal/maintain/schedule.go"}

// wall are methods of time.Time that forget the monotonic clock or ask for the other one.
var wall = []string{"Unix", "UnixMilli", "UnixMicro", "UnixNano", "UTC", "Local", "In", "AddDate", "Date", "Hour",
	"Minute", "Weekday", "YearDay"}

// wallClocks reports where those files leave the monotonic clock.
func wallClocks(root fs.FS, listed []string) (breaches []string, err error) {
	for _, name := range listed {
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return nil, fmt.Errorf("byDuration: %w", err)
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			zero := false // Round(0) and Truncate(0) have no other use than to strip the reading
			if len(call.Args) == 1 {
				arg, literal := call.Args[0].(*ast.BasicLit)
				zero = literal && arg.Value == "0"
			}
			switch what := method.Sel.Name; {
			case slices.Contains(wall, what), zero && (what == "Round" || what == "Truncate"):
				breaches = append(breaches, fmt.Sprintf(
					"%s: %s leaves the monotonic clock, and this file must not notice when the host's clock is set",
					files.Position(call.Pos()), what))
			}
			return true
		})
	}
	return breaches, nil
}
