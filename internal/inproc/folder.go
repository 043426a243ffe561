package inproc

import (
	"path/filepath"
	"strings"
)

// Folder is the folder that the URL of an embedded server names: embedded:///absolute or embedded:relative, before any
// parameters. It is "" for a server in memory, and for what is no such URL.
func Folder(url string) string {
	rest, embedded := strings.CutPrefix(url, "embedded:")
	if !embedded {
		return ""
	}
	folder, _, _ := strings.Cut(rest, "?")
	path, absolute := strings.CutPrefix(folder, "//")
	switch {
	case !absolute:
		return folder
	case path == "" || path[0] != '/': // a host, which is refused
		return ""
	case filepath.VolumeName(path[1:]) != "": // embedded:///C:/data
		return path[1:]
	}
	return path
}
