package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/flowfabric/flowfabric-go/engine"
)

// server is a private server process and a connection for looking at it.
type server struct {
	cmd    *exec.Cmd
	dir    string
	url    string
	client rueidis.Client
	name   string // what it calls itself
}

func startServer(ctx context.Context, program string) (*server, error) {
	dir, err := os.MkdirTemp("", "ffcost")
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "s.sock")
	s := &server{dir: dir, url: "unix://" + socket}
	s.cmd = exec.CommandContext(ctx, program, "--dir", dir, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no",
		"--daemonize", "no")
	if err := s.cmd.Start(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	ready := time.NewTicker(10 * time.Millisecond)
	defer ready.Stop()
	for tries := 0; ; tries++ {
		e, err := engine.Open(ctx, engine.Config{URL: s.url, Partitions: 1})
		if err == nil {
			s.name = e.Server()
			e.Close()
			break
		}
		if tries == 500 || ctx.Err() != nil {
			s.stop()
			return nil, err
		}
		<-ready.C
	}
	s.client, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{socket}, DisableCache: true, ForceSingleClient: true,
		DialCtxFn: engineDial})
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *server) stop() {
	if s.client != nil {
		s.client.Close()
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}

func (s *server) do(ctx context.Context, args ...string) rueidis.RedisResult {
	return s.client.Do(ctx, s.client.B().Arbitrary(args[0]).Args(args[1:]...).Build())
}

// phase is what the server says of one command after a phase.
type phase struct {
	calls    float64 // of the command
	usec     float64 // of the median call
	commands float64 // that those calls made in turn
}

// timed resets the server's statistics, runs a phase, and returns what the server then says of a command. The
// median tells more than the mean, which mostly says how often the operating system took the processor away in
// the middle of a call.
func (s *server) timed(ctx context.Context, command string, run func() error) (p phase, err error) {
	if err := s.do(ctx, "CONFIG", "RESETSTAT").Error(); err != nil {
		return p, err
	}
	if err := run(); err != nil {
		return p, err
	}
	info, err := s.do(ctx, "INFO", "commandstats", "latencystats").ToString()
	if err != nil {
		return p, err
	}
	for line := range strings.Lines(info) {
		name, fields, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "cmdstat_"+command:
			p.calls = field(fields, "calls")
		case name == "latency_percentiles_usec_"+command:
			p.usec = field(fields, "p50")
		case strings.HasPrefix(name, "cmdstat_") && !strings.HasPrefix(name, "cmdstat_config") && name != "cmdstat_info":
			p.commands += field(fields, "calls")
		}
	}
	return p, nil
}

// field reads one number of "a=1,b=2".
func field(fields, name string) float64 {
	for pair := range strings.SplitSeq(fields, ",") {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			n, _ := strconv.ParseFloat(v, 64)
			return n
		}
	}
	return 0
}

// memory is used_memory in bytes.
func (s *server) memory(ctx context.Context) (float64, error) {
	info, err := s.do(ctx, "INFO", "memory").ToString()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
			return strconv.ParseFloat(v, 64)
		}
	}
	return 0, errors.New("INFO memory has no used_memory")
}

// calibrate times HMGET of five fields inside a script, in µs.
func (s *server) calibrate(ctx context.Context) (float64, error) {
	const script, times = `redis.call('HSET', KEYS[1], 'a', '1', 'b', '2', 'c', '3', 'd', '4', 'e', '5')
for _ = 1, 200 do redis.call('HMGET', KEYS[1], 'a', 'b', 'c', 'd', 'e') end
redis.call('DEL', KEYS[1])
return 1`, 200
	p, err := s.timed(ctx, "eval", func() error {
		for range 100 {
			if err := s.do(ctx, "EVAL", script, "1", "calibration").Error(); err != nil {
				return err
			}
		}
		return nil
	})
	return p.usec / times, err
}
