package store

import (
	"errors"
	"fmt"
	"io"
)

// reading says what is done with the files of a store while they are read in their order.
type reading struct {
	record func(commands [][]string, at int64) error
	base   func(keys int) error                           // the end of the base
	torn   func(path string, r *records, d *damage) error // damage of the last log: nil if it was cut off
}

// last is where the files of a store end.
type last struct {
	number int // of the last log
	size   int64
	sum    uint32
	base   int64  // bytes
	logs   int64  // bytes of all
	salt   string // "": there are no files
}

// read reads the base and the logs behind it. Each file must be there, and continue the one before it.
func (f *files) read(do reading) (end last, err error) {
	logs, err := f.current()
	if err != nil {
		return end, err
	}
	if n := f.first(); n > 0 {
		path := f.path(base, n)
		r, err := readFile(path, base, n, do.record)
		if err == nil {
			err = do.base(r.keys)
		}
		if err != nil {
			return end, refused(path, err)
		}
		end.base, end.salt = r.at, r.head.salt
	}
	before := ""
	for i, n := range logs {
		path := f.path(logged, n)
		r, err := readFile(path, logged, n, do.record)
		if d := (*damage)(nil); i == len(logs)-1 && errors.As(err, &d) && d.offset > 0 {
			err = do.torn(path, r, d)
		}
		if err != nil {
			return end, refused(path, err)
		}
		if before != "" && r.head.before != before || end.salt != "" && end.salt != r.head.salt {
			return end, decide("%s does not continue the file before it (length and checksum %s, but it was "+
				"written behind %s): they were copied at different times, or the end of that one is lost; restore a "+
				"backup", path, before, r.head.before)
		}
		before = ended(r.at, r.sum)
		end.number, end.size, end.sum, end.salt = n, r.at, r.sum, r.head.salt
		end.logs += r.at
	}
	return end, nil
}

// readFile reads a file up to its end or its damage.
func readFile(path string, k kind, number int, do func([][]string, int64) error) (r *records, err error) {
	file, r, err := openRecords(path, k, number)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for err == nil {
		var commands [][]string
		if commands, err = r.next(); err == nil {
			err = do(commands, r.at)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
		if k == base && r.keys < 0 {
			err = &damage{r.at, "its last line is missing"}
		}
	}
	return r, err
}

// refused tells what to do about damage.
func refused(path string, err error) error {
	d := (*damage)(nil)
	if !errors.As(err, &d) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return decide("%s is damaged at %w; `flowfabric store inspect %s --at %d` shows what is there; "+
		"restore a backup, or cut the file at that offset and remove the logs behind it to give up what follows",
		path, d, path, d.offset)
}
