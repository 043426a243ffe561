package mcptools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/mcptools"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

type errand struct {
	Text string `json:"text"`
}

type amount struct {
	Cents int `json:"cents"`
}

// clerk is an agent below another one.
var clerk = handler.Define[errand, agent.Result]("clerk", flowfabric.Retries(0))

// office is one run of an agent with a sub-agent, both of which have tools of an MCP server and of their own.
type office struct {
	did      func(step string)
	pool     func(fn func(p *mcptools.Pool) error) error
	parallel int
	began    func(ctx context.Context) // a clerk has; may be nil

	mu         sync.Mutex
	faults     []string
	whole      []stream.TailEvent // read when the run was over
	guests     [2][]stream.TailEvent
	purse      admission.GateRecord
	transcript stream.Transcript // of whole
}

// searches are the steps of what the server is asked.
var searches = map[string]string{`search {"text":"open"}`: "tool 1.1 a_search",
	`search {"text":"public"}`: "tool 1.2 a_search", `search {"text":"below"}`: "sub tool 1.1 a_search"}

// newOffice is one whose server is in this process.
func newOffice(fx *fftest.Effects) (o *office, w *world) {
	o = &office{did: fx.Did}
	w = &world{did: func(what string) {
		if searches[what] == "" {
			o.fault("the server was asked: %s", what)
		}
		fx.Did(searches[what])
	}}
	o.pool = func(fn func(p *mcptools.Pool) error) error { return pooled(asking, []*world{w}, fn) }
	store := make(chan *client.Client, 1)
	fx.Beside = func(ctx context.Context, c *client.Client, id flowfabric.ExecutionID) {
		store <- c
		o.read(ctx, c, id)
	}
	o.began = func(ctx context.Context) {
		select {
		case c := <-store: // the first run of a clerk
			if reserved := o.gate(context.WithoutCancel(ctx), c).Reserved["tokens"]; reserved != 100 {
				o.fault("%d are set aside for a clerk", reserved)
			}
		default:
		}
	}
	return o, w
}

// asking has people asked about secrets.
func asking(s *mcptools.Server) {
	s.Include = []string{"search"}
	s.Options = func(*sdk.Tool) []agent.ToolOption {
		return []agent.ToolOption{agent.Needs(func(arguments json.RawMessage) agent.Decision {
			return agent.Decision{Ask: strings.Contains(string(arguments), "secret")}
		})}
	}
}

// answers are what anna says about each question, in the execution and in its child.
var answers = map[string]suspend.Answer{
	"approve 1.4 refund":     {Choice: "reject", Comment: "too much"},
	"approve 1.2 a_search":   {Choice: "approve", Arguments: json.RawMessage(`{"text":"public"}`)},
	"approve 1.3 refund":     {Choice: "approve"},
	"sub approve 1.2 refund": {Choice: "approve"},
}

var anna = flowfabric.By("anna")

// answered gives the answers to an agent or its clerk.
func answered[In any](fn func(context.Context, *handler.Task, In) (agent.Result, error),
	keys ...string) func(context.Context, *handler.Task, In) (agent.Result, error) {
	var all []fftest.Answer
	for _, key := range keys {
		all = append(all, fftest.Approve(key, answers[key], anna))
	}
	return fftest.Answered(fn, all...)
}

// wantOffice holds a result against what comes of an office, whatever happens to its workers.
func wantOffice(t *testing.T, r agent.Result, err error) {
	t.Helper()
	if err != nil || r.Text != "all done now" || r.Usage.Total() != 20 {
		t.Errorf("%+v, %v", r, err)
	}
	wantTold(t, r.Messages, `a_search: found {"text":"open"}`,
		`a_search: anna changed the arguments. The call was made with {"text":"public"}`+"\n"+
			` found {"text":"public"}`, "refund: paid 5",
		"failed refund: the call was not made: rejected by anna: too much", "help: it is done")
}

func (o *office) fault(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.faults = append(o.faults, fmt.Sprintf(format, args...))
}

// agent runs an agent that answers so.
func (o *office) agent(ctx context.Context, t *handler.Task, cfg agent.Config,
	answers ...agent.Response) (r agent.Result, err error) {
	prefix := ""
	if cfg.Name != "" {
		prefix = cfg.Name + " "
	}
	cfg.Model = &script{answers: answers,
		called: func(turn int, _ agent.Request) { o.did(fmt.Sprint(prefix, "model ", turn)) }}
	cfg.Parallel = o.parallel
	err = o.pool(func(p *mcptools.Pool) error {
		tools, err := p.Tools(ctx, t)
		if err != nil {
			return err
		}
		cfg.Tools = append(tools, agent.NewTool("refund", "pays back",
			func(ctx context.Context, in amount) (string, error) {
				call, _ := agent.CallFrom(ctx)
				o.did(call.Step)
				return fmt.Sprint("paid ", in.Cents), nil
			}, agent.Needs(func(amount) agent.Decision { return agent.Decision{Ask: true} })),
			agent.Child("help", "asks a clerk", clerk,
				agent.ChildOptions(flow.Share(map[string]int64{"tokens": 100}))))
		r, err = agent.Run(ctx, t, cfg)
		return err
	})
	return r, err
}

// Handle has three calls of a turn that people are asked about at once, one that nobody is, and a clerk.
func (o *office) Handle(ctx context.Context, t *handler.Task, prompt string) (agent.Result, error) {
	return o.agent(ctx, t, agent.Config{Prompt: prompt}, wants("a_search", `{"text":"open"}`, "a_search",
		`{"text":"secret"}`, "refund", `{"cents":5}`, "refund", `{"cents":900}`, "help", `{"text":"pay"}`),
		says("all done now"))
}

func (o *office) clerk(ctx context.Context, t *handler.Task, in errand) (agent.Result, error) {
	if o.began != nil {
		o.began(ctx)
	}
	return o.agent(ctx, t, agent.Config{Name: "sub", Prompt: in.Text},
		wants("a_search", `{"text":"below"}`, "refund", `{"cents":6}`), says("it is done"))
}

// read follows the run as two readers do who come and go, each at other places, and reads it once more when it is over.
func (o *office) read(ctx context.Context, c *client.Client, id flowfabric.ExecutionID) {
	x := c.Execution(id)
	var readers conc.WaitGroup
	for i, most := range []int{3, 7} {
		readers.Go(func() { o.guests[i] = o.pieces(ctx, x, most) })
	}
	readers.Wait()
	o.whole = o.pieces(ctx, x, 1<<20)
	for _, e := range o.whole {
		o.transcript.Add(e)
	}
	o.purse = o.gate(ctx, c)
}

func (o *office) gate(ctx context.Context, c *client.Client) admission.GateRecord {
	g, err := admin.New(c).GetGate(ctx, "purse")
	if err != nil {
		o.fault("%v", err)
	}
	return g
}

// pieces reads a tail so many events at a time, each time in one that goes on behind the last.
func (o *office) pieces(ctx context.Context, x *client.Execution[[]byte], most int) (all []stream.TailEvent) {
	var at stream.Position
	for {
		before := len(all)
		for e, err := range x.Tail(ctx, client.From(at)) {
			if err != nil {
				o.fault("a reader: %v", err)
				return all
			}
			all, at = append(all, e), e.Position
			if e.Kind == stream.TailEnd && e.Child == nil {
				return all
			}
			if len(all) == before+most {
				break
			}
		}
		if len(all) == before || len(all) > 500 {
			o.fault("a reader was told %d events, and %d of them behind the last place", len(all), len(all)-before)
			return all
		}
	}
}

// passages are what every reader of a run is told, in lines.
func (o *office) passages(all []stream.TailEvent) (lines []string) {
	for _, e := range all {
		switch e.Kind {
		case stream.TailGap:
			o.fault("a reader missed %d and %d", e.Trimmed, e.Missed)
		case stream.TailSuspended, stream.TailRetry: // only who is there in time is told
		default:
			if e.Frame.Mode == stream.ModeBestEffort { // so it is with these
				continue
			}
			lines = append(lines, fmt.Sprintf("%s %s %d run %d frame %d %s %s", name(e.Child), e.Kind, e.Attempt,
				e.Resumed.Run, e.Frame.Sequence, e.Frame.Type, e.Frame.Payload))
		}
	}
	return lines
}

func name(child *stream.Child) string {
	if child == nil {
		return "parent"
	}
	return strings.Join(child.Path, "/")
}

// shown are the frames that stay, of the parent and its children, in the order in which they were merged, without those
// whose order or text depends on how fast tools and models are.
func (o *office) shown() (lines []string) {
	stay := map[string]bool{}
	mark := func(who string, f stream.Frame) string { return fmt.Sprint(who, f.ID, f.Sequence) }
	for _, f := range o.transcript.Frames() {
		stay[mark("parent", f)] = true
	}
	for child, t := range o.transcript.Children() {
		for _, f := range t.Frames() {
			stay[mark(name(&child), f)] = true
		}
		if t.Lost() > 0 {
			o.fault("%d frames of %s are lost", t.Lost(), child.Path)
		}
	}
	for _, e := range o.whole {
		if e.Frame.Mode == stream.ModeBestEffort || e.Frame.Type == agent.FrameUsage {
			continue
		}
		if who := name(e.Child); e.Kind == stream.TailFrame && stay[mark(who, e.Frame)] {
			lines = append(lines, fmt.Sprintf("%s: %s %s", who, e.Frame.Type, e.Frame.Payload))
		}
	}
	return lines
}

var purse = admission.Gate{Name: "purse", OnHard: admission.HardFail,
	Limits: map[string]admission.Limit{"tokens": {Hard: 1000}}}

// check holds what was read of a run against what an undisturbed one shows; nil: it is that.
func (o *office) check(t *testing.T, about string, undisturbed []string) (shown []string) {
	t.Helper()
	reserved := maps.Clone(o.purse.Reserved)
	maps.DeleteFunc(reserved, func(_ string, n int64) bool { return n == 0 })
	if len(reserved) > 0 {
		t.Errorf("%s: %v is still reserved: %+v", about, reserved, o.purse.Spenders)
	}
	told, shown := o.passages(o.whole), o.shown()
	for _, guest := range o.guests {
		if seen := o.passages(guest); !slices.Equal(seen, told) {
			t.Errorf("%s: a guest was told\n%s\nin the end it is\n%s", about, strings.Join(seen, "\n"),
				strings.Join(told, "\n"))
		}
	}
	if undisturbed != nil && !slices.Equal(shown, undisturbed) {
		t.Errorf("%s: readers see\n%s\nundisturbed\n%s", about, strings.Join(shown, "\n"),
			strings.Join(undisturbed, "\n"))
	}
	if faults := slices.Compact(o.faults); len(faults) > 0 || o.transcript.Lost() > 0 {
		t.Errorf("%s: %q, %d lost", about, faults, o.transcript.Lost())
	}
	return shown
}

// helped has a clerk beside the agent.
func helped(o func(fx *fftest.Effects) *office) client.SubmitOption {
	return fftest.Also(func(fx *fftest.Effects) []handler.Binding {
		return []handler.Binding{handler.Bind(clerk, answered(o(fx).clerk, "sub approve 1.2 refund"))}
	})
}

// Wherever the worker dies around an agent with a sub-agent, tools of an MCP server and three approvals at once, of
// which one is edited: no recorded call of a model or a tool is made again; the ledger has each recorded token once;
// nothing stays reserved; and two readers of the merged stream who come and go are told the same as one who reads it in
// the end, of which the same stays as of a run that nothing disturbs.
func TestCrashesOfAnOffice(t *testing.T) {
	var o *office // of the run that is checked
	var w *world
	var fx *fftest.Effects
	var undisturbed []string
	repeated, most := 0, 0
	crashes := fftest.Crashes(t, chat,
		func(next *fftest.Effects) func(context.Context, *handler.Task, string) (agent.Result, error) {
			fx = next
			o, w = newOffice(fx)
			return answered(o.Handle, "approve 1.4 refund", "approve 1.2 a_search", "approve 1.3 refund")
		}, "hello", func(r *fftest.Report[agent.Result]) {
			wantOffice(t, r.Result, r.Err)
			r.Want(fftest.Want{Waits: []string{"approve 1", "children 1"}})
			if keys := slices.Compact(slices.Sorted(slices.Values(w.keys))); len(keys) != 3 {
				t.Errorf("%s: keys %q of three calls", r.Crash, w.keys)
			}
			calls := int64(0)
			for _, model := range []string{"model 1", "model 2", "sub model 1", "sub model 2"} {
				calls += int64(fx.Count(model))
			}
			if used := o.purse.Used["tokens"]; used < 40 || used > 10*calls || used != r.Used["purse"]["tokens"] {
				t.Errorf("%s: %d tokens are used, 40 recorded, and models were called %d times", r.Crash, used, calls)
			}
			if calls > 4 {
				repeated++
			}
			shown := o.check(t, r.Crash, undisturbed)
			if undisturbed == nil {
				undisturbed = shown
			}
			most = max(most, len(o.whole))
		}, fftest.Gates(purse), helped(func(*fftest.Effects) *office { return o }))
	t.Logf("%d crashes, after %d of which a model was called again; %d of at most %d events stay", crashes, repeated,
		len(undisturbed), most)
	if crashes < 100 || repeated == 0 {
		t.Errorf("%d crashes, %d repeated a call of a model", crashes, repeated)
	}
}
