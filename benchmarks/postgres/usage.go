package postgres

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

// treeTime is the processor time of a process and of its children, those that have ended included. PostgreSQL has a
// process for every connection, so what one process has used says nothing.
func treeTime(pid int) (time.Duration, error) {
	for {
		ended, err := measure.EndedChildrenTime(pid)
		if err != nil {
			return 0, err
		}
		sum, err := processTime(pid)
		if err != nil {
			return 0, err
		}
		for _, child := range children(pid) {
			if used, err := processTime(child); err == nil { // otherwise it has just ended
				sum += used
			}
		}
		// One that ended meanwhile may have been counted twice or not at all.
		if again, err := measure.EndedChildrenTime(pid); err != nil || again == ended {
			return sum + ended, err
		}
	}
}

// processTime is exact where the scheduler's statistics are there: with many processes, the ticks of
// [measure.ProcessTime] would be rounded too often. Processes of PostgreSQL have a single thread, which is what these
// are of.
func processTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err == nil {
		if ns, err := strconv.ParseInt(strings.SplitN(string(text), " ", 2)[0], 10, 64); err == nil {
			return time.Duration(ns), nil
		}
	}
	return measure.ProcessTime(pid)
}

// children are the living ones, by pgrep where /proc does not tell.
func children(pid int) []int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		text, _ = exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output() // fails when there are none
	}
	var out []int
	for field := range strings.FieldsSeq(string(text)) {
		if child, err := strconv.Atoi(field); err == nil {
			out = append(out, child)
		}
	}
	return out
}
