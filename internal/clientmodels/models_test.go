package clientmodels

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Inner is in a member.
type Inner struct {
	N    int            `json:"n"`
	Rest map[string]any `json:"rest,omitempty"`
}

type body struct {
	State flowfabric.PublicState `json:"state" jsonschema:"ends with a \"word\""`
	Why   suspend.Reason         `json:"why,omitempty"`
	List  []Inner                `json:"list,omitempty" jsonschema:"it */ has \"\"\" three \\ marks"`
	From  *float64               `json:"from,omitempty"`
	On    bool                   `json:"on"`
	Any   any                    `json:"any,omitempty"`
}

func collect(t *testing.T, name string, of reflect.Type) (Models, error) {
	t.Helper()
	s, err := jsonschema.ForType(of, &jsonschema.ForOptions{})
	must.No(t, err)
	for _, p := range s.Properties { // as the document has them: null is never sent
		if p.Types != nil {
			p.Type, p.Types = p.Types[len(p.Types)-1], nil
		}
	}
	return Collect([]Root{{Name: name, Doc: "What a test takes.", Type: of, Schema: s}},
		Constants{Root: "../..", Open: map[reflect.Type]bool{reflect.TypeFor[suspend.Reason](): true}})
}

func TestModels(t *testing.T) {
	m, err := collect(t, "body", reflect.TypeFor[body]())
	must.No(t, err)
	typescript, python := string(m.TypeScript()), string(m.Python(map[string][]string{"Inner": {"n"}}))
	for _, want := range []string{
		"/** PublicState is the one word that producers and dashboards show. */\nexport type PublicState =\n" +
			"  | \"waiting\"\n",
		"  | (string & {})\n",
		"export interface Inner {\n  n: number\n  rest?: Record<string, unknown>\n}\n\n/** What a test takes. */\n" +
			"export interface Body {\n",
		"  /** ends with a \"word\" */\n  state: PublicState\n  why?: Reason\n",
		"  /** it *\\/ has \"\"\" three \\ marks */\n  list?: Inner[]\n  from?: number\n" +
			"  on: boolean\n  any?: unknown\n}\n",
	} {
		if !strings.Contains(typescript, want) {
			t.Errorf("there is no %q in\n%s", want, typescript)
		}
	}
	for _, want := range []string{
		"PublicState: TypeAlias = Literal[\n    \"waiting\",\n",
		"] | str\n",
		"class InnerOptions(TypedDict):\n    \"\"\"Members of Inner besides n.\"\"\"\n\n" +
			"    rest: NotRequired[dict[str, Any]]\n\n\nclass Inner(InnerOptions):\n    n: int\n",
		"Body = TypedDict(\n    \"Body\",\n    {\n        # ends with a \"word\"\n        \"state\": PublicState,\n",
		"        \"from\": NotRequired[float],\n", "    },\n)\n\"\"\"What a test takes.\"\"\"\n",
	} {
		if !strings.Contains(python, want) {
			t.Errorf("there is no %q in\n%s", want, python)
		}
	}
}

// Quotes and backslashes of a text do not end the docstring that they are in.
func TestDocstrings(t *testing.T) {
	for doc, want := range map[string]string{
		"":                 "",
		"plain":            "\"\"\"plain\"\"\"\n",
		`ends with "this"`: "\"\"\"ends with \"this\"\n\"\"\"\n",
		`a """ b \n`:       "\"\"\"a \\\"\\\"\\\" b \\\\n\"\"\"\n",
		strings.Repeat("word ", 30) + "x": "\"\"\"" + strings.TrimSpace(strings.Repeat("word ", 23)) + "\n" +
			strings.Repeat("word ", 7) + "x\n\"\"\"\n",
	} {
		if got := docstring("", doc); got != want {
			t.Errorf("%q: %q, want %q", doc, got, want)
		}
	}
}

// Two types of one name are told apart by their packages.
func TestNamesAreUnique(t *testing.T) {
	c := collector{names: map[string]reflect.Type{}}
	first := map[string]reflect.Type{"Body": reflect.TypeFor[body](), "Flow": reflect.TypeFor[flow.Flow]()}
	for want, of := range first {
		for range 2 {
			if got, err := c.named(of); err != nil || got != want {
				t.Errorf("%s is called %s (%v), want %s", of, got, err, want)
			}
		}
	}
	type body struct{}
	if got, err := c.named(reflect.TypeFor[body]()); err != nil || got != "ClientmodelsBody" {
		t.Errorf("the second is called %s (%v)", got, err)
	}
	type nameless = struct{ A int }
	for _, of := range []reflect.Type{reflect.TypeFor[nameless](), reflect.TypeFor[map[string]nameless]()} {
		if _, err := collect(t, "x", of); err == nil {
			t.Errorf("a model of %s was made, which has no name", of)
		}
	}
}
