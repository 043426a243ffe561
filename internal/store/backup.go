package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// Backup copies the store in a folder to a new one, as it is at some moment during the copy. Another process may own
// the folder and go on with its work. dest must be empty or not exist; it exists only when the copy is whole and
// checked.
func Backup(ctx context.Context, folder, dest string) (err error) {
	fail := func(err error) error { return fmt.Errorf("store: back up %s to %s: %w", folder, dest, err) }
	if there, err := os.ReadDir(dest); len(there) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(cmp.Or(err, decide("the target is not empty")))
	}
	dest = filepath.Clean(dest)
	unfinished, err := os.MkdirTemp(filepath.Dir(dest), filepath.Base(dest)+".unfinished-")
	if errors.Is(err, fs.ErrNotExist) {
		return fail(decide("%s does not exist: make it first", filepath.Dir(dest)))
	} else if err != nil {
		return fail(err)
	}
	for {
		before, err := listFiles(folder)
		if err == nil {
			err = copyFiles(ctx, &before, unfinished)
		}
		after, again := listFiles(folder)
		if err == nil {
			break
		}
		// A rewrite that ends removes files while they are listed or copied.
		if again != nil || ctx.Err() != nil || reflect.DeepEqual(before, after) {
			return fail(errors.Join(err, os.RemoveAll(unfinished)))
		}
	}
	if err = syncFolder(unfinished); err == nil {
		err = os.Rename(unfinished, dest)
	}
	if err != nil {
		return fail(errors.Join(err, os.RemoveAll(unfinished)))
	}
	if err = syncFolder(filepath.Dir(dest)); err != nil {
		return fail(err)
	}
	return nil
}

// copyFiles copies files into a folder, and removes what is there before.
func copyFiles(ctx context.Context, f *files, dest string) error {
	logs, err := f.current()
	switch {
	case err != nil:
		return err
	case len(logs) == 0:
		return decide("there is no store")
	}
	if err := errors.Join(os.RemoveAll(dest), os.Mkdir(dest, folderMode)); err != nil {
		return err
	}
	if n := f.first(); n > 0 {
		if err := copyFile(f.path(base, n), dest); err != nil {
			return err
		}
	}
	for _, n := range logs {
		if err := copyFile(f.path(logged, n), dest); err != nil {
			return err
		}
	}
	copied, err := listFiles(dest)
	if err != nil {
		return err
	}
	_, err = copied.read(reading{
		record: func([][]string, int64) error { return ctx.Err() },
		base:   func(int) error { return nil },
		torn:   func(path string, r *records, d *damage) error { _, err := cut(path, r, d); return err },
	})
	if d := (*decision)(nil); errors.As(err, &d) { // the copy is removed: say where the damage is in the original
		return decide("%s", strings.ReplaceAll(err.Error(), dest, f.folder))
	}
	return err
}

func copyFile(path, folder string) (err error) {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(folder, filepath.Base(path)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	if _, err = io.Copy(to, from); err == nil {
		err = to.Sync()
	}
	return errors.Join(err, to.Close())
}
