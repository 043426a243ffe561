package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testnode"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// chatPage is the page of examples/chat-react, installed from its lock, checked and built once for all tests, in a copy
// of the tree that has clients/chat-transport beside it.
var chatPage = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "flowfabric-react")
	if err != nil {
		return "", err
	}
	pageFolder = dir
	if err := testnode.Copy("../../clients/chat-transport", filepath.Join(dir, "clients/chat-transport")); err != nil {
		return "", err
	}
	page := filepath.Join(dir, "examples/chat-react")
	node, err := testnode.InstallCopy(context.Background(), "../../examples/chat-react", page)
	if err != nil {
		return "", err
	}
	return filepath.Join(page, "dist"), npm(node, page, "run", "build")
})

// npm runs npm in a folder where packages are installed.
func npm(node testnode.Node, dir string, args ...string) error {
	if text, err := node.Command(context.Background(), dir, "npm", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("npm %s: %w: %s", args[0], err, text)
	}
	return nil
}

var pageFolder string // which TestMain removes

// reactPage is the folder of the built page. Without npm, or without a registry, the test is skipped, and fails with CI
// set.
func reactPage(t *testing.T) string {
	t.Helper()
	page, err := chatPage()
	testnode.Need(t, err)
	return page
}

// The transport of clients/chat-transport compiles against the types of the AI SDK, and does what it says with a chat
// of the AI SDK, against a server that breaks streams. It has at most 150 lines.
func TestChatTransport(t *testing.T) {
	t.Parallel()
	dir, node := testnode.Installed(t, "../../clients/chat-transport")
	must.No(t, npm(node, dir, "test"))
	source, err := os.ReadFile(filepath.Join(dir, "src/index.ts"))
	must.No(t, err)
	if lines := strings.Count(string(source), "\n"); lines > 150 {
		t.Errorf("the transport has %d lines", lines)
	}
}

// The locks of npm packages name no registry, so that everybody installs from their own.
func TestLocksNameNoRegistry(t *testing.T) {
	for _, name := range []string{
		"examples/chat-react", "clients/chat-transport", "clients/python", "clients/typescript",
		"clients/typescript/lint"} {
		text, err := os.ReadFile(filepath.Join("../..", name, "package-lock.json"))
		must.No(t, err)
		if strings.Contains(string(text), `"resolved"`) {
			t.Errorf("the lock of %s names a registry", name)
		}
	}
}

// startReact starts the example with its page of useChat.
func startReact(t *testing.T) *chat {
	t.Helper()
	return startChat(t, "-limit", "1000000", "-pace", "15ms", "-react", reactPage(t))
}

// part is what a page shows of a conversation, or what is recorded: a text of somebody, or a call with its result.
type part struct {
	Who, Text string
	Arguments any
	Failed    bool
}

// spoken is the conversation that the agent has recorded, as parts. What a rejected call says is for the model alone.
func (c *chat) spoken(id flowfabric.ExecutionID) (out []part) {
	c.Helper()
	r, err := agent.ReadTranscript(c.Context(), c.client, id, agent.TranscriptOptions{})
	must.No(c, err)
	calls := map[string]int{}
	for _, m := range r.Messages {
		if text := m.Text(); text != "" && m.Role != agent.ToolRole {
			out = append(out, part{Who: string(m.Role), Text: text})
		}
		for _, call := range m.Calls {
			p := part{Who: call.Name}
			must.No(c, json.Unmarshal(call.Arguments, &p.Arguments))
			calls[call.ID] = len(out)
			out = append(out, p)
		}
		if m.Role != agent.ToolRole {
			continue
		}
		p := &out[calls[m.Call]]
		if m.Edited != nil { // the page shows what ran, and not what the model is told of that
			must.No(c, json.Unmarshal(m.Edited.Arguments, &p.Arguments))
			m.Parts = m.Parts[1:]
		}
		p.Text, p.Failed = canonical(m.Text()), m.Failed
	}
	return out
}

// canonical is JSON in one form, and any other text as it is.
func canonical(text string) string {
	var value any
	if json.Unmarshal([]byte(text), &value) != nil {
		return text
	}
	out, _ := json.Marshal(value)
	return string(out)
}

// onPage reads the page.
const onPage = `JSON.stringify([...document.querySelectorAll("#messages > [data-role]")].flatMap(m =>
	[...m.querySelectorAll(":scope > .text, :scope > .call[data-tool]")].map(e => e.matches(".text")
		? { Who: m.dataset.role, Text: e.textContent }
		: { Who: e.dataset.tool, Arguments: JSON.parse(e.querySelector(".arguments").textContent),
			Text: e.querySelector(".result")?.textContent ?? "", Failed: e.matches(".failed") })))`

// same fails unless the page shows what is recorded, to the letter.
func (c *chat) same(b *tab) {
	b.Helper()
	var page []part
	must.No(b, json.Unmarshal([]byte(b.text(onPage)), &page))
	want := c.spoken(c.execution(b))
	for i := range page {
		if page[i].Arguments != nil {
			page[i].Text = canonical(page[i].Text)
		}
		if i < len(want) && page[i].Failed && want[i].Failed && page[i].Text == "" { // rejected
			want[i].Text = ""
		}
	}
	for i := range max(len(page), len(want)) {
		if i >= len(page) || i >= len(want) || !reflect.DeepEqual(page[i], want[i]) {
			b.Errorf("of %d parts that are recorded the page shows %d; from number %d on\n%+v\nin the place of\n%+v",
				len(want), len(page), i, page[min(i, len(page)):], want[min(i, len(want)):])
			return
		}
	}
}

// execution is the one that a page shows.
func (c *chat) execution(b *tab) flowfabric.ExecutionID {
	c.Helper()
	name := b.text(`location.hash.slice(1) || decodeURIComponent(location.pathname.replace("/react/c/", ""))`)
	var page admin.Page[admin.Listed]
	testwait.Progress(c, "one execution is the conversation "+name, func() (bool, any) {
		var err error
		page, err = admin.New(c.client).ListPage(c.Context(),
			admin.Filter{Kind: "chat", Tags: map[string]string{"chat.id": name}}, "", 2)
		must.No(c, err)
		return len(page.Items) == 1, len(page.Items) // what changes its state meanwhile may be left out
	})
	return page.Items[0].ID
}

// typed types a message and sends it with the Enter key.
func (b *tab) typed(text string) {
	b.Helper()
	b.wait(`[...document.querySelectorAll("#composer button")].some(b => b.innerText === "Send")`)
	b.do(chromedp.SendKeys(chromedp.CSS("#text"), text+kb.Enter))
}

// yours waits until it is the user's turn, after so many messages of theirs that are all answered.
func (b *tab) yours(messages int) {
	b.Helper()
	b.wait(fmt.Sprintf(`document.querySelectorAll("#messages > .user").length === %d
		&& document.querySelector("#messages > :last-child").matches(".assistant")
		&& document.getElementById("state").textContent === "Your turn."`, messages))
}

// comes waits until an answer comes that has so many characters and more.
func (b *tab) comes(characters int) {
	b.Helper()
	b.wait(fmt.Sprintf(`[...document.querySelectorAll("#messages > .assistant:last-child .text.open")].pop()
		?.textContent.length > %d`, characters))
}

// lastPress clicks the last button that says a text.
func (b *tab) lastPress(text string) {
	b.Helper()
	find := `[...document.querySelectorAll("button")].filter(e => e.innerText.trim() === ` + literal(text) + `).pop()`
	b.wait(find)
	b.text(find + `.click()`)
}

// The page of useChat, with the transport of the AI SDK and with ours: an answer streams, and goes on in a page that
// is loaded again; another tab stops it; it is made again, and its question edited; a call is approved with other
// arguments, and one is rejected; the worker is killed in mid-word. After each of them both tabs show what is
// recorded, to the letter.
func TestChatReact(t *testing.T) {
	t.Parallel()
	c := startReact(t)
	for _, transport := range []string{"stock", "ours"} {
		t.Run(transport, func(t *testing.T) {
			c := c.in(t)
			b := openBrowser(t)
			b.window(1280, 800, "light")
			b.do(chromedp.Navigate(c.base + "react/?transport=" + transport))
			b.press("Search for the white rabbit and what is 12 * (3 + 4)?")
			b.yours(1)
			b.says("12 * (3 + 4) = 84.")
			c.same(b)

			b.typed("Tell me about the sea")
			b.comes(60)
			b.do(chromedp.Reload())
			b.comes(150)
			second := b.another()
			second.window(1280, 800, "light")
			second.do(chromedp.Navigate(b.text("location.href")))
			second.comes(200)
			second.press("Stop")
			both := func(messages int) {
				t.Helper()
				b.yours(messages)
				second.yours(messages)
				c.same(b)
				c.same(second)
			}
			both(2)
			stopped := b.text(`document.querySelector("#messages > :last-child .text").textContent.length`)

			b.lastPress("Answer again")
			second.comes(0)
			both(2)
			b.want(`document.querySelector("#messages > :last-child .text").textContent.length > `+stopped, "true")

			second.lastPress("Edit")
			second.fill("Your message", "What is 6 * 7?")
			second.press("Send again")
			b.says("6 * 7 = 42.")
			both(2)
			b.want(`document.querySelectorAll("#messages > .user")[1].querySelector(".text").textContent`,
				"What is 6 * 7?")

			b.typed("Publish a note: the shop is open on Sunday.")
			second.says("waits for you")
			second.fill("What it is called with", `{"title":"Closed","text":"The shop is closed on <b>Sunday</b>."}`)
			second.fill("Comment", "not <i>open</i>")
			second.press("Approve")
			both(3)
			c.published(b, "Closed\n\nThe shop is closed on <b>Sunday</b>.\n")

			b.typed("Publish a note: never")
			second.says("waits for you")
			b.fill("Comment", "not today")
			b.press("Reject")
			both(4)
			b.says("I did not publish it: rejected by user: not today.")

			b.typed("Tell me about the sea")
			b.comes(60)
			c.killWorker()
			both(5)
			b.do(chromedp.Reload())
			both(5)

			b.text(`(() => { const files = new DataTransfer()
				files.items.add(new File(["ab".repeat(5000)], "a note.txt", { type: "text/plain" }))
				document.querySelector("input[type=file]").files = files.files })()`)
			b.typed("What is 7 * 7?")
			both(6)
			second.want(`document.querySelector("a.file").textContent`, "a note.txt")
			second.want(`(q => (q.open("GET", document.querySelector("a.file").href, false), q.send(), q.responseText))
				(new XMLHttpRequest()) === "ab".repeat(5000)`, "true")

			b.press("Rename")
			b.fill("Title", "The <sea>")
			b.press("Save the title")
			b.wait(`document.title.startsWith("The <sea>")`)
			second.do(chromedp.Reload())
			second.wait(`document.querySelector("nav [aria-current]")?.textContent === "The <sea>"`)
			b.press("Delete")
			b.press("Delete for good")
			b.says("survives crashes")
			b.wait(`![...document.querySelectorAll("nav a")].some(a => a.textContent === "The <sea>")`)
			second.says("The conversation was deleted.")
			b.quiet("404")
			second.quiet("404")
		})
	}
}

// in is the same example for a part of a test.
func (c *chat) in(t *testing.T) *chat { return &chat{T: t, base: c.base, client: c.client} }

// killWorker kills the process of the worker.
func (c *chat) killWorker() {
	c.Helper()
	answer, err := http.Post(c.base+"chat/kill", "application/json", strings.NewReader("{}"))
	must.No(c, err)
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		c.Fatalf("the worker is not killed: %s", answer.Status)
	}
}

// published compares the note that the last message links to.
func (c *chat) published(b *tab, want string) {
	c.Helper()
	note, err := http.Get(c.base + strings.TrimPrefix(
		b.text(`[...document.querySelectorAll(".assistant .text a")].pop().getAttribute("href")`), "/"))
	must.No(c, err)
	defer note.Body.Close()
	if text, err := io.ReadAll(note.Body); err != nil || string(text) != want {
		c.Errorf("published is %q, %v, want %q", text, err, want)
	}
}
