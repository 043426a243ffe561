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

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/record"
)

// hash reads a hash of the store.
func (w *Env) hash(ctx context.Context, key string) (fields map[string]string, err error) {
	words, err := w.words(ctx, "HGETALL", key)
	if err != nil {
		return nil, err
	}
	fields = map[string]string{}
	for pair := range slices.Chunk(words, 2) {
		fields[pair[0]] = pair[1]
	}
	return fields, nil
}

// waits reads what an execution waits for, or has waited for.
func (w *Env) waits(ctx context.Context, id flowfabric.ExecutionID) (record.Waits, error) {
	words, err := w.words(ctx, "MGET", keys.Of(id.Partition()).Waits(ids.UUID(id)))
	if err != nil {
		return record.Waits{}, err
	}
	return record.DecodeWaits(words[0]), nil
}

// words makes a call that is answered with a list of texts.
func (w *Env) words(ctx context.Context, command ...string) (words []string, err error) {
	err = w.raw(ctx, func(r *bufio.Reader) error {
		n, err := number(r, "*")
		if err != nil {
			return err
		}
		words = make([]string, n)
		for i := range words {
			size, err := number(r, "$")
			if err != nil {
				return err
			}
			if size < 0 { // there is none
				continue
			}
			word := make([]byte, size+2)
			if _, err := io.ReadFull(r, word); err != nil {
				return err
			}
			words[i] = string(word[:size])
		}
		return nil
	}, command...)
	return words, err
}

// score is the time of a member of a sorted set of times.
func (w *Env) score(ctx context.Context, key, member string) (at time.Time, ok bool, err error) {
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
func (w *Env) raw(ctx context.Context, read func(*bufio.Reader) error, command ...string) error {
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
