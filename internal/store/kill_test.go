package store

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/functions"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// child is a process of these tests. It works on a folder, and tells what is acknowledged. It kills itself at a step.
func child(plan string) int {
	dieAt, _ := strconv.ParseInt(os.Getenv("STEP"), 10, 64)
	var steps atomic.Int64
	step = func(string, string) error {
		if steps.Add(1) == dieAt {
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			select {}
		}
		return nil
	}
	if plan == "endless" {
		rewriteLeast = 1 << 10
	}
	s, err := Open(os.Getenv("FOLDER"), Options{Always: os.Getenv("ALWAYS") != ""})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	calls := 12
	switch plan {
	case "open":
		return 0
	case "endless":
		calls = 1 << 40
	}
	for i := 1; i <= calls; i++ {
		s.Lock()
		n := s.Do([]string{"INCR", "n"})
		s.Do([]string{"RPUSH", "list", strconv.FormatInt(n.Int, 10)})
		s.Do([]string{"HSET", "h" + strconv.Itoa(i%100), "n", strconv.FormatInt(n.Int, 10)})
		s.Do([]string{"LTRIM", "list", "-50", "-1"})
		position := s.Unlock()
		if err := s.Wait(position); err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println("ack", n.Int)
		if plan == "short" && i%4 == 0 {
			if err := s.Rewrite(); err != nil {
				fmt.Println(err)
				return 1
			}
		}
	}
	if err := s.Close(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// life runs a child until it ends or kill, which is asked after each acknowledgement, says that it shall die. acked is
// the last number.
func life(
	t *testing.T, folder, plan string, always bool, step int, kill func(acks int) bool,
) (acked int64, killed bool) {
	t.Helper()
	self, err := os.Executable()
	must.No(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), asChild+"="+plan, "FOLDER="+folder, fmt.Sprint("STEP=", step))
	if always {
		cmd.Env = append(cmd.Env, "ALWAYS=1")
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must.No(t, err)
	must.No(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for n := 1; lines.Scan(); n++ {
		number, found := strings.CutPrefix(lines.Text(), "ack ")
		if !found {
			t.Errorf("the child says %s", lines.Text())
			continue
		}
		acked, err = strconv.ParseInt(number, 10, 64)
		must.No(t, err)
		if kill(n) {
			must.No(t, cmd.Process.Kill())
		}
	}
	return acked, cmd.Wait() != nil
}

// counted opens a folder as a child left it, and returns what its counter says. Everything else must fit to it.
func counted(t *testing.T, folder string) int64 {
	t.Helper()
	s, err := Open(folder, Options{})
	must.No(t, err)
	defer func() { must.No(t, s.Close()) }()
	s.Lock()
	defer s.Unlock()
	r := s.Do([]string{"GET", "n"})
	if r.Kind == functions.KindNil {
		return 0
	}
	n, err := strconv.ParseInt(r.Text, 10, 64)
	must.No(t, err)
	list := s.Do([]string{"LRANGE", "list", "0", "-1"}).List
	for i := range list {
		if want := fmt.Sprint(n - int64(len(list)-1-i)); list[i].Text != want {
			t.Fatalf("the list does not fit to counter %d: %v", n, list)
		}
	}
	if len(list) != int(min(n, 50)) {
		t.Fatalf("the list has %d at counter %d", len(list), n)
	}
	return n
}

// A process that is killed at any step loses nothing that it acknowledged.
func TestKilledAtEveryStep(t *testing.T) {
	for _, always := range []bool{false, true} {
		steps := 0
		for killed := true; killed; {
			steps++
			folder := filepath.Join(t.TempDir(), "store")
			var acked int64
			acked, killed = life(t, folder, "short", always, steps, func(int) bool { return false })
			if there := counted(t, folder); there < acked || there > acked+1 {
				t.Errorf("killed at step %d: %d calls are there, %d were acknowledged", steps, there, acked)
			}
		}
		if steps < 50 {
			t.Errorf("it had %d steps", steps)
		}
		t.Logf("always %v: %d steps", always, steps-1)
	}
}

// A process is killed again and again while it works and rewrites. 8 times in each mode, 500 times with
// FLOWFABRIC_SOAK. The last life ends only after a rewrite, however slow the disk is.
func TestKilledAtRandom(t *testing.T) {
	kills := 8
	if os.Getenv("FLOWFABRIC_SOAK") != "" {
		kills = 500
	}
	for _, always := range []bool{false, true} {
		folder := t.TempDir()
		var before int64
		for i := range kills {
			acked, killed := life(t, folder, "endless", always, 0, func(acks int) bool {
				f, err := listFiles(folder)
				return acks > i*7919%400 && (i < kills-1 || err != nil || f.first() > 0)
			})
			there := counted(t, folder)
			if !killed || there < max(acked, before) || acked <= before {
				t.Fatalf("kill %d: %d calls are there, %d were acknowledged, %d before", i, there, acked, before)
			}
			before = there
		}
		if f, err := listFiles(folder); err != nil || f.first() == 0 {
			t.Errorf("it was never rewritten: %v, %v", f, err)
		}
	}
}
