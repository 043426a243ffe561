//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package main

import "errors"

// lockFolder is for systems with flock.
func lockFolder(string) (unlock func() error, err error) { return nil, errors.ErrUnsupported }
