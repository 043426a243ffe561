package store

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

// StartRedis starts a real Redis that ends with the test, and returns its URL.
var StartRedis func(t testing.TB) (url string)

// peer is a connection to a real Redis.
type peer struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func dialRedis(t *testing.T) *peer {
	network, address, _ := strings.Cut(StartRedis(t), "://")
	conn, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &peer{t, conn, bufio.NewReader(conn)}
}

// do sends commands together and returns their answers.
func (p *peer) do(all [][]string) []reply {
	p.t.Helper()
	var text []byte
	for _, args := range all {
		text = AppendCommand(text, args...)
	}
	sent := make(chan error, 1)
	go func() { // the answers may fill the socket before all is sent
		_, err := p.conn.Write(text)
		sent <- err
	}()
	answers := make([]reply, len(all))
	for i := range answers {
		var err error
		if answers[i], err = p.read(); err != nil {
			p.t.Fatalf("answer of %q: %v", all[i], err)
		}
	}
	if err := <-sent; err != nil {
		p.t.Fatal(err)
	}
	return answers
}

func (p *peer) read() (reply, error) {
	line, err := p.r.ReadString('\n')
	if err != nil {
		return reply{}, err
	}
	rest := strings.TrimSuffix(line[1:], "\r\n")
	n, _ := strconv.ParseInt(rest, 10, 64)
	switch line[0] {
	case '+':
		return reply{Kind: functions.KindStatus, Text: rest}, nil
	case '-':
		return functions.Error(rest), nil
	case ':':
		return number(n), nil
	case '$':
		if n < 0 {
			return null, nil
		}
		b := make([]byte, n+2)
		_, err := io.ReadFull(p.r, b)
		return text(string(b[:n])), err
	case '*':
		if n < 0 {
			return null, nil
		}
		items := make([]reply, n)
		for i := range items {
			if items[i], err = p.read(); err != nil {
				return reply{}, err
			}
		}
		return list(items), nil
	default:
		return reply{}, fmt.Errorf("%w: %q", ErrProtocol, line)
	}
}
