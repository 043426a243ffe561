package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/store"
)

// serve keeps the store itself. Whoever does not tell its password is refused at every command, and the log does not
// have it.
func TestServeWithAStoreOfItsOwn(t *testing.T) {
	t.Setenv("FLOWFABRIC_URL", "redis://127.0.0.1:1") // --data is in its place
	t.Setenv("FLOWFABRIC_TOKEN_KEYS", "")
	const password = "0123456789abcdef0123456789abcdef"
	dir, file := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "password")
	must.No(t, os.WriteFile(file, []byte(password+"\n"), 0o600))
	var id string
	for range 2 { // also after a restart
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var said output
		var running conc.WaitGroup
		code := -1
		running.Go(func() {
			code = run(ctx, []string{"serve", "--data", dir, "--store-addr", "0.0.0.0:0", "--store-password-file", file,
				"--addr", "127.0.0.1:0"}, strings.NewReader(""), io.Discard, &said)
		})
		api := said.await(t, `dashboard=(http://[0-9.:]+)/`)
		port := said.await(t, `at=redis://localhost:(\d+)`)
		if status, body := get(t, api+"/readyz", ""); status != 200 {
			t.Errorf("%d %s", status, body)
		}
		stranger(t, "127.0.0.1:"+port)
		known := []string{"--url", "redis://:" + password + "@127.0.0.1:" + port}
		if id == "" {
			_, text := command(t, append([]string{"submit", "report", "--json"}, known...)...)
			var made struct{ ID string }
			if err := json.Unmarshal([]byte(text), &made); err != nil || made.ID == "" {
				t.Fatalf("submit: %s", text)
			}
			id = made.ID
		}
		if code, text := command(t, append([]string{"show", id}, known...)...); code != exitOK {
			t.Errorf("show: %d %s", code, text)
		}
		for _, wrong := range []string{"redis://127.0.0.1:" + port, "redis://:" + password + "x@127.0.0.1:" + port} {
			if code, _ := command(t, "show", id, "--url", wrong); code != exitDenied {
				t.Errorf("with another password: exit %d", code)
			}
		}
		stop()
		running.Wait()
		if code != exitOK || strings.Contains(said.String(), password) {
			t.Errorf("exit %d: %s", code, said.String())
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "token-keys")); err != nil {
		t.Error(err)
	}
}

// stranger sends commands without a password.
func stranger(t *testing.T, address string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	must.No(t, err)
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for _, line := range []string{"PING", "GET k", "SET k v", "DEL k", "KEYS *", "SCAN 0", "DBSIZE", "FLUSHALL",
		"FCALL ff_version 0", "FCALL_RO ff_version 0", "FUNCTION LIST", "FUNCTION FLUSH", "EVAL return 0", "INFO",
		"CONFIG GET *", "CLIENT LIST", "COMMAND", "SUBSCRIBE c", "SSUBSCRIBE c", "PSUBSCRIBE *", "PUBLISH c m",
		"MULTI", "EXEC", "WATCH k", "SELECT 0", "TIME", "ROLE", "DUMP k", "RESTORE k 0 x", "MEMORY USAGE k", "WAIT 0 0",
		"XREAD STREAMS k 0", "ECHO x", "nonsense", "HELLO 3"} {
		_, err := conn.Write(store.AppendCommand(nil, strings.Fields(line)...))
		must.No(t, err)
		answer, err := answers.ReadString('\n')
		if err != nil || !strings.HasPrefix(answer, "-NOAUTH ") {
			t.Fatalf("%s: %q, %v", line, answer, err)
		}
	}
}
