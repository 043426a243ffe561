package store

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestCommandsAreReadAsTheyWereWritten(t *testing.T) {
	all := [][]string{{"PING"}, {"SET", "k", ""}, {"SET", "k\r\n", strings.Repeat("x", readBuffer-2)},
		{"SET", strings.Repeat("long", 1<<20), "\x00"}}
	var text []byte
	for _, args := range all {
		text = AppendCommand(text, args...)
	}
	r := NewReader(bytes.NewReader(text))
	for _, want := range all {
		if got, err := r.Command(nil); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%.40q, %v", got, err)
		}
	}
	if _, err := r.Command(nil); err != io.EOF || r.Offset() != int64(len(text)) {
		t.Errorf("%v at %d of %d", err, r.Offset(), len(text))
	}
	for cut := 1; cut < 60; cut++ {
		if len(AppendCommand(nil, all[1]...)) == cut || len(AppendCommand(nil, all[0]...)) == cut {
			continue
		}
		r := NewReader(bytes.NewReader(AppendCommand(nil, "SET", "a key", "a value of some length, ", "more")[:cut]))
		if _, err := r.Command(nil); err != io.ErrUnexpectedEOF {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
}

func TestWhatIsNoCommand(t *testing.T) {
	for _, text := range []string{"*x\r\n", "*-1\r\n", "*9999999\r\n", "*1\r\n+OK\r\n", "*1\r\n$-1\r\n",
		"*1\r\n$99999999999\r\n", "*1\r\n$2\r\nabc\r\n", strings.Repeat("x", 100_000)} {
		if _, err := NewReader(strings.NewReader(text)).Command(nil); !errors.Is(err, ErrProtocol) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	if got, err := NewReader(strings.NewReader("PING  a\n")).Command(nil); err != nil || !slices.Equal(got,
		[]string{"PING", "a"}) {
		t.Errorf("a line: %q, %v", got, err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"))
	f.Add([]byte("PING\r\n*0\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := NewReader(bytes.NewReader(data))
		for {
			before := r.Offset()
			args, err := r.Command(nil)
			if err != nil {
				return
			}
			if r.Offset() <= before || r.Offset() > int64(len(data)) {
				t.Fatalf("%q read to %d", args, r.Offset())
			}
		}
	})
}
