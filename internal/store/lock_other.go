//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package store

import (
	"errors"
	"os"
)

// lockFile is for systems that lock files.
func lockFile(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func syncFolder(string) error { return nil }
