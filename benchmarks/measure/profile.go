package measure

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strconv"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

// profile is the recording of two processes: this one by the Go runtime in <path>.pprof, and the server by perf in
// <path>.perf, where perf is installed and allowed to. What this process has allocated by the end, since its start,
// is in <path>.allocs.
type profile struct {
	path string
	own  *os.File
	perf *exec.Cmd // nil without perf
}

func startProfile(ctx context.Context, path string, s driver.Server) (*profile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	own, err := os.Create(path + ".pprof")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(own); err != nil {
		_ = own.Close()
		return nil, err
	}
	p := &profile{path: path, own: own}
	if _, err := exec.LookPath("perf"); err == nil && s.PID() > 0 {
		perf := exec.CommandContext(ctx, "perf", "record", "-q", "-F", "997", "-g", "-p", processes(s), "-o",
			path+".perf")
		if perf.Start() == nil {
			p.perf = perf
		}
	}
	return p, nil
}

// processes of the server, as perf wants them. A server may have several; perf follows those that they start later.
func processes(s driver.Server) string {
	list := strconv.Itoa(s.PID())
	if several, ok := s.(interface{ PIDs() []int }); ok {
		for _, pid := range several.PIDs() {
			if pid != s.PID() {
				list += "," + strconv.Itoa(pid)
			}
		}
	}
	return list
}

// stop ends both recordings. What perf has to complain about only means that there is no profile of the server.
func (p *profile) stop() error {
	pprof.StopCPUProfile()
	if p.perf != nil {
		_ = p.perf.Process.Signal(os.Interrupt) // makes it write its file
		_ = p.perf.Wait()
	}
	allocs, err := os.Create(p.path + ".allocs")
	if err != nil {
		return errors.Join(err, p.own.Close())
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(allocs, 0), allocs.Close(), p.own.Close())
}
