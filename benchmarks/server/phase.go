package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// WatchSlow makes the server remember, from now on, the calls that take as many µs or longer; a negative number: none.
func (s *Server) WatchSlow(ctx context.Context, us int) error {
	return errors.Join(s.Do(ctx, "CONFIG", "SET", "slowlog-log-slower-than", strconv.Itoa(us), "slowlog-max-len",
		"100000").Error(),
		s.Do(ctx, "SLOWLOG", "RESET").Error())
}

// Slow is how long every remembered call of each function took, in ms, oldest first.
func (s *Server) Slow(ctx context.Context) (map[string][]float64, error) {
	list, err := s.Do(ctx, "SLOWLOG", "GET", "-1").ToArray()
	if err != nil {
		return nil, err
	}
	out := map[string][]float64{}
	for _, item := range slices.Backward(list) {
		fields, err := item.ToArray() // number, time, µs, arguments, client, its name
		if err != nil || len(fields) < 4 {
			return nil, fmt.Errorf("SLOWLOG GET: %d fields, %w", len(fields), err)
		}
		us, err1 := fields[2].ToInt64()
		args, err2 := fields[3].AsStrSlice()
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		if len(args) > 1 && strings.HasPrefix(strings.ToLower(args[0]), "fcall") {
			out[args[1]] = append(out[args[1]], float64(us)/1000)
		}
	}
	return out, nil
}
