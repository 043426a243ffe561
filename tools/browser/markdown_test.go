package browser

import (
	"html/template"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/markdown"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// What the dashboard shows of Markdown, the page behind a link shows, too, which has no script.
func TestMarkdownIsTheSameEverywhere(t *testing.T) {
	d := deploy(t, false)
	b := openBrowser(t)
	b.enter(d, "viewer")
	page := template.Must(template.New("page").Parse(`{{template "markdown" .}}`))
	template.Must(page.Parse(markdown.Template))
	for _, text := range []string{marked,
		"# a\n## b *c*\n***\n1. x\n2. y\n   more\n\n3) z\n- u\n+ v", "**a *b* c** __d__ e_f_g",
		"```js\n<b>\n~~~\n```\n~~~\nopen", "> a\n> - b\n> > c\nd", "line\nline\n\n\nnext", "a\\*b\\[c] `d`` e` ``",
		"[a](https://b.example/c_d_e) [b.example](http://B.example:81/) [x](mailto:a@b.example) [y](ftp://z)",
		"https://a.example/b_c). (http://d.example/?e=f&g=h) xhttps://i.example",
		"[a [b](https://c.example)](https://d.example)",
		"\u202eabc\u0007\u007f", "<b>&amp;</b>", strings.Repeat("> ", 9) + "deep", strings.Repeat("*a ", 50),
		"*a**b*c** _d", "[**b**](https://c.example)", "* * *", "-", "1.", "#", "#x", "![i](https://j.example/k.png)"} {
		var made strings.Builder
		must.No(t, page.Execute(&made, markdown.Parse(text)))
		got := b.textOf(`(async () => {
			const [{ html, render }, { Prose }] = await Promise.all(
				["vendor/preact-htm.js", "markdown.js"].map(f => import("/assets/" + f)))
			const there = document.createElement("div"), here = document.createElement("div")
			render(html` + "`<${Prose} text=${" + literal(text) + "} />`" + `, here)
			there.innerHTML = ` + literal(made.String()) + `
			const [a, b] = [here.firstChild, there].map(e => (e.normalize(), e.innerHTML))
			return a === b && a ? "same" : a + "\nand\n" + b
		})()`)
		if got != "same" {
			t.Errorf("%q is\n%s", text, got)
		}
	}
}
