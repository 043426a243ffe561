package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/mcp"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// The tools that the official suite wants a server to have, as far as kinds of work can be them.

type confirmed struct {
	Confirm bool   `json:"confirm"`
	Name    string `json:"name,omitempty"`
}

func conformanceKinds() (bindings []handler.Binding, kinds []mcp.Kind) {
	simple := handler.Define[struct{}, string]("test_simple_text", flowfabric.Retries(0))
	fails := handler.Define[struct{}, string]("test_error_handling", flowfabric.Retries(0))
	progress := handler.Define[struct{}, string]("test_tool_with_progress", flowfabric.Retries(0))
	type name struct {
		Name string `json:"name"`
	}
	greet := handler.Define[name, string]("greet", flowfabric.Retries(0))
	type seconds struct {
		Seconds float64 `json:"seconds"`
		Label   string  `json:"label,omitempty"`
	}
	slow := handler.Define[seconds, string]("slow_compute", flowfabric.Retries(0))
	failing := handler.Define[struct{}, string]("failing_job", flowfabric.Retries(0))
	protocol := handler.Define[struct{}, string]("protocol_error_job", flowfabric.Retries(0))
	type file struct {
		Filename string `json:"filename"`
	}
	remove := handler.Define[file, string]("confirm_delete", flowfabric.Retries(0))
	multi := handler.Define[struct{}, string]("multi_input", flowfabric.Retries(0))
	type hello struct {
		Name string `json:"name"`
	}
	type okay struct {
		OK bool `json:"ok"`
	}
	type paint struct {
		Color string `json:"color"`
	}
	elicit := handler.Define[struct{}, string]("test_input_required_result_elicitation", flowfabric.Retries(0))
	state := handler.Define[struct{}, string]("test_input_required_result_request_state", flowfabric.Retries(0))
	tampered := handler.Define[struct{}, string]("test_input_required_result_tampered_state", flowfabric.Retries(0))
	rounds := handler.Define[struct{}, string]("test_input_required_result_multi_round", flowfabric.Retries(0))
	waits := func(ctx context.Context, t *handler.Task, _ struct{}) (string, error) {
		answer, err := handler.Await[okay](ctx, t, "ok")
		return fmt.Sprintf("ok: %v", answer.OK), err
	}
	region := handler.Define[json.RawMessage, string]("test_region", flowfabric.Retries(0))
	schema := handler.Define[json.RawMessage, string]("json_schema_2020_12_tool", flowfabric.Retries(0))

	plain := func(text string) func(context.Context, struct{}) (string, error) {
		return func(context.Context, struct{}) (string, error) { return text, nil }
	}
	bindings = []handler.Binding{
		handler.Bind(simple, handler.Plain(plain("This is a simple text response for testing."))),
		handler.Bind(fails, handler.Plain(func(context.Context, struct{}) (string, error) {
			return "", errors.New("This tool intentionally returns an error for testing")
		})),
		handler.Bind(progress, func(ctx context.Context, t *handler.Task, _ struct{}) (string, error) {
			for _, p := range []string{"0/100", "50/100", "100/100"} {
				if err := t.Frame(ctx, "progress", p); err != nil {
					return "", err
				}
			}
			return "done", nil
		}),
		handler.Bind(greet, handler.Plain(func(_ context.Context, in name) (string, error) {
			return "Hello, " + in.Name + "!", nil
		})),
		handler.Bind(slow, func(ctx context.Context, t *handler.Task, in seconds) (string, error) {
			select {
			case <-time.After(time.Duration(in.Seconds * float64(time.Second))):
				return fmt.Sprintf("%s took %g s", in.Label, in.Seconds), nil
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}),
		handler.Bind(failing,
			handler.Plain(func(context.Context, struct{}) (string, error) { return "", errors.New("it fails") })),
		handler.Bind(protocol, handler.Plain(func(context.Context, struct{}) (string, error) { panic("it panics") })),
		handler.Bind(remove, func(ctx context.Context, t *handler.Task, in file) (string, error) {
			answer, err := handler.Await[confirmed](ctx, t, "confirm")
			return fmt.Sprintf("%s deleted: %v", in.Filename, answer.Confirm), err
		}),
		handler.Bind(multi, func(ctx context.Context, t *handler.Task, _ struct{}) (string, error) {
			r, err := t.Wait(ctx, "both", suspend.AllOf(suspend.Signal("first"), suspend.Signal("second")))
			return fmt.Sprintf("%d answers", len(r.Signals)), err
		}),
		handler.Bind(elicit, func(ctx context.Context, t *handler.Task, _ struct{}) (string, error) {
			answer, err := handler.Await[hello](ctx, t, "user_name")
			return "Hello, " + answer.Name + "!", err
		}),
		handler.Bind(state, waits),
		handler.Bind(tampered, waits),
		handler.Bind(rounds, func(ctx context.Context, t *handler.Task, _ struct{}) (string, error) {
			who, err := handler.Await[hello](ctx, t, "step1")
			if err != nil {
				return "", err
			}
			what, err := handler.Await[paint](ctx, t, "step2")
			return who.Name + " likes " + what.Color, err
		}),
		handler.Bind(region,
			handler.Plain(func(context.Context, json.RawMessage) (string, error) { return "ok", nil })),
		handler.Bind(schema,
			handler.Plain(func(context.Context, json.RawMessage) (string, error) { return "ok", nil })),
	}
	kinds = []mcp.Kind{
		mcp.Tool(simple, "Answers a text."),
		mcp.Tool(fails, "Fails."),
		mcp.Tool(progress, "Tells of its progress."),
		mcp.Tool(greet, "Greets.", mcp.Tasks(mcp.TasksNever)),
		mcp.Tool(slow, "Takes seconds."),
		mcp.Tool(failing, "Fails.", mcp.Tasks(mcp.TasksRequired)),
		mcp.Tool(protocol, "Panics."),
		mcp.Tool(remove, "Deletes a file once that is confirmed.", mcp.Waitpoint[confirmed]("confirm", "Delete it?")),
		mcp.Tool(multi, "Asks two things.", mcp.Waitpoint[confirmed]("first", "First?"),
			mcp.Waitpoint[confirmed]("second", "Second?")),
		mcp.Tool(elicit, "Asks for a name.", mcp.Waitpoint[hello]("user_name", "What is your name?")),
		mcp.Tool(state, "Asks to confirm.", mcp.Waitpoint[okay]("ok", "Please confirm")),
		mcp.Tool(tampered, "Asks to confirm.", mcp.Waitpoint[okay]("ok", "Please confirm")),
		mcp.Tool(rounds, "Asks twice.", mcp.Waitpoint[hello]("step1", "Step 1: What is your name?"),
			mcp.Waitpoint[paint]("step2", "Step 2: What is your favorite color?")),
		mcp.RawTool(handler.Define[json.RawMessage, json.RawMessage]("test_region"),
			"Answers from a region that proxies see.",
			json.RawMessage(
				`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}`),
			nil),
		mcp.RawTool(handler.Define[json.RawMessage, json.RawMessage]("json_schema_2020_12_tool"),
			"Tool with JSON Schema 2020-12 features",
			json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
			"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
			"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
			"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},
			"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`), nil),
	}
	return bindings, kinds
}

// The official suite finds what testdata/node/baseline.yml says it must, and nothing else. A scenario that is listed
// and passes fails the test, too.
func TestOfficialConformanceSuite(t *testing.T) {
	dir, program := needNode(t)
	bindings, kinds := conformanceKinds()
	e := start(t, bindings...)
	url := e.serve(t, e.server(t, mcp.Config{Authorize: httpapi.Open, PollInterval: 100 * time.Millisecond}, kinds...))
	suite := exec.CommandContext(e.ctx, program, filepath.Join(dir,
		"node_modules/@modelcontextprotocol/conformance/dist/index.js"), "server", "--url", url, "--suite", "all",
		"--expected-failures", filepath.Join(dir, "baseline.yml"), "--output-dir", t.TempDir())
	suite.Dir = dir
	out, err := suite.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if tasks := regexp.MustCompile(`✓ .*tasks-[a-z-]+: [1-9]\d* passed, 0 failed`).FindAll(out, -1); len(tasks) < 8 {
		// nothing was renamed away
		t.Errorf("%d scenarios of the Tasks extension passed: %s", len(tasks), out)
	}
}
