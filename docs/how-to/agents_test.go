package howto_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/agenttest"
	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Search is what the model says when it wants to search.
type Search struct {
	Topic string `json:"topic" jsonschema:"one or two words"`
}

var search = agent.NewTool("search", "Finds facts about a topic.",
	func(ctx context.Context, in Search) ([]string, error) { return lookup(ctx, in.Topic) })

var Research = handler.Define[string, string]("research", handler.Retry(5, time.Second, time.Minute))

type Researcher struct{ Model agent.Model }

func (r *Researcher) Handle(ctx context.Context, t *handler.Task, question string) (string, error) {
	result, err := agent.Run(ctx, t, agent.Config{
		Model:    r.Model,
		System:   "Answer in one sentence. Look facts up.",
		Tools:    []agent.Tool{search, refund},
		Prompt:   question,
		MaxTurns: 20,
	})
	return result.Text, err
}

func lookup(_ context.Context, topic string) ([]string, error) {
	if topic == "" {
		return nil, errors.New("no topic")
	}
	return []string{topic + " come twice a day"}, nil
}

// Refund is what the model says when it wants to pay back.
type Refund struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

var refund = agent.NewTool("refund", "Pays money back for an order.", payBack,
	agent.Needs(func(in Refund) agent.Decision {
		switch {
		case in.Cents <= 1000:
			return agent.Decision{} // it runs without asking
		case in.Cents > 100_000:
			return agent.Decision{Refuse: "more than 1,000 is for a colleague to pay"} // the model is told
		}
		return agent.Decision{Ask: true, Assignee: "support", Within: 24 * time.Hour, Always: in.Cents < 5000,
			Title: fmt.Sprintf("Pay back %d cents for order %s?", in.Cents, in.Order)}
	}))

func payBack(ctx context.Context, in Refund) (string, error) {
	call, _ := agent.CallFrom(ctx)
	return "paid", bank(ctx, call.Key, in) // the same key if the call is repeated after a crash
}

var Judge = handler.Define[string, Judgement]("judge", handler.Retry(5, time.Second, time.Minute))

// Judgement is what a judge of a text is to answer.
type Judgement struct {
	Polite bool   `json:"polite"`
	Why    string `json:"why" jsonschema:"one sentence"`
}

// judged is a handler whose agent answers with a Judgement.
func judged(ctx context.Context, t *handler.Task, cfg agent.Config, text string) (Judgement, error) {
	cfg.Prompt = "Is this polite? " + text
	judgement, _, err := agent.RunAs[Judgement](ctx, t, cfg)
	return judgement, err
}

// The model first answers in words, is told so, and then as asked.
func TestJudges(t *testing.T) {
	model := agent.ModelFunc(func(_ context.Context, q agent.Request,
		_ func(agent.Delta) error) (agent.Response, error) {
		if len(q.Messages) == 1 {
			return agent.Response{Message: agent.Message{Parts: agent.Text("It is rude.")}, Stop: agent.StopEnd}, nil
		}
		return agent.Response{Message: agent.Message{Calls: []agent.ToolCall{{ID: "1", Name: q.Tools[0].Name,
			Arguments: json.RawMessage(`{"polite":false,"why":"It shouts."}`)}}}, Stop: agent.StopTools}, nil
	})
	dir := t.TempDir()
	for _, m := range []agent.Model{&agenttest.Recording{Record: model, Dir: dir}, replay(dir)} {
		fftest.Run(t, Judge, func(ctx context.Context, t *handler.Task, text string) (Judgement, error) {
			return judged(ctx, t, agent.Config{Model: m}, text)
		}, "GO AWAY").WantResult(Judgement{Why: "It shouts."})
	}
}

var Fact = handler.Define[Search, agent.Result]("fact", handler.Retry(5, time.Second, time.Minute))

// Checker looks one fact up. It is an agent of its own, with its own model, tools and limits.
type Checker struct{ Model agent.Model }

func (c *Checker) Handle(ctx context.Context, t *handler.Task, in Search) (agent.Result, error) {
	return agent.Run(ctx, t, agent.Config{Model: c.Model, Tools: []agent.Tool{search, refund}, Prompt: in.Topic})
}

var check = agent.Child("check", "Has a fact checked, with its sources.", Fact,
	agent.ChildOptions(flowfabric.Lane("slow"), flowfabric.Deadline(time.Hour),
		flow.Share(map[string]int64{"tokens": 20_000})))

// Editor has as many facts checked at once as its model likes.
type Editor struct{ Model agent.Model }

func (e *Editor) Handle(ctx context.Context, t *handler.Task, text string) (string, error) {
	result, err := agent.Run(ctx, t, agent.Config{Model: e.Model, Tools: []agent.Tool{check}, Prompt: text})
	return result.Text, err
}

// openBelow lists what people are asked by an execution's children, and theirs.
func openBelow(ctx context.Context, a *admin.Admin, id flowfabric.ExecutionID) ([]admin.Approval, error) {
	page, err := a.Approvals(ctx, admin.ApprovalFilter{Root: id}, "", 0)
	return page.Items, err
}

// calling is a model that calls tools once, and then says "Done.".
func calling(calls ...agent.ToolCall) agent.Model {
	return agent.ModelFunc(func(_ context.Context, q agent.Request,
		_ func(agent.Delta) error) (agent.Response, error) {
		if len(q.Messages) > 1 {
			return agent.Response{Message: agent.Message{Parts: agent.Text("Done.")}, Stop: agent.StopEnd}, nil
		}
		return agent.Response{Message: agent.Message{Calls: calls}, Stop: agent.StopTools}, nil
	})
}

// Two facts are checked at once; one of them asks people, and that is found from the editor.
func TestAgentsUseAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		edit := handler.Define[string, string]("edit", flowfabric.Retries(0))
		call := func(id, tool, arguments string) agent.ToolCall {
			return agent.ToolCall{ID: id, Name: tool, Arguments: json.RawMessage(arguments)}
		}
		editor := &Editor{calling(call("1", "check", `{"topic":"tides"}`), call("2", "check", `{"topic":"waves"}`))}
		pays := calling(call("1", "refund", `{"order":"7","cents":5000}`))
		checker := &Checker{agent.ModelFunc(func(ctx context.Context, q agent.Request,
			delta func(agent.Delta) error) (agent.Response, error) {
			if q.Messages[0].Text() == "waves" {
				return pays.Generate(ctx, q, delta)
			}
			return calling().Generate(ctx, agent.Request{Messages: make([]agent.Message, 2)}, delta)
		})}
		w := fftest.New(t, runtime.Config{Lanes: []string{"default", "slow"}}, handler.Bind(edit, editor.Handle),
			handler.Bind(Fact, checker.Handle))
		x := fftest.Submit(w, edit, "Tides make waves.")
		x.AwaitSuspension()
		w.Sleep(time.Minute)
		a := admin.New(w.Client())
		open, err := openBelow(t.Context(), a, x.ID())
		if err != nil || len(open) != 1 || open[0].Root != x.ID() ||
			!slices.Equal(open[0].Path, []string{"check 1.2"}) {
			t.Fatalf("%+v, %v", open, err)
		}
		why, err := a.Why(t.Context(), x.ID())
		if err != nil || !strings.Contains(why.Sentence, `"check 1.2" (`+open[0].ID.String()+
			`) waits for an answer ("approve 1.1 refund")`) {
			t.Errorf("%v, %v", why, err)
		}
		if _, err := w.Client().Execution(open[0].ID).Approve(t.Context(), open[0].Waitpoints[0].Key,
			suspend.Answer{Choice: "approve"}, flowfabric.By("anna")); err != nil {
			t.Fatal(err)
		}
		x.Wait().WantResult("Done.")
		var printed strings.Builder
		must(t, print(t.Context(), w.Client(), x.ID(), &printed))
		if !strings.Contains(printed.String(), "[check 1.1 user] tides") {
			t.Error(&printed)
		}
	})
}

// replay answers as a model once did, from the files of a folder.
func replay(dir string) agent.Model {
	return &agenttest.Recording{FS: os.DirFS(dir)}
}

// rate keeps what a reader thinks of an answer.
func rate(ctx context.Context, a *admin.Admin, id flowfabric.ExecutionID) error {
	return agenttest.Score{Name: "helpful", Value: 0.5, Text: "right, but long"}.Set(ctx, a, id, flowfabric.By("anna"))
}

func bank(context.Context, string, Refund) error { return nil }

// approve lets the open refunds happen, for 10 each.
func approve(ctx context.Context, c *client.Client, a *admin.Admin) error {
	open, err := a.Approvals(ctx, admin.ApprovalFilter{Assignee: "support"}, "", 0)
	if err != nil {
		return err
	}
	for _, asked := range open.Items {
		answer := suspend.Answer{Choice: "approve", Arguments: json.RawMessage(`{"order":"7","cents":1000}`)}
		key := asked.Waitpoints[0].Key // "approve 1.1 refund"
		if _, err := c.Execution(asked.ID).Approve(ctx, key, answer, flowfabric.By("anna")); err != nil {
			return err
		}
	}
	return nil
}

// allowance lets a tenant use a million tokens a month. An agent over it waits for the next month.
func allowance(ctx context.Context, a *admin.Admin, tenant string) error {
	return a.PutGate(ctx, admission.Gate{
		Name:   tenant,
		Limits: map[string]admission.Limit{"tokens": {Hard: 1_000_000}},
		OnHard: admission.HardBlock,
		Reset:  flowfabric.Millis(30 * 24 * time.Hour),
	})
}

// cautious returns what there is when a limit is reached.
func cautious(ctx context.Context, t *handler.Task, cfg agent.Config) (string, error) {
	cfg.MaxTokens, cfg.MaxTime = 50_000, 10*time.Minute
	result, err := agent.Run(ctx, t, cfg)
	var limit *agent.LimitError
	if errors.As(err, &limit) {
		return "I had to stop: " + limit.Error(), nil
	}
	return result.Text, err
}

// print writes the conversation as it comes, and those of children in between.
func print(ctx context.Context, c *client.Client, id flowfabric.ExecutionID, w io.Writer) error {
	for event, err := range c.Execution(id).Tail(ctx) {
		if err != nil {
			return err
		}
		who := ""
		if event.Child != nil {
			who = strings.Join(event.Child.Path, "/") + " "
		}
		switch event.Frame.Type {
		case agent.FrameToken:
			fmt.Fprint(w, string(event.Frame.Payload))
		case agent.FrameMessage:
			var m agent.Message
			if err := json.Unmarshal(event.Frame.Payload, &m); err != nil {
				return err
			}
			fmt.Fprintf(w, "\n[%s%s] %s\n", who, m.Role, m.Text())
		}
	}
	return nil
}

var Talk = handler.Define[string, agent.Result]("talk")

type Talker struct{ Model agent.Model }

// Handle talks until nobody has written for a day.
func (c *Talker) Handle(ctx context.Context, t *handler.Task, first string) (agent.Result, error) {
	return agent.Run(ctx, t, agent.Config{
		Model:        c.Model,
		Prompt:       first,
		Mailbox:      "user",
		Conversation: true,
		Idle:         24 * time.Hour,
		MaxTurns:     200,
	})
}

// say sends a message to a conversation.
func say(ctx context.Context, c *client.Client, id flowfabric.ExecutionID, text string) error {
	_, err := c.Execution(id).Send(ctx, "user", text, flowfabric.By("anna"))
	return err
}

// Dialogue is what a conversation goes on with.
type Dialogue struct {
	Messages []agent.Message
	Prompt   string
}

var Dialogues = handler.Define[Dialogue, string]("dialogue")

// Endless talks for ever. Every 200 answers it goes on with the last 100 messages.
func (c *Talker) Endless(ctx context.Context, t *handler.Task, in Dialogue) (string, error) {
	result, err := agent.Run(ctx, t, agent.Config{
		Model:        c.Model,
		Messages:     in.Messages,
		Prompt:       in.Prompt,
		Mailbox:      "user",
		Conversation: true,
		Idle:         24 * time.Hour,
		MaxTurns:     200,
		Continue: func(r agent.Result) error {
			return handler.Continue(Dialogue{Messages: agent.Recent(r.Messages, 100)})
		},
	})
	return result.Text, err
}

// Address is where a page is.
type Address struct {
	URL string `json:"url"`
}

func browse(context.Context, string) ([]byte, error) { return make([]byte, 5000), nil }

var screenshot = agent.NewTool("screenshot", "Shows the page of an address.",
	func(ctx context.Context, in Address) ([]agent.Part, error) {
		png, err := browse(ctx, in.URL)
		return []agent.Part{{Type: agent.PartText, Text: in.URL}, {Type: agent.PartImage, Data: png}}, err
	})

// Viewer looks at pages.
type Viewer struct {
	Model agent.Model
	Blobs blob.Store // blob.Folder("/mnt/shared/blobs"), or s3.New of module blob/s3
}

func (v *Viewer) Handle(ctx context.Context, t *handler.Task, question string) (agent.Result, error) {
	return agent.Run(ctx, t, agent.Config{
		Model:   v.Model,
		Tools:   []agent.Tool{screenshot},
		Blobs:   v.Blobs,
		Mailbox: "user",
		Prompt:  question,
	})
}

var Look = handler.Define[string, agent.Result]("look")

// attach sends a picture to a conversation. Its bytes go to the store, and the message has the reference.
func attach(ctx context.Context, c *client.Client, blobs blob.Store, id flowfabric.ExecutionID, png []byte) error {
	ref, err := blobs.Put(ctx, png)
	if err != nil {
		return err
	}
	_, err = c.Execution(id).Send(ctx, "user", agent.Message{Parts: []agent.Part{
		{Type: agent.PartText, Text: "What is this?"},
		{Type: agent.PartImage, Media: "image/png", Blob: ref, Size: int64(len(png))},
	}}, flowfabric.By("anna"))
	return err
}

var Archive = handler.Define[agent.Result, string]("archive",
	handler.WithCodec(handler.Offloaded(handler.JSON, blob.Folder("/mnt/shared/blobs"), 64<<10)))

// canned is a model that searches, pays back, and ends.
func canned(ctx context.Context, req agent.Request, delta func(agent.Delta) error) (agent.Response, error) {
	calls := []agent.ToolCall{{ID: "1", Name: "search", Arguments: json.RawMessage(`{"topic":"tides"}`)},
		{ID: "2", Name: "refund", Arguments: json.RawMessage(`{"order":"7","cents":1200}`)}}
	r := agent.Response{Stop: agent.StopEnd, Usage: agent.Usage{Input: 10, Output: 5}}
	if len(req.Tools) > 0 && len(req.Messages) == 1 {
		r.Message.Calls = calls
		return r, nil
	}
	text := "done with " + req.Messages[len(req.Messages)-1].Text()
	r.Message.Parts = agent.Text(text)
	return r, delta(agent.Delta{Text: text})
}

func TestAgents(t *testing.T) {
	ctx, c := start(t, runtime.Config{}, handler.Bind(Research, (&Researcher{agent.ModelFunc(canned)}).Handle))
	a := admin.New(c)
	must(t, allowance(ctx, a, "acme"))
	exec, err := client.Submit(ctx, c, Research, "What about tides?", flowfabric.Gates("acme"))
	must(t, err)
	asked, err := exec.AwaitSuspension(ctx)
	must(t, err)
	if asked.Question.Title != "Pay back 1200 cents for order 7?" {
		t.Errorf("%+v", asked.Question)
	}
	must(t, approve(ctx, c, a))
	text, err := exec.Result(ctx)
	must(t, err)
	const paid = "anna changed the arguments. The call was made with {\"order\":\"7\",\"cents\":1000}\npaid"
	if text != "done with "+paid {
		t.Error(text)
	}
	var printed strings.Builder
	must(t, print(ctx, c, exec.ID(), &printed))
	for _, want := range []string{"[user] What about tides?", `[tool] ["tides come twice a day"]`,
		"done with " + paid + "\n[assistant] done with " + paid} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("no %q in %s", want, &printed)
		}
	}
	must(t, rate(ctx, a, exec.ID()))
	rated, err := exec.Get(ctx)
	must(t, err)
	if rated.Tags["score.helpful"] != "0.5" {
		t.Errorf("the tags are %v", rated.Tags)
	}
	transcript, err := agent.ReadTranscript(ctx, c, exec.ID(), agent.TranscriptOptions{})
	must(t, err)
	info, err := a.GetGate(ctx, "acme")
	must(t, err)
	if left := info.Headroom["tokens"]; left != 1_000_000-30 || len(transcript.Messages) != 5 {
		t.Errorf("%d tokens are left, %+v", left, transcript.Messages)
	}
}

func TestTalks(t *testing.T) {
	stop := handler.Define[string, string]("careful")
	ctx, c := start(t, runtime.Config{}, handler.Bind(Talk, (&Talker{agent.ModelFunc(canned)}).Handle),
		handler.Bind(stop, func(ctx context.Context, t *handler.Task, prompt string) (string, error) {
			return cautious(ctx, t,
				agent.Config{Model: agent.ModelFunc(canned), Prompt: prompt, Tools: []agent.Tool{search}, MaxTurns: 1})
		}))
	exec, err := client.Submit(ctx, c, Talk, "hello")
	must(t, err)
	_, err = exec.AwaitSuspension(ctx)
	must(t, err)
	must(t, say(ctx, c, exec.ID(), "more"))
	answered := 0
	for event, err := range exec.Tail(ctx) {
		must(t, err)
		if event.Frame.Type == agent.FrameMessage && strings.Contains(string(event.Frame.Payload), "done with") {
			answered++
		}
		if answered == 2 {
			break
		}
	}
	stopped, err := client.Submit(ctx, c, stop, "hello")
	must(t, err)
	text, err := stopped.Result(ctx)
	must(t, err)
	if !strings.HasPrefix(text, "I had to stop: ") {
		t.Error(text)
	}
}

// What a user attaches and what a tool shows reaches the model, and the result has references.
func TestImages(t *testing.T) {
	blobs := blob.Folder(t.TempDir())
	var ctx context.Context
	var c *client.Client
	ids := make(chan flowfabric.ExecutionID, 1)
	var seen []int
	model := agent.ModelFunc(func(_ context.Context, req agent.Request,
		_ func(agent.Delta) error) (agent.Response, error) {
		if len(req.Messages) == 1 {
			call := agent.ToolCall{ID: "1", Name: "screenshot", Arguments: json.RawMessage(`{"url":"x"}`)}
			return agent.Response{Message: agent.Message{Calls: []agent.ToolCall{call}}},
				attach(ctx, c, blobs, <-ids, make([]byte, 7000))
		}
		for _, m := range req.Messages {
			for _, p := range m.Parts {
				if p.Type == agent.PartImage {
					seen = append(seen, len(p.Data))
				}
			}
		}
		return agent.Response{Message: agent.Message{Parts: agent.Text("seen")}}, nil
	})
	ctx, c = start(t, runtime.Config{}, handler.Bind(Look, (&Viewer{model, blobs}).Handle))
	h, err := client.Submit(ctx, c, Look, "look")
	must(t, err)
	ids <- h.ID()
	r, err := h.Result(ctx)
	must(t, err)
	if !slices.Equal(seen, []int{5000, 7000}) {
		t.Errorf("the model saw images of %v bytes", seen)
	}
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if len(p.Data) > 0 {
				t.Errorf("a message of role %s has %d bytes", m.Role, len(p.Data))
			}
		}
	}
}
