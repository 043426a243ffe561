package browser

import (
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/tools/browser/scene"
)

// parts are the chat example in two processes, a worker and a web server, on a Redis.
type parts struct {
	*chat
	store, addr, page, published string
	gateway                      *exec.Cmd
}

// startParts starts the worker and the web server.
func startParts(t *testing.T) *parts {
	t.Helper()
	p := &parts{chat: &chat{T: t}, store: testserver.Redis(t), page: reactPage(t), published: t.TempDir()}
	worker := p.program("-worker", "-name", "w", "-lease", "2s", "-pace", "15ms", "-published", p.published)
	stdin, err := worker.StdinPipe()
	must.No(t, err)
	must.No(t, worker.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		if err := worker.Wait(); err != nil {
			t.Errorf("the worker did not end well: %v", err)
		}
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.No(t, err)
	p.addr = listener.Addr().String()
	p.base = "http://" + p.addr + "/"
	listener.Close()
	p.serve()
	t.Cleanup(p.kill)
	p.client, err = client.Connect(t.Context(), client.Config{URL: p.store, Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	t.Cleanup(p.client.Close)
	return p
}

// program is the example, with flags.
func (p *parts) program(flags ...string) *exec.Cmd {
	path, err := chatProgram()
	must.No(p, err)
	cmd := exec.Command(path, append(flags, "-url", p.store)...)
	cmd.Env = append(cmd.Environ(), "OPENAI_API_KEY=", "OPENAI_BASE_URL=", "ANTHROPIC_API_KEY=",
		"FLOWFABRIC_TOKEN_KEYS="+scene.Keys)
	return cmd
}

// serve starts the web server, and waits until it listens.
func (p *parts) serve() {
	p.Helper()
	p.gateway = p.program("-only-web", "-addr", p.addr, "-limit", "1000000", "-react", p.page, "-published",
		p.published)
	must.No(p, p.gateway.Start())
	testwait.Until(p, "the web server listens", func() bool {
		connection, err := net.Dial("tcp", p.addr)
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
}

// kill kills the web server: SIGKILL.
func (p *parts) kill() {
	_ = p.gateway.Process.Kill()
	_ = p.gateway.Wait()
}

// lost are the complaints of a browser whose server is gone, wherever its requests were.
var lost = []string{"ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET",
	"ERR_SOCKET_NOT_CONNECTED", "ERR_EMPTY_RESPONSE"}

// The web server is killed in mid-word, and comes back: with either transport two tabs go on by themselves, and show
// what is recorded, to the letter. A message that was sent while it was away is said once.
func TestChatReactGateway(t *testing.T) {
	t.Parallel()
	p := startParts(t)
	for _, transport := range []string{"stock", "ours"} {
		t.Run(transport, func(t *testing.T) {
			c := p.in(t)
			b := openBrowser(t)
			b.window(1280, 800, "light")
			b.do(chromedp.Navigate(c.base + "react/?transport=" + transport))
			b.typed("What is 1 + 1?")
			b.yours(1)
			second := b.another()
			second.window(1280, 800, "light")
			second.do(chromedp.Navigate(b.text("location.href")))
			second.yours(1)
			b.typed("Tell me about the sea")
			b.comes(60)
			second.comes(60)
			p.kill()
			if transport == "stock" {
				b.says("No connection.")
			}
			p.serve()
			b.yours(2)
			second.yours(2)
			c.same(b)
			c.same(second)

			p.kill()
			b.typed("What is 6 * 7?")
			b.wait(`document.querySelectorAll("#messages > .user").length === 3`)
			p.serve()
			b.yours(3)
			b.says("6 * 7 = 42.")
			second.yours(3)
			c.same(b)
			c.same(second)
			b.quiet(append(slices.Clone(lost), "404")...)
			second.quiet(lost...)
		})
	}
}

// The page of the how-to "Put a chat on it", which has nothing but useChat, does the same: reload in mid-word, stop
// from another tab, an approval, a worker that is killed.
func TestChatReactMinimal(t *testing.T) {
	t.Parallel()
	c := startReact(t)
	b := openBrowser(t)
	b.window(1280, 800, "light")
	b.do(chromedp.Navigate(c.base + "react/minimal"))
	say := func(b *tab, text string) {
		t.Helper()
		b.wait(`[...document.querySelectorAll("button")].some(b => b.innerText === "Send")`)
		b.do(chromedp.SendKeys(chromedp.CSS("input"), text))
		b.press("Send")
	}
	comes := func(b *tab, characters int) {
		t.Helper()
		b.wait(fmt.Sprintf(`[...document.querySelectorAll("button")].some(b => b.innerText === "Stop") && document
			.querySelector("article:last-of-type.assistant p:last-of-type")?.textContent.length > %d`, characters))
	}
	agrees := func(b *tab, messages int) {
		t.Helper()
		var want []string
		b.wait(fmt.Sprintf(`document.querySelectorAll("article.user").length === %d`, messages))
		b.wait(`document.querySelector("article:last-of-type").matches(".assistant")
			&& [...document.querySelectorAll("button")].some(b => b.innerText === "Send")`)
		testwait.Progress(t, "the page shows what is recorded", func() (bool, any) {
			want = nil
			for _, p := range c.spoken(c.execution(b)) {
				if p.Arguments == nil {
					want = append(want, p.Text)
				}
			}
			shown := b.text(`[...document.querySelectorAll("article p")].map(p => p.textContent).join("\u0001")`)
			return shown == strings.Join(want, "\u0001"), len(shown)
		})
	}
	say(b, "What is 1 + 1?")
	agrees(b, 1)
	second := b.another()
	second.window(1280, 800, "light")
	second.do(chromedp.Navigate(b.text("location.href")))
	agrees(second, 1)
	say(b, "Tell me about the sea")
	comes(b, 60)
	b.do(chromedp.Reload())
	comes(b, 100)
	comes(second, 100)
	second.press("Stop")
	agrees(b, 2)
	agrees(second, 2)
	say(second, "Publish a note: the shop is open on Sunday.")
	b.press("Approve")
	agrees(b, 3)
	agrees(second, 3)
	b.says("It is published as")
	say(b, "Tell me about the sea")
	comes(b, 60)
	comes(second, 60)
	c.killWorker()
	agrees(b, 4)
	agrees(second, 4)
	b.quiet("404")
	second.quiet()
}

// A budget that has no room is a question of the handler, which the page of useChat shows and answers.
func TestChatReactBudget(t *testing.T) {
	t.Parallel()
	c := startChat(t, "-limit", "500", "-react", reactPage(t))
	b := openBrowser(t)
	b.window(1280, 800, "light")
	b.do(chromedp.Navigate(c.base + "react/"))
	b.typed("What is 2 * 3?")
	b.yours(1)
	b.typed("Tell me about the sea")
	b.says("The budget has no room for this answer. Allow more?")
	b.press("Allow more")
	b.yours(2)
	c.same(b)
	b.do(chromedp.Reload())
	b.yours(2)
	c.same(b)
	b.quiet("404")
}

// The page keeps the rules of accessibility and fits a phone, light and dark, in each of its states.
func TestChatReactLooks(t *testing.T) {
	t.Parallel()
	rules := axe(t)
	c := startReact(t)
	b := openBrowser(t)
	looks := func(name string) {
		t.Helper()
		for _, look := range []struct {
			width, height int64
			scheme        string
		}{{1280, 800, "light"}, {1280, 800, "dark"}, {380, 760, "light"}, {380, 760, "dark"}} {
			b.window(look.width, look.height, look.scheme)
			b.text(`document.getElementById("scroll").scrollTop = 1e9`)
			b.keepsRules(fmt.Sprint(name, " ", look))
			b.want("document.documentElement.scrollWidth > "+fmt.Sprint(look.width), "false")
			b.want("document.documentElement.scrollHeight > "+fmt.Sprint(look.height), "false")
			b.full(screenshots, fmt.Sprintf("%s-%d-%s", name, look.width, look.scheme))
		}
		b.window(1280, 800, "light")
	}
	load := func() {
		t.Helper()
		if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[int](rules+"\n1")); err != nil {
			t.Fatal(err)
		}
	}
	b.window(1280, 800, "light")
	b.do(chromedp.Navigate(c.base + "react/"))
	b.says("survives crashes")
	load()
	looks("react-welcome")
	b.typed("Search for the white rabbit and what is 12 * (3 + 4)?")
	b.yours(1)
	b.typed("Publish a note: the shop is open on Sunday, from ten to four. Bring your own bag.")
	b.says("waits for you")
	b.says("Approve")
	b.wait(`(box => box.scrollHeight - box.scrollTop - box.clientHeight < 80)(document.getElementById("scroll"))`)
	looks("react")
	b.press("Edit")
	b.keepsRules("an edit")
	b.press("Cancel")
	b.press("Delete")
	b.keepsRules("a question back")
	b.press("Keep")
	b.press("Rename")
	b.keepsRules("a title")
	b.quiet("404")
}
