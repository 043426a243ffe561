package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
)

// Verdict says what became of a mutant.
type Verdict string

// The verdicts.
const (
	Caught     Verdict = "CAUGHT"     // a test failed
	Survived   Verdict = "SURVIVED"   // all tests passed
	Equivalent Verdict = "EQUIVALENT" // all tests passed, as the list says
	Listed     Verdict = "LISTED"     // a test failed, though the list says that none can
	Hung       Verdict = "HUNG"       // the tests did not end in their time; on a busy machine this proves nothing
	Broken     Verdict = "BROKEN"     // nothing was proved: it did not build, or no test ran
)

// event is one line of go test -json.
type event struct {
	Action, Test, Output string
}

// judge reads the events of one package's tests. wanted is how many levels of names a test must have to count as one of
// those that were asked for; a pattern that matches a parent only has run nothing. The test is the first that
// failed, which is the innermost, because a test is reported after its sub-tests.
func judge(events []byte, wanted int) (verdict Verdict, detail, test string) {
	var failed, crash, build, hung string
	ran, red := false, false
	for line := range bytes.Lines(events) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		text := strings.TrimSpace(e.Output)
		switch {
		case e.Action == "build-output" && build == "" && !strings.HasPrefix(text, "#"):
			build = text
		case e.Action == "build-fail":
			return Broken, "does not build: " + build, ""
		case e.Action == "fail" && e.Test == "":
			red = true
		case e.Action == "fail" && failed == "":
			failed = e.Test
		case e.Action == "pass" && e.Test != "" && depth(e.Test) >= wanted:
			ran = true
		case e.Action == "output" && strings.HasPrefix(text, "panic: test timed out"):
			hung = cmp.Or(failed, e.Test, "a test")
		case e.Action == "output" && crash == "" && crashed(text):
			crash = text
		}
	}
	switch {
	case hung != "":
		return Hung, hung + " (did not end)", ""
	case failed != "":
		return Caught, failed, failed
	case crash != "":
		return Caught, crash, ""
	case red:
		return Broken, "go test failed without a failing test", ""
	case !ran:
		return Broken, "no test ran", ""
	}
	return Survived, "", ""
}

// crashed recognises what ends a test binary without a verdict on one test: a panic, and a leak that TestMain reports.
func crashed(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") ||
		strings.HasPrefix(line, "goleak: ")
}

// depth counts the levels of a test name, or of the first alternative of a -run pattern.
func depth(name string) int {
	levels, nested := 1, 0
	for _, r := range name {
		switch {
		case r == '(' || r == '[':
			nested++
		case r == ')' || r == ']':
			nested--
		case r == '/' && nested == 0:
			levels++
		case r == '|' && nested == 0:
			return levels
		}
	}
	return levels
}
