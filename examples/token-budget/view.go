package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const width = 88 // of running text

// view prints what several tenants stream, a line at a time. It writes no control codes, so that logs read well. Safe
// for concurrent use.
type view struct {
	mu   sync.Mutex
	out  io.Writer
	open map[string]string // the line of a tenant that is being filled
}

func newView(out io.Writer) *view { return &view{out: out, open: map[string]string{}} }

func (v *view) say(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	fill(v.out, "", fmt.Sprintf(format, args...))
	fmt.Fprintln(v.out)
}

// token adds to what a tenant has streamed.
func (v *view) token(tenant, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	text = printable(text)
	if line := v.open[tenant]; strings.HasPrefix(text, " ") && utf8.RuneCountInString(line+text) > width-12 {
		v.print(tenant, "│"+line)
		v.open[tenant] = ""
	}
	v.open[tenant] += text
}

// end prints what is left of a tenant's line, and how the stream ended.
func (v *view) end(tenant, how string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if line := v.open[tenant]; line != "" {
		v.print(tenant, "│"+line)
		delete(v.open, tenant)
	}
	v.print(tenant, how)
}

// note prints a line about a tenant.
func (v *view) note(tenant, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.print(tenant, text)
}

func (v *view) gap() {
	v.mu.Lock()
	defer v.mu.Unlock()
	fmt.Fprintln(v.out)
}

func (v *view) print(tenant, text string) { fmt.Fprintf(v.out, "    %-7s %s\n", tenant, text) }

// printable keeps what a model says from moving the cursor: control characters become spaces.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, text)
}

// fill prints text in lines of at most width characters, each after an indent.
func fill(out io.Writer, indent, text string) {
	line := ""
	for word := range strings.FieldsSeq(printable(text)) {
		if line != "" && utf8.RuneCountInString(indent+line+" "+word) > width {
			fmt.Fprintln(out, indent+line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		fmt.Fprintln(out, indent+line)
	}
}
