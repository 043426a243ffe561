package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// lockPause is the time between two tries to lock a file.
const lockPause = 10 * time.Millisecond

// locked runs change while no other command changes a file. The lock is the folder's where the system has flock: it
// outlives the renaming of the file, ends with the process, and leaves nothing behind.
func locked(ctx context.Context, file string, change func() error) error {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	unlock, err := waitFor(ctx, file, lockFolder)
	if errors.Is(err, errors.ErrUnsupported) {
		unlock, err = waitFor(ctx, file, lockBeside)
	}
	if err != nil {
		return err
	}
	return errors.Join(change(), unlock())
}

// waitFor tries to lock a file until that succeeds.
func waitFor(ctx context.Context, file string,
	lock func(file string) (unlock func() error, err error)) (func() error, error) {
	for {
		unlock, err := lock(file)
		if err == nil || !errors.Is(err, errLocked) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", err, ctx.Err())
		case <-time.After(lockPause):
		}
	}
}

// errLocked is a file that another command changes.
var errLocked = errors.New("another command is changing the file")

// lockBeside locks a file by another one, which is there as long as the lock.
func lockBeside(file string) (unlock func() error, err error) {
	name := file + ".lock"
	made, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: remove %s if none is", errLocked, name)
	}
	if err != nil {
		return nil, err
	}
	return func() error { return os.Remove(name) }, made.Close()
}
