package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/digest"
)

// Folder is a [Store] in a directory, which Put makes if it is not there: dir/9f/9f86d0…, one file a blob. Several
// processes may share it, over a network file system, too, if that renames atomically. A file is written under
// another name, synced to disk and renamed, so it is there whole or not at all; a crash leaves a file .tmp-… behind,
// which may be deleted after an hour. A damaged file is repaired by a Put of its bytes.
func Folder(dir string) Store { return folder(dir) }

type folder string

// Put implements [Store].
func (f folder) Put(ctx context.Context, data []byte) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err := digest.Fits(len(data)); err != nil {
		return "", err
	}
	ref := Ref(data)
	path, err := f.path(ref)
	if err != nil {
		return "", err
	}
	if f.has(path, data) {
		return ref, nil
	}
	if err := f.write(path, data); err != nil {
		return "", fmt.Errorf("blob %s: write: %w", ref, err)
	}
	return ref, nil
}

// has reports that the file is there and whole, and makes it new again.
func (f folder) has(path string, data []byte) bool {
	info, err := os.Stat(path)
	if err != nil || info.Size() != int64(len(data)) {
		return false
	}
	kept, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(kept, data) {
		return false
	}
	now := time.Now()
	return os.Chtimes(path, now, now) == nil // a file that was deleted meanwhile is written again
}

// write makes the file, or none.
func (f folder) write(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, ".tmp-*")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Chmod(0o644), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return errors.Join(syncDir(dir), syncDir(string(f)))
}

// syncDir makes a new name durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" { // has no such thing
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Get implements [Store].
func (f folder) Get(ctx context.Context, ref string) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	path, err := f.path(ref)
	if err != nil {
		return nil, err
	}
	data, err := read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, digest.Missing(ref)
	case err != nil:
		return nil, fmt.Errorf("blob %s: read: %w", ref, err)
	}
	return digest.Check(ref, data)
}

// read reads a file, of one that is too large only so much that its digest does not fit.
func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(make([]byte, 0, min(info.Size(), MaxSize)+bytes.MinRead))
	_, err = b.ReadFrom(io.LimitReader(file, MaxSize+1))
	return b.Bytes(), err
}

func (f folder) path(ref string) (string, error) {
	digits, err := digest.Of(ref)
	if err != nil {
		return "", err
	}
	return filepath.Join(string(f), digits[:2], digits), nil
}
