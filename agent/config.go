package agent

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// The defaults of a [Config].
const (
	defaultTurns    = 50
	defaultParallel = 8
	defaultChildren = 100
	defaultDepth    = 4
)

// Config says what an agent is, what it begins with and where it stops. Zero fields have the stated defaults. [Run]
// does not change it, so many runs may share one.
type Config struct {
	// Name is the agent's, in the names of its steps and in spans: 1..32 of A-Z a-z 0-9 _ . -. The default "" does
	// for the only agent of a handler. Agents of one handler need different names, and must run one after the other.
	Name string
	// Model answers. Required.
	Model Model
	// System are instructions that come before the conversation.
	System string
	// Messages are the conversation so far, for example Result.Messages of an earlier run, and Prompt is what the
	// user says then. Without both the agent waits for a message from Mailbox.
	Messages []Message
	Prompt   string
	// Tools are what the model may use, at most 128 with different names.
	Tools []Tool
	// Blobs is where images and files of more than 1 KiB are stored when a message is made or received, so that a
	// transcript has only their references and meets no limit of 240 KiB or 1 MiB because of them. Every worker needs
	// the same store. The bytes are read for each call of the model, up to 8 parts at once, and are in memory while it
	// lasts. A part whose bytes are gone ends the run for good, with flowfabric.ErrNotFound; Edit can leave it out.
	// Default nil: parts stay in their messages, and one too large for its step ends the run with
	// flowfabric.ErrPayloadTooLarge.
	Blobs blob.Store

	// MaxTurns is how many answers the model may give in the run, 1..500. Default 50. Before the last fifth of them (of
	// up to 9, before the last one), and of MaxTokens and MaxTime, the model is told once how much is left, in a
	// message of the conversation whose From is "limit of turns", "limit of tokens" or "limit of time".
	MaxTurns int
	// Continue makes a conversation endless: between two model calls, after MaxTurns of them or when the steps of the
	// execution might run out (700 of the agent's), Run returns its error, with the result so far. It is to return
	// handler.Continue of an input from which the handler makes Messages again: all of Result.Messages, or what is
	// left of them after cutting, at most 1 MiB in all. What the user said and what tools found since the last answer
	// is at the end of them. With Compact they begin with the summary, if there is one. It is called in every run at
	// that place, so let it decide by the result alone. The model is not told how many turns are left. MaxTokens
	// and MaxTime start over. Default nil: a run that reaches MaxTurns ends with a [*LimitError].
	Continue func(Result) error
	// MaxTokens bounds the usage of the run, the total of all answers and summaries. No further model call and no
	// further tool begins when it is reached, so the answer that reaches it may go over it. Default 0: no bound.
	MaxTokens int64
	// MaxTime bounds the time that recorded model calls and tools took, all together, also those that ran side by
	// side. Waits do not count. It is looked at between calls; a bound for a single call is a timeout of the model,
	// the tool or the execution. Default 0: no bound.
	MaxTime time.Duration
	// Compact has a summary take the place of the beginning when the conversation gets too long for the model. Default:
	// never.
	Compact Compact
	// MaxOutput is how many tokens one answer may have. Default 0: what the model's adapter takes.
	MaxOutput int64
	// Parallel is how many tools of a turn may run at once, 1..64. Default 8.
	Parallel int
	// MaxChildren is how many calls of tools of [Child] the run makes, 1..500; the model is told that further ones were
	// not made. It starts over with Continue. Default 100.
	MaxChildren int
	// MaxDepth is how deep agents nest, 1..16: with 1 only an agent that no agent made may make children. Default 4.
	// What is above an agent counts also when a handler between two agents is none, unless that is a worker over HTTP.
	MaxDepth int

	// Mailbox is the name of the mailbox whose messages the agent takes as the user's (client.Execution.Send): before
	// each model call but the first, and when the model has ended, in which case it goes on. Default "": none.
	Mailbox string
	// OneByOne gives each message an answer of its own, in the order in which they came: while the model works on one,
	// the others wait. Default false: a message is heard before the next model call, also in the middle of the work,
	// and those that came meanwhile get one answer together.
	OneByOne bool
	// WhileBusy is what becomes of a message while the agent talks: its model answers, its tools run, it waits for
	// people or for children. Default "": it waits, and is heard as above. [Interrupt] ends the answer for it, [Refuse]
	// refuses it. It needs Mailbox, and is
	// not for OneByOne.
	WhileBusy WhileBusy
	// Conversation makes the agent wait for the next message, suspended, when the model has ended, instead of
	// returning. It needs Mailbox.
	Conversation bool
	// Idle is how long the agent waits for a message, 1 ms to ten years. A longer wait ends the run without an error,
	// and so does an operator who resumes the execution. Default 0: for ever.
	Idle time.Duration

	// Governor is the name of the gate of the model's service (admission.Service), such as openai/gpt-5: each model
	// call waits for its turn there (handler.Task.Acquire) and tells what it used, in the dimensions tokens,
	// input_tokens and output_tokens, of which the service limits what it likes; see the package comment. Somebody
	// makes the gate beforehand (admin.PutGate). Default "": none.
	Governor string

	// Edit may change what the model is asked, for example leave out old messages or images; also what it is asked for
	// a summary (Compact). It must decide by the request alone. What it changes is its own
	// copy; the transcript stays whole. It is called for the calls that are made, not for recorded ones. It sees
	// references of blobs; only what it leaves is read. What it leaves out of the beginning, a service's cache of
	// prompts does not find again; it may set Request.Cache, too.
	Edit func(*Request)
	// Spend is what an answer, or a summary, costs by dimension, to be spent from the execution's gates. Default:
	// dimension tokens, [Usage.Total]. Amounts of 0 are left out; nil spends nothing.
	Spend func(Usage) map[string]int64
	// Tracer makes spans by the conventions of OpenTelemetry for generative AI, without content of messages. Default:
	// none. See the package comment.
	Tracer trace.TracerProvider
}

// WhileBusy is what becomes of a message while an agent talks, see [Config].
type WhileBusy string

const (
	// Interrupt ends an answer in mid-token: what the model has said so far is the answer, with [StopInterrupted].
	// Tools that run go on, and those that have not begun are not made; the model is told so. A wait for people ends,
	// and one for children does not. The message is heard at once.
	Interrupt WhileBusy = "interrupt"
	// Refuse has client.Execution.Send fail with flowfabric.ErrState, code mailbox_shut, until the agent has answered.
	Refuse WhileBusy = "refuse"
)

// withDefaults fills in what is zero.
func (c Config) withDefaults() Config {
	if c.MaxTurns == 0 {
		c.MaxTurns = defaultTurns
	}
	if c.Parallel == 0 {
		c.Parallel = defaultParallel
	}
	if c.MaxChildren == 0 {
		c.MaxChildren = defaultChildren
	}
	if c.MaxDepth == 0 {
		c.MaxDepth = defaultDepth
	}
	c.Compact = c.Compact.withDefaults(c.Model)
	return c
}

// validate names the first field that is not valid.
func (c Config) validate() error {
	switch {
	case c.Name != "" && !named(c.Name, limits.MaxAgentName, "_.-"):
		return invalid("Name %.40q is not valid, want 1..%d of A-Z a-z 0-9 _ . -", c.Name, limits.MaxAgentName)
	case c.Model == nil:
		return invalid("Model is nil")
	case len(c.Tools) > limits.MaxTools:
		return invalid("%d Tools, want at most %d", len(c.Tools), limits.MaxTools)
	case c.MaxTurns < 1 || c.MaxTurns > limits.MaxAgentTurns:
		return invalid("MaxTurns is %d, want 1..%d, or 0 for %d", c.MaxTurns, limits.MaxAgentTurns, defaultTurns)
	case c.MaxTokens < 0:
		return invalid("MaxTokens is %d, want at least 0", c.MaxTokens)
	case c.MaxTime < 0:
		return invalid("MaxTime is %v, want at least 0", c.MaxTime)
	case c.MaxOutput < 0:
		return invalid("MaxOutput is %d, want at least 0", c.MaxOutput)
	case c.Parallel < 1 || c.Parallel > limits.MaxParallelTools:
		return invalid("Parallel is %d, want 1..%d, or 0 for %d", c.Parallel, limits.MaxParallelTools, defaultParallel)
	case c.MaxChildren < 1 || c.MaxChildren > limits.MaxAgentChildren:
		return invalid("MaxChildren is %d, want 1..%d, or 0 for %d", c.MaxChildren, limits.MaxAgentChildren,
			defaultChildren)
	case c.MaxDepth < 1 || c.MaxDepth > limits.MaxAgentDepth:
		return invalid("MaxDepth is %d, want 1..%d, or 0 for %d", c.MaxDepth, limits.MaxAgentDepth, defaultDepth)
	case c.Mailbox != "" && waitwords.CheckMailbox(c.Mailbox) != nil:
		return invalid("Mailbox: %v", waitwords.CheckMailbox(c.Mailbox))
	case c.Conversation && c.Mailbox == "":
		return invalid("Conversation needs Mailbox")
	case c.OneByOne && c.Mailbox == "":
		return invalid("OneByOne needs Mailbox")
	case c.WhileBusy != "" && c.WhileBusy != Interrupt && c.WhileBusy != Refuse:
		return invalid("WhileBusy is %.40q, want Interrupt, Refuse or nothing", string(c.WhileBusy))
	case c.WhileBusy != "" && c.Mailbox == "":
		return invalid("WhileBusy needs Mailbox")
	case c.WhileBusy != "" && c.OneByOne:
		return invalid("OneByOne has messages wait, and WhileBusy does not")
	case c.Governor != "" && valid.Service("Governor", c.Governor) != nil:
		return invalid("%v", valid.Service("Governor", c.Governor))
	case c.Idle < 0:
		return invalid("Idle is %v, want at least 0", c.Idle)
	case len(c.Messages) == 0 && c.Prompt == "" && c.Mailbox == "":
		return invalid("Messages, Prompt and Mailbox are all empty; set one of them")
	}
	if err := c.Compact.validate(); err != nil {
		return err
	}
	for i, m := range c.Messages {
		if !slices.Contains([]Role{User, Assistant, ToolRole}, m.Role) {
			return invalid("Messages[%d] has role %.40q, want %s, %s or %s", i, m.Role, User, Assistant, ToolRole)
		}
		if err := cmp.Or(checkID(m.ID), c.checkMessage(m)); err != nil {
			return invalid("Messages[%d].%v", i, err)
		}
	}
	if n := len(c.Messages); n > 0 && c.Messages[n-1].Role == Assistant && c.Prompt == "" && c.Mailbox == "" {
		return invalid("Messages ends with an answer, and Prompt and Mailbox are empty")
	}
	seen := map[string]bool{}
	for i, t := range c.Tools {
		if err := t.err(); err != nil {
			return invalid("Tools[%d]: %v", i, err)
		}
		if name := t.d.spec.Name; seen[name] {
			return invalid("Tools[%d]: another tool is named %s, too", i, name)
		}
		seen[t.d.spec.Name] = true
	}
	return nil
}

// checkMessage says what is wrong with the parts of a message.
func (c Config) checkMessage(m Message) error {
	if err := checkParts(m.Parts); err != nil || c.Blobs != nil {
		return err
	}
	for i, p := range m.Parts {
		if p.hasBytes() && len(p.Data) == 0 {
			return fmt.Errorf("%s[%d] is a blob, and %w (%w)", partsField, i, errNoBlobs, flowfabric.ErrInvalidInput)
		}
	}
	return tooLarge(m.Parts)
}

// invalid is the error of a configuration that no later attempt will find valid either.
func invalid(format string, args ...any) error {
	return handler.Permanent(fmt.Errorf("agent: %w: Config: %s", flowfabric.ErrInvalidInput,
		fmt.Sprintf(format, args...)))
}

// named reports 1..limit bytes of letters, digits and what else is allowed.
func named(name string, limit int, also string) bool {
	if name == "" || len(name) > limit {
		return false
	}
	for i := range len(name) {
		if !nameByte(name[i], also) {
			return false
		}
	}
	return true
}

func nameByte(c byte, also string) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || slices.Contains([]byte(also), c)
}
