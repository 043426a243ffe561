// Package corpus is the text that the examples work on: passages of old books, listed in README.md.
package corpus

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed *.txt
var files embed.FS

// Text is one file of the corpus.
type Text struct {
	Name       string // without its ending
	Paragraphs []string
}

// Texts returns the whole corpus, in the order of the names.
func Texts() ([]Text, error) {
	names, err := fs.Glob(files, "*.txt")
	if err != nil {
		return nil, err
	}
	texts := make([]Text, len(names))
	for i, name := range names {
		raw, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		texts[i] = Text{strings.TrimSuffix(name, ".txt"), strings.Split(strings.TrimSpace(string(raw)), "\n\n")}
	}
	return texts, nil
}
