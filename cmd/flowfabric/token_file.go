package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/httpapi"
)

// readTokens reads the entries of a file of tokens.
func readTokens(file string) (list []json.RawMessage, err error) {
	if file == "" {
		return nil, usage("--file names the file of tokens")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	if _, err := httpapi.ParseTokens(string(text)); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return list, json.Unmarshal(text, &list)
}

// addToken adds an entry to a file, which is made if it does not exist.
func addToken(ctx context.Context, file, entry string) error {
	return locked(ctx, file, func() error {
		list, err := readTokens(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return writeTokens(file, append(list, json.RawMessage(entry)))
	})
}

// removeToken removes the entry of a name from a file.
func removeToken(ctx context.Context, file, name string) error {
	return locked(ctx, file, func() error {
		list, err := readTokens(file)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(list), func(entry json.RawMessage) bool {
			var t listedToken
			return json.Unmarshal(entry, &t) == nil && t.Name == name
		})
		if len(left) == len(list) {
			return fmt.Errorf("token %q of %s: %w", name, file, flowfabric.ErrNotFound)
		}
		return writeTokens(file, left)
	})
}

func writeTokens(file string, list []json.RawMessage) error {
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	if _, err := httpapi.ParseTokens(string(text)); err != nil {
		return err
	}
	return replaceFile(file, append(text, '\n'))
}

// replaceFile replaces the content of a file at once. One that is there keeps its mode and owner, and its place if the
// name is a link; a new one is its maker's alone.
func replaceFile(file string, text []byte) error {
	was, err := os.Stat(file)
	switch {
	case err == nil:
		if file, err = filepath.EvalSymlinks(file); err != nil {
			return err
		}
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	made, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(made.Name())
	if was != nil {
		if err = sameOwner(made, was); err != nil {
			err = fmt.Errorf("%s belongs to another user: run this as that user, or as root: %w", file, err)
		} else {
			err = made.Chmod(was.Mode())
		}
	}
	if err == nil {
		_, err = made.Write(text)
	}
	if err == nil {
		err = made.Sync()
	}
	if err := errors.Join(err, made.Close()); err != nil {
		return err
	}
	return os.Rename(made.Name(), file)
}
