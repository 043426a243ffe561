package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/mcp"
)

// Order is what schemas of Go types can say, and what they cannot: the bounds of Tiny, and what Due looks like.
type Order struct {
	GoTiny  int8              `json:"tiny"`
	GoSmall uint16            `json:"small,omitempty"`
	GoDue   time.Time         `json:"due,omitzero"`
	GoList  []Topic           `json:"list,omitempty"`
	GoMap   map[string]int    `json:"map,omitempty"`
	GoMaybe *bool             `json:"maybe,omitempty"`
	GoDeep  struct{ A []int } `json:"deep,omitzero"`
}

var (
	order   = handler.Define[Order, string]("order")
	bounded = handler.Define[json.RawMessage, json.RawMessage]("bounded")
)

const boundedSchema = `{"type":"object","additionalProperties":false,"required":["n"],"properties":{
	"n":{"type":"integer","minimum":1,"maximum":9},"x":{"type":"number","exclusiveMinimum":0,"multipleOf":0.5},
	"s":{"type":"string","minLength":2,"maxLength":3,"pattern":"^a"},"e":{"enum":["red","blue"]},"c":{"const":7},
	"l":{"type":"array","minItems":1,"maxItems":2,"items":{"$ref":"#/$defs/t"}},"any":{"anyOf":[{"type":"string"}]}},
	"$defs":{"t":{"type":"object","properties":{"a/b":{"type":"boolean"}}}}}`

// ofGo finds what only a reader of our sources, or of the SDK's, knows.
var ofGo = regexp.MustCompile(`\bGo[A-Z]|Go (struct|value)|json: |unmarshal|interface|map\[|\bmcp\.|struct|\bu?int\d|` +
	`float64|\*|time\.|2006-01|Params\b|RawMessage|\bTopic\b|\bOrder\b|validating|<nil>|%!`)

func TestMessagesNameMembersOfTheJSON(t *testing.T) {
	e := start(t)
	s := e.server(t, mcp.Config{Authorize: authorize}, append(kinds(), mcp.Tool(order, "Orders."),
		mcp.RawTool(bounded, "Knows bounds.", json.RawMessage(boundedSchema), nil))...)
	url := e.serve(t, s)
	sessions := map[string]*sdk.ClientSession{"http": e.connect(t, url, "ada", nil), "stdio": e.beside(t, s, nil, "")}
	says := func(name, arguments, want string) {
		t.Helper()
		for over, session := range sessions {
			r, err := session.CallTool(e.ctx, &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
			must.No(t, err)
			got, is := strings.CutPrefix(text(r), "invalid_arguments: arguments: ")
			if !is || ofGo.MatchString(got) || want != "" && got != want {
				t.Errorf("%s over %s, %s:\n%s\nwant\n%s", name, over, arguments, got, want)
			}
		}
	}
	// Every tool, whatever its schema.
	tools, err := sessions["http"].ListTools(e.ctx, nil)
	must.No(t, err)
	for _, tool := range tools.Tools {
		schema, _ := tool.InputSchema.(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		says(tool.Name, `{"nobody":1}`, "")
		for name := range properties {
			for _, wrong := range []string{`{"a":[1]}`, `[{}]`} {
				says(tool.Name, `{"`+name+`":`+wrong+`}`, "")
			}
		}
	}
	for arguments, want := range map[string]string{
		`{}`:                      "/tiny: it is missing",
		`{"tiny":"x"}`:            "/tiny: it is a JSON string, want a whole number",
		`{"tiny":1.5}`:            "/tiny: it is 1.5, want a whole number",
		`{"tiny":300}`:            "/tiny: it is 300, want 127 or less",
		`{"tiny":1,"due":"soon"}`: "/due: it is no time like 2026-01-31T17:00:00Z",
		`{"tiny":1,"small":-1}`:   "/small: it is -1, want 0 or more",
		`{"tiny":1,"more":1}`:     "/more: there is no such member",
		`{"tiny":1,"list":[{"topic":"a"},{"topic":2}]}`: "/list/1/topic: it is a JSON number, want a string",
		`{"tiny":1,"map":{"k":true}}`:                   "/map/k: it is a JSON boolean, want a whole number",
		`{"tiny":1,"maybe":[]}`:                         "/maybe: it is a JSON array, want true or false",
	} {
		says("order", arguments, want)
	}
	for arguments, want := range map[string]string{
		`{"n":0}`:                   "/n: it is 0, want 1 or more",
		`{"n":10}`:                  "/n: it is 10, want 9 or less",
		`{"n":1,"x":0}`:             "/x: it is 0, want more than 0",
		`{"n":1,"x":0.7}`:           "/x: it is 0.7, want a multiple of 0.5",
		`{"n":1,"s":"a"}`:           "/s: it has 1 characters, want 2 or more",
		`{"n":1,"s":"abcd"}`:        "/s: it has 4 characters, want 3 or less",
		`{"n":1,"s":"bb"}`:          "/s: it does not match the pattern ^a",
		`{"n":1,"e":{"a":1}}`:       `/e: it is {"a":1}, want one of ["red","blue"]`,
		`{"n":1,"c":8}`:             "/c: it is 8, want 7",
		`{"n":1,"l":[]}`:            "/l: it has 0 items, want 1 or more",
		`{"n":1,"l":[{},{},{}]}`:    "/l: it has 3 items, want 2 or less",
		`{"n":1,"l":[{"a/b":"x"}]}`: "/l/0/a~1b: it is a JSON string, want true or false",
		`{"n":1,"any":5}`:           "/any: it is a JSON number, want a string",
	} {
		says("bounded", arguments, want)
	}
	// What the SDK decodes before anything of ours sees it, and the answers to questions.
	ask := func(method, params string) string {
		q, err := http.NewRequestWithContext(e.ctx, "POST", url, strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`))
		must.No(t, err)
		q.Header.Set("Authorization", "Bearer ada")
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "application/json, text/event-stream")
		answer, err := http.DefaultClient.Do(q)
		must.No(t, err)
		defer answer.Body.Close()
		var m struct{ Error *jsonrpc.Error }
		must.No(t, json.NewDecoder(answer.Body).Decode(&m))
		if m.Error == nil {
			t.Fatalf("%s %s: no error", method, params)
		}
		return m.Error.Message
	}
	for params, want := range map[string]string{
		`{"name":5}`:                     "/name: it is a JSON number, want a string",
		`{"name":"x","requestState":{}}`: "/requestState: it is a JSON object, want a string",
		`[1]`:                            "it is a JSON array, want an object",
	} {
		if got := ask("tools/call", params); got != "invalid params: "+want {
			t.Errorf("%s: %s, want %s", params, got, want)
		}
	}
	if got := ask("tools/call", `{"name":"sign","inputResponses":{"a":{"action":7}}}`); ofGo.MatchString(got) ||
		!strings.Contains(got, "/inputResponses") {
		t.Error(got)
	}
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		if got := ask(method, `{"taskId":7}`); got != "invalid params: /taskId: it is a JSON number, want a string" {
			t.Errorf("%s: %s", method, got)
		}
	}
	for method, member := range map[string]string{"resources/read": "uri", "prompts/get": "name",
		"initialize": "protocolVersion", "tools/list": "cursor"} {
		got := ask(method, `{"`+member+`":{"a":1}}`)
		if ofGo.MatchString(got) || !strings.Contains(got, "/"+member+": ") {
			t.Errorf("%s: %s", method, got)
		}
	}
	ours, theirs := sdk.NewInMemoryTransports()
	var serving conc.WaitGroup
	serving.Go(func() { _ = s.Run(e.ctx, ours) })
	wire, err := theirs.Connect(context.WithoutCancel(e.ctx))
	must.No(t, err)
	id, err := jsonrpc.MakeID("one")
	must.No(t, err)
	must.No(t, wire.Write(e.ctx, &jsonrpc.Request{ID: id, Method: "tools/call", Params: json.RawMessage(`{"name":5}`)}))
	answer, err := wire.Read(e.ctx)
	must.No(t, err)
	if r, ok := answer.(*jsonrpc.Response); !ok || r.Error == nil ||
		r.Error.Error() != "invalid params: /name: it is a JSON number, want a string" {
		t.Errorf("over stdio: %+v", answer)
	}
	must.No(t, wire.Close())
	serving.Wait()
}
