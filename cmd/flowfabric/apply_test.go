package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// Two files of the same settings. What the second one lacks is pruned.
const (
	settingsA = `{"owner":"shop",
	"gates":{"acme":{"limits":{"tokens":{"hard":1000,"soft":800}},"reset_ms":86400000,"on_hard":"fail",
	  "refund":["failed","cancelled"],"parent":"org"},"org":{"limits":{"tokens":{"hard":9000}}},
	  "llm":{"rate":580,"window_ms":60000,"concurrency":20},
	  "openai/gpt-5":{"service":{"per_minute":{"requests":500,"tokens":200000},"calls":20,"weights":{"acme":3}}}},
	"attached":[{"scope":{"tag_key":"app.tenant","tag":"acme"},"gates":["acme"]},
	  {"scope":{"lane":"batch"},"gates":["llm"]}],
	"lanes":[{"name":"batch","state":"paused","weight":4,"ageing_ms":600000,"retention_s":{"completed":3600}}],
	"index":{"all":true,"tags":["who.customer"]},
	"schedules":{"nightly":{"kind":"report","cron":"0 3 * * *","zone":"Europe/Berlin","input":{"n":1},
	  "gates":["acme"]},"hourly":{"kind":"report","every_ms":3600000,"retries":5}},
	"triggers":[{"name":"ship","subject":"order.paid","kind":"echo","where":{"order.state":"paid"}}]}`
	settingsB = `{"owner":"shop",
	"gates":{"acme":{"limits":{"tokens":{"hard":2000}},"on_hard":"block"},"org":{"limits":{"tokens":{"hard":9000}}},
	  "llm":{"rate":600,"window_ms":60000},
	  "openai/gpt-5":{"service":{"per_minute":{"tokens":100000},"patience_ms":5000}}},
	"attached":[{"scope":{"tag_key":"app.tenant","tag":"acme"},"gates":["acme"]},
	  {"scope":{"lane":"batch"},"gates":["llm"]}],
	"lanes":[{"name":"batch","state":"active","weight":1,"ageing_ms":0,"retention_s":{"completed":7200}}],
	"index":{"tags":["who.customer","team.region"],"all":false},
	"schedules":{"nightly":{"kind":"report","cron":"0 4 * * *","overlap":"skip","retries":2,"input":{"n":2}}},
	"triggers":[{"name":"ship","subject":"order.paid","kind":"echo","where":{"order.state":"sent"},"retries":1}]}`
)

// applied runs apply with a file on stdin and returns its plan.
func (w *env) applied(flags, file string) (plan settingsPlan) {
	w.Helper()
	code, out, errOut := w.run("apply -f - --json "+flags, file)
	if code != exitOK {
		w.Fatalf("apply %s: exit %d, %s%s", flags, code, out, errOut)
	}
	must.No(w, json.Unmarshal([]byte(out), &plan))
	return plan
}

// differences are the members that a plan changes, each with its value before or after.
func (s settingsPlan) differences(after bool) map[string]string {
	out := map[string]string{}
	for _, x := range s.Changes {
		for _, f := range x.Fields {
			value := f.Was
			if after {
				value = f.Is
			}
			if x.Action == "change" && f.Name != "input" {
				out[x.title()+" "+f.Name] = string(value)
			}
		}
	}
	return out
}

// A plan is what then happens, and a second run changes nothing.
func TestApplyDoesWhatItsPlanSays(t *testing.T) {
	w := newEnv(t, testserver.Redis(t))
	before := w.applied("--dry-run", settingsA)
	if _, out, _ := w.run("gate ls --json", ""); before.Made != 0 || strings.Contains(out, "acme") {
		t.Fatalf("a dry run made %d changes: %s", before.Made, out)
	}
	if made := w.applied("--yes", settingsA); made.Made != len(before.Changes) || made.Made != 11 {
		t.Fatalf("%d changes made, the plan had %d: %+v", made.Made, len(before.Changes), made.Changes)
	}
	if again := w.applied("--yes", settingsA); len(again.Changes) != 0 || again.Same != 11 {
		t.Fatalf("a second run changes %+v, and leaves %d", again.Changes, again.Same)
	}
	forth := w.applied("--yes --prune", settingsB)
	if again := w.applied("--yes --prune", settingsB); len(again.Changes) != 0 {
		t.Fatalf("a second run changes %+v", again.Changes)
	}
	back := w.applied("--yes --prune", settingsA)
	was, is := forth.differences(false), back.differences(true)
	if a, b := fmt.Sprint(was), fmt.Sprint(is); len(was) < 10 || a != b {
		t.Errorf("before the change:\n%s\nafter it was taken back:\n%s", a, b)
	}
	if a, b := fmt.Sprint(forth.differences(true)), fmt.Sprint(back.differences(false)); a != b {
		t.Errorf("planned:\n%s\nfound:\n%s", a, b)
	}
	w.applied("--yes", `{"index":{"tags":["team.region"]}}`)
	if _, out, _ := w.run("index show", ""); !strings.Contains(out, "tag who.customer: ") ||
		!strings.Contains(out, "tag team.region: ") {
		t.Errorf("a tag that the file does not name is gone, without --prune: %s", out)
	}
	_, trail, _ := w.run("trail --on schedule --json", "")
	if !strings.Contains(trail, "apply stdin") || !strings.Contains(trail, `"remove"`) {
		t.Errorf("the trail does not say what apply did: %s", trail)
	}
}

// A file with something wrong in it, wherever that is, changes nothing, and the error names the place and the limit.
func TestApplyRefusesAWholeFile(t *testing.T) {
	w := newEnv(t, testserver.Redis(t))
	for _, tc := range []struct{ old, with, want string }{
		{`"rate":580`, `"rate":-5`, "gates/llm: put gate \"llm\": invalid_gate_spec: "},
		{`"rate":580`, `"rate":-5`, "rate -5, want 0..1000000 starts in a window"},
		{`"rate":580`, `"ratee":5`, "gates/llm/ratee: there is no such member"},
		{`"rate":580`, `"rate":"many"`, "gates/llm/rate: "},
		{`"org":{"limits"`, `"org":{"parent":"acme","limits"`, "the gate would be above itself"},
		{`"parent":"org"`, `"parent":"nobody"`, `parent "nobody"`},
		{`"gates":["llm"]`, `"gates":["nobody"]`, "attached/1: "},
		{`"weight":4`, `"weight":1001`, "lanes/0: set lane \"batch\": "},
		{`"weight":4`, `"weight":1001`, "weight 1001, want 0..1000"},
		{`"tags":["who.customer"]`, `"tags":["nodot"]`, "index: "},
		{`0 3 * * *`, `61 * * * *`, "schedules/nightly: "},
		{`"gates":["acme"]},"hourly"`, `"gates":["nobody"]},"hourly"`, "schedules/nightly: "},
		{`"where":{"order.state":"paid"}`, `"where":{"order.state":[]}`, "triggers/0: trigger \"ship\": "},
		{`"triggers":[`, `"triggers":[{"name":"ship","subject":"order.paid","kind":"x"},`,
			"the trigger is there twice"},
		{`"owner":"shop",`, ``, "owner: it is missing"},
		{`"owner":"shop",`, `"owner":"shop","owner":"shop",`, "duplicate"},
		{`"owner":"shop",`, `"owner":"shop","prune":true,`, "use --prune"},
		{`"owner":"shop",`, `[`, "want one JSON object"},
		{`"owner":"shop",`, `"owner":"shop","lane":[],`, "lane: there is no such member"},
	} {
		file := strings.Replace(settingsA, tc.old, tc.with, 1)
		if code, out, errOut := w.run("apply -f - --yes", file); code == exitOK || !strings.Contains(errOut, tc.want) {
			t.Errorf("%s: exit %d, want %q: %s%s", tc.with, code, tc.want, out, errOut)
		}
	}
	for _, line := range []string{"gate ls --json", "schedules --json", "trail --json"} {
		if _, out, _ := w.run(line, ""); strings.Contains(out, "acme") || strings.Contains(out, "nightly") ||
			strings.Contains(out, "apply") {
			t.Errorf("something was applied: %s: %s", line, out)
		}
	}
	if code, _, errOut := w.run("apply -f -", settingsA); code != exitUsage || !strings.Contains(errOut, "--yes") {
		t.Errorf("without a word of a person: exit %d, %s", code, errOut)
	}
}

// A run that is cut short after any of its changes is finished by the next one, over HTTP as well.
func TestApplyFinishesWhatWasCutShort(t *testing.T) {
	w := newEnv(t, testserver.Redis(t))
	api, err := httpapi.New(httpapi.Config{Admin: admin.New(w.client), Authorize: httpapi.Open,
		Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	defer api.Close()
	left := 0 // changes that the server lets pass
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if !strings.HasSuffix(q.URL.Path, ":plan") {
			if left--; left < 0 {
				panic(http.ErrAbortHandler)
			}
		}
		api.ServeHTTP(w, q)
	}))
	defer server.Close()
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Setenv("FLOWFABRIC_URL", server.URL)

	left = 1000
	w.applied("--yes", settingsA)
	all := 0
	for cut, file := 0, settingsB; ; cut++ {
		left = 1000
		all = len(w.applied("--dry-run --prune", file).Changes)
		left = cut
		code, out, errOut := w.run("apply -f - --yes --prune", file)
		left = 1000
		rest := w.applied("--yes --prune", file)
		if code == exitOK {
			if cut != all || len(rest.Changes) != 0 {
				t.Errorf("done after %d of %d changes, and then %+v", cut, all, rest.Changes)
			}
			break
		}
		if want := fmt.Sprintf("%d of %d changes made", cut, all); !strings.Contains(errOut, want) {
			t.Errorf("want %q: %s%s", want, out, errOut)
		}
		if rest.Made != all-cut {
			t.Errorf("cut after %d of %d: the next run made %d", cut, all, rest.Made)
		}
		if file == settingsA {
			file = settingsB
		} else {
			file = settingsA
		}
	}
	if all < 5 {
		t.Errorf("only %d changes", all)
	}
}

// The file in the guide is one that can be applied.
func TestApplyTakesTheFileOfTheGuide(t *testing.T) {
	w := newEnv(t, testserver.Embedded(t))
	page, err := os.ReadFile("../../docs/how-to/settings.md")
	must.No(t, err)
	_, rest, _ := strings.Cut(string(page), "```json\n")
	file, _, found := strings.Cut(rest, "```")
	if plan := w.applied("--yes", file); !found || plan.Made != 7 {
		t.Errorf("%d changes made: %+v", plan.Made, plan.Changes)
	}
}

// What a store has is a file that changes nothing there, and makes the same settings in another store.
func TestSettingsAreAFileForApply(t *testing.T) {
	one := newEnv(t, testserver.Redis(t))
	one.applied("--yes", settingsA)
	one.applied("--yes --namespace blue", `{"owner":"blue","lanes":[{"name":"batch","weight":3}],
	  "schedules":{"bytes":{"kind":"report","every_ms":60000,"anchor":"2026-01-01T00:00:30Z","input_base64":"AAH/"},
	    "tag":{"kind":"report","cron":"@daily","input":{"html":"<b>&amp;</b>"},"max_runs":5,"retries":0,
	      "retention_s":{"completed":60},"limits":[{"key":"k","concurrency":2}]},
	    "flow":{"kind":"two","cron":"0 5 * * *","nodes":[{"name":"a","kind":"echo","input":[1],"retries":7},
	      {"name":"b","kind":"echo","lane":"batch","inputs":{"from":"a"}},
	      {"name":"c","kind":"echo","after":["a","b"],"policy":"any","cancel_rest":true,"delay_ms":1000}]}},
	  "triggers":[{"name":"ship","subject":"order.paid","kind":"echo","where":{"n":1.50,"gone":null}}]}`)
	spec, steps := schedule.Cron("@hourly", "UTC"), flow.New("steps", flow.Growing())
	flow.Add(steps, "a", handler.Define[map[string]int, any]("echo"), map[string]int{"n": 1})
	for _, err := range []error{
		second(client.Schedule(one.ctx, one.client, "own", spec, handler.Define[map[string]int, any]("echo"),
			map[string]int{"n": 1})),
		second(client.Schedule(one.ctx, one.client, "own/paused", spec,
			handler.Define[map[string]int, any]("echo", handler.Retry(2, time.Minute, time.Hour)), nil)),
		second(client.ScheduleFlow(one.ctx, one.client, "grows", spec, steps)),
	} {
		must.No(t, err)
	}
	code, file, told := one.run("settings", "")
	for _, want := range []string{"left out: schedule grows: its flow may grow",
		"left out: schedule own/paused: only programs can say what it has as: policy"} {
		if code != exitOK || strings.Count(told, "left out") != 2 || !strings.Contains(told, want) {
			t.Errorf("exit %d, want %q: %s", code, want, told)
		}
	}
	if again := one.applied("--yes", file); len(again.Changes) != 0 || again.Same != 17 {
		t.Errorf("in its own store %d stay and %+v", again.Same, again.Changes)
	}
	if code, _, why := one.run("apply -f - --yes --prune", file); code == exitOK || !strings.Contains(why, "owner") {
		t.Errorf("with schedules left out it prunes: exit %d, %s", code, why)
	}
	two := newEnv(t, testserver.Redis(t))
	if made := two.applied("--yes", file); made.Made != 17 {
		t.Errorf("in another store: %+v", made)
	}
	if _, same, told := two.run("settings", ""); same != file || told != "" {
		t.Errorf("%sof the first store:\n%s\nof the second:\n%s", told, file, same)
	}
	if rest := two.applied("--dry-run", settingsA); len(rest.Changes) != 0 {
		t.Errorf("the first file changes %+v", rest.Changes)
	}
}

func second[T any](_ T, err error) error { return err }

// The settings of one owner are a file that prunes.
func TestSettingsOfOneOwnerNameIt(t *testing.T) {
	w := newEnv(t, testserver.Embedded(t))
	w.applied("--yes", settingsA)
	_, file, told := w.run("settings --json", "")
	if !strings.Contains(file, `"owner":"shop"`) || strings.Contains(file, "owned_by") || told != "" {
		t.Errorf("%s%s", told, file)
	}
	if plan := w.applied("--yes --prune", file); len(plan.Changes) != 0 {
		t.Errorf("it changes %+v", plan.Changes)
	}
}
