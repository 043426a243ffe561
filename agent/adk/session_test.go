package adk_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/agenttool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent/adk"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/suspend"
)

var quiet = slog.New(slog.DiscardHandler)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ask = handler.Define[string, []string]("ask", flowfabric.Retries(3))

// script is a model that answers by how many answers the request has.
type script struct {
	answers []*genai.Content
	called  func(turn int, q *model.LLMRequest) // may be nil
}

func (s *script) Name() string { return "script" }

func (s *script) GenerateContent(ctx context.Context, q *model.LLMRequest,
	stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		turn := 0
		for _, c := range q.Contents {
			if c.Role == genai.RoleModel {
				turn++
			}
		}
		if s.called != nil {
			s.called(turn+1, q)
		}
		if turn >= len(s.answers) {
			yield(nil, handler.Permanent(fmt.Errorf("the script has no answer %d", turn+1)))
			return
		}
		answer := s.answers[turn]
		for _, word := range strings.SplitAfter(answer.Parts[0].Text, " ") {
			if stream && word != "" && !yield(&model.LLMResponse{Content: genai.NewContentFromText(word,
				genai.RoleModel), Partial: true}, nil) {
				return
			}
		}
		yield(&model.LLMResponse{Content: answer, UsageMetadata: &genai.GenerateContentResponseUsageMetadata{
			TotalTokenCount: 10}}, context.Cause(ctx))
	}
}

func says(text string) *genai.Content { return genai.NewContentFromText(text, genai.RoleModel) }

// wants is an answer that calls tools: name, argument, name, argument …, as from a service that gives calls no ids.
func wants(calls ...string) *genai.Content {
	c := &genai.Content{Role: genai.RoleModel}
	for pair := range slices.Chunk(calls, 2) {
		c.Parts = append(c.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{Name: pair[0],
			Args: map[string]any{"text": pair[1]}}})
	}
	return c
}

type query struct {
	Text string `json:"text"`
}

func made[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newTool(cfg functiontool.Config, fn functiontool.Func[query, string]) tool.Tool {
	cfg.Description = "does " + cfg.Name
	return made(functiontool.New(cfg, fn))
}

// tools note what they do under the name of their step, which their argument is.
func tools(did func(string)) []tool.Tool {
	return []tool.Tool{
		newTool(functiontool.Config{Name: "search"}, func(ctx agent.Context, q query) (string, error) {
			did(q.Text)
			if strings.HasSuffix(q.Text, "1.2 search") {
				return "", errors.New("nothing is there")
			}
			return "about " + q.Text, ctx.State().Set("seen", q.Text)
		}),
		newTool(functiontool.Config{Name: "refund", RequireConfirmation: true},
			func(_ agent.Context, q query) (string, error) {
				did(q.Text)
				return "paid", nil
			}),
	}
}

func newAgent(name string, llm model.LLM, more func(*llmagent.Config)) agent.Agent {
	cfg := llmagent.Config{Name: name, Description: "is " + name, Model: adk.Model(llm)}
	if more != nil {
		more(&cfg)
	}
	return made(llmagent.New(cfg))
}

// told is what was said, in lines.
func told(events []*session.Event) (lines []string) {
	for _, e := range events {
		for _, p := range e.Content.Parts {
			switch {
			case p.FunctionCall != nil:
				lines = append(lines, fmt.Sprint(e.Author, " calls ", p.FunctionCall.Name))
			case p.FunctionResponse != nil:
				r := maps.Clone(p.FunctionResponse.Response)
				delete(r, "payload")
				lines = append(lines, fmt.Sprint(e.Author, ": ", p.FunctionResponse.Name, " ", r))
			default:
				lines = append(lines, e.Author+": "+p.Text)
			}
		}
	}
	return lines
}

// answering is a handler that gives an agent one message.
func answering(cfg func() adk.Config) func(context.Context, *handler.Task, string) ([]string, error) {
	return func(ctx context.Context, t *handler.Task, message string) ([]string, error) {
		s, err := adk.New(ctx, t, cfg())
		if err != nil {
			return nil, err
		}
		a, err := s.Send(ctx, genai.NewContentFromText(message, genai.RoleUser))
		return append(told(a.Events), a.Text), err
	}
}

// office is an agent with two searches and two refunds side by side, of which people reject one, a helper that is a
// tool, and a clerk to whom it hands over in the end.
func office(fx *fftest.Effects) adk.Config {
	noted := func(name string, answers ...*genai.Content) *script {
		return &script{answers: answers, called: func(turn int, _ *model.LLMRequest) {
			fx.Did(fmt.Sprint(name, " model ", turn))
		}}
	}
	helper := newAgent("helper", noted("support tool 3.1 helper", says("it helps")), nil)
	clerk := newAgent("clerk", &script{answers: []*genai.Content{says("all done now")},
		called: func(int, *model.LLMRequest) { fx.Did("clerk model 1") }}, nil)
	hand := &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{
		Name: "transfer_to_agent", Args: map[string]any{"agent_name": "clerk"}}}}}
	help := &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{
		Name: "helper", Args: map[string]any{"request": "help"}}}}}
	root := newAgent("support", noted("support", wants("search", "support tool 1.1 search", "search",
		"support tool 1.2 search", "refund", "support tool 2.1 refund", "refund", "never"), help, hand),
		func(c *llmagent.Config) {
			c.Tools = append(tools(fx.Did), agenttool.New(helper, nil))
			c.SubAgents = []agent.Agent{clerk}
		})
	return adk.Config{Runner: runner.Config{Agent: root}, Stream: true}
}

// calls are the steps of an office.
var calls = []string{"support model 1", "support tool 1.1 search", "support tool 1.2 search", "support tool 2.1 refund",
	"support model 2", "support tool 3.1 helper model 1", "support model 3", "clerk model 1"}

func wantOffice(t *testing.T, r *fftest.Report[[]string]) {
	t.Helper()
	want := []string{"user: hello", "support calls search", "support calls search", "support calls refund",
		"support calls refund", "support: search map[result:about support tool 1.1 search]",
		"support: search map[error:nothing is there]", needs, needs, "support calls adk_request_confirmation",
		"support calls adk_request_confirmation", "user: adk_request_confirmation map[confirmed:true]",
		"user: adk_request_confirmation map[confirmed:false]", "support: refund map[result:paid]",
		`support: refund map[error:error tool "refund" call is rejected]`, "support calls helper",
		"support: helper map[result:it helps]", "support calls transfer_to_agent", "support: transfer_to_agent map[]",
		"clerk: all done now", "all done now"}
	if !slices.Equal(r.Result, want) {
		t.Errorf("the conversation\n%q\nwant\n%q", r.Result, want)
	}
	if shown := r.Kept("token"); strings.Join(shown, "|") != "it |helps|all |done |now" {
		t.Errorf("readers see %q", shown)
	}
	if steps := len(r.Steps); steps != 13 {
		t.Errorf("%d steps: %+v", steps, r.Steps)
	}
}

const needs = `support: refund map[error:error tool "refund" requires confirmation, please approve or reject]`

// Wherever the worker dies around an agent of ADK with tools side by side, people who decide, an agent below a tool and
// one that takes over, no recorded call of a model or a tool is made again, and readers see the same text.
func TestCrashes(t *testing.T) {
	var fx *fftest.Effects
	repeated := 0
	var shown []string
	crashes := fftest.Crashes(t, ask,
		func(next *fftest.Effects) func(context.Context, *handler.Task, string) ([]string, error) {
			fx = next
			return fftest.Answered(answering(func() adk.Config { return office(next) }),
				fftest.Approve("approve 1.1 refund", suspend.Answer{Choice: "approve"}, flowfabric.By("anna")),
				fftest.Approve("approve 1.2 refund", suspend.Answer{Choice: "reject"}, flowfabric.By("anna")))
		}, "hello", func(r *fftest.Report[[]string]) {
			if r.Err != nil || len(r.Result) == 0 || r.Result[len(r.Result)-1] != "all done now" {
				t.Errorf("%s: %q, %v", r.Crash, r.Result, r.Err)
			}
			if shown == nil {
				shown = r.Kept("token")
				wantOffice(t, r)
			}
			if kept := r.Kept("token"); !slices.Equal(kept, shown) {
				t.Errorf("%s: readers see %q, undisturbed %q", r.Crash, kept, shown)
			}
			if fx.Count("never") > 0 {
				t.Errorf("%s: a rejected call was made", r.Crash)
			}
			// One call is under way at a time, but for the two searches. Only that may be made again.
			var again []string
			for _, call := range calls {
				for range fx.Count(call) - 1 {
					again = append(again, call)
				}
			}
			if len(again) > 1 && !slices.Equal(again, calls[1:3]) {
				t.Errorf("%s: %q are made again", r.Crash, again)
			}
			repeated += len(again)
		})
	t.Logf("%d crashes repeated %d of %d calls", crashes, repeated, crashes*len(calls))
	if crashes < 40 || repeated < len(calls) {
		t.Errorf("%d crashes repeated %d calls", crashes, repeated)
	}
}
