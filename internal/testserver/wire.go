package testserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// askTimeout bounds a command to a server that may be paused.
const askTimeout = 10 * time.Second

// ask sends one command over a connection of its own, which it begins with the password if there is one, and returns
// the reply: a string, an int64, nil or a []any of these. An error reply is an error. A bound of 0 is none.
// Administration needs no more, and this package no driver.
func ask(network, address, pass string, bound time.Duration, args ...string) (any, error) {
	conn, err := net.DialTimeout(network, address, bound)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if bound > 0 {
		// timed: a server that is paused does not answer; a caller that needs an answer asks again
		_ = conn.SetDeadline(time.Now().Add(bound))
	}
	r := bufio.NewReader(conn)
	if pass != "" {
		if _, err := exchange(conn, r, "AUTH", pass); err != nil {
			return nil, err
		}
	}
	return exchange(conn, r, args...)
}

func exchange(w io.Writer, r *bufio.Reader, args ...string) (any, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return nil, err
	}
	return readReply(r)
}

// readReply reads one reply of protocol version 2.
func readReply(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return nil, errors.New("an empty line instead of a reply")
	}
	kind, rest := line[0], line[1:]
	if kind == '+' {
		return rest, nil
	}
	if kind == '-' {
		return nil, errors.New(rest)
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("reply %q", line)
	}
	switch {
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case kind == '$':
		text := make([]byte, n+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		return string(text[:n]), nil
	case kind == '*':
		list := make([]any, n)
		for i := range list {
			if list[i], err = readReply(r); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("reply %q", line)
}
