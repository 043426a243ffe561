package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/functions"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/store"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
)

// A folder moves to a server and back: nothing is added, left behind or changed, and audits find nothing.
func TestMoving(t *testing.T) {
	for server, start := range map[string]func(*testing.T) *testserver.Server{
		"redis":  func(t *testing.T) *testserver.Server { return testserver.Start(t, testserver.ServerRedis) },
		"valkey": func(t *testing.T) *testserver.Server { return testserver.Start(t, testserver.ServerValkey) },
	} {
		t.Run(server, func(t *testing.T) { move(t, start(t)) })
	}
}

func move(t *testing.T, to *testserver.Server) {
	dir, back := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "back")
	fill(t, dir)
	first := exported(t, dir)
	pipe(t, to.Address(), first)
	if code, text := command(t, "check", "--url", to.URL()); code != exitOK {
		t.Errorf("check on the server: %d %s", code, text)
	}
	pipe(t, to.Address(), store.AppendCommand(nil, "SET", "other", "application"))
	t.Setenv("FLOWFABRIC_TOKEN_KEYS", testKey("k1"))
	if code, text := command(t, "import", back, "--url", to.URL()); code != exitOK ||
		!strings.Contains(text, "1 key of other applications") || strings.Contains(text, "FLOWFABRIC_TOKEN_KEYS") {
		t.Fatalf("import: %d %s", code, text)
	}
	if keys, err := tokenkeys.Kept(back, ""); err != nil || keys != testKey("k1") {
		t.Errorf("token keys: %v", err)
	}
	same(t, contents(t, first), contents(t, exported(t, back)))
	if code, text := onFolder(t, back, "check"); code != exitOK {
		t.Errorf("check of what was imported: %d %s", code, text)
	}
}

// fill makes a folder with every kind of key.
func fill(t *testing.T, dir string) {
	s := serveFolder(t, dir)
	var w *env
	t.Run("fill", func(t *testing.T) { // whose end closes the connections
		w = newEnv(t, s.URL())
		w.graphs()
		for _, session := range []string{"gate", "slots", "attach", "lane", "schedules", "messages", "trail"} {
			for _, step := range sessions[session] {
				w.run(step.line, step.stdin)
			}
		}
		ref := w.engine.Written("default", "chat/main")
		_, _, err := w.engine.OpenStream(w.ctx, ref, engine.NewStream{Media: "text/plain", Units: 5,
			Payload: []byte("tides")})
		must.No(t, err)
		fork := w.engine.Written("default", "chat/try")
		_, _, err = w.engine.OpenStream(w.ctx, fork, engine.NewStream{Source: &ref})
		must.No(t, err)
	})
	s.Close()
	large(t, dir)
}

// large adds values that are read in many parts, and numbers that are hard to keep.
func large(t *testing.T, dir string) {
	t.Helper()
	s, err := store.Open(dir, store.Options{})
	must.No(t, err)
	s.Lock()
	do := func(args ...string) {
		if r := s.Do(args); r.Kind == functions.KindError {
			t.Errorf("%q: %s", args, r.Text)
		}
	}
	for i := range 5*partsPerCall + 1 {
		n := strconv.Itoa(i)
		do("HSET", "ff:large:hash", "field "+n, "value\r\n"+n)
		do("SADD", "ff:large:set", n, "member "+n)
		do("RPUSH", "ff:large:list", n, "")
		do("ZADD", "ff:large:zset", strconv.FormatFloat(1/float64(i+1), 'g', 17, 64), "member "+n)
		do("XADD", "ff:large:stream", n+"-1", "a", n, "a", "twice", "", "\x00")
	}
	do("ZADD", "ff:odd:zset", "inf", "a", "-inf", "b", "1e300", "c", "9007199254740993", "d")
	do("XDEL", "ff:large:stream", strconv.Itoa(5*partsPerCall)+"-1")
	do("XADD", "ff:odd:stream", "7-7", "a", "b")
	do("XDEL", "ff:odd:stream", "7-7")
	do("SET", "ff:odd:text", "", "PX", "86400000")
	s.Unlock()
	must.No(t, s.Close())
}

func exported(t *testing.T, dir string) []byte {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := run(t.Context(), []string{"export", dir}, strings.NewReader(""), &out, &errOut); code != exitOK ||
		!strings.HasPrefix(errOut.String(), "exported ") {
		t.Fatalf("%d %s", code, &errOut)
	}
	return out.Bytes()
}

// pipe sends commands to a server as valkey-cli --pipe does: all at once, while it reads the answers.
func pipe(t *testing.T, socket string, commands []byte) {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	must.No(t, err)
	defer conn.Close()
	var sending conc.WaitGroup
	defer sending.Wait()
	sending.Go(func() {
		_, err := conn.Write(store.AppendCommand(slices.Clip(commands), "ECHO", "the end"))
		if err != nil {
			t.Error(err)
		}
	})
	for answers := bufio.NewScanner(conn); answers.Scan(); {
		switch line := answers.Text(); {
		case line == "the end":
			return
		case strings.HasPrefix(line, "-"):
			t.Errorf("refused: %s", line)
		}
	}
	t.Error("the server hung up")
}

// contents reads exported commands: what builds each key, in an order that does not depend on where it was read.
func contents(t *testing.T, text []byte) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	r := store.NewReader(bytes.NewReader(text))
	for {
		args, err := r.Command(nil)
		if errors.Is(err, io.EOF) {
			break
		}
		must.No(t, err)
		name, key, rest := args[0], args[1], args[2:]
		size := map[string]int{"HSET": 2, "ZADD": 2, "SADD": 1, "RPUSH": 1}[name]
		if size == 0 {
			size = max(len(rest), 1)
		}
		if len(rest) == 0 {
			all[key] = append(all[key], name)
		}
		for part := range slices.Chunk(rest, size) {
			for i, word := range part {
				part[i] = strconv.Quote(word)
			}
			all[key] = append(all[key], name+" "+strings.Join(part, " "))
		}
	}
	for _, commands := range all {
		if strings.HasPrefix(commands[0], "HSET") || strings.HasPrefix(commands[0], "SADD") {
			slices.Sort(commands)
		}
	}
	return all
}

func same(t *testing.T, a, b map[string][]string) {
	t.Helper()
	kinds := map[string]int{}
	for key, commands := range a {
		kind, _, _ := strings.Cut(commands[0], " ")
		kinds[kind]++
		if !slices.Equal(commands, b[key]) {
			t.Errorf("%s:\n%.500q\nafter it was moved:\n%.500q", key, commands, b[key])
		}
	}
	for key := range b {
		if a[key] == nil {
			t.Errorf("%s came from nowhere", key)
		}
	}
	for _, kind := range []string{"SET", "HSET", "SADD", "ZADD", "RPUSH", "XADD"} {
		if kinds[kind] == 0 {
			t.Errorf("nothing has %s: %v", kind, kinds)
		}
	}
}

// A folder is imported as a whole or not at all: a process that goes on writing makes it fail, and nothing is left.
func TestImportWantsQuiet(t *testing.T) {
	t.Run("redis", func(t *testing.T) {
		to := testserver.Start(t, testserver.ServerRedis)
		wantQuiet(t, to.URL(), func() {
			pipe(t, to.Address(), store.AppendCommand(nil, "XGROUP", "CREATE", "ff:stream", "g", "0", "MKSTREAM"))
		})
	})
	t.Run("folder", func(t *testing.T) { wantQuiet(t, serveFolder(t, t.TempDir()).URL(), func() {}) })
}

// wantQuiet calls more before the import that succeeds.
func wantQuiet(t *testing.T, url string, more func()) {
	server, err := engine.Dial(t.Context(), engine.Config{URL: url})
	must.No(t, err)
	defer server.Close()
	parent := t.TempDir()
	ask := func(args ...string) (int, string) { return command(t, append(args, "--url", url)...) }
	if code, text := ask("import", filepath.Join(parent, "data")); code != exitUsage ||
		!strings.Contains(text, "no data of FlowFabric") {
		t.Errorf("an empty server: %d %s", code, text)
	}
	before, err := writes(t.Context(), []*engine.Probe{server})
	must.No(t, err)
	if code, text := ask("submit", "report"); code != exitOK {
		t.Fatal(text)
	}
	if after, err := writes(t.Context(), []*engine.Probe{server}); err != nil || after <= before {
		t.Errorf("%d calls that write before a submit, %d after it, %v", before, after, err)
	}
	ctx, still := context.WithCancel(t.Context())
	var writer conc.WaitGroup
	writer.Go(func() {
		for ctx.Err() == nil {
			_ = server.Ask(ctx, "FCALL", "nothing", "0").Error() // it counts, although there is no such function
		}
	})
	code, text := exitOK, ""
	for n := 0; n < 100 && code == exitOK; n++ { // one that is very fast may be alone
		code, text = ask("import", filepath.Join(parent, strconv.Itoa(n), "data"))
	}
	if still(); code == exitOK || !strings.Contains(text, "used the server meanwhile") {
		t.Errorf("beside a process that writes: %d %s", code, text)
	}
	writer.Wait()
	must.No(t, os.RemoveAll(parent))
	must.No(t, os.Mkdir(parent, 0o700))
	more()
	if code, text := ask("import", filepath.Join(parent, "data")); code != exitOK {
		t.Errorf("%d %s", code, text)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 1 {
		t.Errorf("in the folder: %v, %v", left, err)
	}
}
