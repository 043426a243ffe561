package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// screenshots is where they are left, beside the tests.
const screenshots = "screenshots"

// tab is one page of a browser of its own.
type tab struct {
	*testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string // of the browser about the page
}

// openBrowser starts a Chromium with an empty profile; it ends with the test.
func openBrowser(t *testing.T) *tab {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Fatal("no Chromium is installed. On Debian or Ubuntu: make browser (as root), or apt-get install chromium")
	}
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("headless", true), chromedp.Flag("no-sandbox", true), chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true), chromedp.Flag("no-first-run", true),
		chromedp.Flag("no-default-browser-check", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("hide-scrollbars", true))
	t.Cleanup(cancel)
	return openTab(t, ctx)
}

// another opens a second tab in the same browser.
func (b *tab) another() *tab {
	b.Helper()
	return openTab(b.T, b.ctx)
}

// apart opens a tab with connections and a memory of its own, as of a person at another computer.
func (b *tab) apart() *tab {
	b.Helper()
	return openTab(b.T, b.ctx, chromedp.WithNewBrowserContext())
}

// openTab opens a tab in a browser, which it starts if there is none in ctx.
func openTab(t *testing.T, ctx context.Context, options ...chromedp.ContextOption) *tab {
	t.Helper()
	b := &tab{T: t}
	var cancel context.CancelFunc
	b.ctx, cancel = chromedp.NewContext(ctx, append(options, chromedp.WithListener(func(event any) {
		text := ""
		switch e := event.(type) {
		case *log.EventEntryAdded: // also what the content security policy stopped
			text = e.Entry.Text + " " + e.Entry.URL
		case *runtime.EventExceptionThrown:
			text = fmt.Sprintf("exception: %s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
		case *runtime.EventConsoleAPICalled:
			if e.Type == "error" || e.Type == "warning" {
				text = fmt.Sprintf("console: %v", e.Args)
			}
		}
		if text != "" {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.complaints = append(b.complaints, text)
		}
	}))...)
	t.Cleanup(cancel)
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, log.Enable, cdp.Empty{})
		return err
	}))
	return b
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	must.No(b, chromedp.Do(b.ctx, actions...))
}

// text is what an expression says.
func (b *tab) text(expression string) string {
	b.Helper()
	for {
		text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
		if err != nil && strings.Contains(err.Error(), "navigated or closed") && b.ctx.Err() == nil {
			continue // a form was sent, and the next page is not there yet
		}
		must.No(b, err)
		return text
	}
}

// want compares what an expression says.
func (b *tab) want(expression, want string) {
	b.Helper()
	if got := b.text(expression); got != want {
		b.Errorf("%s is %q, want %q", expression, got, want)
	}
}

// shoot leaves a screenshot of what is in view.
func (b *tab) shoot(name string) {
	b.Helper()
	image, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	must.No(b, err)
	must.No(b, os.MkdirAll(screenshots, 0o755))
	must.No(b, os.WriteFile(filepath.Join(screenshots, name+".png"), image, 0o644))
}

// quiet fails when the browser complained about the page, but for what is expected: parts of complaints.
func (b *tab) quiet(expected ...string) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.complaints {
		if !slices.ContainsFunc(expected, func(part string) bool { return strings.Contains(text, part) }) {
			b.Errorf("the browser complains: %s", text)
		}
	}
	b.complaints = nil
}

// ages are what changes on a page by itself: how long ago something was.
var ages = regexp.MustCompile(`\d[\d.]* (ms|s|min|h|d)\b`)

// wait waits until an expression is true, as long as the page changes by more than the time.
func (b *tab) wait(expression string) {
	b.Helper()
	testwait.Progress(b, expression, func() (bool, any) {
		if b.text("!!("+expression+")") == "true" {
			return true, nil
		}
		page := ages.ReplaceAllString(b.text("document.body?.innerText ?? ''"), "…") // one that loads has no body
		return false, fmt.Sprintf("%s: %.2000s", b.text("location.hash"), page)
	})
}

// literal is a text in JavaScript.
func literal(text string) string {
	out, _ := json.Marshal(text)
	return string(out)
}

// press clicks the first button, link or menu item in sight that says a text, within the top dialog if there is one.
func (b *tab) press(text string) {
	b.Helper()
	find :=
		`(() => { const all = [...([...document.querySelectorAll("dialog[open]")].pop() ?? document).querySelectorAll("button, a, [role=menuitem]")]
		return all.find(e => e.checkVisibility() && !e.disabled &&
			((e.innerText ?? "").trim().replace(/\s*▾$/, "") === ` + literal(text) + ` ||
				e.getAttribute("aria-label") === ` + literal(text) + `)) })()`
	b.wait(find)
	b.text(`(` + hears + `), ` + find + `.click()`)
}

// hears makes the page keep what its short messages say from now on. One is in sight for six seconds, and nothing
// says that a test on a busy machine looks within them.
const hears = `window.heard ? heard.said = "" : (window.heard = { said: "" }, new MutationObserver(all => all
	.filter(r => r.target.closest?.(".toasts")).forEach(r => r.addedNodes.forEach(n => heard.said += n.textContent)))
	.observe(document.body, { childList: true, subtree: true }))`

// fill types into the field with a label, within the top dialog if there is one.
func (b *tab) fill(label, value string) {
	b.Helper()
	find :=
		`[...([...document.querySelectorAll("dialog[open]")].pop() ?? document).querySelectorAll("label")].find(l => l.checkVisibility() && l.innerText.trim() === ` +
			literal(label) + `)?.control`
	b.wait(find)
	b.text(`(() => { const f = ` + find +
		`; const set = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(f), "value").set
		if (f.type === "checkbox") { f.click(); return }
		set.call(f, ` + literal(value) +
		`); f.dispatchEvent(new Event(f.tagName === "SELECT" ? "change" : "input", { bubbles: true })) })()`)
}

// says waits until the page, or the top dialog, says a text, or a short message has said it since the last press.
func (b *tab) says(text string) {
	b.Helper()
	b.wait(`(document.body?.innerText + (window.heard?.said ?? "")).includes(` + literal(text) + `)`)
}
