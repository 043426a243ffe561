// Package server runs private Redis and Valkey servers for benchmarks: a child process that listens on a unix
// socket in a directory of its own, writes nothing to disk unless it is told to, and ends with the run; or some of
// them on ports of the loopback interface, as a cluster.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

// Server is a running server and a connection for looking at it. It is a [driver.Server].
type Server struct {
	cmd     *exec.Cmd
	dir     string
	stays   bool   // dir does not end with it
	network string // "unix" or "tcp"
	address string // path of the socket, or host and port
	client  rueidis.Client
	name    string

	running  conc.WaitGroup
	exited   chan struct{}
	exitedAs error // set before exited is closed
}

// embedded is the program whose store keeps its data in a folder.
const embedded = "flowfabric"

// Start starts program (redis-server, valkey-server or a path) and waits until it answers. The end of ctx kills it.
func Start(ctx context.Context, program string) (*Server, error) {
	return startOn(ctx, program, "", "", []string{"--appendonly", "no"})
}

// StartIn is [Start] of a server that writes at once, and forces what it wrote to the disk every second. Its files stay
// in dir when it has ended, for the next one to go on with; "" is a directory that ends with it. A program flowfabric
// serves its own store there.
func StartIn(ctx context.Context, program, dir string) (*Server, error) {
	if filepath.Base(program) == embedded {
		free, err := freeAddresses(1)
		if err != nil {
			return nil, err
		}
		return startOn(ctx, program, dir, free[0], nil)
	}
	return startOn(ctx, program, dir, "", []string{"--appendonly", "yes", "--appendfsync", "everysec"})
}

// startOn starts a server that listens on a socket of its own, or on an address of this machine.
func startOn(ctx context.Context, program, dir, address string, more []string) (*Server, error) {
	if _, err := exec.LookPath(program); err != nil {
		return nil, fmt.Errorf("%s: %w (make bench-deps): %w", program, driver.ErrNotInstalled, err)
	}
	stays := dir != ""
	err := os.MkdirAll(dir, 0o700)
	if !stays {
		dir, err = os.MkdirTemp("", "ffbench")
	}
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, stays: stays, network: "unix", address: filepath.Join(dir, "s.sock"),
		exited: make(chan struct{})}
	listen := []string{"--port", "0", "--unixsocket", s.address}
	if address != "" {
		s.network, s.address = "tcp", address
		host, port, _ := net.SplitHostPort(address)
		listen = []string{"--bind", host, "--port", port}
	}
	args := slices.Concat([]string{"--dir", dir, "--save", "", "--daemonize", "no"}, listen, more)
	if filepath.Base(program) == embedded {
		args = []string{"serve", "--addr", "127.0.0.1:0", "--data", dir, "--store-addr", address}
	}
	s.cmd = exec.CommandContext(ctx, program, args...)
	s.cmd.SysProcAttr = dieWithParent()
	if err := s.cmd.Start(); err != nil {
		s.clear()
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	s.running.Go(func() {
		defer close(s.exited)
		s.exitedAs = s.cmd.Wait()
	})
	if err := s.connect(ctx); err != nil {
		s.Stop()
		return nil, fmt.Errorf("connect to %s: %w", program, err)
	}
	return s, nil
}

// connect waits until the server answers, has ended, or ctx ends.
func (s *Server) connect(ctx context.Context) error {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		client, err := s.Dial()
		if err == nil {
			s.client = client
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
	about, err := s.info(ctx, "server", "persistence")
	for err == nil && about["loading"] == "1" { // what was left by the one before
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		about, err = s.info(ctx, "server", "persistence")
	}
	if err != nil {
		return err
	}
	s.name = "redis " + about["redis_version"]
	if v := about["valkey_version"]; v != "" {
		s.name = "valkey " + v
	}
	return nil
}

// Dial opens one more connection; the caller closes it.
func (s *Server) Dial() (rueidis.Client, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.address}, DisableCache: true,
		ForceSingleClient: true,
		PipelineMultiplex: -1,
		DialCtxFn: func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, s.network, address)
		}})
	if err != nil && client != nil { // the driver returns one that would dial again later
		client.Close()
	}
	return client, err
}

// Stop kills the process and removes its directory, unless that is to stay.
func (s *Server) Stop() {
	if s.client != nil {
		s.client.Close()
	}
	_ = s.cmd.Process.Kill()
	s.running.Wait()
	s.clear()
}

func (s *Server) clear() {
	if !s.stays {
		_ = os.RemoveAll(s.dir)
	}
}

// Name is "redis 7.0.15" or the like.
func (s *Server) Name() string { return s.name }

// URL as package engine and the drivers understand it.
func (s *Server) URL() string {
	if s.network == "tcp" {
		return "redis://" + s.address
	}
	return "unix://" + s.address
}

// PID of the process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Do makes one command on the observing connection.
func (s *Server) Do(ctx context.Context, args ...string) rueidis.RedisResult {
	return s.client.Do(ctx, s.client.B().Arbitrary(args[0]).Args(args[1:]...).Build())
}

// Cardinality is how many members a sorted set has.
func (s *Server) Cardinality(ctx context.Context, key string) (int64, error) {
	return cardinality(ctx, s.client, key)
}

func cardinality(ctx context.Context, client rueidis.Client, key string) (int64, error) {
	return client.Do(ctx, client.B().Zcard().Key(key).Build()).ToInt64()
}

// Reset drops all keys at once; functions stay loaded.
func (s *Server) Reset(ctx context.Context) error { return s.Do(ctx, "FLUSHALL", "SYNC").Error() }

// Sample reads CPU time and command statistics.
func (s *Server) Sample(ctx context.Context) (driver.Sample, error) {
	info, err := s.info(ctx, "cpu", "commandstats")
	if err != nil {
		return driver.Sample{}, err
	}
	out := driver.Sample{Commands: map[string]driver.Command{}}
	for _, mode := range []string{"user", "sys"} {
		seconds, err := strconv.ParseFloat(info["used_cpu_"+mode], 64)
		if err != nil {
			return out, fmt.Errorf("INFO cpu: %w", err)
		}
		out.CPU += time.Duration(seconds * float64(time.Second))
	}
	for name, fields := range info {
		if command, ok := strings.CutPrefix(name, "cmdstat_"); ok && command != "info" {
			out.Commands[command] = driver.Command{Calls: Field(fields, "calls"), USec: Field(fields, "usec")}
		}
	}
	return out, nil
}

// Memory is used_memory without the buffers of clients and of a cluster's links, once it has come to rest: the server
// frees connections and counts their buffers some time after they were closed.
func (s *Server) Memory(ctx context.Context) (float64, error) {
	last, err := s.memory(ctx)
	for still, tries := 0, 0; err == nil && still < 4 && tries < 60; tries++ {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
		var now float64
		if now, err = s.memory(ctx); now == last {
			still++
		} else {
			last, still = now, 0
		}
	}
	return last, err
}

func (s *Server) memory(ctx context.Context) (float64, error) {
	info, err := s.info(ctx, "memory")
	if err != nil {
		return 0, err
	}
	used, err1 := strconv.ParseFloat(info["used_memory"], 64)
	clients, err2 := strconv.ParseFloat(cmp.Or(info["mem_clients_normal"], "0"), 64)
	links, err3 := strconv.ParseFloat(cmp.Or(info["mem_cluster_links"], "0"), 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return 0, fmt.Errorf("INFO memory: %w", err)
	}
	return used - clients - links, nil
}

// info reads sections of INFO as name and value.
func (s *Server) info(ctx context.Context, sections ...string) (map[string]string, error) {
	text, err := s.Do(ctx, append([]string{"INFO"}, sections...)...).ToString()
	if err != nil {
		return nil, err
	}
	return fieldsOf(text), nil
}

// fieldsOf reads lines of "name:value", before which the protocol says what kind of text it is.
func fieldsOf(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(strings.TrimPrefix(text, "txt:")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			out[name] = value
		}
	}
	return out
}

// Field reads one number of "a=1,b=2"; 0 if it is not there.
func Field(fields, name string) float64 {
	for pair := range strings.SplitSeq(fields, ",") {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			n, _ := strconv.ParseFloat(v, 64)
			return n
		}
	}
	return 0
}
