package store

import (
	"bufio"
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
)

// ErrProtocol is what no client sends.
var ErrProtocol = errors.New("Protocol error") //nolint:staticcheck // the words of Redis

// Reader reads commands from a connection or a file.
type Reader struct {
	r      *bufio.Reader
	offset int64
}

// NewReader makes a reader.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, readBuffer)} }

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
	if !strings.HasPrefix(line, "*") {
		return append(args, strings.Fields(line)...), nil
	}
	n, err := length(line, mostArguments, "multibulk")
	if err != nil {
		return args, err
	}
	for range n {
		arg, err := r.bulk()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return args, err
		}
		args = append(args, arg)
	}
	return args, nil
}

func (r *Reader) bulk() (string, error) {
	line, err := r.line()
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(line, "$") {
		return "", fmt.Errorf("%w: expected '$', got '%.1s'", ErrProtocol, line)
	}
	n, err := length(line, mostBytes, "bulk")
	if err != nil {
		return "", err
	}
	return r.text(n)
}

// text reads n bytes and the end of the line behind them.
func (r *Reader) text(n int) (string, error) {
	var all []byte
	if n+2 <= readBuffer {
		peeked, err := r.r.Peek(n + 2)
		if err != nil {
			return "", r.unexpected(err)
		}
		all = peeked
		defer func() { _, _ = r.r.Discard(n + 2) }()
	} else {
		all = make([]byte, 0, min(n+2, 1<<20))
		for len(all) < n+2 { // what is not sent takes no memory
			part := min(n+2-len(all), max(len(all), 1<<20))
			all = append(all, make([]byte, part)...)
			if _, err := io.ReadFull(r.r, all[len(all)-part:]); err != nil {
				return "", r.unexpected(err)
			}
		}
	}
	if string(all[n:]) != "\r\n" {
		return "", fmt.Errorf("%w: a text of %d bytes does not end there", ErrProtocol, n)
	}
	r.offset += int64(n + 2)
	return string(all[:n]), nil
}

func (r *Reader) unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// line reads up to the end of a line, which is not part of the answer.
func (r *Reader) line() (string, error) {
	var long []byte
	for {
		part, err := r.r.ReadSlice('\n')
		r.offset += int64(len(part))
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(long)+len(part) <= mostLine:
			long = append(long, part...)
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			return "", fmt.Errorf("%w: too big inline request", ErrProtocol)
		case err != nil && len(long)+len(part) > 0:
			return "", r.unexpected(err)
		case err != nil:
			return "", err
		}
		if long != nil {
			part = append(long, part...)
		}
		return strings.TrimSuffix(string(part[:len(part)-1]), "\r"), nil
	}
}

func length(line string, most int, what string) (int, error) {
	n, err := strconv.Atoi(line[1:])
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%w: invalid %s length", ErrProtocol, what)
	}
	return n, nil
}
