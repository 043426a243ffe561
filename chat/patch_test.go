package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

func TestPatchBetween(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"the first of all", ``, `{"a":1}`, ``}, // shorter as it is
		{"nothing", `{"a":[1,{"b":null}]}`, `{"a":[1,{"b":null}]}`, ``},
		{"a member more", `{"a":"0123456789012345678901234567890123456789012345678901234567890123456789"}`,
			`{"a":"0123456789012345678901234567890123456789012345678901234567890123456789","x":null,"y":2}`,
			`[{"op":"add","path":"/x","value":null},{"op":"add","path":"/y","value":2}]`},
		{"a member less", `{"a":"0123456789012345678901234567890123456789","b":2}`,
			`{"a":"0123456789012345678901234567890123456789"}`, `[{"op":"remove","path":"/b"}]`},
		{"below", `{"a":{"b~/c":1,"d":"0123456789012345678901234567890123456789"}}`,
			`{"a":{"b~/c":2,"d":"0123456789012345678901234567890123456789"}}`,
			`[{"op":"replace","path":"/a/b~0~1c","value":2}]`},
		{"digits", `{"a":"0123456789012345678901234567890123456789","n":9007199254740993}`,
			`{"a":"0123456789012345678901234567890123456789","n":9007199254740994}`,
			`[{"op":"replace","path":"/n","value":9007199254740994}]`},
		{"the end of a list", `{"l":["aaaaaaaaaaaaaaaaaaaa","bbbbbbbbbbbbbbbbbbbb","cccccccccccccccccccc"]}`,
			`{"l":["aaaaaaaaaaaaaaaaaaaa","bbbbbbbbbbbbbbbbbbbb","cccccccccccccccccccc",4]}`,
			`[{"op":"add","path":"/l/3","value":4}]`},
		{"the middle of a list", `{"l":["aaaaaaaaaaaaaaaaaaaa",2,3,"ccccccccccccccccccccccccccccccccccccccccccccc"]}`,
			`{"l":["aaaaaaaaaaaaaaaaaaaa","ccccccccccccccccccccccccccccccccccccccccccccc"]}`,
			`[{"op":"remove","path":"/l/1"},{"op":"remove","path":"/l/1"}]`},
		{"another type", `{"a":{"b":1},"c":"0123456789012345678901234567890123456789"}`,
			`{"a":[1],"c":"0123456789012345678901234567890123456789"}`, `[{"op":"replace","path":"/a","value":[1]}]`},
		{"as long as the whole", `{"a":1}`, `{"a":2}`, ``},
		{"what libraries refuse", `{"__proto__":1,"c":"0123456789012345678901234567890123456789"}`,
			`{"__proto__":2,"c":"0123456789012345678901234567890123456789"}`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := patchBetween([]byte(c.before), []byte(c.after))
			must.No(t, err)
			text := ""
			if got != nil {
				b, err := json.Marshal(got)
				must.No(t, err)
				text = string(b)
			}
			if text != c.want {
				t.Fatalf("got %s, want %s", text, c.want)
			}
		})
	}
	if _, err := patchBetween([]byte(`{`), []byte(`{}`)); err == nil {
		t.Fatal("half a document is one")
	}
}

// FuzzPatchBetween: the patch makes the new document of the old one.
func FuzzPatchBetween(f *testing.F) {
	for _, seed := range [][2]string{
		{`{}`, `{"a":1}`}, {`{"a":[1,2,3,4,5,6,7,8,9]}`, `{"a":[1,5,6,7,8,9,10]}`},
		{`{"a":{"b":{"c":[{},[],null,""]}}}`, `{"a":{"b":{"c":[[],{},"",null]},"~":{"/":1}}}`},
		{`{"":0,"/":1,"~1":2,"a b":[[1,2],[3]]}`, `{"":{"":1},"~1":3,"a b":[[3],[1,2]],"-":[]}`},
		{`[1,2,3]`, `[2,3]`}, {`1`, `"1"`}, {`{"n":1}`, `{"n":1.0}`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		old, err := documentOf([]byte(before))
		if err != nil || !json.Valid([]byte(before)) {
			return
		}
		now, err := documentOf([]byte(after))
		if err != nil || !json.Valid([]byte(after)) {
			return
		}
		var d difference
		d.between("", old, now)
		text, err := json.Marshal(d.out)
		must.No(t, err)
		var wire []operation
		in := json.NewDecoder(bytes.NewReader(text))
		in.UseNumber()
		must.No(t, in.Decode(&wire))
		for _, o := range wire {
			if old, err = o.applied(old); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		if !reflect.DeepEqual(old, now) {
			t.Fatalf("%s makes %v of %s, want %s", text, old, before, after)
		}
	})
}

// applied does what RFC 6902 says.
func (o operation) applied(document any) (any, error) {
	if o.Path == "" {
		return o.Value, nil
	}
	tokens := strings.Split(o.Path, "/")[1:]
	for i, token := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return o.below(document, tokens)
}

func (o operation) below(v any, tokens []string) (any, error) {
	token, last := tokens[0], len(tokens) == 1
	switch v := v.(type) {
	case map[string]any:
		child, known := v[token]
		switch {
		case !last || o.Op != "add":
			if !known {
				return nil, fmt.Errorf("%s %s: there is no %q", o.Op, o.Path, token)
			}
		case known:
			return nil, fmt.Errorf("%s %s: there is a %q", o.Op, o.Path, token)
		}
		switch {
		case !last:
			changed, err := o.below(child, tokens[1:])
			v[token] = changed
			return v, err
		case o.Op == "remove":
			delete(v, token)
		default:
			v[token] = o.Value
		}
		return v, nil
	case []any:
		i, err := strconv.Atoi(token)
		if err != nil || i < 0 || i > len(v) || i == len(v) && (!last || o.Op != "add") {
			return nil, fmt.Errorf("%s %s: there is no %s of %d", o.Op, o.Path, token, len(v))
		}
		switch {
		case !last:
			v[i], err = o.below(v[i], tokens[1:])
		case o.Op == "add":
			v = slices.Insert(v, i, o.Value)
		case o.Op == "remove":
			v = slices.Delete(v, i, i+1)
		default:
			v[i] = o.Value
		}
		return v, err
	}
	return nil, fmt.Errorf("%s %s: %v is no place", o.Op, o.Path, v)
}
