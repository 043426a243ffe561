package flowfabric_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	ff "github.com/flowfabric/flowfabric-go"
)

const sampleUUID = "01970000-0000-7000-8000-00000000abcd"

func TestParseExecutionID(t *testing.T) {
	for text, partition := range map[string]uint16{
		"{fp:0}:" + sampleUUID: 0, "{fp:3}:" + sampleUUID: 3, "{fp:65535}:" + sampleUUID: 65535,
		"{fp:1}:ffffffff-ffff-ffff-ffff-ffffffffffff": 1,
	} {
		id, err := ff.ParseExecutionID(text)
		if err != nil || id.Partition() != partition || id.String() != text {
			t.Errorf("%q: %v, %v", text, id, err)
		}
	}
	for _, text := range []string{
		"{fp:0}:00000000-0000-0000-0000-000000000000", "{fp:1}:00000000-0000-0000-0000-000000000000",
		"", " ", sampleUUID, "fp:3:" + sampleUUID, "{fp:3}" + sampleUUID, "{fp:3:" + sampleUUID, "{fp:}:" + sampleUUID,
		"{fp:-1}:" + sampleUUID, "{fp:+1}:" + sampleUUID, "{fp:03}:" + sampleUUID, "{fp:65536}:" + sampleUUID,
		"{fp:0x1}:" + sampleUUID, "{fp: 1}:" + sampleUUID, "{fp:1_0}:" + sampleUUID, "{bp:3}:" + sampleUUID,
		" {fp:3}:" + sampleUUID, "{fp:3}:" + sampleUUID + " ", "{fp:3}:" + strings.ToUpper(sampleUUID),
		"{fp:3}:" + strings.ReplaceAll(sampleUUID, "-", ""), "{fp:3}:urn:uuid:" + sampleUUID, "{fp:3}:{" + sampleUUID + "}",
		"{fp:3}:" + sampleUUID[:35], "{fp:3}:" + sampleUUID[:35] + "g", "{fp:3}:", "{fp:3}:{fp:4}:" + sampleUUID,
		"{fp:3}:\x00" + sampleUUID[1:], strings.Repeat("{fp:3}:", 1000),
	} {
		id, err := ff.ParseExecutionID(text)
		if !errors.Is(err, ff.ErrInvalidInput) || !id.IsZero() {
			t.Errorf("%.60q: %v, %v", text, id, err)
		}
		if err != nil && len(err.Error()) > 400 {
			t.Errorf("the error repeats %d bytes of the input", len(err.Error()))
		}
	}
}

func FuzzParseExecutionID(f *testing.F) {
	f.Add("{fp:3}:" + sampleUUID)
	f.Add("{fp:65536}:" + sampleUUID)
	f.Add("{fp:03}:" + strings.ToUpper(sampleUUID))
	f.Add("{fp:3}:")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ff.ParseExecutionID(text)
		if err != nil {
			if !errors.Is(err, ff.ErrInvalidInput) || !id.IsZero() {
				t.Fatalf("%q: %v, %v", text, id, err)
			}
			return
		}
		if id != ff.MakeExecutionID(id.Partition(), id.UUID()) {
			t.Fatalf("%q: parts do not make the id again", text)
		}
		// Partition 0 with the nil UUID is the zero value, whose text is empty.
		if id.String() != text && !id.IsZero() {
			t.Fatalf("%q prints as %q", text, id)
		}
	})
}

func TestExecutionIDText(t *testing.T) {
	type document struct {
		ID  ff.ExecutionID
		Map map[ff.ExecutionID]int
	}
	in := document{ID: ff.NewExecutionID(9), Map: map[ff.ExecutionID]int{ff.NewExecutionID(1): 1}}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out document
	if err := json.Unmarshal(text, &out); err != nil || out.ID != in.ID || len(out.Map) != 1 {
		t.Errorf("%s: %+v, %v", text, out, err)
	}
	for id := range in.Map {
		if out.Map[id] != 1 {
			t.Errorf("%s is not a map key any more", id)
		}
	}
	if err := json.Unmarshal([]byte(`{"ID":""}`), &out); err != nil || !out.ID.IsZero() {
		t.Errorf("empty text: %v, %v", out.ID, err)
	}
	before := ff.NewExecutionID(2)
	after := before
	if err := after.UnmarshalText([]byte("nonsense")); !errors.Is(err, ff.ErrInvalidInput) || after != before {
		t.Errorf("a refused text changed the id: %v, %v", after, err)
	}
	if zero := (ff.ExecutionID{}); zero.String() != "" || !zero.IsZero() {
		t.Errorf("the zero id prints %q", zero)
	}
}

// Ids of one process are minted in order: ties between executions of one millisecond break by it.
func TestNewExecutionIDOrder(t *testing.T) {
	last := ff.NewExecutionID(5)
	for range 20000 {
		id := ff.NewExecutionID(5)
		if id.UUID().Version() != 7 || id.Partition() != 5 {
			t.Fatalf("%s is not a UUIDv7 of partition 5", id)
		}
		if id.String() <= last.String() {
			t.Fatalf("%s was minted after %s", id, last)
		}
		last = id
	}
}

func TestFenceString(t *testing.T) {
	id, err := ff.ParseExecutionID("{fp:3}:" + sampleUUID)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := (ff.Fence{Execution: id, Epoch: 12, Attempt: 2}).String(), id.String()+"#2@12"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
