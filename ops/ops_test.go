package ops_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

// promtool runs Prometheus' own checker in this directory. Where it is not installed the test is skipped loudly;
// where CI is set that is a failure.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		const text = "promtool is not installed; on Debian or Ubuntu: make deps (as root), or: apt-get install prometheus; on macOS: brew install prometheus"
		if os.Getenv("CI") != "" {
			t.Fatal(text)
		}
		fmt.Fprintf(os.Stderr, "\n!!! SKIPPED %s: %s\n\n", t.Name(), text)
		t.Skip(text)
	}
	if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// metrics is what docs/reference/metrics.md tells, by name; for a histogram also its three series. labels are those
// of each.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (counter|gauge|histogram) \\| ([^|]*) \\|")
	all := map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(read(t, "../docs/reference/metrics.md"), -1) {
		labels := regexp.MustCompile(`[a-z_]+`).FindAllString(m[3], -1)
		if m[2] == "histogram" {
			all[m[1]+"_bucket"], all[m[1]+"_count"], all[m[1]+"_sum"] = append(slices.Clone(labels), "le"), labels,
				labels
		} else {
			all[m[1]] = labels
		}
	}
	if len(all) < 20 {
		t.Fatalf("docs/reference/metrics.md tells of %d metrics", len(all))
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must.No(t, err)
	return string(b)
}

var (
	selector = regexp.MustCompile(`(flowfabric_[a-z_]+)(\{[^}]*\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(=~|!~|!=|=)`)
	grouping = regexp.MustCompile(`\b(?:by|on)\s*\(([a-z_, ]*)\)`)
)

// scraped are the labels that Prometheus adds.
var scraped = []string{"job", "instance"}

// known checks that an expression uses only metrics that exist, and only labels that they have.
func known(t *testing.T, all map[string][]string, where, expr string) {
	t.Helper()
	var labels []string
	found := selector.FindAllStringSubmatch(expr, -1)
	if len(found) == 0 {
		t.Errorf("%s: no metric in %q", where, expr)
	}
	for _, m := range found {
		of, ok := all[m[1]]
		if !ok {
			t.Errorf("%s: there is no metric %s", where, m[1])
		}
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(of, l[1]) && !slices.Contains(scraped, l[1]) {
				t.Errorf("%s: %s has no label %s", where, m[1], l[1])
			}
		}
		labels = append(labels, of...)
	}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		for l := range strings.SplitSeq(g[1], ",") {
			if l = strings.TrimSpace(l); !slices.Contains(labels, l) && !slices.Contains(scraped, l) {
				t.Errorf("%s: nothing in %q has a label %s", where, expr, l)
			}
		}
	}
}

// Every panel and every alert uses metrics that exist, in valid PromQL.
func TestExpressions(t *testing.T) {
	all := metrics(t)
	var dashboard struct {
		Title  string `json:"title"`
		UID    string `json:"uid"`
		Panels []struct {
			ID      int    `json:"id"`
			Type    string `json:"type"`
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	must.No(t, json.Unmarshal([]byte(read(t, "dashboard.json")), &dashboard))
	var rules bytes.Buffer
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	ids, used := map[int]bool{}, ""
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.Title == "" || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d %q has another's id, no title or nothing to show", p.ID, p.Title)
		}
		ids[p.ID] = true
		for i, target := range p.Targets {
			known(t, all, "panel "+p.Title, target.Expr)
			used += target.Expr + "\n"
			expr := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*").Replace(target.Expr)
			fmt.Fprintf(&rules, "  - record: panel:%d:%d\n    expr: '%s'\n", p.ID, i,
				strings.ReplaceAll(expr, "'", "''"))
		}
	}
	for _, a := range alerts(t) {
		known(t, all, "alert "+a.name, a.expr)
		used += a.expr + "\n"
	}
	for name := range all {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count"), "_sum")
		if !strings.Contains(used, base) {
			t.Errorf("neither a panel nor an alert uses %s", base)
		}
	}
	file := filepath.Join(t.TempDir(), "panels.yaml")
	must.No(t, os.WriteFile(file, rules.Bytes(), 0o600))
	promtool(t, "check", "rules", file)
}

// alert is what the test needs to know of one rule.
type alert struct{ name, expr, url string }

// alerts reads alerts.yaml, which is written so that lines will do.
func alerts(t *testing.T) (list []alert) {
	t.Helper()
	for line := range strings.Lines(read(t, "alerts.yaml")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch value = strings.ReplaceAll(strings.Trim(value, "'"), "''", "'"); key {
		case "- alert":
			list = append(list, alert{name: value})
		case "expr":
			list[len(list)-1].expr = value
		case "runbook_url":
			list[len(list)-1].url = value
		}
	}
	if len(list) < 10 {
		t.Fatalf("%d alerts", len(list))
	}
	return list
}

// Every alert has a page, every page an alert, and every page the same parts.
func TestRunbook(t *testing.T) {
	const base = "https://github.com/flowfabric/flowfabric-go/blob/main/docs/runbook/"
	var want []string
	for _, a := range alerts(t) {
		want = append(want, a.name+".md")
		if a.url != base+a.name+".md" {
			t.Errorf("%s: runbook_url is %q", a.name, a.url)
		}
	}
	files, err := os.ReadDir("../docs/runbook")
	must.No(t, err)
	var have []string
	all := metrics(t)
	for _, f := range files {
		have = append(have, f.Name())
		page := read(t, "../docs/runbook/"+f.Name())
		for _, part := range []string{"# " + strings.TrimSuffix(f.Name(), ".md") + "\n", "**Meaning.**",
			"\n## How to see it\n", "\n## Likely causes\n", "\n## What to do\n", "flowfabric"} {
			if !strings.Contains(page, part) {
				t.Errorf("%s lacks %q", f.Name(), part)
			}
		}
		for _, m := range regexp.MustCompile(`\]\(([A-Za-z]+\.md)\)`).FindAllStringSubmatch(page, -1) {
			if _, err := os.Stat("../docs/runbook/" + m[1]); err != nil {
				t.Errorf("%s links to %s", f.Name(), m[1])
			}
		}
		for _, name := range regexp.MustCompile(`flowfabric_[a-z_]+`).FindAllString(page, -1) {
			_, plain := all[name]
			_, histogram := all[name+"_bucket"]
			if !plain && !histogram {
				t.Errorf("%s names a metric %s, which does not exist", f.Name(), name)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(want, have) {
		t.Errorf("alerts %q\npages  %q", want, have)
	}
}

// Every alert fires when it should and is quiet when it should be.
func TestAlerts(t *testing.T) {
	tests := read(t, "alerts_test.yaml")
	for _, a := range alerts(t) {
		for _, name := range []string{a.name + " fires", a.name + " stays quiet"} {
			if !strings.Contains(tests, "- name: "+name+"\n") {
				t.Errorf("alerts_test.yaml has no test %q", name)
			}
		}
	}
	promtool(t, "check", "rules", "alerts.yaml")
	promtool(t, "test", "rules", "alerts_test.yaml")
}
