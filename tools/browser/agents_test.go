package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/approval"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
	"github.com/flowfabric/flowfabric-go/tools/browser/scene"
)

// Refund is what the agents want to pay.
type Refund struct {
	Order  string `json:"order" jsonschema:"its number"`
	Cents  int    `json:"cents" jsonschema:"how much"`
	Reason string `json:"reason,omitempty" jsonschema:"why, for the customer"`
}

// Case is what one agent asks another about.
type Case struct {
	Topic string `json:"topic"`
}

var (
	desk   = handler.Define[string, string]("service-desk", flowfabric.Retries(0))
	review = handler.Define[Case, string]("review-case", flowfabric.Retries(0))
	lead   = handler.Define[string, string]("team-lead", flowfabric.Retries(0))
)

// htmlTitle is a title that must stay text.
const htmlTitle = `Pay 99 € <img src=x onerror="window.broken=1"><b>now</b>?`

// wants is an answer of a model that says something and calls a tool with each of several arguments.
func wants(says, tool string, arguments ...string) agent.Response {
	m := agent.Message{Parts: agent.Text(says)}
	for i, a := range arguments {
		m.Calls = append(m.Calls, agent.ToolCall{ID: fmt.Sprint("call-", i), Name: tool, Arguments: []byte(a)})
	}
	return agent.Response{Message: m, Stop: agent.StopTools}
}

// scripted is a model that gives one answer to its user, and then repeats what its tools said. It says its answers
// word by word.
func scripted(first agent.Response) agent.Model {
	return agent.ModelFunc(func(_ context.Context, q agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		out := first
		if last := q.Messages[len(q.Messages)-1]; last.Role == agent.ToolRole {
			var said []string
			for _, m := range q.Messages {
				if m.Role == agent.ToolRole {
					said = append(said, m.Text())
				}
			}
			out = agent.Response{Stop: agent.StopEnd,
				Message: agent.Message{Parts: agent.Text(strings.Join(said, "; "))}}
		}
		for _, word := range strings.SplitAfter(out.Message.Text(), " ") {
			if err := delta(agent.Delta{Text: word}); err != nil {
				return out, err
			}
		}
		for _, c := range out.Message.Calls {
			if err := delta(agent.Delta{Call: &agent.CallDelta{ID: c.ID, Name: c.Name,
				Arguments: string(c.Arguments)}}); err != nil {
				return out, err
			}
		}
		return out, nil
	})
}

// agents runs a worker with agents that ask people.
func agents(t *testing.T, d *deployment) {
	t.Helper()
	refund := agent.NewTool("refund", "Pays money back.", func(_ context.Context, in Refund) (string, error) {
		return fmt.Sprintf("%s got %d cents", in.Order, in.Cents), nil
	}, agent.Needs(func(in Refund) agent.Decision {
		decision := agent.Decision{Ask: true, Assignee: "support", Always: true, Within: 48 * time.Hour}
		if in.Cents == 9900 {
			decision.Title = htmlTitle
		}
		return decision
	}))
	run := func(model agent.Model, tools ...agent.Tool) func(context.Context, *handler.Task, string) (string, error) {
		return func(ctx context.Context, t *handler.Task, in string) (string, error) {
			r, err := agent.Run(ctx, t, agent.Config{Model: model, Tools: tools, Prompt: in})
			return r.Text, err
		}
	}
	check := agent.Child("check", "Has a case reviewed.", review)
	second := run(scripted(wants("I look into the case. ", "refund",
		`{"order":"C-1","cents":700,"reason":"it came late"}`)), refund)
	w, err := runtime.New(runtime.Config{URL: d.store, TokenKeys: scene.Keys, Worker: "agents",
		Logger: slog.New(slog.DiscardHandler)},
		handler.Bind(desk, run(scripted(wants("Three customers want money back. ", "refund",
			`{"order":"A-7","cents":1500}`, `{"order":"B-8","cents":9900,"reason":"<i>broken</i>"}`,
			`{"order":"D-9","cents":9007199254740993}`)), refund)),
		handler.Bind(review, func(ctx context.Context, t *handler.Task, in Case) (string, error) {
			return second(ctx, t, in.Topic)
		}),
		handler.Bind(lead, run(scripted(wants("I have it checked. ", "check", `{"topic":"tides"}`,
			`{"topic":"whales"}`)), check)))
	must.No(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running conc.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
}

// card is the part of the page with a question, found by the heading or the key that it shows.
func card(text string) string {
	return `[...document.querySelectorAll("main section.card, main li.card")]` +
		`.find(e => e.querySelector(".head").innerText.includes(` + literal(text) + `))`
}

// within presses a button, or fills a field, of a card.
func (b *tab) within(card, label, value string) {
	b.Helper()
	if value == "" {
		find := `[...` + card + `.querySelectorAll("button")].find(e => !e.disabled && e.innerText.trim() === ` +
			literal(label) + `)`
		b.wait(card + ` && ` + find)
		b.text(`(` + hears + `), ` + find + `.click()`)
		return
	}
	find := `[...` + card + `.querySelectorAll("label")].find(l => l.innerText.trim() === ` + literal(label) +
		`)?.control`
	b.wait(card + ` && ` + find)
	b.text(`(f => { Object.getOwnPropertyDescriptor(Object.getPrototypeOf(f), "value").set.call(f, ` + literal(value) +
		`); f.dispatchEvent(new Event("input", { bubbles: true })) })(` + find + `)`)
}

// Three questions of one turn are answered one after the other; what is typed into one that still waits stays. An edit
// that does not fit is refused with the field and what is wrong, and accepted when it fits.
func TestThreeQuestions(t *testing.T) {
	d := deploy(t, false)
	agents(t, d)
	x, err := client.Submit(t.Context(), d.client, desk, "refund them")
	must.No(t, err)
	id := x.ID().String()
	d.until(id, "suspended")
	b := openBrowser(t)
	b.window(1280, 2400, "light")
	b.enter(d, "operator")
	b.visit("executions/" + id)
	b.says("approve 1.1 refund")
	b.says("approve 1.2 refund")
	b.says("approve 1.3 refund")
	b.shoot("three-questions")
	b.want(`String(window.broken) + document.querySelectorAll("main img, main h2 b, main i b").length`, "undefined0")
	b.says(htmlTitle)

	one, two, three := card("approve 1.1 refund"), card("approve 1.2 refund"), card("approve 1.3 refund")
	for _, wrong := range []struct{ arguments, says string }{
		{`{"order":`, "The arguments are not JSON"},
		{` `, "The arguments are empty"},
		{`[7]`, "not an object"},
		{`{"order":"A-7","cents":"many"}`, "cents"},
		{`{"order":"A-7","cents":1.5}`, "cents"},
		{`{"order":"A-7","cents":1,"to":"me"}`, "to"},
		{`{"cents":1}`, "order"},
		{`{"order":"` + strings.Repeat("long ", 4000) + `","cents":1}`, "at most 16384"},
		{`{"order":"A-7","cents":"` + strings.Repeat("many ", 3000) + `"}`, "cents"},
	} {
		b.within(one, "Arguments", wrong.arguments)
		b.within(one, "Approve", "")
		b.wait(one + `.querySelector(".notice.bad")?.innerText.includes(` + literal(wrong.says) + `)`)
		b.want(one+`.querySelector("textarea").getAttribute("aria-invalid")`, "true")
	}
	b.shoot("edit-refused")
	b.want(three+`.querySelector("textarea").value.includes("9007199254740993")`, "true") // no number is rounded
	b.within(three, "Comment", "half of it")
	b.within(one, "Arguments", `{"order":"A-7","cents":1000}`)
	b.within(one, "Approve", "")
	b.says("Your answer was delivered.")
	b.wait(`!` + one)
	b.want(three+`.querySelector("input").value`, "half of it")
	b.within(two, "Reject", "")
	b.wait(`!` + two)
	b.within(three, "Always in this run", "")
	d.until(id, "completed")
	got, err := x.Result(t.Context())
	want := `operator changed the arguments. The call was made with {"order":"A-7","cents":1000}` +
		"\nA-7 got 1000 cents; the call was not made: rejected by operator; D-9 got 9007199254740993 cents"
	if err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	b.quiet(asked401, "status of 400")
}

// What a child puts out is in the output of its parent, under its path, and its question is in the list with the way
// down to it, on a phone, too.
func TestMergedStream(t *testing.T) {
	d := deploy(t, false)
	agents(t, d)
	x, err := client.Submit(t.Context(), d.client, lead, "check them")
	must.No(t, err)
	id := x.ID().String()
	d.until(id, "suspended")
	b := openBrowser(t)
	b.window(1280, 1400, "light")
	b.enter(d, "operator")
	b.visit("executions/" + id)
	for _, want := range []string{"I have it checked.", "check 1.1", "check 1.2", "I look into the case."} {
		b.wait(`document.querySelector(".log").innerText.includes(` + literal(want) + `)`)
	}
	b.wait(`document.querySelectorAll(".pane .call .talk .said").length >= 4`) // two sub-agents, each in its call
	b.want(`document.querySelector(".pane .call > summary").innerText`, "check …")
	b.want(`document.querySelector(".pane .call .talk .own").innerText`, "check 1.1: its own page")
	b.shoot("merged-stream")
	b.visit("approvals")
	b.wait(`document.querySelectorAll(".inbox > li").length === 3`)
	b.says("check 1.1")
	b.says("key approve 1.1 refund")
	b.shoot("approval-of-a-child")
	b.window(400, 900, "dark")
	b.shoot("approval-of-a-child-phone")
	b.want("document.documentElement.scrollWidth <= 400", "true")
	b.visit("executions/" + id)
	b.want("document.documentElement.scrollWidth <= 400", "true")
	b.shoot("merged-stream-phone")
	b.visit("approvals")
	b.press("Approve")
	b.wait(`document.querySelectorAll(".inbox > li").length === 2`)
	b.press("Approve")
	d.until(id, "completed")
	b.visit("executions/" + id)
	b.wait(`document.querySelector(".log").innerText.includes("It has ended: completed")`)
	b.wait(`[...document.querySelectorAll(".pane > .talk > .said > .call > summary")]` +
		`.every(e => e.innerText === "check ✓ done")`)
	b.wait(`document.querySelectorAll(".pane > .talk > .said > .cost").length === 2`)
	b.shoot("conversation")
	b.press("All output")
	b.want(`document.querySelector(".pane").hidden + " " + document.querySelector(".log").hidden`, "true false")
	b.want(`["took_ms", '{"topic":', '{"order":'].map(x => document.querySelector(".log").innerText.split("\n")`+
		`.filter(l => l.includes(x) && !l.startsWith("calls ")).length).join()`, "0,0,0") // the messages say it
	b.quiet(asked401)
}

// What people may change is on the page for links, too: what does not fit is told with the field, and what was typed
// stays.
func TestEditOnTheLink(t *testing.T) {
	d := deploy(t, false)
	tokens := make(chan suspend.Token, 1)
	pay := handler.Define[string, suspend.Answer]("pay-by-link", flowfabric.Retries(0))
	w, err := runtime.New(runtime.Config{URL: d.store, TokenKeys: scene.Keys, Worker: "payers",
		Logger: slog.New(slog.DiscardHandler)},
		handler.Bind(pay, func(ctx context.Context, t *handler.Task, order string) (suspend.Answer, error) {
			token, err := t.Pending(ctx, "boss", time.Hour)
			if err != nil {
				return suspend.Answer{}, err
			}
			if _, err := handler.Step(ctx, t, "mail",
				func(context.Context) (bool, error) { tokens <- token; return true, nil }); err != nil {
				return suspend.Answer{}, err
			}
			return t.Ask(ctx, "boss", suspend.Question{Title: htmlTitle, Text: "Order " + order + " was <b>late</b>.",
				Arguments: json.RawMessage(`{"order":"</textarea><b>7</b>","cents":9900}`),
				Schema: json.RawMessage(`{"type":"object","properties":{"order":{"type":"string"},` +
					`"cents":{"type":"integer","maximum":10000}},"required":["order","cents"],` +
					`"additionalProperties":false}`)})
		}))
	must.No(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running conc.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	web := httptest.NewServer(approval.New(approval.Config{Deliver: d.client, Logger: slog.New(slog.DiscardHandler),
		By: func(*http.Request) (string, error) { return "Zoë", nil }}))
	t.Cleanup(web.Close)
	x, err := client.Submit(t.Context(), d.client, pay, "7")
	must.No(t, err)
	token := <-tokens
	d.until(x.ID().String(), "suspended")

	b := openBrowser(t)
	b.window(1100, 900, "light")
	b.do(chromedp.Navigate(approval.Link(web.URL, token)), chromedp.WaitVisible(chromedp.CSS("#arguments")))
	b.want("document.querySelector('h1').innerText", htmlTitle)
	b.want("String(window.broken) + document.querySelectorAll('img, b').length", "undefined0")
	b.want("JSON.parse(document.querySelector('#arguments').value).order", "</textarea><b>7</b>")
	b.want("document.querySelector('#arguments').labels[0].innerText", "Details, which you may change")
	b.shoot("link-arguments")
	for _, wrong := range []struct{ arguments, says string }{
		{`{"order":`, "not JSON"},
		{` `, "not JSON"},
		{`{"order":"7","cents":"<b>all</b>"}`, "cents"},
		{`{"order":"7","cents":10001}`, "cents"},
		{`{"order":"7","cents":1,"to":"me"}`, "to"},
	} {
		b.text(`window.before = 1, document.querySelector("#arguments").value = ` + literal(wrong.arguments))
		b.do(chromedp.Click(chromedp.CSS("button[value=approve]")))
		b.wait(`!window.before && document.querySelector("[role=alert]")?.innerText.includes(` + literal(wrong.says) +
			`) && document.querySelector("#arguments")?.value.trim() === ` +
			literal(strings.TrimSpace(wrong.arguments)))
		b.wait(`document.activeElement.id === "arguments"`)
		b.want(`document.activeElement.getAttribute("aria-invalid")`, "true")
		b.want(`document.getElementById(document.activeElement.getAttribute("aria-describedby")).role`, "alert")
	}
	b.shoot("link-refused")
	b.window(400, 800, "dark")
	b.want("document.documentElement.scrollWidth <= 400", "true")
	b.shoot("link-refused-phone")
	b.text(`document.querySelector("#arguments").value = '{"order":"7","cents":5000}'`)
	b.do(chromedp.Focus(chromedp.CSS("#comment")), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	b.wait(`document.querySelector("h1")?.innerText === "Thank you"`)
	answer, err := x.Result(t.Context())
	if err != nil || answer.Choice != "approve" || string(answer.Arguments) != `{"order":"7","cents":5000}` ||
		answer.By != "Zoë" {
		t.Errorf("%+v, %v", answer, err)
	}
	b.do(chromedp.Navigate(approval.Link(web.URL, token)), chromedp.WaitVisible(chromedp.CSS("dl")))
	b.shoot("link-answered")
	b.quiet("status of 400", "status of 404")
}

// A server without the key says that what is stored is encrypted, and nothing else breaks.
func TestEncrypted(t *testing.T) {
	d := deploy(t, false)
	cipher, err := flowfabric.CipherKeys("c1:" + strings.Repeat("ab", 32))
	must.No(t, err)
	quiet := slog.New(slog.DiscardHandler)
	secret := handler.Define[string, string]("secret-work", flowfabric.Retries(0))
	w, err := runtime.New(runtime.Config{URL: d.store, TokenKeys: scene.Keys, Worker: "sealed", Cipher: cipher,
		Logger: quiet}, handler.Bind(secret, func(ctx context.Context, t *handler.Task, in string) (string, error) {
		if _, err := handler.Step(ctx, t, "read", func(ctx context.Context) (string, error) {
			return in, t.Frame(ctx, "token", in)
		}); err != nil {
			return "", err
		}
		a, err := t.Ask(ctx, "boss", suspend.Question{Title: "Tell " + in + "?",
			Arguments: json.RawMessage(`{"who":"Ann"}`)})
		return a.Choice, err
	}))
	must.No(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running conc.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	c, err := client.Connect(t.Context(), client.Config{URL: d.store, TokenKeys: scene.Keys, Cipher: cipher,
		Logger: quiet})
	must.No(t, err)
	t.Cleanup(c.Close)
	x, err := client.Submit(t.Context(), c, secret, "the secret")
	must.No(t, err)
	id := x.ID().String()
	d.until(id, "suspended")
	b := openBrowser(t)
	b.window(1280, 1200, "light")
	b.enter(d, "operator")
	b.visit("executions/" + id)
	b.says("this server has no key for it")
	b.says("(encrypted)")
	b.shoot("encrypted")
	b.visit("approvals")
	b.says("This server has no key for the question.")
	b.shoot("encrypted-approvals")
	b.window(400, 900, "dark")
	b.visit("executions/" + id)
	b.shoot("encrypted-phone")
	b.quiet(asked401)
}
