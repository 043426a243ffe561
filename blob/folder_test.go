package blob_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// files are the names below dir.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	must.No(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	}))
	return names
}

// Bytes come back by their digest, whatever they are; a repeated Put makes no second file.
func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there")
	store := blob.Folder(dir)
	for i, data := range [][]byte{nil, []byte("hello"), bytes.Repeat([]byte{0, 255}, 1<<20)} {
		ref, err := store.Put(t.Context(), data)
		must.No(t, err)
		again, err := blob.Folder(dir).Put(t.Context(), data)
		if err != nil || again != ref || ref != blob.Ref(data) || len(ref) != 71 {
			t.Errorf("%s, then %s: %v", ref, again, err)
		}
		got, err := store.Get(t.Context(), ref)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes of %d: %v", len(got), len(data), err)
		}
		if n := len(files(t, dir)); n != i+1 {
			t.Errorf("%d files", n)
		}
	}
	const hello = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	if ref := blob.Ref([]byte("hello")); ref != hello {
		t.Error(ref)
	}
}

// What is gone, damaged or too large is told apart, and a damaged file is repaired by a Put.
func TestFolderErrors(t *testing.T) {
	dir := t.TempDir()
	store := blob.Folder(dir)
	ref, err := store.Put(t.Context(), []byte("hello"))
	must.No(t, err)
	path := files(t, dir)[0]
	for _, damaged := range []string{"", "hell", "jello", "hello!"} {
		must.No(t, os.WriteFile(path, []byte(damaged), 0o600))
		if got, err := store.Get(t.Context(), ref); !errors.Is(err, flowfabric.ErrCorrupt) || got != nil ||
			flowfabric.CodeOf(err) != "blob_damaged" {
			t.Errorf("%q: %q, %v", damaged, got, err)
		}
		_, err := store.Put(t.Context(), []byte("hello"))
		must.No(t, err)
		if _, err := store.Get(t.Context(), ref); err != nil {
			t.Error(err)
		}
	}
	must.No(t, os.Remove(path))
	if _, err := store.Get(t.Context(), ref); !errors.Is(err, flowfabric.ErrNotFound) ||
		flowfabric.CodeOf(err) != "blob_not_found" {
		t.Error(err)
	}
	for _, bad := range []string{"", "sha256:", ref[:70], ref + "0", strings.ToUpper(ref), "md5:" + ref[7:],
		"sha256:../" + ref[10:]} {
		if _, err := store.Get(t.Context(), bad); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := store.Put(t.Context(), make([]byte, blob.MaxSize+1)); !errors.Is(err,
		flowfabric.ErrPayloadTooLarge) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	boom := errors.New("boom")
	cancel(boom)
	_, put := store.Put(ctx, nil)
	if _, get := store.Get(ctx, ref); put != boom || get != boom {
		t.Error(put, get)
	}
	file := filepath.Join(dir, "file")
	must.No(t, os.WriteFile(file, nil, 0o600))
	if _, err := blob.Folder(file).Put(t.Context(), nil); err == nil {
		t.Error("a file is no folder")
	}
}

// Many at once, as several processes do, make one whole file and leave nothing else behind.
func TestFolderAtOnce(t *testing.T) {
	dir := t.TempDir()
	data := bytes.Repeat([]byte("x"), 1<<20)
	var wg conc.WaitGroup
	for range 16 {
		wg.Go(func() {
			store := blob.Folder(dir)
			ref, err := store.Put(t.Context(), data)
			if err != nil {
				t.Error(err)
			}
			if _, err := store.Get(t.Context(), ref); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if names := files(t, dir); len(names) != 1 {
		t.Errorf("%q", names)
	}
}

// A Put makes a blob new again, so that deletion by age spares it.
func TestPutRenews(t *testing.T) {
	dir := t.TempDir()
	_, err := blob.Folder(dir).Put(t.Context(), []byte("x"))
	must.No(t, err)
	old := time.Now().Add(-time.Hour)
	must.No(t, os.Chtimes(files(t, dir)[0], old, old))
	_, err = blob.Folder(dir).Put(t.Context(), []byte("x"))
	must.No(t, err)
	if info, err := os.Stat(files(t, dir)[0]); err != nil || !info.ModTime().After(old) {
		t.Error(info, err)
	}
}

// A store in a folder that all workers mount.
func ExampleFolder() {
	blobs := blob.Folder("/mnt/shared/blobs")
	_ = blobs // agent.Config{Blobs: blobs}, or handler.Offloaded(handler.JSON, blobs, 256<<10)
}
