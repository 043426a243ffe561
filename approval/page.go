package approval

import (
	"bytes"
	"encoding/json"
	"html/template"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/markdown"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// view is what the template shows: a question with its form or its answer, or a heading with a message.
type view struct {
	T Texts
	page
	Name    string      // of who answers, if it is known
	Stands  *jsonAnswer // the answer, instead of a form
	When    string      // it came
	Token   string      // "" shows no form
	Nonce   string
	Problem string         // what to change in the form
	Edit    bool           // the problem is with the arguments
	Answer  suspend.Answer // what was typed before
	Heading string
	Message string
	Until   string // when answers end, "" for never
}

// form shows the question of a page, with a nonce of its own.
func (x *exchange) form(p page, t suspend.Token) *view {
	return &view{T: x.texts, page: p, Name: x.name, Token: t.Reveal(), Nonce: newNonce()}
}

// Details are the arguments in the form, as they were typed before.
func (v view) Details() string {
	if v.Answer.Arguments != nil {
		return string(v.Answer.Arguments)
	}
	return string(v.details())
}

// Rows is how many lines of the arguments are in sight.
func (v view) Rows() int { return min(14, 2+strings.Count(v.Details(), "\n")) }

// Repeats tells that the text of the question is its arguments, which the form has.
func (v view) Repeats() bool {
	var text bytes.Buffer
	return json.Indent(&text, []byte(v.Text), "", "  ") == nil && bytes.Equal(text.Bytes(), v.details())
}

// Prose is the text of the question, whose Markdown is shown.
func (v view) Prose() []markdown.Node { return markdown.Parse(v.Text) }

// AnswerBy tells until when an answer counts.
func (v view) AnswerBy() string { return strings.ReplaceAll(v.T.AnswerUntil, "{time}", v.Until) }

// As names who answers.
func (v view) As() string { return strings.ReplaceAll(v.T.AnsweringAs, "{name}", v.Name) }

const pageStyle = `
:root { color-scheme: light dark; --ink: #1a2026; --dim: #55606b; --paper: #f6f7f8; --card: #fff; --line: #d9dee3;
  --edge: #8a95a0; --main: #0b6b63; --on-main: #fff; --bad: #b3261e; --soft: #def2ef; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaed; --dim: #9aa6b0; --paper: #101416; --card: #191f22;
  --line: #313a40; --edge: #7d8890; --main: #58c7b9; --on-main: #06231f; --bad: #ff8f87; --soft: #12332f; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
.site { max-width: 36rem; margin: 4vh auto .75rem; padding: 0 .25rem; font-weight: 700; color: var(--dim); }
.until { padding: .5rem .75rem; border-left: 4px solid var(--main); border-radius: .4rem; background: var(--soft); }
.after { margin: 1rem 0 0; color: var(--dim); font-size: .875rem; }
main { max-width: 36rem; margin: 0 auto 6vh; padding: 1.5rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .5rem; overflow-wrap: anywhere; }
h1 { margin: 0 0 1rem; font-size: 1.5rem; line-height: 1.25; }
p { margin: 0 0 1.25rem; white-space: pre-line; }
main > :last-child { margin-bottom: 0; }
.prose { margin-bottom: 1.25rem; } .prose > * { margin: 0 0 .6rem; } .prose > :last-child { margin: 0; }
.prose .pre { white-space: pre-wrap; } .prose .strong { font-weight: 700; } .prose .dim { color: var(--dim); }
.prose ul, .prose ol { padding-left: 1.4rem; } .prose a { color: var(--main); text-underline-offset: 2px; }
.prose blockquote { padding-left: .75rem; border-left: 3px solid var(--line); color: var(--dim); }
.prose code, .prose pre { font: .9em/1.5 ui-monospace, monospace; }
.prose hr { border: 0; border-top: 1px solid var(--line); }
.prose pre { max-height: 26rem; padding: .6rem .75rem; overflow: auto; white-space: pre-wrap;
  background: var(--paper); border-radius: .4rem; }
label { display: block; margin-bottom: .25rem; font-weight: 600; }
label span { color: var(--dim); font-weight: 400; }
textarea, input { display: block; width: 100%; margin-bottom: 1.25rem; padding: .6rem .7rem; color: inherit;
  background: transparent; font: inherit;
  border: 1px solid var(--edge); border-radius: .4rem; }
textarea { min-height: 6rem; resize: vertical; }
#arguments { font: .875rem/1.5 ui-monospace, monospace; max-height: 60vh; field-sizing: content; }
[aria-invalid] { border-color: var(--bad); }
.choices { display: flex; flex-wrap: wrap; gap: .75rem; }
.choices button { flex: 1 1 auto; min-width: 7rem; min-height: 2.9rem; padding: .6rem 1rem; color: var(--main);
  background: transparent; font: inherit; font-weight: 600;
  border: 2px solid var(--main); border-radius: .4rem; cursor: pointer; }
.choices button:first-child { color: var(--on-main); background: var(--main); }
:focus-visible { outline: 3px solid var(--main); outline-offset: 2px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .4rem 1rem; margin: 0; }
dt { font-weight: 600; }
dd { margin: 0; white-space: pre-line; }
[role=alert] { color: var(--bad); font-weight: 600; }
@media (min-width: 160rem) { html { font-size: 137.5%; } }
@media (max-width: 30rem) { .site { margin-top: 0; } main { margin: 0 auto; padding: 1.1rem; } }
`

// pageTemplate is one page for everything. The form posts to the address it was opened at without its query ("?"), so
// the token travels in the body and leaves the address bar. The first button does nothing and cannot be pressed: it
// is the one that Enter in a field would press, and nobody should approve by Enter.
var pageTemplate = template.Must(template.Must(template.New("page").Parse(markdown.Template)).Parse(`<!DOCTYPE html>
<html lang="{{.T.Lang}}"{{if ne .T.Dir "ltr"}} dir="{{.T.Dir}}"{{end}}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{if or .Token .Stands}}{{.Title}}{{else}}{{.Heading}}{{end}}</title>
<style>` + pageStyle + `</style>
</head>
<body>
<p class="site">{{.T.Site}}</p>
<main>
{{- if or .Token .Stands}}
<h1>{{.Title}}</h1>
{{- if and .Text (ne .Text .Title) (or .Stands (not .Repeats))}}
<div class="prose" dir="auto">{{template "markdown" .Prose}}</div>
{{- end}}
{{- end}}
{{- if .Stands}}
<p role="status">{{.T.Answered}}</p>
<dl>
<dt>{{.T.Decision}}</dt><dd>{{.Stands.Label}}</dd>
{{- with .Stands.By}}
<dt>{{$.T.DecidedBy}}</dt><dd>{{.}}</dd>
{{- end}}
<dt>{{.T.DecidedAt}}</dt><dd><time datetime="{{.Stands.At.Format "2006-01-02T15:04:05Z07:00"}}">{{.When}}</time></dd>
{{- with .Stands.Comment}}
<dt>{{$.T.Comment}}</dt><dd>{{.}}</dd>
{{- end}}
</dl>
{{- else if .Token}}
{{- if .Until}}
<p class="until">{{.AnswerBy}}</p>
{{- end}}
{{- with .Problem}}
<p role="alert" id="problem">{{.}}</p>
{{- end}}
<form method="post" action="?" autocomplete="off">
<button type="submit" disabled hidden></button>
<input type="hidden" name="token" value="{{.Token}}">
<input type="hidden" name="nonce" value="{{.Nonce}}">
{{- if .Arguments}}
<label for="arguments">{{.T.Details}}</label>
<textarea id="arguments" name="arguments" spellcheck="false" dir="ltr" rows="{{.Rows}}" maxlength="16384"
{{- if .Edit}} aria-invalid="true" aria-describedby="problem" autofocus{{end}}>{{.Details}}</textarea>
{{- end}}
<label for="comment">{{.T.Comment}} <span>{{.T.Optional}}</span></label>
<textarea id="comment" name="comment" maxlength="2000">{{.Answer.Comment}}</textarea>
{{- if .Name}}
<p>{{.As}}</p>
{{- else}}
<label for="by">{{.T.Name}} <span>{{.T.Optional}}</span></label>
<input id="by" name="by" maxlength="80" autocomplete="name" value="{{.Answer.By}}">
{{- end}}
<div class="choices" role="group" aria-label="{{.T.YourAnswer}}">
{{- range .Choices}}
<button type="submit" name="choice" value="{{.Name}}">{{if .Label}}{{.Label}}{{else}}{{.Name}}{{end}}</button>
{{- end}}
</div>
<p class="after">{{.T.Afterwards}}</p>
</form>
{{- else}}
<h1>{{.Heading}}</h1>
<p role="status">{{.Message}}</p>
{{- end}}
</main>
</body>
</html>
`))
