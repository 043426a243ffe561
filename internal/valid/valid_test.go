package valid_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	ff "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

func TestValidateName(t *testing.T) {
	for _, name := range []string{"a", "default", "Write article #7", "~!@$%^&*()[]<>|\\/?;:'\"",
		strings.Repeat("x", 64), " "} {
		if err := valid.Name("lane", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", strings.Repeat("x", 65), "a{b", "a}b", "a\x00", "a\n", "tab\t", "\x7f", "ü",
		"a\u00a0b", "\xff", strings.Repeat("{", 5000)} {
		err := valid.Name("lane", name)
		if !errors.Is(err, ff.ErrInvalidInput) || !strings.Contains(err.Error(), "lane") || len(err.Error()) > 600 {
			t.Errorf("%.20q: %v", name, err)
		}
	}
}

func TestValidateCategory(t *testing.T) {
	for _, c := range []string{"handler_error", "io.timeout", "http:503", "A-1", strings.Repeat("c", 64)} {
		if err := valid.Category(ff.Category(c)); err != nil {
			t.Errorf("%q: %v", c, err)
		}
	}
	for _, c := range []string{"", strings.Repeat("c", 65), "a b", "a,b", "a;b", "ä", "a\x00", "{a}"} {
		if err := valid.Category(ff.Category(c)); !errors.Is(err, ff.ErrInvalidInput) {
			t.Errorf("%q: %v", c, err)
		}
	}
}

func TestNormalizeCapabilities(t *testing.T) {
	for _, c := range []struct{ in, want []string }{
		{nil, nil}, {[]string{}, nil}, {[]string{"gpu"}, []string{"gpu"}},
		{[]string{"zone=b", "gpu", "gpu", "Gpu"}, []string{"Gpu", "gpu", "zone=b"}},
		{[]string{"größe", "模型"}, []string{"größe", "模型"}},
	} {
		in := slices.Clone(c.in)
		got, err := valid.Capabilities(c.in)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, %v; want %q", c.in, got, err, c.want)
		}
		if !slices.Equal(in, c.in) {
			t.Errorf("the argument was changed: %q", c.in)
		}
	}
	for rule, tokens := range map[string][]string{
		"empty_token":           {"a", ""},
		"comma_in_token":        {"a,b"},
		"invalid_utf8":          {"a\xff"},
		"control_or_whitespace": {"a\u00a0b"},
	} {
		if _, err := valid.Capabilities(tokens); !errors.Is(err, denied.Capabilities) || !strings.Contains(err.Error(),
			rule) {
			t.Errorf("%q: %v, want %s", tokens, err, rule)
		}
	}
	for _, space := range []string{" ", "\t", "\n", "\u2028", "\u3000", "\u0085", "\x00", "\x7f", "\x1f"} {
		if _, err := valid.Capabilities([]string{"a" + space}); !errors.Is(err, denied.Capabilities) {
			t.Errorf("%q is accepted: %v", space, err)
		}
	}
}

// The limits and one beyond: 256 tokens, 4,096 bytes joined with commas.
func TestCapabilityLimits(t *testing.T) {
	tokens := make([]string, 257)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("c%03d", i)
	}
	if got, err := valid.Capabilities(tokens[:256]); err != nil || len(got) != 256 {
		t.Errorf("256 tokens: %d, %v", len(got), err)
	}
	if _, err := valid.Capabilities(tokens); !errors.Is(err, denied.Capabilities) || !strings.Contains(err.Error(),
		"too_many_tokens") {
		t.Errorf("257 tokens: %v", err)
	}
	if got, err := valid.Capabilities(append(tokens[:256:256], tokens[:100]...)); err != nil || len(got) != 256 {
		t.Errorf("repeats count: %d, %v", len(got), err)
	}
	pair := func(total int) []string { return []string{strings.Repeat("a", 2000), strings.Repeat("b", total-2001)} }
	if _, err := valid.Capabilities(pair(4096)); err != nil {
		t.Errorf("4096 bytes: %v", err)
	}
	if _, err := valid.Capabilities(pair(4097)); !errors.Is(err, denied.Capabilities) || !strings.Contains(err.Error(),
		"too_many_bytes") {
		t.Errorf("4097 bytes: %v", err)
	}
}

func TestValidateTags(t *testing.T) {
	many := map[string]string{}
	for i := range 64 {
		many[fmt.Sprintf("t.k%d", i)] = ""
	}
	for _, tags := range []map[string]string{
		nil, {}, {"team.region": "eu"}, {"a.b.c_1.2": ""}, {"a1_.0": strings.Repeat("v", 256)}, many,
		{"a." + strings.Repeat("b", 62): "\x00\xff"},
	} {
		if err := valid.Tags(tags); err != nil {
			t.Errorf("%v: %v", tags, err)
		}
	}
	for _, key := range []string{"", "a", ".", "a.", ".a", "a..b", "A.b", "a.B", "1.a", "_a.b", "a.b-c", "a.b ", "ä.b",
		"a.\x00", "a." + strings.Repeat("b", 63)} {
		if err := valid.Tags(map[string]string{key: "v"}); !errors.Is(err, ff.ErrInvalidInput) {
			t.Errorf("key %q: %v", key, err)
		}
	}
	if err := valid.Tags(map[string]string{"a.b": strings.Repeat("v", 257)}); !errors.Is(err, ff.ErrInvalidInput) ||
		!strings.Contains(err.Error(), "a.b") {
		t.Errorf("257 bytes: %v", err)
	}
	many["one.more"] = ""
	if err := valid.Tags(many); !errors.Is(err, ff.ErrInvalidInput) {
		t.Errorf("65 tags: %v", err)
	}
}
