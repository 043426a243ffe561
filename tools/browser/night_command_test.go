package browser

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/tools/browser/scene"
)

// shell runs the commands of the page for the night.
type shell struct {
	*testing.T
	night
	page string // docs/how-to/at-night.md
	put  map[string]string
}

// run runs a command that the page has, with what it names in capitals replaced, and returns what it prints.
func (s *shell) run(line string) string {
	s.Helper()
	out, err := s.command(line).Output()
	if err != nil {
		s.Fatalf("%s: %v, %+v", line, err, err)
	}
	return string(out)
}

func (s *shell) command(line string) *exec.Cmd {
	s.Helper()
	if !strings.Contains(s.page, "\n"+line) {
		s.Errorf("docs/how-to/at-night.md has no command %q", line)
	}
	path, err := program()
	must.No(s.T, err)
	words := strings.Fields(line)[1:]
	for i, word := range words {
		if value, ok := s.put[word]; ok {
			words[i] = value
		}
	}
	c := exec.CommandContext(s.Context(), path, words...)
	c.Env = append(os.Environ(), "FLOWFABRIC_URL="+s.store, "FLOWFABRIC_TOKEN_KEYS="+scene.Keys, "FLOWFABRIC_BY=anna",
		"NO_COLOR=1")
	return c
}

// says fails unless a text has all of these.
func (s *shell) says(text string, want ...string) {
	s.Helper()
	for _, w := range want {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), w) {
			s.Errorf("there is no %q in\n%s", w, text)
		}
	}
}

// commands are the tasks of the pages on the command line, in the same order.
var commands = []func(s *shell){
	func(s *shell) {
		s.says(s.run("flowfabric failures --since 2h"), " 500 charge-card handler_error ")
		text := s.run("flowfabric failures --version 13")
		s.says(text, " 500 charge-card handler_error ", " 3 send-receipt handler_error ",
			"order <n>: the card network answered <n>", "template receipt.html line <n>: no field Total")
		if strings.Contains(text, "declined") {
			s.Errorf("it has failures of version 12:\n%s", text)
		}
		s.put["KEY"] = strings.Fields(strings.Split(text, "\n")[1])[0]
		list := s.run("flowfabric ls --shape KEY --newest --limit 1")
		s.put["ID"] = strings.Fields(strings.Split(list, "\n")[1])[0]
		s.says(s.run("flowfabric show ID"), "the card network answered 503")
	},
	func(s *shell) {
		s.Repaired.Store(true)
		s.says(s.run("flowfabric bulk replay --shape KEY --dry-run"), "500 ")
		s.run("flowfabric bulk replay --shape KEY --yes")
		s.lists("executions?kind=charge-card&state=completed&limit=1000", scene.Charges+2)
	},
	func(s *shell) {
		s.says(s.run("flowfabric gate ls --busy"), "model-tokens 12 ", "1000000 used of 1000000 tokens")
		s.says(s.run("flowfabric ls --kind summarize --state waiting,waiting_gate"),
			s.read("executions?kind=summarize&state=waiting&state=waiting_gate", "id")...)
		s.run("flowfabric gate raise model-tokens tokens=100000")
		s.lists("executions?kind=summarize&state=completed", scene.Summaries+1)
	},
	func(s *shell) {
		s.says(s.run("flowfabric lane list --namespace acme"), "acme render active 5")
		s.run("flowfabric lane pause render --namespace acme")
		s.laneOfOneTenantIsPaused()
		s.says(s.run("flowfabric bulk cancel --namespace acme --state active --dry-run"), "1 execution would")
		s.says(s.run("flowfabric lane resume render --namespace acme"), "lane render is active")
	},
	func(s *shell) {
		s.says(s.run("flowfabric versions"), " 12 0 0 3 2 0 ")
		want := s.read("executions?version=12", "id")
		if len(want) != 5 {
			s.Errorf("%d executions", len(want))
		}
		s.says(s.run("flowfabric ls --version 12 --limit 0"), want...)
	},
	func(s *shell) {
		s.says(s.run("flowfabric ls --state suspended --kind refund"), s.Urgent.String())
		s.put["ID"] = s.Urgent.String()
		s.says(s.run("flowfabric waitpoints ID"), "Pay back order 701?")
		s.run("flowfabric approve ID approval")
		s.until(s.Urgent.String(), "completed")
		s.lists("executions?kind=refund&state=suspended", 2)
	},
	func(s *shell) {
		s.says(s.run("flowfabric schedules list"), "nightly-report paused ")
		s.run("flowfabric schedules backfill nightly-report --from 24h")
		s.lists("executions?tag=schedule.name=nightly-report&state=completed", 1)
	},
	func(s *shell) {
		s.says(s.run("flowfabric ls --state active"), s.Import.String())
		s.put["ID"] = s.Import.String()
		c := s.command("flowfabric logs ID --follow")
		out, err := c.StdoutPipe()
		must.No(s.T, err)
		must.No(s.T, c.Start())
		defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
		lines := bufio.NewScanner(out)
		for _, want := range []string{"1 of 40 pages read", "2 of 40 pages read"} {
			if !lines.Scan() || !strings.Contains(lines.Text(), want) {
				s.Fatalf("it says %q, want %q (%v)", lines.Text(), want, lines.Err())
			}
			if strings.HasPrefix(want, "1") {
				must.No(s.T, s.Say(s.Context(), "2 of 40 pages read"))
			}
		}
	},
	func(s *shell) {
		s.put["ID"] = s.Stuck.String()
		_, why := s.ask("viewer", "GET", "executions/"+s.Stuck.String()+"/why", nil)
		if why["reason"] != "waiting_no_worker" {
			s.Errorf("the API says %v", why)
		}
		s.says(s.run("flowfabric why ID"), fmt.Sprint(why["sentence"]))
	},
	func(s *shell) {
		text := s.run("flowfabric times charge-card --since 1h --step 1m")
		since := s.slowSince(scene.Charge.Kind())
		for _, line := range strings.Split(text, "\n") {
			if columns := strings.Fields(line); len(columns) > 9 && strings.HasPrefix(columns[8], "4") {
				if at, err := time.Parse(time.RFC3339, columns[0]); err != nil || !at.Equal(since) {
					s.Errorf("the command says since %s, the API since %s (%v)", columns[0], since, err)
				}
				return
			}
		}
		s.Errorf("no step is slow:\n%s", text)
	},
}

// The tasks of the pages are done with the commands that docs/how-to/at-night.md names.
func TestTasksAtNightByCommand(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/at-night.md")
	must.No(t, err)
	s := &shell{T: t, night: atNight(t), page: string(page), put: map[string]string{}}
	if len(commands) != len(tasks) {
		t.Fatalf("%d tasks by page, %d by command", len(tasks), len(commands))
	}
	for i, do := range commands {
		t.Log(tasks[i].name)
		do(s)
	}
}
