package store

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// layout is the number of the form of the files. A store reads no higher one.
const layout = 1

const magic = "#flowfabric-store "

// kind is what a file holds.
type kind string

const (
	base   kind = "base" // all keys as they were when the log of the same number began
	logged kind = "log"  // the effects of calls
)

// header is the first line of a file. Its last word is its own checksum.
type header struct {
	kind   kind
	number int
	salt   string // 16 hexadecimal digits; one for all files of a folder
	before string // how the log before this one ended; "-" if there is none
}

func (h header) String() string {
	line := fmt.Sprint(magic, layout, " ", h.kind, " ", h.number, " ", h.salt, " ", h.before)
	return fmt.Sprintf("%s %08x\r\n", line, crc32.Checksum([]byte(line), castagnoli))
}

// seed is what the checksums of a file's records begin with. No text that a user stores looks like a record, because
// no user knows it.
func (h header) seed() uint32 { return crc32.Checksum([]byte(h.salt), castagnoli) }

// noFile is how a log ended that there was not.
const noFile = "-"

// ended says how a log ended: its length and the checksum of its last record, 0 if it had none.
func ended(length int64, sum uint32) string { return fmt.Sprintf("%d:%08x", length, sum) }

func parseHeader(line string) (h header, err error) {
	rest, found := strings.CutPrefix(line, magic)
	if !found {
		return h, &damage{0, "it does not begin as a file of a store"}
	}
	words := strings.Fields(rest)
	if len(words) > 0 {
		if n, err := strconv.Atoi(words[0]); err == nil && n > layout {
			return h, decide("its layout is %d: a newer version has written it; this one reads up to %d", n, layout)
		}
	}
	if len(words) == 6 {
		h = header{kind: kind(words[1]), salt: words[3], before: words[4]}
		h.number, _ = strconv.Atoi(words[2])
	}
	if h.String() != line {
		return h, &damage{0, "the first line does not have its checksum"}
	}
	return h, nil
}

// appendRecord appends the effects of a call as they are in a file: commands, MULTI and EXEC around several, and a
// line with the checksum.
func appendRecord(to []byte, seed uint32, e effects) (all []byte, sum uint32) {
	begin := len(to)
	if e.count > 1 {
		to = append(to, "*1\r\n$5\r\nMULTI\r\n"...)
	}
	to = append(to, e.text...)
	if e.count > 1 {
		to = append(to, "*1\r\n$4\r\nEXEC\r\n"...)
	}
	sum = crc32.Update(seed, castagnoli, to[begin:])
	return appendSum(to, sum), sum
}

func appendSum(to []byte, sum uint32) []byte { return fmt.Appendf(to, "#%08x\r\n", sum) }

// damage is what does not belong in a file.
type damage struct {
	offset int64
	what   string
}

func (d *damage) Error() string { return fmt.Sprintf("offset %d: %s", d.offset, d.what) }

// decision is an error that a person must act on. It is a [flowfabric.ErrConfig], which its text does not repeat: the
// folder is at fault, not a setting.
type decision struct{ error }

func decide(format string, args ...any) error { return &decision{fmt.Errorf(format, args...)} }

func (d *decision) Unwrap() []error { return []error{d.error, flowfabric.ErrConfig} }

// records reads the records of a file.
type records struct {
	*Reader
	tap  tap
	head header
	at   int64  // where the last record begins; at the end of the file its length
	sum  uint32 // the checksum of the last one that was whole
	keys int    // of the end of a base; -1 before it

	slots [][]string // of commands; they are used again
}

// tap keeps what a reader has read of the current record.
type tap struct {
	io.Reader
	raw   []byte
	start int64 // the offset of raw
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	t.raw = append(t.raw, p[:n]...)
	return n, err
}

// readRecords begins to read a file.
func readRecords(r io.Reader) (*records, error) {
	f := newRecords(r, header{})
	line, err := f.raw()
	if err == nil {
		f.head, err = parseHeader(line)
	}
	f.tap.drop(f.offset)
	return f, err
}

// newRecords reads records of a file from anywhere.
func newRecords(r io.Reader, head header) *records {
	f := &records{tap: tap{Reader: r}, head: head, keys: -1}
	f.Reader = NewReader(&f.tap)
	f.Limit(math.MaxInt32, math.MaxInt/16) // a function writes longer ones than a client may send
	return f
}

// drop forgets what is before an offset.
func (t *tap) drop(offset int64) {
	t.raw = t.raw[:copy(t.raw, t.raw[offset-t.start:])]
	t.start = offset
}

// raw reads a line as it is.
func (f *records) raw() (string, error) {
	line, err := f.r.ReadSlice('\n')
	switch {
	case err == nil:
		f.offset += int64(len(line))
		return string(line), nil
	case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
		return "", &damage{f.at, "it ends in the middle of a line"}
	default:
		return "", err
	}
}

// next reads a record. Its commands are valid until the next one. The error is io.EOF at the end of the file, a
// damage, or that of the file system.
func (f *records) next() (commands [][]string, err error) {
	f.at = f.offset
	f.tap.drop(f.at)
	if f.keys >= 0 {
		return nil, f.nothingFollows()
	}
	for {
		begins, err := f.r.Peek(1)
		several := len(commands) > 0 && commands[0][0] == "MULTI"
		over := len(commands) > 0 && (!several || commands[len(commands)-1][0] == "EXEC")
		switch {
		case errors.Is(err, io.EOF) && len(commands) == 0:
			return nil, io.EOF
		case err != nil:
			return nil, f.damaged(err)
		case begins[0] == '#' && (over || len(commands) == 0):
			if err = f.close(len(commands)); err != nil || len(commands) == 0 {
				return nil, err
			}
			if several {
				commands = commands[1 : len(commands)-1]
			}
			return commands, nil
		case begins[0] != '*' || over:
			return nil, &damage{f.at, fmt.Sprintf("a record does not go on as one at offset %d", f.offset)}
		}
		if len(f.slots) == len(commands) {
			f.slots = append(f.slots, nil)
		}
		n := len(commands)
		f.slots[n], err = f.Command(f.slots[n])
		if err != nil || len(f.slots[n]) == 0 {
			return nil, f.damaged(err)
		}
		commands = f.slots[:n+1]
	}
}

// close reads the line behind n commands.
func (f *records) close(n int) error {
	body := f.tap.raw[:f.offset-f.at]
	line, err := f.raw()
	if err != nil {
		return err
	}
	if n == 0 {
		if _, err := fmt.Sscanf(line, "#end %d", &f.keys); err != nil || f.head.kind != base || line != end(f.keys) {
			return &damage{f.at, "a line that is no part of a record"}
		}
		f.at = f.offset
		return f.nothingFollows()
	}
	sum := crc32.Update(f.head.seed(), castagnoli, body)
	if line != string(appendSum(nil, sum)) {
		return &damage{f.at, "a record does not have its checksum"}
	}
	f.sum = sum
	return nil
}

// end is the last line of a base.
func end(keys int) string { return fmt.Sprintf("#end %d\r\n", keys) }

func (f *records) nothingFollows() error {
	if _, err := f.r.Peek(1); !errors.Is(err, io.EOF) {
		return &damage{f.at, "something follows behind the end"}
	}
	return io.EOF
}

func (f *records) damaged(err error) error {
	switch {
	case err == nil:
		return &damage{f.at, "a command without a name"}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &damage{f.at, "it ends in the middle of a record"}
	case errors.Is(err, ErrProtocol):
		return &damage{f.at, err.Error()}
	default:
		return err
	}
}

// goodBehind finds the next record that is whole behind an offset of a file; -1 if there is none.
func goodBehind(file *os.File, head header, offset int64) (int64, error) {
	rest, err := io.ReadAll(io.NewSectionReader(file, offset, math.MaxInt64-offset))
	if err != nil {
		return -1, err
	}
	r := bytes.NewReader(nil)
	f := newRecords(r, head)
	for from := 1; ; from++ {
		star := bytes.IndexByte(rest[min(from, len(rest)):], '*')
		if star < 0 {
			return -1, nil
		}
		from += star
		r.Reset(rest[from:])
		f.r.Reset(&f.tap)
		f.tap.raw, f.tap.start, f.offset = f.tap.raw[:0], 0, 0
		if _, err := f.next(); err == nil {
			return offset + int64(from), nil
		}
	}
}

// openRecords opens a file and reads its first line, which must be that of this kind and number.
func openRecords(path string, k kind, number int) (*os.File, *records, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	f, err := readRecords(file)
	if err == nil && (f.head.kind != k || f.head.number != number) {
		err = &damage{0, fmt.Sprintf("it says that it is %s %d", f.head.kind, f.head.number)}
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, f, nil
}
