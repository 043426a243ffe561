package wire_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/internal/wire"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

func TestArgumentsAreAlwaysValid(t *testing.T) {
	for _, tt := range []struct{ written, recorded, sent string }{
		{``, `{}`, `{}`},
		{"  \n", `{}`, `{}`},
		{`{"a":1}`, `{"a":1}`, `{"a":1}`},
		{` {"a":1} `, ` {"a":1} `, `{"a":1}`},
		{`null`, `null`, `{}`},
		{`[1]`, `[1]`, `{"invalid_arguments":[1]}`},
		{`"x"`, `"x"`, `{"invalid_arguments":"x"}`},
		{`{"a":`, `"{\"a\":"`, `{"invalid_arguments":"{\"a\":"}`},
	} {
		recorded := wire.Arguments(tt.written)
		if string(recorded) != tt.recorded {
			t.Errorf("%q is recorded as %s, want %s", tt.written, recorded, tt.recorded)
		}
		if sent := wire.Object(recorded); string(sent) != tt.sent {
			t.Errorf("%q is sent as %s, want %s", tt.written, sent, tt.sent)
		}
	}
	if sent := wire.Object(json.RawMessage(`{"a":`)); string(sent) != `{"invalid_arguments":"{\"a\":"}` {
		t.Errorf("arguments that are no JSON are sent as %s", sent)
	}
}

func TestTurnsRepairTheOrder(t *testing.T) {
	turns, err := wire.Turns([]agent.Message{
		{Role: agent.User, Parts: agent.Text("go")},
		{Role: agent.Assistant}, // says nothing
		{Role: agent.User, Parts: agent.Text(" ")},
		{Role: agent.Assistant, Calls: []agent.ToolCall{{ID: "a", Name: "one"}, {ID: "a", Name: "two"},
			{ID: "", Name: "bad name"}, {ID: "d", Name: ""}}},
		{Role: agent.User, Parts: agent.Text("hurry")},
		{Role: agent.ToolRole, Call: "", Parts: agent.Text("3")},
		{Role: agent.ToolRole, Call: "a", Parts: agent.Text("1")},
		{Role: agent.ToolRole, Call: "a", Parts: agent.Text("2"), Failed: true},
		{Role: agent.ToolRole, Call: "a", Tool: "one", Parts: agent.Text("twice")},
	}, func(id string) bool { return wire.Words(id, 40) })
	must.No(t, err)
	if len(turns) != 2 || turns[0].Answer != nil || !reflect.DeepEqual(turns[0].Said,
		[][]agent.Part{agent.Text("go")}) {
		t.Fatalf("turns are %+v", turns)
	}
	var calls []string
	for _, c := range turns[1].Answer.Calls {
		calls = append(calls, c.ID+" "+c.Name)
	}
	if want := []string{"a one", "call1_1 two", "call1_2 bad_name", "d unknown"}; !reflect.DeepEqual(calls, want) {
		t.Errorf("calls are %q, want %q", calls, want)
	}
	var results []string
	for _, r := range turns[1].Results {
		results = append(results, r.Call+" "+r.Text())
	}
	if want := []string{"a 1", "call1_1 2", "call1_2 3", "d The tool was not run."}; !reflect.DeepEqual(results, want) {
		t.Errorf("results are %q, want %q", results, want)
	}
	if !turns[1].Results[3].Failed {
		t.Error("a call without a result has not failed")
	}
	if want := [][]agent.Part{agent.Text("hurry"),
		agent.Text("Result of the tool one: twice")}; !reflect.DeepEqual(turns[1].Said, want) {
		t.Errorf("the user said %v, want %v", turns[1].Said, want)
	}
}

func TestTurnsRefuseWhatNoServiceTakes(t *testing.T) {
	valid := func(string) bool { return true }
	for name, messages := range map[string][]agent.Message{
		"nothing":         nil,
		"blank":           {{Role: agent.User, Parts: agent.Text("\n")}},
		"an unknown role": {{Role: "system", Parts: agent.Text("x")}},
		"no next question": {{Role: agent.User, Parts: agent.Text("x")},
			{Role: agent.Assistant, Parts: agent.Text("y")}, {Role: agent.User}},
	} {
		if turns, err := wire.Turns(messages, valid); err == nil {
			t.Errorf("%s makes the turns %+v, want an error", name, turns)
		}
	}
}

func TestNoErrorShowsAKey(t *testing.T) {
	var secrets wire.Secrets
	secrets.Learn(http.Header{"Authorization": {"Bearer sk-secret-1"}, "X-Api-Key": {"sk-secret-2", "short"}})
	err := secrets.Broken(&url.Error{Op: "Post", URL: "http://host/?key=sk-other",
		Err: errors.New("the proxy refuses sk-secret-1\nand sk-secret-2, in short")})
	if want := "the proxy refuses *** and ***, in short"; err.Error() != want {
		t.Errorf("the error is %q, want %q", err, want)
	}
}

func TestExcerptIsOneShortLine(t *testing.T) {
	if got := wire.Excerpt("a\n b\xff" + strings.Repeat("é", 2000)); len(got) > 1100 || strings.Contains(got, "\n") ||
		!strings.HasPrefix(got, "a b\uFFFDé") {
		t.Errorf("the excerpt is %q", got)
	}
}
