package fftest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/inproc"
)

// hash reads a hash of the store.
func (w *World) hash(ctx context.Context, key string) (fields map[string]string, err error) {
	err = w.raw(ctx, func(r *bufio.Reader) error {
		n, err := number(r, "*")
		if err != nil {
			return err
		}
		words := make([]string, n)
		for i := range words {
			size, err := number(r, "$")
			if err != nil {
				return err
			}
			word := make([]byte, size+2)
			if _, err := io.ReadFull(r, word); err != nil {
				return err
			}
			words[i] = string(word[:size])
		}
		fields = map[string]string{}
		for pair := range slices.Chunk(words, 2) {
			fields[pair[0]] = pair[1]
		}
		return nil
	}, "HGETALL", key)
	return fields, err
}

// entries is how many entries a stream of the store has.
func (w *World) entries(ctx context.Context, key string) (n int, err error) {
	err = w.raw(ctx, func(r *bufio.Reader) (e error) { n, e = number(r, ":"); return e }, "XLEN", key)
	return n, err
}

// score is the time of a member of a sorted set of times.
func (w *World) score(ctx context.Context, key, member string) (at time.Time, ok bool, err error) {
	err = w.raw(ctx, func(r *bufio.Reader) error {
		size, err := number(r, "$")
		if err != nil || size < 0 { // there is none
			return err
		}
		text := make([]byte, size)
		if _, err := io.ReadFull(r, text); err != nil {
			return err
		}
		ms, err := strconv.ParseFloat(string(text), 64)
		at, ok = time.UnixMilli(int64(ms)), err == nil
		return err
	}, "ZSCORE", key, member)
	return at, ok, err
}

// raw makes one call of the store and reads its answer.
func (w *World) raw(ctx context.Context, read func(*bufio.Reader) error, command ...string) error {
	conn, err := inproc.Dial(ctx, w.server.URL())
	if err != nil {
		return err
	}
	defer conn.Close()
	request := fmt.Sprintf("*%d\r\n", len(command))
	for _, word := range command {
		request += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	if err := read(bufio.NewReader(conn)); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	return nil
}

// number reads a line that is a mark and a number.
func number(r *bufio.Reader, mark string) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	text, ok := strings.CutPrefix(strings.TrimSuffix(line, "\r\n"), mark)
	if !ok {
		return 0, fmt.Errorf("answered %q", line)
	}
	return strconv.Atoi(text)
}
