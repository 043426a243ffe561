package store

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// AppendCommand appends a command as clients send it: an array of texts (RESP,
// https://valkey.io/topics/protocol).
func AppendCommand(to []byte, args ...string) []byte {
	to = appendLength(to, '*', len(args))
	for _, a := range args {
		to = appendLength(to, '$', len(a))
		to = append(to, a...)
		to = append(to, "\r\n"...)
	}
	return to
}

func appendLength(to []byte, kind byte, n int) []byte {
	to = append(to, kind)
	to = strconv.AppendInt(to, int64(n), 10)
	return append(to, "\r\n"...)
}

// Limits of a command, as a server has them by default.
const (
	mostArguments = 1 << 20
	mostBytes     = 512 << 20 // of one argument
	mostLine      = 64 << 10
	readBuffer    = 16 << 10
	mostKept      = 1 << 20 // what a reader keeps between commands
)

// ErrProtocol is what no client sends. A server answers its text behind "ERR ", as Redis begins it.
var ErrProtocol = errors.New("protocol error")

// Reader reads commands from a connection or a file.
type Reader struct {
	r                    *bufio.Reader
	offset               int64
	mostArguments, bytes int

	// The short arguments of a command become one text, which they are cut from: one allocation a command.
	text []byte
	ends []int // of each argument in text; -1: it is long and has a text of its own
}

// NewReader makes a reader.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, readBuffer), mostArguments: mostArguments, bytes: mostBytes}
}

// Limit bounds the arguments of a command and the bytes of each. 0 is what a server has by default.
func (r *Reader) Limit(arguments, bytes int) {
	r.mostArguments, r.bytes = cmp.Or(arguments, mostArguments), cmp.Or(bytes, mostBytes)
}

// Offset is how many bytes have been read.
func (r *Reader) Offset() int64 { return r.offset }

// Buffered is how many bytes are there without waiting.
func (r *Reader) Buffered() int { return r.r.Buffered() }

// Command reads a command into args, whose elements it replaces. A line that is no array is a command whose
// arguments are its words. The error is io.EOF where the stream ends between commands, io.ErrUnexpectedEOF where it
// ends in one, or wraps [ErrProtocol].
func (r *Reader) Command(args []string) ([]string, error) {
	args = args[:0]
	line, err := r.line()
	if err != nil {
		return args, err
	}
	if len(line) == 0 || line[0] != '*' {
		return append(args, strings.Fields(string(line))...), nil
	}
	n, err := length(line, r.mostArguments, "multibulk")
	if err != nil {
		return args, err
	}
	r.text, r.ends = r.text[:0], r.ends[:0]
	for range n {
		long, err := r.bulk()
		if err != nil {
			return args, r.unexpected(err)
		}
		args = append(args, long)
	}
	all, begin := string(r.text), 0
	for i, end := range r.ends {
		if end >= 0 {
			args[i], begin = all[begin:end], end
		}
	}
	if cap(r.text) > mostKept || cap(r.ends) > mostKept/8 {
		r.text, r.ends = nil, nil
	}
	return args, nil
}

// bulk reads an argument. A long one is the answer, a short one is added to text.
func (r *Reader) bulk() (long string, err error) {
	line, err := r.line()
	if err != nil {
		return "", err
	}
	if len(line) == 0 || line[0] != '$' {
		return "", fmt.Errorf("%w: expected '$', got '%.1s'", ErrProtocol, line)
	}
	n, err := length(line, r.bytes, "bulk")
	if err != nil {
		return "", err
	}
	if n+2 > readBuffer {
		r.ends = append(r.ends, -1)
		return r.long(n)
	}
	all, err := r.r.Peek(n + 2)
	if err != nil {
		return "", err
	}
	if err := endsLine(all); err != nil {
		return "", err
	}
	r.text = append(r.text, all[:n]...)
	r.ends = append(r.ends, len(r.text))
	_, _ = r.r.Discard(n + 2)
	r.offset += int64(n + 2)
	return "", nil
}

// long reads n bytes and the end of the line behind them. What is not sent takes no memory.
func (r *Reader) long(n int) (string, error) {
	all := make([]byte, 0, min(n+2, 1<<20))
	for len(all) < n+2 {
		part := min(n+2-len(all), max(len(all), 1<<20))
		all = append(all, make([]byte, part)...)
		if _, err := io.ReadFull(r.r, all[len(all)-part:]); err != nil {
			return "", err
		}
	}
	r.offset += int64(n + 2)
	return string(all[:n]), endsLine(all)
}

func endsLine(all []byte) error {
	if !bytes.HasSuffix(all, []byte("\r\n")) {
		return fmt.Errorf("%w: a text of %d bytes does not end there", ErrProtocol, len(all)-len("\r\n"))
	}
	return nil
}

func (r *Reader) unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// line reads up to the end of a line, which is not part of the answer. It is valid until the next read.
func (r *Reader) line() ([]byte, error) {
	var long []byte
	for {
		part, err := r.r.ReadSlice('\n')
		r.offset += int64(len(part))
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(long)+len(part) <= mostLine:
			long = append(long, part...)
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("%w: too big inline request", ErrProtocol)
		case err != nil && len(long)+len(part) > 0:
			return nil, r.unexpected(err)
		case err != nil:
			return nil, err
		}
		if long != nil {
			part = append(long, part...)
		}
		return bytes.TrimSuffix(part[:len(part)-1], []byte("\r")), nil
	}
}

// length reads the number of a line that begins with '*' or '$'.
func length(line []byte, most int, what string) (int, error) {
	n := 0
	for _, c := range line[1:] {
		if c < '0' || c > '9' || n > most {
			n = most + 1
			break
		}
		n = n*10 + int(c-'0')
	}
	if len(line) == 1 || n > most {
		return 0, fmt.Errorf("%w: invalid %s length", ErrProtocol, what)
	}
	return n, nil
}
