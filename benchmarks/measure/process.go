package measure

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor times in /proc: USER_HZ, which is 100 on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// ProcessTime is the processor time that another process has used so far, user and system, without its children. It is
// exact to 10 ms; where there is no /proc, to what ps says.
func ProcessTime(pid int) (time.Duration, error) {
	used, _, err := processTimes(pid)
	if errors.Is(err, os.ErrNotExist) {
		return processTimeOfPS(pid)
	}
	return used, err
}

// EndedChildrenTime is the processor time of a process's children that have ended, with theirs. It is exact to 10 ms;
// where there is no /proc it is unknown and 0.
func EndedChildrenTime(pid int) (time.Duration, error) {
	_, ended, err := processTimes(pid)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	return ended, err
}

// processTimes reads /proc.
func processTimes(pid int) (own, ended time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The name, in parentheses, may hold spaces; utime, stime, cutime and cstime are the 12th to 15th field behind it.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 15 {
		return 0, 0, fmt.Errorf("/proc/%d/stat: %q", pid, text)
	}
	var ticks [4]int64
	for i := range ticks {
		if ticks[i], err = strconv.ParseInt(fields[11+i], 10, 64); err != nil {
			return 0, 0, fmt.Errorf("/proc/%d/stat: %q", pid, text)
		}
	}
	return time.Duration(ticks[0]+ticks[1]) * tick, time.Duration(ticks[2]+ticks[3]) * tick, nil
}

// processTimeOfPS asks ps, whose answer is [[hours:]minutes:]seconds.
func processTimeOfPS(pid int) (time.Duration, error) {
	out, err := exec.Command("ps", "-o", "cputime=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
	}
	var seconds float64
	for part := range strings.SplitSeq(strings.TrimSpace(string(out)), ":") {
		v, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return 0, fmt.Errorf("processor time of process %d: %q", pid, out)
		}
		seconds = seconds*60 + v
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// Memory is the resident memory of another process, in bytes, as ps says.
func Memory(pid int) (int64, error) {
	out, err := exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0, fmt.Errorf("memory of process %d: %w", pid, err)
	}
	kilobytes, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("memory of process %d: %q", pid, out)
	}
	return kilobytes << 10, nil
}
