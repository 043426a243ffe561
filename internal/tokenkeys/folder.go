package tokenkeys

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// File is where the folder of an embedded server has its token keys, as [Parse] reads them. They stay beside the data
// that was signed with them, so that links work after a restart and after a backup was restored.
const File = "token-keys"

// Kept are the token keys of such a folder: those of its file. Where there is none, it is written with configured, or
// with a new key if that is empty. Several processes may call it at once; all get the same keys.
func Kept(dir, configured string) (string, error) {
	file := filepath.Join(dir, File)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if configured == "" {
			configured = Fresh()
		}
		if _, err := Parse(configured); err != nil {
			return "", err
		}
		if err := writeOnce(file, configured+"\n"); err != nil {
			return "", fmt.Errorf("token keys: %w", err)
		}
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return "", fmt.Errorf("token keys: %w", err)
	}
	keys := strings.TrimSpace(string(text))
	switch k, err := Parse(keys); {
	case err != nil:
		return "", fmt.Errorf("%s: %w", file, err)
	case k == nil:
		return "", fmt.Errorf("%s is empty: restore it from a backup, or remove it to begin with a new key", file)
	}
	return keys, nil
}

// Fresh is a key that nobody else has, as text for [Parse].
func Fresh() string {
	var kid [4]byte
	var secret [minSecret]byte
	_, _ = rand.Read(kid[:]) // never fails
	_, _ = rand.Read(secret[:])
	return "dev-" + hex.EncodeToString(kid[:]) + ":" + hex.EncodeToString(secret[:])
}

// writeOnce writes a file that is there as a whole or not at all, for its owner alone. One that is there already stays.
func writeOnce(file, text string) error {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	made, err := os.CreateTemp(dir, "."+filepath.Base(file)+"-*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(made.Name())
	_, err = made.WriteString(text)
	if err = errors.Join(err, made.Sync(), made.Close()); err != nil {
		return err
	}
	if err = os.Link(made.Name(), file); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		err = os.Rename(made.Name(), file) // the file system has no links
	}
	if folder, failed := os.Open(dir); err == nil && failed == nil {
		_ = folder.Sync() // not every system syncs folders; where it does, the name lasts
		_ = folder.Close()
	}
	return err
}
