package testserver_test

import (
	"bufio"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// do sends one inline command and returns the first line that is not a length.
func do(t *testing.T, url, command string) string {
	t.Helper()
	network, address := "unix", strings.TrimPrefix(url, "unix://")
	if rest, ok := strings.CutPrefix(url, "redis://"); ok {
		network, address = "tcp", rest
	}
	conn, err := net.Dial(network, address)
	must.No(t, err)
	defer func() { _ = conn.Close() }()
	args := strings.Fields(command)
	fmt.Fprintf(conn, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(a), a)
	}
	for r := bufio.NewReader(conn); ; {
		line, err := r.ReadString('\n')
		must.No(t, err)
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "$") || line == "$-1" {
			return line
		}
	}
}

func TestServersOfTheirOwn(t *testing.T) {
	urls := map[string]string{
		"redis":     testserver.Redis(t),
		"redis tcp": testserver.Redis(t, testserver.TCP(), testserver.Args("--databases", "2")),
		"embedded":  testserver.Embedded(t),
	}
	if _, err := exec.LookPath(string(testserver.ServerValkey)); err == nil {
		urls["valkey"] = testserver.Valkey(t)
	}
	for name, url := range urls {
		if got := do(t, url, "GET name"); got != "$-1" {
			t.Errorf("%s is not empty: %q", name, got)
		}
		do(t, url, "SET name "+strings.ReplaceAll(name, " ", "-"))
		if len(url) > 100 {
			t.Errorf("%s: address %q is too long for a unix socket", name, url)
		}
	}
	if got := do(t, urls["redis tcp"], "SELECT 2"); !strings.HasPrefix(got, "-") {
		t.Errorf("Args were not passed on: %q", got)
	}
}

func TestCrash(t *testing.T) {
	for name, opts := range map[string][]testserver.Option{"volatile": nil, "durable": {testserver.AOF()}} {
		t.Run(name, func(t *testing.T) {
			s := testserver.Start(t, testserver.ServerRedis, opts...)
			do(t, s.URL(), "SET key value")
			s.Kill()
			if _, err := net.Dial("unix", strings.TrimPrefix(s.URL(), "unix://")); err == nil {
				t.Fatal("still answers after Kill")
			}
			s.Restart()
			want := map[string]string{"volatile": "$-1", "durable": "value"}[name]
			if got := do(t, s.URL(), "GET key"); got != want {
				t.Errorf("after a crash: %q, want %q", got, want)
			}
		})
	}
}

// recorder stands in for the test that asked for a server.
type recorder struct {
	testing.TB
	verdict string
}

func (r *recorder) Helper()      {}
func (r *recorder) Name() string { return "Recorded" }
func (r *recorder) Skip(args ...any) {
	r.verdict = "skip: " + fmt.Sprint(args...)
	panic(r)
}
func (r *recorder) Fatalf(format string, args ...any) {
	r.verdict = "fatal: " + fmt.Sprintf(format, args...)
	panic(r)
}

func TestMissingServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for ci, want := range map[string]string{"": "skip: ", "true": "fatal: "} {
		t.Setenv("CI", ci)
		r := &recorder{TB: t}
		func() {
			defer func() { _ = recover() }()
			testserver.Redis(r)
		}()
		if !strings.HasPrefix(r.verdict, want) || !strings.Contains(r.verdict, "apt-get install redis-server") {
			t.Errorf("CI=%q: %q", ci, r.verdict)
		}
	}
}
