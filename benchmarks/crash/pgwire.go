package crash

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync/atomic"
)

// pgwire is PostgreSQL's protocol, as far as pgx speaks it: a request ends with a Sync or is a simple query, and its
// answer ends with ReadyForQuery.
type pgwire struct {
	started    bool
	statements map[string]string // prepared ones
	inside     atomic.Bool       // a transaction is open
}

var changes = regexp.MustCompile(`(?i)\b(insert|update|delete|commit|pg_notify)\b`)

const mostMessage = 16 << 20

func (c *pgwire) request(r *bufio.Reader) (raw []byte, writes string, answered bool, err error) {
	if !c.started {
		c.started, c.statements = true, map[string]string{}
		raw, err = packet(r, nil)
		return raw, "", false, err
	}
	var sql string
	for {
		at := len(raw)
		if raw, err = typed(r, raw); err != nil {
			return nil, "", false, err
		}
		body := raw[at+5:]
		switch raw[at] {
		case 'P':
			name, rest, _ := bytes.Cut(body, []byte{0})
			text, _, _ := bytes.Cut(rest, []byte{0})
			c.statements[string(name)] = string(text)
		case 'B':
			_, rest, _ := bytes.Cut(body, []byte{0})
			name, _, _ := bytes.Cut(rest, []byte{0})
			sql += c.statements[string(name)] + "\n"
		case 'Q':
			text, _, _ := bytes.Cut(body, []byte{0})
			return raw, c.writes(string(text)), true, nil
		case 'S':
			return raw, c.writes(sql), true, nil
		case 'X', 'H', 'd', 'c', 'f', 'p':
			return raw, "", false, nil
		}
	}
}

// writes is what in a request may change the store at once. In a transaction that is its commit.
func (c *pgwire) writes(sql string) string {
	found := strings.ToUpper(changes.FindString(sql))
	if c.inside.Load() && found != "COMMIT" {
		return ""
	}
	return found
}

func (c *pgwire) reply(r *bufio.Reader) (raw []byte, ends bool, err error) {
	for {
		at := len(raw)
		if raw, err = typed(r, raw); err != nil {
			return nil, false, err
		}
		switch raw[at] {
		case 'Z':
			c.inside.Store(raw[at+5] != 'I')
			return raw, true, nil
		case 'R', 'A', 'N', 'G', 'W': // asked for a password, notified, about to copy: nobody waits for more
			if at == 0 {
				return raw, false, nil
			}
		}
	}
}

// typed reads a message with its type.
func typed(r *bufio.Reader, to []byte) ([]byte, error) {
	kind, err := r.ReadByte()
	if err != nil {
		return nil, err
	}
	return packet(r, append(to, kind))
}

// packet reads a length and as many bytes.
func packet(r *bufio.Reader, to []byte) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n < 4 || n > mostMessage {
		return nil, fmt.Errorf("a message of %d bytes", n)
	}
	to = append(to, size[:]...)
	at := len(to)
	to = append(to, make([]byte, n-4)...)
	_, err := io.ReadFull(r, to[at:])
	return to, err
}
