package measure

import (
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
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processTimeOfPS(pid)
	}
	// The name, in parentheses, may hold spaces; utime and stime are the 12th and 13th field behind it.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: %q", pid, text)
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("/proc/%d/stat: %q", pid, text)
	}
	return time.Duration(user+system) * tick, nil
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
