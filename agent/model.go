package agent

import (
	"context"
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"
)

// Model is a language model. Adapters are in modules of their own, agent/openai, agent/anthropic and agent/gemini;
// package fallback asks several in order; a fake is a function, see [ModelFunc].
//
// Generate makes one answer. It calls delta for each piece as it comes, in order and from one goroutine, and returns
// what the pieces came to. It must end soon after ctx has ended, in mid-answer, too, and return the context's cause
// or error then. It must return the error of delta if that is not nil. It is called by one goroutine a run, and by
// many runs at once.
//
// An error fails the attempt, and the retry policy of the execution decides about another one. Mark what no retry
// repairs with handler.Permanent, name its kind with handler.Category, and give the pause that the service asks for
// with handler.RetryAfter; [StatusError] does so for an HTTP status. Generate should not retry by itself: the
// execution's policy does, and holds no slot of a worker meanwhile.
type Model interface {
	Generate(ctx context.Context, req Request, delta func(Delta) error) (Response, error)
}

// ModelFunc is a function that is a [Model]. A scripted one for a test asks for a tool first, then says what it found:
//
//	agent.ModelFunc(func(_ context.Context, q agent.Request, _ func(agent.Delta) error) (agent.Response, error) {
//		last := q.Messages[len(q.Messages)-1]
//		if last.Role == agent.User {
//			call := agent.ToolCall{ID: "1", Name: "weather", Arguments: []byte(`{"city":"Rome"}`)}
//			return agent.Response{Message: agent.Message{Calls: []agent.ToolCall{call}}, Stop: agent.StopTools}, nil
//		}
//		said := agent.Message{Parts: agent.Text("It says " + last.Text())}
//		return agent.Response{Message: said, Stop: agent.StopEnd}, nil
//	})
type ModelFunc func(ctx context.Context, req Request, delta func(Delta) error) (Response, error)

// Generate calls the function.
func (f ModelFunc) Generate(ctx context.Context, req Request, delta func(Delta) error) (Response, error) {
	return f(ctx, req, delta)
}

// Request is one call of a model. It must not be changed. Its images and files have their bytes ([Part].Data).
type Request struct {
	System    string    // instructions that come before the conversation; "" for none
	Messages  []Message // the conversation; the last one is of role [User] or [ToolRole]
	Tools     []ToolSpec
	MaxTokens int64 // of the answer; 0 = the adapter's default
	// Schema is what the answer's text must fit, as JSON; nil for a text of any kind. It is set only for a model that
	// takes it, see [Structured].
	Schema *jsonschema.Schema
	Cache  Cache
}

// Cache says which beginnings a request shares with others, so that a service can keep them. It is a hint: no answer
// depends on it. The zero value shares nothing. A run chooses it so that the beginning of a request never changes:
// each request of a run begins with the one before.
type Cache struct {
	Key string // the same for requests that share a beginning: the execution's id, at most 64 bytes; "" for none
	// Marks say where shared beginnings end, ascending: after how many of Messages. 0 is after System and Tools.
	Marks []int
}

// ToolSpec describes a tool to a model.
type ToolSpec struct {
	Name        string // 1..64 of A-Z a-z 0-9 _ -
	Description string
	Schema      *jsonschema.Schema // of the arguments, an object
}

// Role says whose words a message are.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool" // the result of a tool
)

// Message is one entry of a conversation. [Text] makes the parts of one that is only a text.
type Message struct {
	// ID names a message of the user: what its sender has named it, see the package comment, else "m" and its number in
	// the mailbox. "" for Config.Prompt, answers, results of tools, and what the agent itself says to the model.
	ID    string     `json:"id,omitempty"`
	Role  Role       `json:"role"`
	Parts []Part     `json:"parts,omitempty"`
	From  string     `json:"from,omitempty"`  // who said it, of role User, if that is known
	Calls []ToolCall `json:"calls,omitempty"` // of role Assistant: the tools that it wants
	// Call is the id of the call that a message of role ToolRole answers, Tool the name of its tool, and Failed says
	// that the parts are an error.
	Call   string `json:"call,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Failed bool   `json:"failed,omitempty"`
	Denied bool   `json:"denied,omitempty"` // people have rejected the call; Failed is set, too
	// Edited is what a person has changed in the call before it ran, of role ToolRole; nil for nothing. The first part
	// tells the model.
	Edited *Edited `json:"edited,omitempty"`
	// Private is what an adapter needs to get back with this message, for example signed reasoning. Nobody else reads
	// it.
	Private json.RawMessage `json:"private,omitempty"`
}

// ToolCall is a model's request to call a tool.
type ToolCall struct {
	ID   string `json:"id"` // unique within an answer
	Name string `json:"name"`
	// as the model wrote them: often, but not always, JSON that fits the schema
	Arguments json.RawMessage `json:"arguments"`
}

// Delta is a piece of an answer as it comes. One of its fields is set. Text is whole UTF-8: an adapter keeps back the
// first bytes of a character that the service split.
type Delta struct {
	Text      string
	Reasoning string     // what the model thinks, if the service tells
	Call      *CallDelta `json:",omitempty"`
}

// CallDelta is a piece of a call of a tool as the model writes it. One with a Name begins a call, and may have the
// first piece of its arguments; one without goes on with the call of that ID. Pieces of several calls may be mixed. A
// model that gives no ids leaves ID empty: that is the call that began last, calls begin in their order in the answer,
// and the ids are those that the run gives to calls without. The answer itself says what is called: a call that it
// does not have was none.
type CallDelta struct {
	ID        string // as in [ToolCall]
	Name      string
	Arguments string // whole UTF-8, too
}

// StopReason says why an answer ended.
type StopReason string

// The reasons.
const (
	StopEnd     StopReason = "end"     // the model has said what it wanted
	StopTools   StopReason = "tools"   // it wants tools
	StopLength  StopReason = "length"  // Request.MaxTokens, or what the model can say at most
	StopRefusal StopReason = "refusal" // the model, or a filter of the service, refuses

	// Of an answer that the agent has broken off, maybe before its first word, and never those of a model.
	StopStopped     StopReason = "stopped"     // somebody has stopped it, see [Stop]
	StopInterrupted StopReason = "interrupted" // a message came, see [Interrupt]
)

// Response is one whole answer.
type Response struct {
	Message Message // of role Assistant; an empty Role is taken as that
	Stop    StopReason
	Usage   Usage
	Model   string // which model answered, as the service names it; may be ""
	ID      string // of the answer at the service; may be ""
}

// Usage is the cost of answers, in tokens. Input contains what was read from a cache, Output contains reasoning.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	Reasoning  int64 `json:"reasoning,omitempty"`
	// Estimated is how many of Input and Output nobody has reported: of answers that were broken off.
	Estimated int64 `json:"estimated,omitempty"`
}

// Total is Input and Output.
func (u Usage) Total() int64 { return u.Input + u.Output }

func (u Usage) plus(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite,
		u.Reasoning + v.Reasoning, u.Estimated + v.Estimated}
}
