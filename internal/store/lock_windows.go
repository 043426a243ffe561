package store

import (
	"errors"
	"os"
	"syscall"
)

// sharingViolation is the error of a file that another process has opened for itself.
const sharingViolation = syscall.Errno(32)

// lockFile opens a file for this process alone; others can read it. The error is errLocked if another process has it.
func lockFile(path string) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	handle, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, syscall.FILE_SHARE_READ, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	switch {
	case errors.Is(err, sharingViolation):
		return nil, errLocked
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(handle), path), nil
}

// syncFolder does nothing: Windows keeps names without it, and cannot sync a folder.
func syncFolder(string) error { return nil }
