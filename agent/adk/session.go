package adk

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/platform"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool/toolconfirmation"
	"google.golang.org/genai"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Config is what [New] needs: at least the agent.
type Config struct {
	// Runner is the configuration of ADK's runner. Agent is needed; AppName is "flowfabric" by default. SessionService
	// must be nil, as the session is that of the execution. Plugins run behind ours.
	Runner runner.Config
	// UserID is what tools and the memory service are told. Default "user".
	UserID string
	// Stream asks models for their text in pieces. They are frames of type token either way: see [Model].
	Stream bool
	// History is what was said before this execution: [Answer.Events] of others. They must be the same in each run.
	History []*session.Event
	// Question changes what people are asked about a call: its title, choices apart from approve and reject, who should
	// answer, until when (Within). Default: the tool and its arguments. It must depend on its arguments alone.
	Question func(call *genai.FunctionCall, q suspend.Question) suspend.Question
}

// Session is a conversation with an agent in one run of a handler. Make it with [New]. It is not safe for concurrent
// use.
type Session struct {
	cfg    Config
	run    *run
	runner *runner.Runner
	passes int // that asked people
}

// Answer is what an agent said to one message.
type Answer struct {
	Text string // of the last event that is a final response, thoughts left out
	// Events are all events but partial ones, the message included. Their ids and times are others in each run of the
	// handler.
	Events []*session.Event
}

// New begins a conversation in a run of a handler.
//
// Errors: flowfabric.ErrInvalidInput for a configuration that cannot be.
func New(ctx context.Context, t *handler.Task, cfg Config) (*Session, error) {
	switch {
	case cfg.Runner.Agent == nil:
		return nil, invalid("Config.Runner.Agent is missing")
	case cfg.Runner.SessionService != nil:
		return nil, invalid("Config.Runner.SessionService must be nil: steps of the execution keep the session")
	}
	s := &Session{cfg: cfg, run: &run{task: t, counts: map[string]int{}, marks: map[string]bool{}}}
	s.cfg.UserID = cmp.Or(cfg.UserID, "user")
	c := &s.cfg.Runner
	c.AppName, c.SessionService = cmp.Or(c.AppName, "flowfabric"), session.InMemoryService()
	ours, err := plugin.New(plugin.Config{Name: "flowfabric", BeforeModelCallback: s.run.beforeModel,
		AfterModelCallback: s.run.afterModel, BeforeToolCallback: s.run.beforeTool,
		AfterToolCallback: s.run.afterTool, OnToolErrorCallback: s.run.toolError})
	if err != nil {
		return nil, err
	}
	c.PluginConfig.Plugins = append([]*plugin.Plugin{ours}, c.PluginConfig.Plugins...)
	if s.runner, err = runner.New(*c); err != nil {
		return nil, invalid("%v", err)
	}
	made, err := c.SessionService.Create(ctx, &session.CreateRequest{AppName: c.AppName, UserID: s.cfg.UserID,
		SessionID: t.ID().String()})
	if err != nil {
		return nil, err
	}
	for _, e := range cfg.History {
		if err := c.SessionService.AppendEvent(ctx, made.Session, e); err != nil {
			return nil, fmt.Errorf("adk: history: %w", err)
		}
	}
	return s, nil
}

func invalid(format string, args ...any) error {
	return handler.Permanent(fmt.Errorf("adk: %w: %w", flowfabric.ErrInvalidInput, fmt.Errorf(format, args...)))
}

// Send gives the agent a message and returns what it answers, after people have decided what they are asked about. A
// message may also be the response of a long-running tool. A session takes messages one after the other.
//
// Errors: those of handler.Step and of handler.Task.AskAll, which the handler returns as they are: a wait is one; the
// error of a model; flowfabric.ErrInvalidInput for a model that is not wrapped by [Model] and for what cannot be
// recorded.
func (s *Session) Send(ctx context.Context, message *genai.Content) (a Answer, err error) {
	inside := platform.WithTaskRunner(context.WithValue(ctx, runKey{}, place{run: s.run}), s.run.each)
	for message != nil {
		asked, err := s.pass(inside, message, &a)
		if err = cmp.Or(s.run.halted(), err); err != nil {
			return Answer{}, err
		}
		if message, err = s.decide(ctx, asked); err != nil {
			return Answer{}, err
		}
	}
	return a, nil
}

// pass lets the agent answer a message, and returns the calls that people are to be asked about.
func (s *Session) pass(ctx context.Context, message *genai.Content, a *Answer) (asked []*genai.FunctionCall,
	err error) {
	mode := agent.StreamingModeNone
	if s.cfg.Stream {
		mode = agent.StreamingModeSSE
	}
	a.Text = ""
	for e, err := range s.runner.Run(ctx, s.cfg.UserID, s.run.task.ID().String(), message,
		agent.RunConfig{StreamingMode: mode}, runner.WithYieldUserMessage()) {
		switch {
		case err != nil:
			return nil, err
		case e == nil || e.Partial:
			continue
		}
		a.Events = append(a.Events, e)
		if e.Content == nil {
			continue
		}
		said := ""
		for _, p := range e.Content.Parts {
			switch {
			case p.FunctionCall != nil && p.FunctionCall.Name == toolconfirmation.FunctionCallName:
				asked = append(asked, p.FunctionCall)
			case !p.Thought:
				said += p.Text
			}
		}
		if e.Author != "user" && e.IsFinalResponse() && said != "" {
			a.Text = said
		}
	}
	return asked, nil
}

// decide asks people about calls. What they decide is the next message to the agent; nil if nobody is to be asked.
func (s *Session) decide(ctx context.Context, asked []*genai.FunctionCall) (*genai.Content, error) {
	if asked == nil {
		return nil, nil
	}
	s.passes++
	var questions []suspend.Question
	for i, c := range asked {
		q, err := s.question(c)
		if err != nil {
			return nil, err
		}
		q.Key = fmt.Sprintf("approve %d.%d %s", s.passes, i+1, q.Key)
		questions = append(questions, q)
	}
	answers, err := s.run.task.AskAll(ctx, fmt.Sprint("approve ", s.passes), questions)
	if err != nil {
		return nil, err
	}
	decided := &genai.Content{Role: genai.RoleUser}
	for i, a := range answers {
		payload := map[string]any{"choice": a.Choice, "comment": a.Comment, "by": a.By}
		decided.Parts = append(decided.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: asked[i].ID,
			Name: asked[i].Name, Response: map[string]any{"confirmed": a.Choice == approve, "payload": payload}}})
	}
	return decided, nil
}

const approve = "approve"

// question is what people are asked about a call. Its key is the name of the tool.
func (s *Session) question(asking *genai.FunctionCall) (suspend.Question, error) {
	call, err := toolconfirmation.OriginalCallFrom(asking)
	if err != nil {
		return suspend.Question{}, fmt.Errorf("adk: confirmation of a call: %w", err)
	}
	arguments, err := json.MarshalIndent(call.Args, "", "  ")
	if err != nil {
		return suspend.Question{}, fmt.Errorf("adk: arguments of %s: %w", call.Name, err)
	}
	q := suspend.Question{Title: cut(call.Name, limits.MaxQuestionTitle),
		Text: "```\n" + cut(string(arguments), limits.MaxQuestionText-8) + "\n```"}
	if s.cfg.Question != nil {
		q = s.cfg.Question(call, q)
	}
	q.Key = call.Name
	return q, nil
}
