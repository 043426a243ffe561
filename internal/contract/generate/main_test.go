package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/contract"
)

// functions are those of a test: the parts of calls and answers that there are, each once.
func functions(t *testing.T) []contract.Function {
	t.Helper()
	parse := func(text string) contract.Sequence {
		s, err := contract.Parse(text, map[string]string{"protocol": "protocol:n", "who": "id:uuid session:name(64)",
			"fence":    "id:id session:name(64) claim:n epoch:n attempt:n",
			"findings": "findings:rows {kind:text repaired:flag}",
			"pair":     "tags:rows(0..64) {key:tag value:bytes(256)}"})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	return []contract.Function{
		{Name: "ff_put_thing", Purpose: "makes a thing. '' is none.", File: "flow/ff_put_thing.lua",
			Args: parse("protocol who expected:n? limit:n(1..)? wait:ms(0..5)? due:instant? at:instant on:flag pair " +
				"names:rows(1..9) {name:text} parts:rows {part:id n:n} [rest:text]"),
			Replies: []contract.Reply{{Code: "OK", Slots: parse(`"done" revision:n findings`)},
				{Code: "ALREADY_SATISFIED", Slots: parse("revision:n")}}},
		{Name: "ff_take_thing", Purpose: "takes a thing.", File: "flow/ff_take_thing.lua", Decoded: contract.DecodedAll,
			Args: parse("protocol fence name:name(64) label:label? expected:n? on:flag how:a|b? " +
				"why:enum(suspension.codes) !payload_too_large payload:bytes(1..9) !invalid_input due:instant? " +
				"parts:rows(1..9) {part:uuid n:int} key:line(4) digest:hex(64) names:rows(2) {name:line(3)}"),
			Replies: []contract.Reply{{Code: "OK"}}},
		{Name: "ff_read_thing", Purpose: "reads a thing.", File: "read/ff_read_thing.lua", Flags: []string{"no-writes"},
			Args: parse("protocol thing_id:id {* who pair}"),
			Replies: []contract.Reply{{Code: "OK", Slots: parse("now:instant took:ms? at:instant? count:n? of:uuid? " +
				"parts:rows {part:uuid n:rows {m:int}} findings [value:text]")}}},
	}
}

func TestGenerate(t *testing.T) {
	files, err := generate(functions(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"flow", "read", "parts", "decode"} {
		golden := filepath.Join("testdata", name+".golden")
		text := files["internal/wire/"+name+"_generated.go"]
		if name == "decode" {
			text = files["lua/decode/flow.lua"]
		}
		if os.Getenv("FLOWFABRIC_GOLDEN") == "write" {
			if err := os.WriteFile(golden, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(golden); err != nil || !bytes.Equal(text, want) {
			t.Errorf("%s is\n%s\n%v", golden, text, err)
		}
	}
}

// What the grammar can say and Go cannot read plainly is refused.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{"a:n [b:n] c:n": "only the end", "{* a:n} b:n": "only the end",
		"a:n or b:n": "no form", "a:n a:n": "two fields A", "x|y": "no name"} {
		s, err := contract.Parse(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := contract.Function{Name: "ff_x", File: "read/ff_x.lua", Replies: []contract.Reply{{Code: "OK", Slots: s}}}
		if _, err := generate([]contract.Function{f}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"[a:n]", "{* a:n}", "list:rows {a:n more:rows {b:n}}"} {
		s, err := contract.Parse(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := contract.Function{Name: "ff_x", File: "read/ff_x.lua", Args: s, Decoded: contract.DecodedAll}
		if _, err := decoders([]contract.Function{f}); err == nil || !strings.Contains(err.Error(), "read by hand") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir, false); err != nil {
		t.Fatal(err)
	}
	if err := write(dir, true); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "internal/wire/read_generated.go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := write(dir, true); err == nil || !strings.Contains(err.Error(), "go generate ./internal/wire") {
		t.Errorf("what was changed by hand passes: %v", err)
	}
	if err := write("../../..", true); err != nil {
		t.Error(err)
	}
}
