package measure

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"syscall"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

// Meter measures the part of a scenario between Start and Stop. Use a new one for every part.
type Meter struct {
	server  driver.Server
	others  []int // further processes of the client
	profile *profile

	began  time.Time
	client time.Duration
	allocs uint64
	sample driver.Sample
}

// Start collects garbage, so that no part pays for an earlier one, and begins. profile is the path, without a
// suffix, of the processor profiles of this process and of the server; empty means none. others are further processes
// that must live until Stop, and count as this one.
func Start(ctx context.Context, s driver.Server, profile string, others ...int) (*Meter, error) {
	runtime.GC()
	return StartHot(ctx, s, profile, others...)
}

// StartHot begins in the middle of the work, without a collection.
func StartHot(ctx context.Context, s driver.Server, profile string, others ...int) (m *Meter, err error) {
	m = &Meter{server: s, others: others}
	if profile != "" {
		if m.profile, err = startProfile(ctx, profile, s); err != nil {
			return nil, err
		}
	}
	if m.sample, err = s.Sample(ctx); err != nil {
		return nil, err
	}
	if m.client, err = clientTime(others); err != nil {
		return nil, err
	}
	m.allocs = allocations()
	m.began = time.Now()
	return m, nil
}

// Stop ends the part, in which that many items were processed, and returns its figures and the commands that the
// server executed meanwhile.
func (m *Meter) Stop(ctx context.Context, items int) (Figures, map[string]driver.Command, error) {
	return m.StopAt(ctx, items, time.Now())
}

// StopAt is Stop for a part that ended at a moment just gone by.
func (m *Meter) StopAt(ctx context.Context, items int, ended time.Time) (Figures, map[string]driver.Command, error) {
	client, err := clientTime(m.others)
	if err != nil {
		return nil, nil, err
	}
	allocs := allocations()
	after, err := m.server.Sample(ctx)
	if err != nil {
		return nil, nil, err
	}
	if m.profile != nil {
		if err := m.profile.stop(); err != nil {
			return nil, nil, err
		}
	}
	used := after.Sub(m.sample)
	seconds := ended.Sub(m.began).Seconds()
	clientUS, serverUS := float64((client - m.client).Microseconds()), float64(used.CPU.Microseconds())
	calls, commands := count(used.Commands)
	f := Figures{Seconds: seconds, ServerCPU: serverUS / seconds / 1e4, ClientCPU: clientUS / seconds / 1e4,
		AllCPU:   (serverUS + clientUS) / seconds / 1e4,
		CallsSec: calls / seconds, CmdsSec: commands / seconds}
	if n := float64(items); items > 0 {
		f[Items], f[Throughput] = n, n/seconds
		f[ServerItem], f[ClientItem] = serverUS/n, clientUS/n
		f[AllocItem] = float64(allocs-m.allocs) / n
		f[CallsItem], f[CmdsItem] = calls/n, commands/n
	}
	return f, used.Commands, nil
}

// count returns the calls of functions and scripts and the pings, and all commands. The server counts what a function
// executes like commands that were sent, so the two cannot be told apart for the rest.
func count(commands map[string]driver.Command) (calls, all float64) {
	for name, c := range commands {
		all += c.Calls
		if strings.HasPrefix(name, "fcall") || strings.HasPrefix(name, "eval") || name == "ping" {
			calls += c.Calls
		}
	}
	return calls, all
}

// clientTime is the processor time of this process and of others so far.
func clientTime(others []int) (time.Duration, error) {
	sum, err := processTime()
	for _, pid := range others {
		used, e := ProcessTime(pid)
		if e != nil {
			return 0, e
		}
		sum += used
	}
	return sum, err
}

// processTime is the processor time of this process so far, user and system.
func processTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("getrusage: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// allocations is how many objects this process has allocated so far.
func allocations() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
