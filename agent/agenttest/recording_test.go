package agenttest_test

import (
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/agenttest"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ask = handler.Define[string, string]("ask")

type city struct {
	City string `json:"city"`
}

// asking is an agent of a model.
func asking(model agent.Model, system string) func(context.Context, *handler.Task, string) (string, error) {
	weather := agent.NewTool("weather", "Weather of a city", func(_ context.Context, in city) (string, error) {
		return "rain & wind in " + in.City, nil
	})
	return func(ctx context.Context, t *handler.Task, question string) (string, error) {
		r, err := agent.Run(ctx, t, agent.Config{Model: model, System: system, Tools: []agent.Tool{weather},
			Prompt: question})
		return r.Text, err
	}
}

// service stands in for one that is recorded.
var service = agent.ModelFunc(func(_ context.Context, q agent.Request,
	delta func(agent.Delta) error) (agent.Response, error) {
	last := q.Messages[len(q.Messages)-1]
	if last.Role == agent.User {
		return agent.Response{Message: agent.Message{Private: []byte(`{"signed": 1}`), Calls: []agent.ToolCall{
				{ID: "1", Name: "weather", Arguments: []byte(`{"city": "Rome"}`)}}}, Stop: agent.StopTools},
			delta(agent.Delta{Call: &agent.CallDelta{ID: "1", Name: "weather", Arguments: `{"city": `}})
	}
	text := "There is " + last.Text()
	return agent.Response{Message: agent.Message{Parts: agent.Text(text)}, Stop: agent.StopEnd,
		Usage: agent.Usage{Input: 5, Output: 2}}, delta(agent.Delta{Text: text})
})

const answer = "There is rain & wind in Rome"

// What was recorded is played again without the model, wherever the worker dies; and another request is told apart.
func TestRecording(t *testing.T) {
	dir := t.TempDir()
	undated := func(q *agent.Request) { q.System, _, _ = strings.Cut(q.System, " It is ") }
	recorded := &agenttest.Recording{Record: service, Dir: dir, Ignore: undated}
	fftest.Run(t, ask, asking(recorded, "Be brief. It is Monday."), "Weather?").WantResult(answer)

	replayed := &agenttest.Recording{FS: os.DirFS(dir), Ignore: undated}
	r := fftest.Run(t, ask, asking(replayed, "Be brief. It is Tuesday."), "Weather?")
	r.WantResult(answer)
	r.Want(fftest.Want{Frames: map[string][]string{"token": {answer}, agent.FrameArguments: {`{"city": `}}})
	crashes := fftest.Crashes(t, ask, func(*fftest.Effects) func(context.Context, *handler.Task,
		string) (string, error) {
		return asking(replayed, "Be brief.")
	}, "Weather?", func(r *fftest.Report[string]) {
		if r.Result != answer || r.Err != nil {
			t.Errorf("%s: %q, %v", r.Crash, r.Result, r.Err)
		}
	})
	if crashes < 10 {
		t.Errorf("%d crashes", crashes)
	}

	r = fftest.Run(t, ask, asking(replayed, "Be long."), "Weather?")
	r.Want(fftest.Want{Failure: "agent_recording"})
	want := "agenttest: call 1 of the model differs from the recorded one (- recorded, + asked):\n  {\n" +
		"- \t\"System\": \"Be brief.\",\n+ \t\"System\": \"Be long.\",\n"
	if r.Err == nil || !strings.Contains(r.Err.Error(), want) {
		t.Errorf("%v\nwant %s", r.Err, want)
	}
	must.No(t, os.Remove(dir+"/2.json"))
	r = fftest.Run(t, ask, asking(replayed, "Be brief."), "Weather?")
	if r.Err == nil || !strings.Contains(r.Err.Error(), "call 2 of the model is not recorded") {
		t.Error(r.Err)
	}
}

// An answer of a type is played again as the model gave it: by a tool, if the model takes no schema.
func TestRecordingOfATypedAnswer(t *testing.T) {
	model := agent.ModelFunc(func(context.Context, agent.Request, func(agent.Delta) error) (agent.Response, error) {
		return agent.Response{Message: agent.Message{Calls: []agent.ToolCall{{ID: "1", Name: "final_answer",
			Arguments: []byte(`{"city":"Rome"}`)}}}}, nil
	})
	dir := t.TempDir()
	for _, m := range []agent.Model{&agenttest.Recording{Record: model, Dir: dir},
		&agenttest.Recording{FS: os.DirFS(dir)}} {
		r := fftest.Run(t, handler.Define[string, city]("typed"),
			func(ctx context.Context, task *handler.Task, in string) (city, error) {
				c, _, err := agent.RunAs[city](ctx, task, agent.Config{Model: m, Prompt: in})
				return c, err
			}, "Where?")
		r.WantResult(city{"Rome"})
	}
}

// A score is in the tags, replaces an older one, and is refused if it is none.
func TestScore(t *testing.T) {
	ctx := t.Context()
	s, err := embedded.Start(ctx, embedded.Config{})
	must.No(t, err)
	defer s.Close()
	c, err := client.Connect(ctx, client.Config{URL: s.URL()})
	must.No(t, err)
	defer c.Close()
	a := admin.New(c)
	x, err := client.Submit(ctx, c, ask, "Weather?")
	must.No(t, err)
	tags := func() map[string]string {
		got, err := x.Get(ctx)
		must.No(t, err)
		return got.Tags
	}
	must.No(t, agenttest.Score{Name: "helpful", Value: 0.25, Text: "too long"}.Set(ctx, a, x.ID()))
	if got := tags(); got["score.helpful"] != "0.25" || got["score.helpful.text"] != "too long" {
		t.Errorf("the tags are %v", got)
	}
	must.No(t, agenttest.Score{Name: "helpful", Value: 1}.Set(ctx, a, x.ID()))
	if got := tags(); got["score.helpful"] != "1" || len(got) != 1 {
		t.Errorf("the tags are %v", got)
	}
	for _, bad := range []agenttest.Score{{Name: "x", Value: math.NaN()}, {Name: "X!"}, {Name: "x",
		Text: strings.Repeat("x", 257)}} {
		if err := bad.Set(ctx, a, x.ID()); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
