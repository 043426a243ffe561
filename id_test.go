package flowfabric_test

import (
	"encoding/json"
	"errors"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	ff "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

const sampleUUID = "01970000-0000-7000-8000-00000000abcd"

func TestParseExecutionID(t *testing.T) {
	for text, partition := range map[string]uint16{
		"0-" + sampleUUID: 0, "3-" + sampleUUID: 3, "65535-" + sampleUUID: 65535,
		"1-ffffffff-ffff-ffff-ffff-ffffffffffff": 1,
	} {
		id, err := ff.ParseExecutionID(text)
		if err != nil || id.Partition() != partition || id.String() != text {
			t.Errorf("%q: %v, %v", text, id, err)
		}
	}
	for _, text := range []string{
		"0-00000000-0000-0000-0000-000000000000", "1-00000000-0000-0000-0000-000000000000",
		"", " ", "-", sampleUUID, "3" + sampleUUID, "3:" + sampleUUID, "-" + sampleUUID, "3--" + sampleUUID,
		"{fp:3}:" + sampleUUID, "-1-" + sampleUUID, "+1-" + sampleUUID, "03-" + sampleUUID, "65536-" + sampleUUID,
		"0x1-" + sampleUUID, " 1-" + sampleUUID, "1_0-" + sampleUUID, "3-" + sampleUUID + " ",
		"3-" + strings.ToUpper(sampleUUID), "3-" + strings.ReplaceAll(sampleUUID, "-", ""), "3-urn:uuid:" + sampleUUID,
		"3-{" + sampleUUID + "}", "3-" + sampleUUID[:35], "3-" + sampleUUID[:35] + "g", "3-", "3-4-" + sampleUUID,
		"3-\x00" + sampleUUID[1:], strings.Repeat("3-", 1000),
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
	f.Add("3-" + sampleUUID)
	f.Add("65536-" + sampleUUID)
	f.Add("03-" + strings.ToUpper(sampleUUID))
	f.Add("3-")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ff.ParseExecutionID(text)
		if err != nil {
			if !errors.Is(err, ff.ErrInvalidInput) || !id.IsZero() {
				t.Fatalf("%q: %v, %v", text, id, err)
			}
			return
		}
		if id != mint.Join(id.Partition(), ids.UUID(id)) {
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
	in := document{ID: mint.ID(9), Map: map[ff.ExecutionID]int{mint.ID(1): 1}}
	text, err := json.Marshal(in)
	must.No(t, err)
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
	before := mint.ID(2)
	after := before
	if err := after.UnmarshalText([]byte("nonsense")); !errors.Is(err, ff.ErrInvalidInput) || after != before {
		t.Errorf("a refused text changed the id: %v, %v", after, err)
	}
	if zero := (ff.ExecutionID{}); zero.String() != "" || !zero.IsZero() {
		t.Errorf("the zero id prints %q", zero)
	}
}

// Ids of one process are minted in order: ties between executions of one millisecond break by it.
func TestExecutionIDOrder(t *testing.T) {
	last := mint.ID(5)
	for range 20000 {
		id := mint.ID(5)
		if ids.UUID(id).Version() != 7 || id.Partition() != 5 {
			t.Fatalf("%s is not a UUIDv7 of partition 5", id)
		}
		if id.String() <= last.String() {
			t.Fatalf("%s was minted after %s", id, last)
		}
		last = id
	}
}

func TestFenceString(t *testing.T) {
	id, err := ff.ParseExecutionID("3-" + sampleUUID)
	must.No(t, err)
	if got, want := (ff.Fence{Execution: id, Epoch: 12, Attempt: 2}).String(), id.String()+"#2@12"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// An id is typed into a shell, put into a URL and a file name, and marked with a double click: nothing in it needs
// quoting there.
func TestIDsNeedNoQuoting(t *testing.T) {
	for _, text := range []string{mint.ID(65535).String(), ff.FlowID(mint.ID(0)).String()} {
		if url.PathEscape(text) != text || url.QueryEscape(text) != text {
			t.Errorf("a URL needs %q for %q", url.PathEscape(text), text)
		}
		if !regexp.MustCompile(`^[0-9a-f-]+$`).MatchString(text) || text[0] == '-' {
			t.Errorf("a shell needs quotes for %q", text)
		}
		said, err := exec.Command("sh", "-c", "printf %s "+text).Output()
		if err != nil || string(said) != text {
			t.Errorf("a shell makes %q of %q: %v", said, text, err)
		}
	}
	if _, err := ff.ParseFlowID("nonsense"); err == nil || !strings.Contains(err.Error(), "flow id") {
		t.Errorf("%v", err)
	}
}
