package corpus_test

import (
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/examples/corpus"
)

func TestTexts(t *testing.T) {
	texts, err := corpus.Texts()
	if err != nil {
		t.Fatal(err)
	}
	words := 0
	for _, text := range texts {
		for i, paragraph := range text.Paragraphs {
			n := len(strings.Fields(paragraph))
			if n == 0 {
				t.Errorf("%s: paragraph %d is empty", text.Name, i+1)
			}
			words += n
		}
	}
	if len(texts) != 5 || texts[0].Name != "alice" || words < 7000 {
		t.Errorf("%d texts with %d words, the first is %q; want the five of README.md", len(texts), words,
			texts[0].Name)
	}
}
