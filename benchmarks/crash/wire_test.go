package crash

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

func TestRequestsOfRedis(t *testing.T) {
	command := func(words ...string) string {
		var b strings.Builder
		b.WriteString("*" + string(rune('0'+len(words))) + "\r\n")
		for _, w := range words {
			b.WriteString("$" + string(rune('0'+len(w))) + "\r\n" + w + "\r\n")
		}
		return b.String()
	}
	d := &resp{}
	var in bytes.Buffer
	for _, c := range [][]string{{"get", "k"}, {"XADD", "k"}, {"FCALL", "ff_x", "0"}, {"SUBSCRIBE", "c"}, {"MULTI"},
		{"SET", "k", "v"}, {"EXEC"}, {"SET", "k", "v"}} {
		in.WriteString(command(c...))
	}
	want := in.String()
	r := bufio.NewReader(&in)
	var got, passed []string
	for range 8 {
		raw, writes, answered, err := d.request(r)
		if err != nil {
			t.Fatal(err)
		}
		passed = append(passed, string(raw))
		if !answered {
			writes = "no answer"
		}
		got = append(got, writes)
	}
	if g := strings.Join(got, ","); g != ",XADD,ff_x,no answer,,,EXEC,SET" {
		t.Errorf("writes %s", g)
	}
	if strings.Join(passed, "") != want {
		t.Errorf("passed on %q", passed)
	}
}

func TestRepliesOfRedis(t *testing.T) {
	d := &resp{}
	texts := []string{"+OK\r\n", "$-1\r\n", "$2\r\nab\r\n", "*2\r\n:1\r\n*1\r\n_\r\n", "%1\r\n+a\r\n,1.5\r\n",
		"|1\r\n+a\r\n+b\r\n:1\r\n", ">1\r\n+x\r\n"}
	r := bufio.NewReader(strings.NewReader(strings.Join(texts, "")))
	for _, want := range texts {
		raw, ends, err := d.reply(r)
		if err != nil || string(raw) != want || ends == strings.HasPrefix(want, ">") {
			t.Errorf("%q, ends %v, %v, want %q", raw, ends, err, want)
		}
	}
}

// typedMessage is a message of PostgreSQL.
func typedMessage(kind byte, body string) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))) + body
}

func TestRequestsOfPostgreSQL(t *testing.T) {
	d := &pgwire{}
	startup := typedMessage('x', "startup")[1:]
	parse := typedMessage('P', "s1\x00insert into t values ($1)\x00\x00\x00") + typedMessage('S', "")
	execute := typedMessage('B', "\x00s1\x00\x00\x00") + typedMessage('E', "\x00\x00\x00\x00\x00") +
		typedMessage('S', "")
	begin := typedMessage('Q', "begin\x00")
	commit := typedMessage('Q', "commit\x00")
	end := typedMessage('X', "")
	r := bufio.NewReader(strings.NewReader(startup + parse + execute + begin + execute + commit + end))
	ready := func(status string) {
		reply := typedMessage('D', "row") + typedMessage('Z', status)
		raw, ends, err := d.reply(bufio.NewReader(strings.NewReader(reply)))
		if err != nil || !ends || string(raw) != reply {
			t.Errorf("reply %q, %v, %v", raw, ends, err)
		}
	}
	for i, step := range []struct{ raw, writes, status string }{{startup, "", ""}, {parse, "", "I"},
		{execute, "INSERT", "I"}, {begin, "", "T"}, {execute, "", "T"}, {commit, "COMMIT", "I"}, {end, "", ""}} {
		raw, writes, answered, err := d.request(r)
		if err != nil || string(raw) != step.raw || writes != step.writes || answered != (step.status != "") {
			t.Errorf("request %d: %q writes %q, answered %v, %v", i, raw, writes, answered, err)
		}
		if answered {
			ready(step.status)
		}
	}
}

// What a peer sends is passed on as it came, or refused.
func FuzzValue(f *testing.F) {
	f.Add([]byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"))
	f.Add([]byte("%1\r\n+a\r\n|1\r\n+b\r\n:1\r\n_\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		raw, err := value(bufio.NewReader(bytes.NewReader(in)), nil)
		if err == nil && !bytes.HasPrefix(in, raw) {
			t.Errorf("%q came of %q", raw, in)
		}
	})
}

func FuzzPostgreSQL(f *testing.F) {
	f.Add([]byte(typedMessage('Q', "select 1\x00")))
	f.Add([]byte(typedMessage('P', "s\x00delete\x00") + typedMessage('S', "")))
	f.Fuzz(func(t *testing.T, in []byte) {
		d := &pgwire{started: true, statements: map[string]string{}}
		raw, _, _, err := d.request(bufio.NewReader(bytes.NewReader(in)))
		if err == nil && !bytes.HasPrefix(in, raw) {
			t.Errorf("%q came of %q", raw, in)
		}
		raw, _, err = (&pgwire{}).reply(bufio.NewReader(bytes.NewReader(in)))
		if err == nil && !bytes.HasPrefix(in, raw) {
			t.Errorf("%q came of %q", raw, in)
		}
	})
}

func TestWhatAReaderShows(t *testing.T) {
	shown := []string{word(1, 0, 0), word(1, 0, 1), word(1, 1, 0), word(1, 1, 1), word(2, 0, 0), word(1, 2, 0)}
	if more, lost := differ(shown, []string{word(1, 1, 0), word(1, 1, 1), word(3, 0, 0)}); more != 4 || lost != 1 {
		t.Errorf("%d more, %d lost", more, lost)
	}
	if got := ruled(shown); len(got) != 1 || got[0] != word(1, 2, 0) {
		t.Errorf("%q", got)
	}
	if got := tokens(said(1, 0)); len(got) != perTurn || strings.TrimSpace(got[perTurn-1]) != "1.0.4" {
		t.Errorf("%q", got)
	}
}
