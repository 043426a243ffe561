package store

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// How much Inspect shows before an offset, and of what is damaged.
const (
	shownBefore = 3
	shownBytes  = 256
	shownText   = 200 // of a command
)

// ErrDamaged is what [Inspect] returns after it has shown damage.
var ErrDamaged = errors.New("the store is damaged: restore a backup, or give up what follows the damage")

// Inspect writes what is around an offset of a file of a store: the records before it and the one at it. If that is
// damaged, it shows its first bytes and where the next whole record begins. Nothing behind damage can be read, so an
// offset there shows the damage. If path is a folder, it says which of its files are whole.
func Inspect(w io.Writer, path string, offset int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("store: inspect: %w", err)
	}
	if !info.IsDir() {
		return inspectFile(w, path, offset)
	}
	f, err := listFiles(path)
	if err != nil {
		return fmt.Errorf("store: inspect: %w", err)
	}
	if len(f.bases)+len(f.logs) == 0 {
		return decide("store: inspect: there is no store in %s", path)
	}
	damaged := false
	for _, n := range f.bases {
		bad, failed := summarize(w, f.path(base, n), base, n, false)
		damaged, err = damaged || bad, errors.Join(err, failed)
	}
	for i, n := range f.logs {
		bad, failed := summarize(w, f.path(logged, n), logged, n, i == len(f.logs)-1)
		damaged, err = damaged || bad, errors.Join(err, failed)
	}
	if err == nil && damaged {
		err = ErrDamaged
	}
	return err
}

// summarize says in a line what a file has. The last log may end in the middle of a record.
func summarize(w io.Writer, path string, k kind, n int, last bool) (damaged bool, err error) {
	count := 0
	r, err := readFile(path, k, n, func([][]string, int64) error { count++; return nil })
	d := (*damage)(nil)
	if !errors.As(err, &d) {
		if err == nil {
			_, err = fmt.Fprintf(w, "%s: whole, %d bytes, records: %d\n", filepath.Base(path), r.at, count)
		}
		return false, err
	}
	if last && d.offset > 0 {
		file, err := os.Open(path)
		if err != nil {
			return false, err
		}
		defer file.Close()
		if follows, err := goodBehind(file, r.head, d.offset); err != nil {
			return false, err
		} else if follows < 0 {
			_, err = fmt.Fprintf(w, "%s: whole up to offset %d, records: %d; the next start cuts off the rest: %s\n",
				filepath.Base(path), d.offset, count, d.what)
			return false, err
		}
	}
	_, err = fmt.Fprintf(w, "%s: damaged at %v; records before it: %d\n", filepath.Base(path), d, count)
	return true, err
}

func inspectFile(w io.Writer, path string, offset int64) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("store: inspect: %w", err)
	}
	defer file.Close()
	r, err := readRecords(file)
	if d := (*damage)(nil); errors.As(err, &d) {
		return inspectDamage(w, file, header{}, d)
	} else if err != nil {
		return fmt.Errorf("store: inspect %s: %w", path, err)
	}
	behind := ""
	if r.head.before != noFile {
		behind = ", continues the log of length and checksum " + r.head.before
	}
	_, err = fmt.Fprintf(w, "%s: %s %d%s\n", filepath.Base(path), r.head.kind, r.head.number, behind)
	var shown []string
	for err == nil && (len(shown) == 0 || r.Offset() <= offset) {
		var commands [][]string
		switch commands, err = r.next(); {
		case err == nil:
			shown = append(shown, describe(commands, r.at))
			shown = shown[max(0, len(shown)-shownBefore-1):]
		case errors.Is(err, io.EOF):
			shown = append(shown, fmt.Sprintf("offset %d: the end of the file\n", r.at))
		}
	}
	if _, failed := io.WriteString(w, strings.Join(shown, "")); failed != nil {
		return failed
	}
	switch d := (*damage)(nil); {
	case errors.As(err, &d):
		return inspectDamage(w, file, r.head, d)
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("store: inspect %s: %w", path, err)
	}
	return nil
}

// describe shows a record.
func describe(commands [][]string, at int64) string {
	text := fmt.Sprintf("offset %d: a whole record, commands: %d\n", at, len(commands))
	for i, args := range commands {
		if i == shownBefore {
			return text + "    …\n"
		}
		line := fmt.Sprintf("%q", args)
		if len(line) > shownText {
			line = line[:shownText] + "…"
		}
		text += "    " + line + "\n"
	}
	return text
}

func inspectDamage(w io.Writer, file *os.File, head header, d *damage) error {
	some := make([]byte, shownBytes)
	n, err := file.ReadAt(some, d.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("store: inspect: %w", err)
	}
	follows, err := goodBehind(file, head, d.offset)
	if err != nil {
		return fmt.Errorf("store: inspect: %w", err)
	}
	next := "no whole record follows"
	if follows >= 0 {
		next = fmt.Sprintf("the next whole record begins at offset %d", follows)
	}
	_, err = fmt.Fprintf(w, "DAMAGE at %v\n    %q\n%s\n", d, some[:n], next)
	return cmp.Or(err, ErrDamaged)
}
