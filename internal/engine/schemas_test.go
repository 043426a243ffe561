package engine

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/kindschema"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// schemed is an engine whose schemas a test changes and ages.
type schemed struct {
	*testing.T
	e *Engine
}

func (s schemed) put(namespace, kind, schema string) {
	s.Helper()
	must.No(s, s.e.PutSchemas(s.Context(), namespace, map[string]kindschema.Pair{kind: {Input: []byte(schema)}}))
}

// age makes what is known of a kind older, and returns when it was read then.
func (s schemed) age(kind string, by time.Duration) time.Time {
	s.Helper()
	s.e.schemas.mu.Lock()
	defer s.e.schemas.mu.Unlock()
	at := schemaPlace{"default", kind}
	k, known := s.e.schemas.known[at]
	if !known {
		s.Fatalf("nothing is known of kind %s", kind)
	}
	k.read = k.read.Add(-by)
	s.e.schemas.known[at] = k
	return k.read
}

// submit creates an execution in the namespace default.
func (s schemed) submit(kind, input string) error {
	s.Helper()
	x := NewExecution{ID: mint.ID(1), Start: flowfabric.Start{Namespace: "default", Lane: "default", Kind: kind},
		Payload: []byte(input)}
	made, err := s.e.CreateExecutions(s.Context(), 1, []NewExecution{x})
	must.No(s, err)
	return made[0].Err
}

func (s schemed) refused(kind, input string) {
	s.Helper()
	if err := s.submit(kind, input); !errors.Is(err, denied.InputMisfit) {
		s.Errorf("%s %s: %v", kind, input, err)
	}
}

func (s schemed) taken(kind, input string) {
	s.Helper()
	if err := s.submit(kind, input); err != nil {
		s.Errorf("%s %s: %v", kind, input, err)
	}
}

const (
	aText   = `{"type":"string"}`
	aNumber = `{"type":"number"}`
)

// An input of the type that the schema was made of is not held against it; of another type it is.
func TestAnInputOfTheTypeOfTheSchemaFits(t *testing.T) {
	e, err := Open(t.Context(), Config{URL: testserver.Embedded(t), Partitions: 2})
	must.No(t, err)
	defer e.Close()
	s := schemed{t, e}
	s.put("default", "k", aText)
	for own, fits := range map[string]bool{aText: true, aNumber: false, "": false} {
		err := e.fits(t.Context(), "default", "k", []byte(`7`), []byte(own))
		if fits != (err == nil) {
			t.Errorf("%q: %v", own, err)
		}
	}
}

// A submit reads nothing once the schema of its kind is known. An old schema refuses nothing that fits by now, and it
// is read again in the background.
func TestSchemasAreRemembered(t *testing.T) {
	s := schemed{t, open(t, Config{URL: testserver.Redis(t), Partitions: 4})}
	s.put("default", "k", aText)
	s.refused("k", `7`)
	read := s.age("k", schemaBelieved-time.Second)
	s.taken("k", `"x"`)
	if now := s.age("k", 0); now != read {
		t.Error("a submit of what fits reads the schema again")
	}
	s.put("default", "k", aNumber)
	s.taken("k", `7`)
	s.refused("k", `"x"`)
	s.put("default", "k", "")
	s.age("k", schemaRefuses)
	s.taken("k", `"x"`)

	s.put("default", "k", aNumber)
	read = s.age("k", schemaBelieved)
	s.taken("k", `"x"`) // by what was known
	testwait.Until(t, "the schema to be read in the background", func() bool { return s.age("k", 0).After(read) })
	s.refused("k", `"x"`)
}

// The schema of a namespace comes before that of all, and both are listed so.
func TestSchemasOfAllNamespaces(t *testing.T) {
	s := schemed{t, open(t, Config{URL: testserver.Redis(t), Partitions: 4})}
	s.put("*", "k", aText)
	s.put("*", "own", aText)
	s.put("default", "own", aNumber)
	s.refused("k", `7`)
	s.taken("own", `7`)
	s.refused("own", `"x"`)
	s.taken("unknown", `"x"`)
	all, err := s.e.Schemas(t.Context(), "default")
	must.No(t, err)
	if len(all) != 2 || string(all["k"].Input) != aText || string(all["own"].Input) != aNumber {
		t.Errorf("%v", all)
	}
}

// caesar is a cipher that hides nothing.
type caesar struct{}

func (caesar) Seal(plain []byte) ([]byte, error)  { return append([]byte("c"), plain...), nil }
func (caesar) Open(sealed []byte) ([]byte, error) { return sealed[1:], nil }

// An input is checked before it is encrypted, also one that was encrypted by the caller.
func TestEncryptedInputsAreChecked(t *testing.T) {
	box := sealed.New(caesar{})
	s := schemed{t, open(t, Config{URL: testserver.Redis(t), Partitions: 4, Box: box})}
	s.put("default", "k", aText)
	text, err := box.Seal(json.RawMessage(`"x"`))
	must.No(t, err)
	number, err := box.Seal(json.RawMessage(`7`))
	must.No(t, err)
	s.taken("k", `"x"`)
	s.taken("k", string(text))
	s.refused("k", `7`)
	s.refused("k", string(number))
	plain := schemed{t, open(t, Config{URL: testserver.Redis(t), Partitions: 4})}
	plain.put("default", "k", aText)
	plain.taken("k", string(number)) // it cannot be read there
}

// Flows, children and schedules pass the same check, and what is wrong is told with the name of the node.
func TestInputsOfFlowsAndSchedulesAreChecked(t *testing.T) {
	s := schemed{t, open(t, Config{URL: testserver.Redis(t), Partitions: 4})}
	s.put("default", "k", aText)
	x := NewExecution{ID: mint.ID(1), Start: flowfabric.Start{Namespace: "default", Lane: "default", Kind: "k"},
		Payload: []byte(`7`)}
	member := FlowMember{NewExecution: x, Node: "first"}
	id := flowfabric.FlowID(mint.ID(1))
	_, flow := s.e.CreateFlow(t.Context(), NewFlow{ID: id, Namespace: "default", Kind: "f",
		Members: []FlowMember{member}, Mode: SealClosed})
	_, staged := s.e.StageFlow(t.Context(), id, nil, []FlowMember{member})
	_, children := s.e.MakeChildren(t.Context(), flowfabric.Fence{Execution: mint.ID(1)},
		ChildWait{Name: "w", Mode: WaitAll, Children: []FlowMember{member}})
	_, scheduled := s.e.PutSchedule(t.Context(), SchedulePut{Name: "s", Definition: []byte("d"),
		Submits: []NewExecution{x}})
	for what, err := range map[string]error{"flow": flow, "staged": staged, "children": children,
		"scheduled": scheduled} {
		if !errors.Is(err, denied.InputMisfit) || what != "scheduled" && !strings.Contains(err.Error(), `"first"`) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
