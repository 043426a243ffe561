package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// step is one command line of a golden session.
type step struct {
	line  string
	stdin string
}

func lines(text ...string) (steps []step) {
	for _, line := range text {
		steps = append(steps, step{line: line})
	}
	return steps
}

// sessions are command lines that run one after the other on an environment of their own. What they print is in
// testdata/<name>.golden, the same for every server; FLOWFABRIC_GOLDEN=write makes the files anew.
var sessions = map[string][]step{
	"show": lines("show <done> --result", "show <failed>", "show <asking>", "show <queued>", "show <later>",
		"show <held>", "show <held> --json", "show <failed> --json", "show <done> --json --result --summary",
		"show <done> --input --result", "show <failed> --input --json", "show 1-00000000-0000-4000-8000-000000000000",
		"show 1-00000000-0000-4000-8000-000000000000 --json",
		"show 9-00000000-0000-4000-8000-000000000000", "show nonsense", "show"),
	"history": lines("history <done>", "events <failed>", "history <done> --json"),
	"tail": lines("tail <done>", "tail <done> --raw", "tail <done> --json", "tail <done> --attempt 1", "tail <failed>",
		"tail <failed> --json", "tail <failed> --raw", "tail <done> --from nonsense", "tail <done> --attempt -1"),
	"logs": lines("logs <done>", "logs <done> --json", "logs <done> --level warn", "logs <done> --follow --attempt 1",
		"logs <failed>", "logs <queued>", "logs <done> --attempt 7",
		"logs <failed> --level error --json", "logs <done> --level loud", "logs <done> --attempt -1",
		"logs 1-00000000-0000-4000-8000-000000000000 --follow"),
	"submit": append(lines("submit report --key a --input '{\"b\": 1, \"a\":\"<\"}'",
		"submit report --key a --input '{\"b\":1,\"a\":\"<\"}' --json",
		"submit report --key a --input 2", "submit report --input '{'", "submit report --priority 9001",
		"submit report --tag nonsense", "submit report --tag team.region=eu,team.size=2", "submit report --tag team=1",
		"submit report --delay 1h --delay-until 2026-01-01T00:00:00Z", "submit report --retries 1001",
		"submit report --delay-until soon", "submit report --gate ''", "submit report --retention ''",
		"submit report --debounce x --delay 0", "submit report --reason nothing",
		"submit echo --key done --input '{\"text\":\"tides\"}' --wait",
		"submit echo --key done --input '{\"text\":\"tides\"}' --wait --json",
		"submit broken --key failed --input '{\"text\":\"tides\"}' --wait",
		"submit broken --key failed --input '{\"text\":\"tides\"}' --wait --json",
		"submit echo --key done --input '{\"text\":\"tides\"}' --tail",
		"submit broken --key failed --input '{\"text\":\"tides\"}' --tail",
		"submit report --debounce shop --delay 1h --debounce-max 2h --input 1 --json",
		"submit report --debounce shop --delay 1h --input 2 --json", "submit report --debounce shop",
		"submit report --debounce-max 1h", "submit report --debounce shop --delay 1h --debounce-max 1m",
		"submit 'no {braces}'", "submit"),
		step{"submit report --key stdin --input - --raw --lane batch --json", "\x00bytes"},
		step{"submit report --key stdin --input - --raw --lane batch --json", "\x00bytes"}),
	"change": lines("cancel <queued> --reason 'no longer needed' --by anna", "cancel <queued>", "show <queued> --json",
		"cancel <done>", "replay <done>", "replay <failed> --by anna --reason 'more disk' --json", "replay <failed>",
		"replay <failed> --request nonsense", "priority <later> 7", "priority <later> many",
		"priority <later> 010", "priority <later> 7", "priority <later> 9001",
		"priority <done> 1", "priority <later>", "tags <later> --set team.region=us --set a.b=c",
		"tags <later> --remove a.b --json", "tags <later>", "tags <done> --json", "tags <later> --set A=1",
		"revoke <held> --reason hangs --held-by w9~000000000000", "revoke <held> --reason hangs --by anna",
		"revoke <later>", "purge <later>", "purge <done> --tombstone 1h", "purge <done>", "show <done>",
		"purge <done> --json",
		"history <later>"),
	"wait": append(lines("waitpoints <asking>", "waitpoints <asking> --json", "waitpoints <done>", "signal nonsense",
		"signal @/nonexistent",
		"approve <asking> nobody", "approve <asking> editor --choice ''",
		"approve <asking> editor --payload 1 --comment x", "signal <token> --comment x",
		"approve <asking> editor --payload '{'",
		"approve <asking> editor --choice approve --payload 1"),
		step{"signal - --payload - ", ""},
		step{"signal - --choice approve --comment fine --by anna --key one", "<token>\n"},
		step{"signal <token> --choice approve --key one --json", ""},
		step{"waitpoints <asking>", ""}, step{"resume <asking>", ""}, step{"resume <asking> --delay 31000h", ""},
		step{"approve <asking> editor --choice approve --by anna", ""}),
	"approve": lines("approve <asking> editor --by anna --comment fine", "waitpoints <asking> --json"),
	"resume": lines("resume <asking> --by anna --reason 'on leave' --request 3b241101-e2bb-4255-8caf-4136c566a962",
		"resume <asking> --by anna --request 3b241101-e2bb-4255-8caf-4136c566a962 --json", "resume <asking>"),
	"keys": lines("keys", "keys nonsense", "keys list", "keys list --json", "keys rotate k2 --grace 24h",
		"keys rotate k2 --force", "keys rotate k2 --json", "keys list", "keys rotate nobody",
		"keys rotate k1 --grace -1s"),
	"freeze": lines("freeze", "freeze 4", "freeze 2-1", "freeze 0 2-3 --reason 'move slots'", "freeze 3 --json",
		"lane pause batch --by anna", "lane list", "lane pause batch --json", "freeze --all",
		"lane pause batch --by anna", "why <done>", "show <done>",
		"submit report --key frozen", "thaw 1 --json", "thaw --all", "thaw 0 --all", "show <failed> --json"),
}

func init() {
	sessions["why"] = lines("why <done>", "why <failed> --json", "why <later>", "why <asking>", "why <held>",
		"why <queued>", "why <queued> --json", "why 1-00000000-0000-4000-8000-000000000000",
		"why 1-00000000-0000-4000-8000-000000000000 --json")
	sessions["ls"] = lines("ls", "ls --json", "ls --state waiting --limit 1", "ls --state waiting --limit 1 --json",
		"ls --state ended --newest", "ls --state nonsense", "ls --kind report --lane batch",
		"ls --tag team.region=eu --json", "ls --held-by w2", "ls --limit -1", "ls --held-by w2 --all-namespaces",
		"ls --all-namespaces --namespace x",
		"ls --cursor nonsense", "ls --namespace other", "ls extra")
	sessions["bulk"] = lines("bulk", "bulk replay", "bulk replay --error 'DISK full' --dry-run",
		"bulk replay --error 'disk full' --since 1h --yes --reason 'more disk'",
		"bulk replay --error 'disk full' --yes --json", "bulk run-now --kind report --yes", "bulk priority many --yes",
		"bulk priority 7 --lane batch --yes --json", "bulk hold --tag team.region=eu --yes",
		"bulk unhold --limit 1 --yes", "bulk cancel --lane batch --dry-run --json",
		"bulk purge --state completed --keep 1s --yes", "bulk purge --state completed --yes",
		"bulk cancel --cursor nonsense --yes", "bulk cancel --concurrency 257 --yes", "bulk nonsense",
		"ls --error disk --since soon",
		"ls --error 'disk full' --since 1h --until 30m",
		"ls --since 1h --until 2h")
	sessions["failures"] = lines("failures", "failures --json", "failures --category permanent",
		"failures --since soon", "failures --namespace other --json", "failures extra", "ls --shape 'disk full'",
		"ls --shape other", "ls --shape ''", "bulk replay --shape 'disk full' --dry-run")
	sessions["lane"] = lines("lane", "lane list", "lane list --json", "queues", "queues --json",
		"lane pause batch --by anna", "lane drain default --by anna --json", "lane --all-namespaces",
		"submit report --key drained", "why <batch>", "lane disable batch --by anna", "lane resume default --by anna",
		"lane retention batch 72h --by anna", "lane retention batch soon", "lane retention batch 1500ms",
		"lane pause 'no {braces}'", "lane list", "lane pause", "lane pause new --json --by anna",
		"queues --namespace other")
	sessions["busy"] = lines("gate ls --busy", "gates --busy --json", "versions", "versions --json",
		"ls --version 12", "ls --version ''")
	sessions["gate"] = lines("gate",
		"gate create acme --limit tokens=1000000 --soft tokens=800000 --limit cost.cents=500 --reset 24h --on-hard fail --refund failed,cancelled --by anna",
		"gate create acme --limit tokens=5", "gate ensure acme --limit tokens=5",
		"gate ensure sure --limit tokens=5 --json", "gate ensure sure --json", "gate rm sure",
		"gate ensure x --reset 5ms", "gate create 'no name'", "gate create x tokens=10",
		"gate create x --limit tokens=many",
		"gate create x --limit tokens", "gate create x --limit tokens=5 --soft tokens=6",
		"gate create x --limit tokens=0", "gate create x --limit tokens=5 --limit tokens=6",
		"gate create none --soft tokens=5", "gate create bare --json", "gate show none", "gate show bare",
		"gate rm none", "gate rm bare", "gate create x --reset 5ms", "gate create x --mode maybe",
		"gate create x --on-hard explode", "gate create asks --limit tokens=1 --on-hard ask",
		"gate rm asks", "gate create watch --limit calls=3 --mode warn --for 'all of it' --json",
		"gate report acme tokens=900000 --key a --execution <done>",
		"gate report acme tokens=900000 --key a --json",
		"gate report acme tokens=900000 --key a --execution <done>", "gate report acme tokens=200000 --key b",
		"gate report acme tokens=200000 --key b --json", "gate report acme tokens=-5 --key c",
		"gate report acme tokens=5", "gate report acme tokens --key d",
		"gate report acme tokens=1 tokens=2 --key d", "gate report acme", "gate report acme tokens=1 --key a",
		"gate report watch calls=9 --key a", "gate ls", "gate ls --json",
		"submit report --key costly --gate acme --gate nobody", "submit report --key costly --gate acme",
		"gate show acme", "gate show acme --json", "gate refund acme <done>", "gate refund acme <done> --json",
		"gate adjust acme tokens=-500 cost.cents=500 --reason 'counted twice' --by anna",
		"gate adjust acme tokens=x",
		"gate raise acme tokens=700 --reason 'the launch' --by anna", "gate raise acme tokens=300 --json",
		"gate raise acme tokens=40 calls=1 --execution <done> --reason 'it is urgent'", "gate raise acme calls=1",
		"gate raise acme tokens=-1", "gate raise acme",
		"gate raise acme tokens=1 --execution x", "gate raise nobody tokens=1",
		"gate update acme --limit cost.cents=900 --drop tokens --by anna",
		"gate update acme --limit cost.cents=900 --refund failed,cancelled",
		"gate update acme --limit cost.cents=0", "gate update acme --json", "gate show acme",
		"gate show acme --json", "gate reset acme", "gate reset acme --move --json",
		"gate update nobody --limit tokens=1", "gate show nobody", "gate adjust nobody tokens=1 --json",
		"gate reset nobody", "gate refund nobody <done>", "gate rm watch", "gate rm watch", "gate nonsense",
		"gate create team --limit tokens=10 --parent nobody", "gate create team --limit tokens=10 --parent acme",
		"gate create openai/gpt-5 --per-minute requests=500,tokens=200000 --calls 20 --patience 5s --weight acme=3",
		"gate create openai/gpt-5 --per-minute requests=500,tokens=200000 --calls 20 --patience 5s --weight acme=3",
		"gate create x/y --limit tokens=5", "gate create x --per-minute tokens=1",
		"gate create x --per-minute tokens=many", "gate create x --calls 1 --rate 5 --window 1m",
		"gate create x --per-minute tokens=10 --burst tokens=6", "gate create x --burst tokens=6",
		"gate update openai/gpt-5 --per-minute tokens=400000 --weight acme=1,other=2",
		"gate update openai/gpt-5 --weight other=2", "gate update openai/gpt-5 --drop requests --burst tokens=500",
		"gate show openai/gpt-5", "gate show openai/gpt-5 --json", "gate rm openai/gpt-5",
		"gate ensure team --parent acme", "gate create solo --concurrency 1 --parent team --json",
		"gate update acme --parent team", "gate update team --parent team", "gate ls", "gate show team",
		"gate update team --parent ''", "gate update team --parent ''", "gate show team", "gate rm solo",
		"gate rm team",
		"gate create free", "gate update free --drop tokens", "gate show ''", "gate rm ..")
	sessions["slots"] = lines("gate ls", "gate create gpu --concurrency 4 --by anna", "gate create gpu --concurrency 5",
		"gate ensure gpu --concurrency 5", "gate ensure sure --json", "gate ensure sure --concurrency 1",
		"gate rm sure",
		"gate ensure x --concurrency -1",
		"gate create mail --rate 100 --window 1m --jitter 1s --for letters --json", "gate create x --rate 5",
		"gate create x --concurrency -1",
		"gate create all --limit tokens=10 --rate 5 --window 1m --concurrency 2", "gate show all",
		"gate create odd --concurrency 1 --reset 1h", "gate", "gate ls --json", "gate update gpu --concurrency 8",
		"gate update gpu --concurrency 8",
		"gate create none", "gate update mail --rate 0 --json", "gate update mail --rate 100", "gate rm none",
		"gate show gpu", "gate show mail --json", "gate update nobody --concurrency 1", "gate show nobody",
		"gate rm mail",
		"gate rm mail --json", "submit report --key limited --limit tenant-7=2,100/1m --limit 'a b=5/1h'",
		"submit report --limit tenant-7", "submit report --limit tenant-7=two", "submit report --limit =1",
		"submit report --limit k=0", "gate limit tenant-7 2,100/1m", "gate limit tenant-7 2 --json",
		"gate limit tenant-7 2/1w", "gate limit tenant-7", "gate show @2.0.0@tenant-7")
	sessions["attach"] = append(lines("gate", "gate create acme --limit tokens=10", "gate create gpu --concurrency 1",
		"gate attach tag:app.tenant=acme acme --by anna",
		"gate attach lane:batch gpu acme --json --by anna", "gate attach namespace:blue gpu",
		"gate attach everything nobody", "gate attach nowhere acme", "gate attach lane:batch",
		"gate attach tag:nodot=1 acme", "gate ls", "gate ls --json", "submit report --key gated --lane batch",
		"gate rm gpu", "gate rm acme --json", "gate detach lane:batch gpu --by anna",
		"gate detach lane:batch", "gate detach lane:batch ''",
		"gate detach namespace:blue --all --json", "gate ls",
		"schedules put nightly --kind report --every 8760h --gate acme --gate gpu --by anna",
		"schedules show nightly --next 0", "schedules put hourly --kind report --every 1h --gate nobody",
		"schedules put capped --kind report --every 8760h --limit tenant-7=2,100/1m", "schedules show capped --next 0",
		"schedules put capped --kind report --every 1h --limit tenant-7"),
		lines("hold <queued> --reason 'look first' --by anna", "hold <queued> --json", "show <queued>",
			"ls --state held", "ls --state held --json", "history <queued>", "hold <held>", "hold <done>",
			"unhold <queued>", "unhold <queued> --json", "hold",
			"hold <queued> --reason '"+strings.Repeat("x", 257)+"'", "lane set batch --weight 4 --ageing 10m --by anna",
			"lane set new --weight 3 --json", "lane set batch",
			"lane set batch --weight 1001", "lane list", "lane list --json")...)
	sessions["flow"] = lines("flow", "flow ls --json", "ls --flow <open>", "ls --flow <broken> --state cancelled",
		"ls --flow nonsense", "flow ls --state failed,open --kind report", "flow ls --state nonsense",
		"flow ls --limit 1", "flow ls --namespace other", "flow show <open>", "flow show <open> --json",
		"flow graph <open> --format mermaid", "flow graph <open> --format dot --json", "flow graph <open> --format svg",
		"flow seal <open>", "flow seal <open> --json", "flow cancel <open> --policy nonsense",
		"flow cancel <open> --policy cancel_pending --reason 'too late' --wait", "flow cancel <open> --json",
		"flow replay <open>", "flow show <broken>", "flow replay <broken> --from nobody",
		"flow replay <broken> --reason 'more disk' --by anna", "flow replay <broken> --from a --json",
		"why <b>", "flow seal 1-00000000-0000-4000-8000-000000000000", "flow show nonsense", "flow show",
		"flow nonsense")
	sessions["schedules"] = lines("schedules --json",
		"schedules put nightly --kind report --cron '0 3 * * *' --zone Europe/Berlin --by anna",
		"schedules put nightly --kind report --cron '0 3 * * *' --zone Europe/Berlin --json",
		"schedules put yearly --kind report --every 8760h --overlap skip --json --by anna",
		"schedules put yearly --kind report --cron @daily --if-new", "schedules put x --kind report",
		"schedules put x --kind report --cron '61 * * * *'", "schedules put x --kind report --every 1ms",
		"schedules put x --every 1h", "schedules put x --kind report --every 1h --zone UTC",
		"schedules put x --kind report --every 1h --catch-up never", "schedules list", "schedules list --json",
		"schedules pause nightly --by anna", "schedules show nightly", "schedules next nightly --next 2 --json",
		"schedules resume nightly --json", "schedules remove nightly", "schedules remove nightly",
		"schedules show nightly", "schedules show yearly --next 1001",
		"schedules put trial --kind report --every 8760h --until 2099-12-31T00:00:00Z --max-runs 14 --jitter 1h --by anna",
		"schedules show trial --next 1", "schedules show trial --next 0 --json",
		"schedules put trial --kind report --every 8760h --until 2020-01-01T00:00:00Z", "schedules list",
		"schedules backfill trial --from 2020-01-01T00:00:00Z --to 2019-01-01T00:00:00Z",
		"schedules backfill trial --from soon", "schedules backfill trial --from ''", "schedules backfill trial",
		"schedules edit trial --cron '30 4 * * *' --zone Europe/Berlin --overlap skip --by anna",
		"schedules show trial --next 0 --json", "schedules edit trial", "schedules edit nobody --every 1h",
		"schedules edit trial --every 1ms", "schedules edit trial --every 1h --input '{'",
		"schedules run nobody", "schedules put x --kind report --every 1h --until tomorrow",
		"schedules put x --kind report --every 1h --jitter 25h")
	sessions["types"] = append(lines("schema", "schema --json", "schema --kind echo", "types --lang ts",
		"types --lang python --kind echo", "types --lang ts --kind nobody", "types --lang ts --namespace blue",
		"types --lang go", "types", "types --lang ts --json", "types --lang ts --file /nonexistent",
		"submit echo --input 7", "submit echo --input '{\"text\":7}' --json"),
		step{"types --lang ts --file -", `{"kinds":{"a":{"input":{"type":"string"}}}}`},
		step{"types --lang ts --file -", `{"kinds":{"a":{"input":{"type":"strin"}}}}`},
		step{"types --lang ts --file -", `{"a":{}}`})
	sessions["workers"] = lines("workers", "workers list", "workers list --json",
		"workers mark-dead w2 --reason 'node gone' --by anna", "workers mark-dead w2 --json",
		"workers list", "workers mark-dead nobody", "workers mark-dead")
	sessions["messages"] = append(lines("messages <queued>", "send <queued> user '\"make it shorter\"' --by anna",
		"send <queued> 'Tool box' '{\"lines\": [1,\n2]}' --key call-17 --by bea",
		"send <queued> 'Tool box' 2 --key call-17 --json"),
		step{"send <queued> user - --raw --by anna", "\x00\xff"}, step{"send <queued> user --json --by anna", ""},
		step{"send <queued> user - --by anna", `"` + strings.Repeat("é", 40) + `"`},
		step{"messages <queued>", ""}, step{"messages <queued> --after 2 --json", ""},
		step{"messages <queued> --after -1", ""}, step{"messages <done>", ""}, step{"send <done> user 1", ""},
		step{"send <queued> é 1", ""}, step{"send <queued> user {", ""}, step{"send <queued> user --raw", ""},
		step{"send <queued> user -", strings.Repeat("1", 65537)}, step{"send <queued>", ""},
		step{"send <queued> user 1 2", ""}, step{"send nonsense user", ""},
		step{"messages 1-00000000-0000-4000-8000-000000000000", ""}, step{"cancel <queued>", ""},
		step{"messages <queued> --json", ""})
	sessions["top"] = lines("top --once", "top --once --json --all-namespaces", "top --interval 1ms", "top extra")
	sessions["trail"] = lines("trail", "priority <later> 7 --by anna", "hold <queued> --reason 'look first' --by bea",
		"lane pause batch --by anna", "purge <done> --reason 'asked for' --by bea", "purge <done>", "trail",
		"trail --changed-by bea --json", "trail --on lane --name batch", "trail --limit 2",
		"trail --since 1h --until 2h", "trail --limit 0", "trail --cursor nonsense", "trail --namespace other")
	sessions["check"] = lines("check", "check 0-1 --json", "repair", "check 7", "repair nonsense")
}

// graphs submits two flows: <open>, of which nothing runs, and <broken>, whose first node has failed.
func (w *env) graphs() {
	w.Helper()
	report := handler.Define[map[string]any, map[string]any]("report", flowfabric.Retries(0))
	for _, name := range []string{"open", "broken"} {
		f := flow.New("report", flow.Unsealed(), flowfabric.Tags(map[string]string{"team.name": "sea"}))
		a := flow.Add(f, "a", report, map[string]any{"n": 1})
		b := flow.Add(f, "b", report, map[string]any{"n": 2}, flow.Input[map[string]any]{Name: "left"}.From(a))
		flow.Add(f, "c \"quoted\"", report, map[string]any{"n": 3}, flow.After(a, b), flow.AnyOf())
		fl, err := client.SubmitFlow(w.ctx, w.client, f, flowfabric.IdempotencyKey(name))
		must.No(w, err)
		w.names[name] = fl.ID().String()
		if name == "broken" {
			w.names["b"] = fl.Member("b").String()
			must.No(w, w.client.Execution(fl.Member("a")).Cancel(w.ctx, flowfabric.Reason("out of disk")))
		}
	}
}

func TestGolden(t *testing.T) {
	for server, start := range servers {
		t.Run(server, func(t *testing.T) {
			for name, steps := range sessions {
				t.Run(name, func(t *testing.T) {
					w := newEnv(t, start(t))
					if name == "flow" {
						w.graphs()
					}
					w.golden(name, steps)
				})
			}
		})
	}
}

// golden runs a session and compares everything that is seen of it.
func (w *env) golden(name string, steps []step) {
	w.Helper()
	var b strings.Builder
	for _, s := range steps {
		stdin := strings.ReplaceAll(s.stdin, "<token>", w.token)
		code, out, errOut := w.run(s.line, stdin)
		if strings.Contains(s.line, "--json") && code != exitUsage {
			w.checkJSON(s.line, out)
		}
		if secret := w.token[len(w.token)-64:]; strings.Contains(out+errOut, secret) {
			w.Errorf("%s prints the token", s.line)
		}
		fmt.Fprintf(&b, "$ flowfabric %s\n%s", s.line, w.normal(out))
		if errOut != "" {
			fmt.Fprintf(&b, "stderr: %s", w.normal(errOut))
		}
		if code != exitOK {
			fmt.Fprintf(&b, "exit %d\n", code)
		}
		b.WriteByte('\n')
	}
	compare(w.T, filepath.Join("testdata", name+".golden"), b.String())
}

// checkJSON wants JSON values and nothing else.
func (w *env) checkJSON(line, out string) {
	w.Helper()
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var v any
		err := d.Decode(&v)
		if err == io.EOF {
			return
		}
		if err != nil {
			w.Errorf("%s: %v in %s", line, err, out)
			return
		}
	}
}

// compare holds text against a file.
func compare(t *testing.T, path, text string) {
	t.Helper()
	if os.Getenv("FLOWFABRIC_GOLDEN") == "write" {
		must.No(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (FLOWFABRIC_GOLDEN=write makes it)", err)
	}
	if text == string(want) {
		return
	}
	got, wanted := strings.Split(text, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(wanted)) {
		g, w := "", ""
		if i < len(got) {
			g = got[i]
		}
		if i < len(wanted) {
			w = wanted[i]
		}
		if g != w {
			t.Errorf("%s:%d:\n got %s\nwant %s", path, i+1, g, w)
			return
		}
	}
}
