//go:build unix

package main

import (
	"os"
	"syscall"
)

// sameOwner gives a file to the user and group of another one.
func sameOwner(file *os.File, as os.FileInfo) error {
	own, err := file.Stat()
	if err != nil {
		return err
	}
	has, ok := own.Sys().(*syscall.Stat_t)
	wants, there := as.Sys().(*syscall.Stat_t)
	if !ok || !there || has.Uid == wants.Uid && has.Gid == wants.Gid {
		return nil
	}
	return file.Chown(int(wants.Uid), int(wants.Gid))
}
