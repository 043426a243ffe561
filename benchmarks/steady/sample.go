package steady

import (
	"context"
	"fmt"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"time"
)

// The figures of a sample.
const (
	serverMiB = iota
	serverRSS
	luaMiB
	keys
	connections
	processRSS
	heapMiB
	goroutines
	files
	figures
)

var (
	figureNames = [figures]string{"server MiB", "server RSS MiB", "scripts MiB", "keys", "connections",
		"process RSS MiB", "heap MiB", "goroutines", "open files"}
	// figureSlack is what a figure may grow by beyond a tenth: it is a few, and they come and go.
	figureSlack = [figures]float64{serverMiB: 1, serverRSS: 4, luaMiB: 1, keys: 100, connections: 2, processRSS: 8,
		heapMiB: 4, goroutines: 20, files: 4}
)

const heading = "    after      work |  server MiB     RSS  scripts     keys   conns | process RSS    heap  goroutines  files\n"

// sample is what was seen at a time. It is written to a file.
type sample struct {
	After  time.Duration // of all runs together
	Done   int64         // so were the pieces of work
	Values [figures]float64
}

func (x sample) String() string {
	v := x.Values
	return fmt.Sprintf("%9s %9d | %11.1f %7.1f %8.1f %8.0f %7.0f | %11.1f %7.1f %11.0f %6.0f\n", x.After, x.Done,
		v[serverMiB], v[serverRSS], v[luaMiB], v[keys], v[connections], v[processRSS], v[heapMiB], v[goroutines],
		v[files])
}

const mib = 1 << 20

// sample reads all figures, after a collection of garbage.
func (s *steady) sample(ctx context.Context) (x sample, err error) {
	x.Done = s.done.Load()
	text, err := s.server.Do(ctx, "INFO", "memory", "clients").ToString()
	if err != nil {
		return x, err
	}
	info := map[string]float64{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name], _ = strconv.ParseFloat(value, 64) // what is no number is none of ours
		}
	}
	size, err := s.server.Do(ctx, "DBSIZE").ToInt64()
	if err != nil {
		return x, err
	}
	goruntime.GC()
	var mem goruntime.MemStats
	goruntime.ReadMemStats(&mem)
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return x, fmt.Errorf("steady: open files are counted on Linux only: %w", err)
	}
	resident, err := rss("/proc/self/statm")
	if err != nil {
		return x, err
	}
	x.Values = [figures]float64{serverMiB: info["used_memory"] / mib, serverRSS: info["used_memory_rss"] / mib,
		luaMiB: info["used_memory_vm_total"] / mib, keys: float64(size), connections: info["connected_clients"],
		processRSS: resident, heapMiB: float64(mem.HeapAlloc) / mib,
		goroutines: float64(goruntime.NumGoroutine()), files: float64(len(open))}
	return x, nil
}

// rss is the second number of a file statm, which counts pages.
func rss(path string) (float64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("%s: %q", path, text)
	}
	pages, err := strconv.ParseFloat(fields[1], 64)
	return pages * float64(os.Getpagesize()) / mib, err
}
