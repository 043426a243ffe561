// Command generate writes what follows from the headers of package lua: the Go types of all calls and answers of the
// library, with what writes and reads them, in package wire, and the Lua that reads and judges arguments, in
// lua/decode. It is run by go generate, and by make check, which fails when what is committed is something else.
package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/flowfabric/flowfabric-go/internal/contract"
)

//go:embed wire.tmpl
var wire string

func main() {
	root := flag.String("root", "../..", "directory of the module")
	check := flag.Bool("check", false, "write nothing; fail if a file is not what would be written")
	flag.Parse()
	if err := write(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func write(root string, check bool) error {
	files, err := generate(contract.Functions())
	if err != nil {
		return err
	}
	for name, text := range files {
		name = filepath.Join(root, name)
		if !check {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(name, text, 0o644); err != nil {
				return err
			}
		} else if old, err := os.ReadFile(name); err != nil || !bytes.Equal(old, text) {
			return fmt.Errorf("%s is not what the headers of lua/ say: run go generate ./internal/wire", name)
		}
	}
	return nil
}

// generate makes the files for functions, by path.
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
		out["internal/wire/"+f.Name+"_generated.go"] = text
	}
	byArea, err := decoders(functions)
	if err != nil {
		return nil, err
	}
	if t, err = template.New("decode").Parse(decode); err != nil {
		return nil, err
	}
	for _, area := range contract.Areas {
		var b bytes.Buffer
		if err := t.Execute(&b, byArea[area]); err != nil {
			return nil, err
		}
		out["lua/decode/"+area+".lua"] = indent(b.String())
	}
	return out, nil
}

// indent gives the lines of a Lua text the depth of their blocks.
func indent(text string) []byte {
	var out bytes.Buffer
	depth := 0
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "end" || line == "}" {
			depth--
		}
		if line != "" {
			out.WriteString(strings.Repeat("  ", depth))
		}
		out.WriteString(line + "\n")
		if strings.HasPrefix(line, "function ") || slices.ContainsFunc([]string{"then", "do", "{"},
			func(s string) bool { return strings.HasSuffix(line, s) }) {
			depth++
		}
	}
	return out.Bytes()
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
