package browser

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os/exec"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// chat is examples/chat in a process of its own, with its embedded store.
type chat struct {
	*testing.T
	base   string
	client *client.Client
}

// startChat builds and starts the example with its built-in model.
func startChat(t *testing.T, flags ...string) *chat {
	t.Helper()
	path, err := chatProgram()
	must.No(t, err)
	program := exec.Command(path, append([]string{"-addr", "127.0.0.1:0", "-lease", "2s", "-pace", "8ms"}, flags...)...)
	program.Env = append(program.Environ(), "OPENAI_API_KEY=", "OPENAI_BASE_URL=", "ANTHROPIC_API_KEY=",
		"FLOWFABRIC_URL=", "FLOWFABRIC_TOKEN_KEYS=")
	out, err := program.StdoutPipe()
	must.No(t, err)
	must.No(t, program.Start())
	t.Cleanup(func() {
		_ = program.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, out)
		if err := program.Wait(); err != nil {
			t.Errorf("the chat did not end well: %v", err)
		}
	})
	c := &chat{T: t}
	store := ""
	for lines := bufio.NewScanner(out); c.base == "" && lines.Scan(); {
		if _, rest, ok := strings.Cut(lines.Text(), "Store: "); ok {
			store, _, _ = strings.Cut(rest, ",")
		}
		if _, rest, ok := strings.Cut(lines.Text(), "Open "); ok {
			c.base, _, _ = strings.Cut(rest, " ")
		}
	}
	if c.client, err = client.Connect(t.Context(),
		client.Config{URL: store, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.client.Close)
	return c
}

// line is a message as the page shows it, and as it is recorded.
type line struct {
	Role, Text string
	Failed     bool
	Calls      []lineCall
}

type lineCall struct {
	Name      string
	Arguments any
}

// recorded is the conversation that the agent has recorded.
func (c *chat) recorded(id string) (out []line) {
	c.Helper()
	execution, err := flowfabric.ParseExecutionID(id)
	if err != nil {
		c.Fatal(err)
	}
	r, err := agent.ReadTranscript(c.Context(), c.client, execution, agent.TranscriptOptions{})
	if err != nil {
		c.Fatal(err)
	}
	for _, m := range r.Messages {
		l := line{Role: string(m.Role), Text: m.Text(), Failed: m.Failed}
		for _, call := range m.Calls {
			var arguments any
			if err := json.Unmarshal(call.Arguments, &arguments); err != nil {
				c.Fatal(err)
			}
			l.Calls = append(l.Calls, lineCall{call.Name, arguments})
		}
		out = append(out, l)
	}
	return out
}

// shown reads the page.
const shown = `JSON.stringify([...document.querySelectorAll("#blocks > [data-role]:not([data-loose])")].flatMap(b => {
	const calls = [...b.querySelectorAll(".call")]
	return [{ Role: b.dataset.role, Text: b.querySelector(".text").textContent, Calls: calls.map(c => ({ Name: c.dataset.tool, Arguments: JSON.parse(c.querySelector(".arguments").textContent) })) },
		...calls.filter(c => c.querySelector(".result")).map(c => ({ Role: "tool", Text: c.querySelector(".result").textContent, Failed: c.classList.contains("failed"), Calls: [] }))]
}))`

// agree fails unless the page shows what is recorded, to the letter.
func (c *chat) agree(b *tab) {
	b.Helper()
	var page []line
	must.No(b, json.Unmarshal([]byte(b.text(shown)), &page))
	for i := range page {
		if len(page[i].Calls) == 0 {
			page[i].Calls = nil
		}
	}
	if want := c.recorded(b.id()); !reflect.DeepEqual(page, want) {
		b.Errorf("the page shows\n%+v\nbut recorded is\n%+v", page, want)
	}
}

// id is that of the conversation, from the address.
func (b *tab) id() string { return b.text(`location.pathname.replace("/c/", "")`) }

// say types a message and sends it with the Enter key.
func (b *tab) say(text string) {
	b.Helper()
	b.wait(`!document.getElementById("text").disabled`)
	b.do(chromedp.SendKeys(chromedp.CSS("#text"), text+kb.Enter))
}

// turn waits until it is the user's turn, after so many messages of theirs.
func (b *tab) turn(messages int) {
	b.Helper()
	b.wait(fmt.Sprintf(
		`document.querySelectorAll(".user:not(:has(small))").length === %d && document.getElementById("state").textContent.startsWith("Your turn")`,
		messages))
}

// streams waits until an answer comes that has so many characters and more.
func (b *tab) streams(characters int) {
	b.Helper()
	b.wait(fmt.Sprintf(`document.querySelector(".assistant.open .text")?.textContent.length > %d`, characters))
}

// Tools of one answer run at once, an approval decides what is published, a page that is loaded again and a second
// one go on in the middle of an answer, and a worker that is killed there costs nothing: at the end the pages show
// what is recorded, to the letter.
func TestChat(t *testing.T) {
	t.Parallel()
	c := startChat(t, "-limit", "100000")
	b := openBrowser(t)
	b.window(1280, 800, "light")
	b.do(chromedp.Navigate(c.base))
	b.press("Search for the white rabbit and what is 12 * (3 + 4)?")
	b.turn(1)
	b.says("12 * (3 + 4) = 84.")
	c.agree(b)

	b.say(hostile)
	b.says("publish: ")
	b.says("waits for your approval")
	b.fill("Comment (optional)", "<i>good</i>")
	b.press("Approve")
	b.turn(2)
	c.agree(b)
	b.want(`document.title.startsWith("Search") && !document.querySelector("#blocks img, #blocks script, #card img")`,
		"true")
	note, err := http.Get(
		c.base + strings.TrimPrefix(b.text(`document.querySelector(".assistant .text a").getAttribute("href")`), "/"))
	must.No(t, err)
	defer note.Body.Close()
	if text, err := io.ReadAll(note.Body); err != nil || !strings.Contains(string(text), "<script>document") ||
		note.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%s is published as %s: %v", text, note.Header.Get("Content-Type"), err)
	}

	b.say("Publish a note: never")
	b.says("publish: ")
	b.fill("Comment (optional)", "not <b>today</b>")
	b.press("Reject")
	b.turn(3)
	b.says("I did not publish it: rejected by user: not <b>today</b>.")
	c.agree(b)

	b.say("Tell me about the sea")
	b.streams(60)
	b.do(chromedp.Reload())
	b.streams(150)
	second := b.another()
	second.window(1280, 800, "light")
	second.do(chromedp.Navigate(b.text("location.href")))
	second.streams(250)
	b.press("Kill the worker")
	b.says("was killed (SIGKILL)")
	b.says("Another worker took over")
	second.says("Another worker took over")
	b.turn(4)
	second.turn(4)
	c.agree(b)
	c.agree(second)
	b.want(`document.querySelectorAll("#steps li").length > 8`, "true")
	second.say("and 7 * 6?")
	second.turn(5)
	b.turn(5)
	c.agree(b)
	c.agree(second)
	b.quiet()
	second.quiet()
}

// hostile is a message that is full of markup.
const hostile = `Publish a note: <img src=x onerror="document.title='owned'"><script>document.title='owned'</script> & "quotes" </textarea> ]]>`

// An answer that the budget does not pay for is not recorded, which the page shows, and nothing goes on until a
// person allows more, or ends it.
func TestChatBudget(t *testing.T) {
	t.Parallel()
	c := startChat(t, "-limit", "500")
	b := openBrowser(t)
	b.window(1280, 800, "light")
	b.do(chromedp.Navigate(c.base))
	b.say("What is 2 * 3?")
	b.turn(1)
	b.say("Tell me about the sea")
	b.says("The budget has no room for this answer. Allow more?")
	b.says("Not paid for, so not recorded.")
	c.agree(b)
	b.wait(`/^\d+ of 500 tokens used$/.test(document.getElementById("spent").textContent)`)
	b.do(chromedp.Reload())
	b.says("Not paid for, so not recorded.")
	b.shoot("chat-budget")
	b.press("Allow 500 more tokens")
	b.says("of 1,000 tokens used")
	b.turn(2)
	c.agree(b)

	b.say("Tell me about the sea")
	b.says("Not paid for, so not recorded.")
	b.press("End the conversation")
	b.says("The conversation has ended.")
	b.wait(`document.getElementById("text").disabled && !document.querySelector("#card button")`)
	c.agree(b)
	b.do(chromedp.Reload())
	b.says("The conversation has ended.")
	b.says("Not paid for, so not recorded.")
	c.agree(b)
	b.quiet()
}

// The page keeps the rules of accessibility and fits a phone, light and dark, in each of its states.
func TestChatLooks(t *testing.T) {
	t.Parallel()
	rules := axe(t)
	c := startChat(t)
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
	b.do(chromedp.Navigate(c.base))
	b.says("survives crashes")
	load()
	looks("chat-welcome")
	b.say("Tell me about the sea")
	b.streams(100)
	b.press("Kill the worker")
	b.says("Another worker took over")
	b.streams(300)
	b.full(screenshots, "chat-killed-1280-light")
	b.turn(1)
	b.say("Search for the white rabbit and what is 12 * (3 + 4)?")
	b.turn(2)
	b.say("Publish a note: the shop is open on Sunday, from ten to four. Bring your own bag.")
	b.says("publish: ")
	looks("chat")
	b.window(380, 760, "light")
	b.wait(`!document.getElementById("behind").open`)
	b.text(`document.querySelector("#behind summary").click()`)
	b.says("Kill the worker")
	b.keepsRules("behind the text")
	b.full(screenshots, "chat-behind-380-light")
	b.quiet()
}
