package browser

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/chromedp"
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
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("headless", true), chromedp.Flag("no-sandbox", true), chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true),
		chromedp.Flag("no-first-run", true), chromedp.Flag("no-default-browser-check", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("hide-scrollbars", true))
	t.Cleanup(cancel)
	b := &tab{T: t}
	b.ctx, cancel = chromedp.NewContext(ctx, chromedp.WithListener(func(event any) {
		if entry, ok := event.(*log.EventEntryAdded); ok { // also what the content security policy stopped
			b.mu.Lock()
			defer b.mu.Unlock()
			b.complaints = append(b.complaints, entry.Entry.Text)
		}
	}))
	t.Cleanup(cancel)
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, log.Enable, cdp.Empty{})
		return err
	}))
	return b
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// text is what an expression says.
func (b *tab) text(expression string) string {
	b.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		b.Fatal(err)
	}
	return text
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
	if err != nil {
		b.Fatal(err)
	}
	if err := os.MkdirAll(screenshots, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(screenshots, name+".png"), image, 0o644); err != nil {
		b.Fatal(err)
	}
}

// quiet fails when the browser complained about the page.
func (b *tab) quiet() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) > 0 {
		b.Errorf("the browser complains: %s", strings.Join(b.complaints, "; "))
	}
}
