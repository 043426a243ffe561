package crash

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// resp is Redis' protocol, of either version.
type resp struct {
	multi bool // between MULTI and EXEC nothing is done
}

// reads are commands that write nothing. Anything else may write, also a script that finds nothing to do.
var reads = func() map[string]bool {
	out := map[string]bool{}
	for name := range strings.FieldsSeq(`PING ECHO HELLO AUTH SELECT CLIENT INFO COMMAND CONFIG CLUSTER TIME ROLE WAIT
		GET MGET STRLEN EXISTS TTL PTTL TYPE SCAN HGET HMGET HGETALL HEXISTS HLEN HKEYS LRANGE LLEN LINDEX SMEMBERS
		SISMEMBER SCARD ZRANGE ZRANGEBYSCORE ZREVRANGE ZSCORE ZCARD ZCOUNT XREAD XRANGE XLEN XINFO XPENDING
		FCALL_RO EVAL_RO EVALSHA_RO SCRIPT FUNCTION MULTI WATCH UNWATCH DISCARD`) {
		out[name] = true
	}
	return out
}()

func (c *resp) request(r *bufio.Reader) (raw []byte, writes string, answered bool, err error) {
	raw, err = value(r, nil)
	if err != nil {
		return nil, "", false, err
	}
	parts := bytes.Split(raw, []byte("\r\n")) // *n $l name $l argument …
	if raw[0] != '*' || len(parts) < 3 {
		return nil, "", false, fmt.Errorf("%.40q is no command", raw)
	}
	name := strings.ToUpper(string(parts[2]))
	if strings.HasSuffix(name, "SUBSCRIBE") {
		return raw, "", false, nil
	}
	inside := c.multi
	switch name {
	case "MULTI":
		c.multi = true
	case "EXEC", "DISCARD":
		c.multi, inside = false, false
	}
	if inside || reads[name] {
		return raw, "", true, nil
	}
	if writes = name; name == "FCALL" && len(parts) > 4 {
		writes = string(parts[4])
	}
	return raw, writes, true, nil
}

func (c *resp) reply(r *bufio.Reader) (raw []byte, ends bool, err error) {
	raw, err = value(r, nil)
	return raw, err == nil && raw[0] != '>', err
}

// value reads one value with all that is in it, and appends it.
func value(r *bufio.Reader, to []byte) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 {
		return nil, fmt.Errorf("%q is no value", line)
	}
	kind, count := line[0], string(line[1:len(line)-2])
	to = append(to, line...)
	if !strings.ContainsRune("$=!*~>%|", rune(kind)) {
		return to, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n > mostMessage {
		return nil, fmt.Errorf("%.40q is no length of up to %d", count, mostMessage)
	}
	switch kind {
	case '$', '=', '!':
		if n < 0 {
			return to, nil
		}
		at := len(to)
		to = append(to, make([]byte, n+2)...)
		_, err := io.ReadFull(r, to[at:])
		return to, err
	case '%':
		n *= 2
	case '|': // attributes are before the value
		n = 2*n + 1
	}
	for range n {
		if to, err = value(r, to); err != nil {
			return nil, err
		}
	}
	return to, nil
}
