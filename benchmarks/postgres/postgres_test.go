package postgres_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/postgres"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// orphan makes the test binary start a server and wait to be killed.
const orphan = "FLOWFABRIC_BENCH_ORPHAN"

func TestMain(m *testing.M) {
	if os.Getenv(orphan) != "" {
		s, err := postgres.Start(context.Background())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(s.PID(), s.URL())
		select {}
	}
	goleak.VerifyTestMain(m)
}

func start(t *testing.T) *postgres.Server {
	t.Helper()
	s, err := postgres.Start(t.Context())
	if errors.Is(err, driver.ErrNotInstalled) {
		t.Skip("NOT TESTED: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

func connect(t *testing.T, s *postgres.Server) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func do(t *testing.T, c *pgx.Conn, statement string) {
	t.Helper()
	if _, err := c.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// ask returns one value as text.
func ask(t *testing.T, c *pgx.Conn, query string) (value string) {
	t.Helper()
	if err := c.QueryRow(t.Context(), query).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// All of these are of one server: starting servers takes longest.
func TestServer(t *testing.T) {
	s := start(t)
	t.Run("settings", func(t *testing.T) { checkSettings(t, s, "off off") })
	t.Run("reset", func(t *testing.T) { checkReset(t, s) })
	t.Run("sample", func(t *testing.T) { checkSample(t, s) })
	t.Run("stop", func(t *testing.T) { checkStop(t, s) })
}

func checkSettings(t *testing.T, s *postgres.Server, durability string) {
	c := connect(t, s)
	if got := ask(t, c, "SHOW fsync") + " " + ask(t, c, "SHOW synchronous_commit"); got != durability {
		t.Errorf("fsync and synchronous_commit are %s, want %s", got, durability)
	}
	if got := ask(t, c, "SHOW shared_buffers"); got != "1GB" {
		t.Errorf("shared_buffers is %s", got)
	}
}

func checkReset(t *testing.T, s *postgres.Server) {
	if !strings.HasPrefix(s.Name(), "postgresql ") || !strings.Contains(s.Name(), "fsync=off") {
		t.Errorf("name %q", s.Name())
	}
	memory := func() float64 {
		used, err := s.Memory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return used
	}
	const little = 300e3 // a file that the first connection makes
	if used := memory(); used > little {
		t.Errorf("an empty database occupies %v", used)
	}
	do(t, connect(t, s), "CREATE TABLE a AS SELECT repeat('x', 1000) FROM generate_series(1, 1000)")
	if used := memory(); used < 1e6 || used > 2e6+little {
		t.Errorf("a MB occupies %v", used)
	}
	if err := s.Reset(t.Context()); err != nil { // with a connection open
		t.Fatal(err)
	}
	if used := memory(); used != 0 {
		t.Errorf("%v are occupied after Reset", used)
	}
	do(t, connect(t, s), "CREATE TABLE a ()") // it was dropped
}

// Processor time is that of all processes, and not lost when one of them ends; transactions that wrote are counted
// exactly.
func checkSample(t *testing.T, s *postgres.Server) {
	if runtime.GOOS != "linux" {
		t.Skip("processor time of processes that have ended is only known on Linux")
	}
	c := connect(t, s)
	sample := func() driver.Sample {
		out, err := s.Sample(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	do(t, c, "CREATE TABLE counted (b int)")
	before := sample()
	for range 10 {
		do(t, c, "INSERT INTO counted VALUES (1)")
		do(t, c, "SELECT * FROM counted")
	}
	used := sample().Sub(before)
	if got := used.Commands["xact_write"].Calls; got != 10 {
		t.Errorf("%v transactions wrote, want 10", got)
	}
	do(t, c, "DO $$ DECLARE n int; BEGIN FOR n IN 1..3000000 LOOP END LOOP; END $$")
	living := sample().Sub(before).CPU
	if living <= used.CPU {
		t.Errorf("%v after the work, %v before it", living, used.CPU)
	}
	pid, err := strconv.Atoi(ask(t, c, "SELECT pg_backend_pid()::text"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the end of the connection's process", func() bool { return syscall.Kill(pid, 0) != nil })
	const rounded = 20 * time.Millisecond // two ticks
	if ended := sample().Sub(before).CPU; ended < living-rounded {
		t.Errorf("%v when the process had ended, %v before", ended, living)
	}
}

func checkStop(t *testing.T, s *postgres.Server) {
	pids := s.PIDs()
	if len(pids) < 3 {
		t.Errorf("processes %v, want the first and several more", pids)
	}
	dir := ask(t, connect(t, s), "SHOW unix_socket_directories")
	s.Stop()
	for _, pid := range pids {
		testwait.Until(t, fmt.Sprintf("the end of process %d", pid), func() bool { return syscall.Kill(pid, 0) != nil })
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

// A server does not outlive a benchmark that was killed.
func TestParentKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends processes with their parent")
	}
	if _, err := exec.LookPath("initdb"); err != nil {
		start(t).Stop() // or skip
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), orphan+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	var url string
	if _, err := fmt.Sscan(line, &pid, &url); err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(config.Host) })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	testwait.Until(t, "the end of the server", func() bool { return over(pid) })
}

// over tells whether a process has ended, even if nobody has asked for its status.
func over(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(text), ") Z ")
}
