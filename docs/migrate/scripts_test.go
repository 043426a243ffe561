package migrate_test

import (
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// What the notes for Python and TypeScript call client.submit, task.step or delay_ms is in the packages.
func TestNamesOfClientsExist(t *testing.T) {
	for document, in := range map[string]struct{ dir, models, method, option string }{
		"from-celery.md": {"../../clients/python/src/flowfabric", "models.py", `(?m)^ +(async )?def NAME\(`,
			`(?m)^    NAME: NotRequired`},
		"from-bullmq.md": {"../../clients/typescript/src", "models.ts",
			`(?m)^  (readonly |async \*?|get |\*)?NAME[<(:]|(?m)^  readonly NAME\b`, `(?m)^  NAME\?:`},
	} {
		files, err := filepath.Glob(in.dir + "/*")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", in.dir, files, err)
		}
		code := ""
		for _, file := range files {
			if filepath.Base(file) != in.models && filepath.Ext(file) == filepath.Ext(in.models) {
				code += read(t, file)
			}
		}
		models, seen := read(t, filepath.Join(in.dir, in.models)), 0
		has := func(code, pattern, name string) bool {
			return regexp.MustCompile(strings.ReplaceAll(pattern, "NAME", name)).MatchString(code)
		}
		for _, quoted := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(prose(t, document), -1) {
			method := regexp.MustCompile(`^(?:client|task|worker)\.(\w+)$`).FindStringSubmatch(quoted[1])
			option := regexp.MustCompile(`^\w+_(?:ms|s|key|until)$|^retries$`).MatchString(quoted[1])
			switch {
			case method != nil && !has(code, in.method, method[1]), option && !has(models, in.option, quoted[1]):
				t.Errorf("%s: there is no %s", document, quoted[1])
			case method != nil || option:
				seen++
			}
		}
		if seen < 15 {
			t.Errorf("%s: %d names", document, seen)
		}
	}
}

// The task of the note for Celery runs, is retried, and is one execution for its key.
func TestCeleryScript(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("the script of from-celery.md needs python3")
	}
	ctx, stop := testwait.Context(t, t.Context())
	defer stop()
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.Connect(ctx, client.Config{URL: "embedded://", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	api, err := httpapi.New(httpapi.Config{Admin: admin.New(c), Authorize: httpapi.Open, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	server := httptest.NewServer(api)
	defer server.Close()
	script := ""
	for _, b := range block.FindAllStringSubmatch(read(t, "from-celery.md"), -1) {
		if b[1] == "python" {
			script += b[2]
		}
	}
	script += `
async def both():
    running = asyncio.create_task(worker.run())
    await main()
    worker.stop()
    await running

asyncio.run(both())
`
	command := exec.CommandContext(ctx, "python3", "-c", script)
	command.Env = append(os.Environ(), "FLOWFABRIC_API="+server.URL, "PYTHONPATH=../../clients/python/src")
	out, err := command.CombinedOutput()
	if want := "{'sent': 'anna', 'number': 17} True"; err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%v: %s, want %s", err, out, want)
	}
}
