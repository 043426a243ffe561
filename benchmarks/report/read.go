package report

import (
	"encoding/json"
	"fmt"
	"os"
)

// Read returns the document stored under path. A document of another format is refused, because its figures mean
// something else.
func Read(path string) (d Document, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("%s is no document of a run: %w", path, err)
	}
	if d.Format != Format {
		return d, fmt.Errorf("%s has format %d, and this program reads format %d: measure again", path, d.Format,
			Format)
	}
	return d, nil
}

// ReadAll is [Read] of several documents, one at least.
func ReadAll(paths []string) ([]Document, error) {
	if len(paths) == 0 {
		return nil, fmt.Errorf("name one or more JSON documents, as written with -json")
	}
	documents := make([]Document, 0, len(paths))
	for _, path := range paths {
		d, err := Read(path)
		if err != nil {
			return nil, err
		}
		documents = append(documents, d)
	}
	return documents, nil
}
