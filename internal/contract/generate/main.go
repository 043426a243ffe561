// Command generate writes what follows from the headers of package lua: the Go types of all calls and answers of the
// library, with what writes and reads them, in package wire. It is run by go generate, and by make check, which fails
// when what is committed is something else.
package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/flowfabric/flowfabric-go/internal/contract"
)

//go:embed wire.tmpl
var wire string

func main() {
	dir := flag.String("dir", ".", "directory of the package wire")
	check := flag.Bool("check", false, "write nothing; fail if a file is not what would be written")
	flag.Parse()
	if err := write(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func write(dir string, check bool) error {
	files, err := generate(contract.Functions())
	if err != nil {
		return err
	}
	for name, text := range files {
		name = filepath.Join(dir, name)
		if !check {
			if err := os.WriteFile(name, text, 0o644); err != nil {
				return err
			}
		} else if old, err := os.ReadFile(name); err != nil || !bytes.Equal(old, text) {
			return fmt.Errorf("%s is not what the headers of lua/ say: run go generate ./internal/wire", name)
		}
	}
	return nil
}

// generate makes the files of package wire for functions, by name.
func generate(functions []contract.Function) (map[string][]byte, error) {
	files, err := build(functions)
	if err != nil {
		return nil, err
	}
	t, err := template.New("wire").Funcs(template.FuncMap{"wrap": wrap, "runs": runs}).Parse(wire)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, f := range files {
		var b bytes.Buffer
		if err := t.Execute(&b, f); err != nil {
			return nil, err
		}
		text, err := format.Source(b.Bytes())
		if err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, b.Bytes())
		}
		out[f.Name+"_generated.go"] = text
	}
	return out, nil
}

// wrap is the comment of a call.
func wrap(c call) string {
	text := c.Go + " is a call of " + c.Name + ", " + strings.ReplaceAll(c.Purpose, "''", `""`)
	var out, line strings.Builder
	for word := range strings.FieldsSeq(text) {
		if line.Len() > 0 && line.Len()+len(word) > 112 {
			out.WriteString("// " + line.String() + "\n")
			line.Reset()
		}
		if line.Len() > 0 {
			line.WriteByte(' ')
		}
		line.WriteString(word)
	}
	return out.String() + "// " + line.String()
}
