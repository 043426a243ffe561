package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/stream"
)

// The defaults of a [Compact].
const (
	defaultShare = 80
	defaultKeep  = 10
)

const (
	leastSummary = 1 << 10 // bytes that a summary may have in any window
	fromSummary  = "summary"
	summaryOpens = "The conversation so far was too long. This is a summary of it:\n\n"
)

// askSummary is what the model is asked to do unless Compact.Instructions says something else.
const askSummary = "The conversation above is getting too long. Write a summary that will stand in its place: what " +
	"the user wants and how, what was decided and why, what was done with which tools and what came of it, names, " +
	"numbers and identifiers that are still needed, and what is left to do. Write the summary only, and call no tool."

// Compact says when a conversation is too long for its model, and how a summary takes the place of its beginning. See
// the package comment, "Long conversations". The zero value never does that.
type Compact struct {
	// Window is how many tokens the model takes, request and answer together. Required; at least 1.
	Window int64
	// Share of Window, in percent, that the next request must be taken to have, 1..100. Default 80.
	Share int
	// Keep is how many of the last messages stay as they are, at most; at least the last answer and what came after
	// it. Fewer stay if they are more than half of the conversation, in tokens. Default 10.
	Keep int
	// Instructions ask for the summary, behind the messages. Default: words that ask for what was wanted, decided, done
	// and left to do.
	Instructions string
	// Model writes the summary. Default: Config.Model, which has the beginning in its cache.
	Model Model
}

// withDefaults fills in what is zero, if it is to be used.
func (c Compact) withDefaults(model Model) Compact {
	if c.Window == 0 {
		return c
	}
	c.Share, c.Keep = cmp.Or(c.Share, defaultShare), cmp.Or(c.Keep, defaultKeep)
	c.Instructions = cmp.Or(c.Instructions, askSummary)
	if c.Model == nil {
		c.Model = model
	}
	return c
}

// validate names the first field that is not valid.
func (c Compact) validate() error {
	switch {
	case c.Window < 0 || c.Window == 0 && (c.Share != 0 || c.Keep != 0 || c.Instructions != "" || c.Model != nil):
		return invalid("Compact.Window is %d, want at least 1", c.Window)
	case c.Share < 0 || c.Share > 100:
		return invalid("Compact.Share is %d, want 1..100, or 0 for %d", c.Share, defaultShare)
	case c.Keep < 0:
		return invalid("Compact.Keep is %d, want at least 1, or 0 for %d", c.Keep, defaultKeep)
	}
	return nil
}

// full is from how many tokens on a request is too long.
func (c Compact) full() int64 {
	share := int64(c.Share)
	return max(1, c.Window/100*share+c.Window%100*share/100)
}

// summary is the value of a step that compacts.
type summary struct {
	// Messages is for how many of the run's messages the text stands, the first ones.
	Messages int           `json:"messages"`
	Text     string        `json:"text"`
	Before   int64         `json:"before"` // tokens that the next request was taken to have
	After    int64         `json:"after"`  // tokens that it is taken to have now
	Usage    Usage         `json:"usage"`
	Model    string        `json:"model,omitempty"`
	ID       string        `json:"id,omitempty"`
	Took     time.Duration `json:"took"`
}

// compacted is what of the beginning the model does not see any more.
type compacted struct {
	brief    *Message // stands for it; nil: it sees all
	messages int      // so many
	last     Usage    // of the last answer
	broken   Usage    // of a summary that a stop has broken off, for the answer in its place
	floor    int64    // what the first answer after the last summary read, 0 if that is not known yet
}

// view is what the model sees of the run's messages.
func (c *compacted) view(all []Message) []Message {
	if c.brief == nil {
		return all
	}
	return append([]Message{*c.brief}, all[c.messages:]...)
}

// use puts a summary in the place of the first messages. They end where the next ones can begin, even if the handler
// was changed so that there are others than when it was recorded.
func (c *compacted) use(s summary, all []Message) {
	n := max(0, min(s.Messages, len(all)-1))
	for n > 0 && all[n].Role == ToolRole {
		n--
	}
	c.brief = &Message{Role: User, From: fromSummary, Parts: Text(summaryOpens + s.Text)}
	c.messages, c.floor = n, 0
}

// answered notes what an answer was reported to have read and written.
func (c *compacted) answered(u Usage) {
	c.last = u
	if c.brief != nil && c.floor == 0 {
		c.floor = u.Input
	}
}

// compact has the beginning of the conversation summarised, if the next request would be too long. It decides by what
// is recorded. A model call that is recorded was made without a summary, whatever the configuration says now.
func (r *run) compact(ctx context.Context) error {
	number := r.done.Turns
	name := r.cfg.prefixed("summary " + strconv.Itoa(number))
	all := slices.Concat(r.done.Messages, r.tells, r.says)
	view := r.shrunk.view(all)
	at, before := 0, int64(0)
	if !r.task.Recorded(name) {
		if r.cfg.Compact.Window == 0 || r.task.Recorded(r.cfg.prefixed("model "+strconv.Itoa(number+1))) {
			return nil
		}
		if r.halts.turn.Stop() != "" { // there is no next request
			return nil
		}
		if at, before = r.excess(view); at == 0 {
			return nil
		}
	}
	s, err := handler.Step(ctx, r.task, name, func(ctx context.Context) (summary, error) {
		s, err := r.summarise(ctx, view[:at])
		if err != nil {
			return s, err
		}
		after := r.shrunk
		s.Messages = len(all) - len(view) + at
		after.use(s, all)
		s.Before, s.After = before, r.tokens(after.view(all))
		return s, r.showSummary(ctx, s)
	})
	if errors.Is(err, errStopped) { // what it has cost is that of the answer
		return nil
	}
	if err != nil {
		return err
	}
	r.shrunk.use(s, all)
	r.done.Usage = r.done.Usage.plus(s.Usage)
	r.took += s.Took
	r.steps++
	return r.limit()
}

// excess is how many of the messages that the model sees are to be summarised, 0 for none, and how many tokens the next
// request is taken to have. After a summary a quarter of what is too long must have been added before the next one:
// instructions and tools that are too long themselves get no shorter.
func (r *run) excess(view []Message) (n int, weight int64) {
	if weight = r.shrunk.last.Total(); weight == 0 { // the first request, or a service that tells nothing
		weight = r.tokens(view)
	} else if fresh := len(r.tells) + len(r.says); fresh > 0 {
		weight += r.tokensOf(Request{Messages: view[max(0, len(view)-fresh):]})
	}
	full := r.cfg.Compact.full()
	if weight < full || r.shrunk.floor > 0 && weight < r.shrunk.floor+full/4 {
		return 0, weight
	}
	return r.split(view), weight
}

// split says where the messages that stay begin: with an answer, or with what the user said. It is 0 if there is too
// little before them, an eighth of all tokens.
func (r *run) split(view []Message) int {
	last, rest := -1, int64(0)
	sizes := make([]int64, len(view))
	for i, m := range view {
		if m.Role == Assistant {
			last = i
		}
		sizes[i] = r.tokensOf(Request{Messages: []Message{m}})
		rest += sizes[i]
	}
	whole, at := rest, 0
	for at < last && (len(view)-at > r.cfg.Compact.Keep || rest > whole/2 || view[at].Role == ToolRole) {
		rest -= sizes[at]
		at++
	}
	if whole-rest < whole/8 || r.shrunk.brief != nil && at < 2 {
		return 0
	}
	return at
}

// tokens is how many a request with these messages is taken to have, without the answer.
func (r *run) tokens(messages []Message) int64 {
	return r.tokensOf(Request{System: r.cfg.System, Messages: messages, Tools: r.specs})
}

func (r *run) tokensOf(req Request) int64 { return r.estimate(req)[inputTokens] }

// summarise is the step of a summary: the messages as they are, and behind them what to do with them. So a service has
// them in its cache.
func (r *run) summarise(ctx context.Context, old []Message) (summary, error) {
	ask := Message{Role: User, Parts: Text(r.cfg.Compact.Instructions)}
	req, err := r.edited(Request{System: r.cfg.System, Messages: append(slices.Clone(old), ask),
		Tools: slices.Clone(r.specs), MaxTokens: r.cfg.MaxOutput,
		Cache: Cache{Key: r.task.ID().String(), Marks: []int{0, len(old)}}})
	if err != nil {
		return summary{}, err
	}
	permit, err := r.acquire(ctx, req)
	if err != nil {
		return summary{}, err
	}
	if err := r.ready(ctx, req, nil); err != nil {
		return summary{}, errors.Join(err, permit.notMade(ctx))
	}
	began := time.Now()
	response, err := r.written(ctx, req)
	took := time.Since(began)
	permit.made(ctx, response.Usage, err)
	if errors.Is(err, errStopped) {
		r.shrunk.broken = response.Usage
	}
	if err != nil {
		return summary{}, err
	}
	if err := r.spend(ctx, response.Usage); err != nil {
		return summary{}, err
	}
	text := response.Message.Text()
	if text == "" || response.Stop == StopRefusal {
		return summary{}, handler.Category(categoryProtocol,
			fmt.Errorf("the model has written no summary: it ended by %q, with %d calls of tools", response.Stop,
				len(response.Message.Calls)))
	}
	room := int(max(leastSummary, min(limits.MaxFrame/2, r.cfg.Compact.full())))
	return summary{Text: cut(text, room, room), Usage: response.Usage, Model: response.Model, ID: response.ID,
		Took: took}, nil
}

// written is what the model of summaries answers, in a span.
func (r *run) written(ctx context.Context, req Request) (response Response, err error) {
	model := r.cfg.Compact.Model
	ctx, span := r.spans.chatWith(ctx, describe(model), req)
	defer func() { span.answered(ctx, r.task, response, err) }()
	inner, end := r.breakable(ctx, true)
	defer end()
	var said spoken
	err = errPanicked
	response, err = model.Generate(inner, req, func(d Delta) error { said.add(d); return nil })
	if why := broken(inner); why != nil && err != nil && ctx.Err() == nil {
		return r.partial(said.parts(), why, response.Usage, req), why
	}
	return response, err
}

// showSummary tells readers that the conversation was compacted.
func (r *run) showSummary(ctx context.Context, s summary) error {
	payload, err := json.Marshal(struct {
		Messages int    `json:"messages"`
		Before   int64  `json:"before"`
		After    int64  `json:"after"`
		Text     string `json:"text"`
	}{s.Messages, s.Before, s.After, s.Text})
	if err != nil {
		return handler.Permanent(fmt.Errorf("a summary does not encode: %w", err))
	}
	return r.task.FrameBytes(ctx, stream.Frame{Type: FrameSummary, Encoding: "json", Payload: payload})
}
