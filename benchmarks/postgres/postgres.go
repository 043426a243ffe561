// Package postgres runs private PostgreSQL servers for benchmarks: a child process that listens on a unix socket in a
// directory of its own and ends with the run.
//
//	initdb, once per run ──▶ template ──copy──▶ directory of a server ──▶ postgres ──▶ database "bench", made anew by Reset
//
// PostgreSQL refuses to work for root. As root the server belongs to the user postgres or nobody, and so does its
// directory.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

const (
	// stopTimeout is when a server that was told to quit is killed; it gives its own children five seconds.
	stopTimeout = 10 * time.Second

	owner    = "postgres" // the role that owns everything
	database = "bench"    // where jobs are
	port     = "5432"     // of the socket's name; there is no other
)

// Server is a running server and a connection for looking at it. It is a [driver.Server], which is used by one
// goroutine.
type Server struct {
	cmd      *exec.Cmd
	dir      string
	admin    *pgx.Conn // to the database that Reset leaves alone
	name     string
	empty    int64 // bytes of the database after Reset
	running  conc.WaitGroup
	exited   chan struct{}
	exitedAs error // set before exited is closed
}

// Start starts a server and waits until it answers. The end of ctx stops it.
func Start(ctx context.Context) (*Server, error) {
	bin, err := programs(debian)
	if err != nil {
		return nil, err
	}
	user, err := accountOfServer()
	if err != nil {
		return nil, err
	}
	dir, err := user.dir()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, exited: make(chan struct{})}
	if err := s.start(ctx, bin, user); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	if err := s.connect(ctx); err != nil {
		log := s.log()
		s.Stop()
		return nil, fmt.Errorf("connect to postgres: %w\n%s", err, log)
	}
	if err := s.Reset(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, bin string, user account) error {
	data := filepath.Join(s.dir, "data")
	if err := initialize(ctx, bin, user, s.dir); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"-D", data, "-k", s.dir, "-p", port, "-c", "listen_addresses="}
	for _, setting := range slices.Concat(Settings, lazy) {
		args = append(args, "-c", setting)
	}
	s.cmd = exec.CommandContext(ctx, filepath.Join(bin, "postgres"), args...)
	s.cmd.Dir = s.dir
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = user.attributes()
	s.cmd.Cancel, s.cmd.WaitDelay = s.quit, stopTimeout
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.running.Go(func() {
		defer close(s.exited)
		s.exitedAs = s.cmd.Wait()
	})
	return nil
}

// quit makes the server end at once. Unlike a kill it ends its processes too, and gives shared memory back.
func (s *Server) quit() error { return s.cmd.Process.Signal(syscall.SIGQUIT) }

// connect waits until the server answers, has ended, or ctx ends.
func (s *Server) connect(ctx context.Context) error {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	var err error
	for {
		if s.admin, err = pgx.Connect(ctx, s.url("postgres")); err == nil {
			break
		}
		select {
		case <-again.C:
		case <-s.exited:
			return fmt.Errorf("it ended at its start: %w", s.exitedAs)
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
	var version string
	if err := s.admin.QueryRow(ctx, "SHOW server_version").Scan(&version); err != nil {
		return err
	}
	number, _, _ := strings.Cut(version, " ") // what follows is the distribution's
	s.name = fmt.Sprintf("postgresql %s, %s", number, strings.Join(lazy, ", "))
	return nil
}

// log is the end of what the server had to say.
func (s *Server) log() string {
	const most = 2000
	text, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(len(text)-most, 0):])
}

// Stop ends the server and removes its directory.
func (s *Server) Stop() {
	if s.admin != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = s.admin.Close(ctx)
		cancel()
	}
	_ = s.quit()
	select {
	case <-s.exited:
	case <-time.After(stopTimeout):
		_ = s.cmd.Process.Kill()
	}
	s.running.Wait()
	_ = os.RemoveAll(s.dir)
}

// Name is "postgresql 15.8, …" with the settings of its durability; [Settings] are the others.
func (s *Server) Name() string { return s.name }

// URL of the database for jobs, as pgx understands it.
func (s *Server) URL() string { return s.url(database) }

func (s *Server) url(database string) string {
	return fmt.Sprintf("postgres://%s@/%s?host=%s&port=%s&sslmode=disable", owner, database, url.QueryEscape(s.dir),
		port)
}

// PID of the first process, from which all others descend.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// PIDs of all processes, for profilers.
func (s *Server) PIDs() []int { return append([]int{s.PID()}, children(s.PID())...) }

// Reset makes the database anew, and with it its statistics. Whoever is still connected to it is thrown out.
func (s *Server) Reset(ctx context.Context) error {
	for _, statement := range []string{
		"DROP DATABASE IF EXISTS " + database + " WITH (FORCE)",
		"CREATE DATABASE " + database,
	} {
		if _, err := s.admin.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", strings.ToLower(statement), err)
		}
	}
	var err error
	s.empty, err = s.size(ctx)
	return err
}

// Sample reads the processor time of all processes, those that have ended included, and counts the transactions that
// wrote something ("xact_write"): every such transaction takes the next number, so that the count is exact at once.
// PostgreSQL's own statistics, which count the others too, lag behind by up to ten seconds.
func (s *Server) Sample(ctx context.Context) (driver.Sample, error) {
	var next int64
	if err := s.admin.QueryRow(ctx, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&next); err !=
		nil {
		return driver.Sample{}, fmt.Errorf("read the next transaction: %w", err)
	}
	used, err := treeTime(s.PID())
	if err != nil {
		return driver.Sample{}, err
	}
	return driver.Sample{CPU: used, Commands: map[string]driver.Command{"xact_write": {Calls: float64(next)}}}, nil
}

// Memory is what tables and indexes occupy on disk, above that of an empty database. It is not memory: PostgreSQL keeps
// what it can of it in buffers of a fixed size. Versions of rows that updates left behind are in it until they are
// vacuumed.
func (s *Server) Memory(ctx context.Context) (float64, error) {
	used, err := s.size(ctx)
	return float64(used - s.empty), err
}

func (s *Server) size(ctx context.Context) (bytes int64, err error) {
	if err := s.admin.QueryRow(ctx, "SELECT pg_database_size($1)", database).Scan(&bytes); err != nil {
		return 0, fmt.Errorf("read the size of the database: %w", err)
	}
	return bytes, nil
}
