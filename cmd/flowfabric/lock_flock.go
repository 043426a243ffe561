//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// lockFolder locks the folder of a file.
func lockFolder(file string) (unlock func() error, err error) {
	folder, err := os.Open(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	for errors.Is(err, syscall.EINTR) {
		err = syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	switch {
	case err == nil:
		return folder.Close, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = errLocked
	case errors.Is(err, syscall.EBADF), errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.EINVAL):
		err = errors.ErrUnsupported // file systems over the network lock no folders
	}
	folder.Close()
	return nil, err
}
