// Package report writes what a run measured: a JSON document with every round's raw numbers, and tables of medians
// and ranges.
package report

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// Machine is where a run took place.
type Machine struct {
	CPU        string  `json:"cpu"`
	Cores      int     `json:"cores"`
	GOMAXPROCS int     `json:"gomaxprocs"`
	OS         string  `json:"os"`
	Arch       string  `json:"arch"`
	Kernel     string  `json:"kernel,omitempty"`
	Load       float64 `json:"load_1m"` // at the beginning: whether others were at work, too
	Go         string  `json:"go"`
}

// ThisMachine describes the machine; what cannot be found out is left empty.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Go: runtime.Version(), CPU: "unknown", Kernel: line("/proc/sys/kernel/osrelease")}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for l := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	if first, _, ok := strings.Cut(line("/proc/loadavg"), " "); ok {
		m.Load, _ = strconv.ParseFloat(first, 64)
	}
	return m
}

func line(path string) string {
	b, _ := os.ReadFile(path)
	return strings.TrimSpace(string(b))
}

// Modules are the versions of the libraries that this program is built of.
func Modules() map[string]string {
	out := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Replace == nil {
				out[m.Path] = m.Version
			}
		}
	}
	return out
}
