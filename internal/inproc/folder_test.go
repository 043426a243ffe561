package inproc_test

import (
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/inproc"
)

func TestFolder(t *testing.T) {
	for url, want := range map[string]string{"embedded://": "", "embedded:///var/lib/app": "/var/lib/app",
		"embedded:./data": "./data", "embedded:data?fsync=always": "data", "embedded:///a?fsync=always": "/a",
		"embedded://host/path": "", "embedded:": "", "redis://h/0": "", "": ""} {
		if got := inproc.Folder(url); got != want {
			t.Errorf("%s names %q, want %q", url, got, want)
		}
	}
}
