package server

import "context"

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

// Calibrate times HMGET of five fields inside a script, in µs: how fast this machine is just now.
func (s *Server) Calibrate(ctx context.Context) (float64, error) {
	const script, times = `redis.call('HSET', KEYS[1], 'a', '1', 'b', '2', 'c', '3', 'd', '4', 'e', '5')
for _ = 1, 200 do redis.call('HMGET', KEYS[1], 'a', 'b', 'c', 'd', 'e') end
redis.call('DEL', KEYS[1])
return 1`, 200
	p, err := s.Timed(ctx, "eval", func() error {
		for range 100 {
			if err := s.Do(ctx, "EVAL", script, "1", "calibration").Error(); err != nil {
				return err
			}
		}
		return nil
	})
	return p.USec / times, err
}
