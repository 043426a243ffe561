package markdown

import (
	"html/template"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

var page = template.Must(template.Must(template.New("page").Parse(`{{template "markdown" .}}`)).Parse(Template))

func write(t testing.TB, text string) string {
	t.Helper()
	var b strings.Builder
	must.No(t, page.Execute(&b, Parse(text)))
	return b.String()
}

const rel = ` target="_blank" rel="noopener noreferrer nofollow" title=`

// The subset becomes elements, and all else stays the text that it is.
func TestWritesTheSubset(t *testing.T) {
	for text, want := range map[string]string{
		"# Plan\nIt is **ready**, _see_ `it`": `<p class="strong">Plan</p><p class="pre">It is ` +
			`<strong>ready</strong>, <em>see</em> <code>it</code></p>`,
		"- one\n- *two*\n\n3. three": `<ul><li>one</li><li><em>two</em></li></ul><ol start="3"><li>three</li></ol>`,
		"> quoted\n> > twice\n---": `<blockquote><p class="pre">quoted</p><blockquote><p class="pre">twice</p>` +
			`</blockquote></blockquote><hr>`,
		"```go\na < b\n```\nend": `<pre tabindex="0" aria-label="code">a &lt; b</pre><p class="pre">end</p>`,
		"[the log](https://log.example/7?a=b)": `<p class="pre"><a href="https://log.example/7?a=b"` + rel +
			`"https://log.example/7?a=b">the log</a> <span class="dim">(log.example)</span></p>`,
		"see https://log.example/7.": `<p class="pre">see <a href="https://log.example/7"` + rel +
			`"https://log.example/7">https://log.example/7</a>.</p>`,
		"[Ann](mailto:ann@a.example)": `<p class="pre"><a href="mailto:ann@a.example"` + rel +
			`"mailto:ann@a.example">Ann</a> <span class="dim">(ann@a.example)</span></p>`,
		"[good.example](https://good.example@evil.example/)": `<p class="pre">` +
			`<a href="https://good.example@evil.example/"` + rel +
			`"https://good.example@evil.example/">good.example</a> <span class="dim">(evil.example)</span></p>`,
		`2 \* 3 * 4 snake_case_name **open`: `<p class="pre">2 * 3 * 4 snake_case_name **open</p>`,
		"a\u202eb\x00":                      `<p class="pre">a⟦U&#43;202E⟧b␀</p>`,
	} {
		if got := write(t, text); got != want {
			t.Errorf("%q is\n%s, want\n%s", text, got, want)
		}
	}
}

// Nothing of a hostile text becomes markup, or a link that acts.
func TestHostileTextStaysText(t *testing.T) {
	for _, text := range []string{"<script>x</script>", `<img src=x onerror=x>`, "[x](javascript:x)",
		"[x](JaVaScRiPt:x)", "[x](data:text/html,x)", "[x](vbscript:x)", "[x](//evil.example)", "[x](https:evil)",
		"![x](javascript:x)", "[x](https://\x01e.example)", "[x](https://e.example/\u202ex)", "[x](file:///etc)",
		"[x](https://)", "[x](mailto:)", "&lt;b&gt;"} {
		got := write(t, text)
		inner := strings.TrimSuffix(strings.TrimPrefix(got, `<p class="pre">`), "</p>")
		if strings.ContainsAny(inner, "<>") {
			t.Errorf("%q is %s", text, got)
		}
	}
	if got := write(t, `[x](https://e.example/"onmouseover="x)`); strings.Contains(got, `"onmouseover`) {
		t.Error(got)
	}
}

// Whatever the text, it takes little time, and the page has no element but those of the subset.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"# a\n- b\n1. c\n> d\n```\ne", "[a](http://b.example) *c **d** _e_ `f`", "**",
		"[](", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := write(t, text)
		for rest := got; ; {
			_, tail, found := strings.Cut(rest, "<")
			if !found {
				break
			}
			name := strings.TrimPrefix(tail[:strings.IndexAny(tail, " >")], "/")
			if !strings.Contains(" p pre hr blockquote ul ol li code strong em a span ", " "+name+" ") {
				t.Fatalf("%q: %s", text, got)
			}
			rest = tail
		}
	})
}

// A text that is too long is one paragraph as it is, and depth is bounded.
func TestLongTexts(t *testing.T) {
	if got := write(t, strings.Repeat("*a* ", longest)); strings.Contains(got, "<em>") {
		t.Error("a text that is too long is read")
	}
	if n := strings.Count(write(t, strings.Repeat("> ", longest/2)), "<blockquote>"); n != deepest {
		t.Errorf("%d quotes in each other, want %d", n, deepest)
	}
	for _, piece := range []string{"*a ", "**", "_a_", "[", "[a](", "`", "- ", "http://", "1. a\n", "*a**b "} {
		if text := strings.Repeat(piece, longest/len(piece)); write(t, text) == "" {
			t.Errorf("%q: nothing is left", piece)
		}
	}
}
