package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Phase is what the server says of one command after a phase.
type Phase struct {
	Calls    float64 // of the command
	USec     float64 // of the median call
	Commands float64 // all that was executed, inside functions too
}

// Timed resets the server's statistics, runs a phase, and returns what the server then says of a command. The
// median tells more than the mean, which mostly says how often the operating system took the processor away in
// the middle of a call.
func (s *Server) Timed(ctx context.Context, command string, run func() error) (p Phase, err error) {
	if err := s.Do(ctx, "CONFIG", "RESETSTAT").Error(); err != nil {
		return p, err
	}
	if err := run(); err != nil {
		return p, err
	}
	info, err := s.info(ctx, "commandstats", "latencystats")
	if err != nil {
		return p, err
	}
	p.Calls = Field(info["cmdstat_"+command], "calls")
	p.USec = Field(info["latency_percentiles_usec_"+command], "p50")
	for name, fields := range info {
		if len(name) > 8 && name[:8] == "cmdstat_" && name != "cmdstat_config|resetstat" && name != "cmdstat_info" {
			p.Commands += Field(fields, "calls")
		}
	}
	return p, nil
}

// slow is what WatchSlow remembers, in µs.
const slow = 500

// WatchSlow makes the server remember the calls that take longer than half a millisecond, from now on.
func (s *Server) WatchSlow(ctx context.Context) error {
	return errors.Join(s.Do(ctx, "CONFIG", "SET", "slowlog-log-slower-than", strconv.Itoa(slow), "slowlog-max-len",
		"100000").Error(),
		s.Do(ctx, "SLOWLOG", "RESET").Error())
}

// Slowest is how long the longest function call took since then, in ms; 0 when none was remembered.
func (s *Server) Slowest(ctx context.Context) (ms float64, err error) {
	list, err := s.Do(ctx, "SLOWLOG", "GET", "-1").ToArray()
	if err != nil {
		return 0, err
	}
	for _, item := range list {
		fields, err := item.ToArray() // number, time, µs, arguments, client, its name
		if err != nil || len(fields) < 4 {
			return 0, fmt.Errorf("SLOWLOG GET: %d fields, %w", len(fields), err)
		}
		us, err := fields[2].ToInt64()
		if err != nil {
			return 0, err
		}
		args, err := fields[3].AsStrSlice()
		if err != nil {
			return 0, err
		}
		if len(args) > 0 && strings.HasPrefix(strings.ToLower(args[0]), "fcall") {
			ms = max(ms, float64(us)/1000)
		}
	}
	return ms, nil
}
