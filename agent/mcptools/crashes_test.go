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
	fx    *fftest.Effects
	world *world

	mu      sync.Mutex
	faults  []string
	whole   []stream.TailEvent // read when the run was over
	guests  [2][]stream.TailEvent
	purse   admission.GateRecord
	transit stream.Transcript // of whole
}

func newOffice(fx *fftest.Effects) *office {
	o := &office{fx: fx}
	steps := map[string]string{`search {"text":"open"}`: "tool 1.1 a_search",
		`search {"text":"public"}`: "tool 1.2 a_search", `search {"text":"below"}`: "sub tool 1.1 a_search"}
	o.world = &world{did: func(what string) {
		if steps[what] == "" {
			o.fault("the server was asked: %s", what)
		}
		fx.Did(steps[what])
	}}
	fx.Beside = o.read
	return o
}

func (o *office) fault(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.faults = append(o.faults, fmt.Sprintf(format, args...))
}

// agent runs an agent that answers so.
func (o *office) agent(ctx context.Context, t *handler.Task, cfg agent.Config,
	answers ...agent.Response) (r agent.Result, err error) {
	ask := func(s *mcptools.Server) {
		s.Include = []string{"search"}
		s.Options = func(*sdk.Tool) []agent.ToolOption {
			return []agent.ToolOption{agent.Needs(func(arguments json.RawMessage) agent.Decision {
				return agent.Decision{Ask: strings.Contains(string(arguments), "secret")}
			})}
		}
	}
	prefix := ""
	if cfg.Name != "" {
		prefix = cfg.Name + " "
	}
	cfg.Model = &script{answers: answers,
		called: func(turn int, _ agent.Request) { o.fx.Did(fmt.Sprint(prefix, "model ", turn)) }}
	err = pooled(ask, []*world{o.world}, func(p *mcptools.Pool) error {
		tools, err := p.Tools(ctx, t)
		if err != nil {
			return err
		}
		cfg.Tools = append(tools, agent.NewTool("refund", "pays back",
			func(ctx context.Context, in amount) (string, error) {
				call, _ := agent.CallFrom(ctx)
				o.fx.Did(call.Step)
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
		o.transit.Add(e)
	}
	var err error
	if o.purse, err = admin.New(c).GetGate(ctx, "purse"); err != nil {
		o.fault("%v", err)
	}
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
		if len(all) == before {
			o.fault("a reader was told nothing behind %s", at)
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

// shown are the frames that stay, of the parent and its children, in the order in which they were merged.
func (o *office) shown() (lines []string) {
	stay := map[string]bool{}
	mark := func(who string, f stream.Frame) string { return fmt.Sprint(who, f.ID, f.Sequence) }
	for _, f := range o.transit.Frames() {
		stay[mark("parent", f)] = true
	}
	for child, t := range o.transit.Children() {
		for _, f := range t.Frames() {
			stay[mark(name(&child), f)] = true
		}
		if t.Lost() > 0 {
			o.fault("%d frames of %s are lost", t.Lost(), child.Path)
		}
	}
	for _, e := range o.whole {
		if who := name(e.Child); e.Kind == stream.TailFrame && stay[mark(who, e.Frame)] {
			lines = append(lines, fmt.Sprintf("%s: %s %s", who, e.Frame.Type, e.Frame.Payload))
		}
	}
	return lines
}

// Wherever the worker dies around an agent with a sub-agent, tools of an MCP server and three approvals at once, of
// which one is edited: no recorded call of a model or a tool is made again; the ledger has each recorded token once;
// nothing stays reserved; and two readers of the merged stream who come and go are told the same as one who reads it in
// the end, of which the same stays as of a run that nothing disturbs.
func TestCrashesOfAnOffice(t *testing.T) {
	purse := admission.Gate{Name: "purse", OnHard: admission.HardFail,
		Limits: map[string]admission.Limit{"tokens": {Hard: 1000}}}
	anna := flowfabric.By("anna")
	var o *office // of the run that is checked
	var undisturbed []string
	repeated, most := 0, 0
	crashes := fftest.Crashes(t, chat,
		func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (agent.Result, error) {
			o = newOffice(fx)
			return fftest.Answered(o.Handle,
				fftest.Approve("approve 1.4 refund", suspend.Answer{Choice: "reject", Comment: "too much"}, anna),
				fftest.Approve("approve 1.2 a_search",
					suspend.Answer{Choice: "approve", Arguments: json.RawMessage(`{"text":"public"}`)}, anna),
				fftest.Approve("approve 1.3 refund", suspend.Answer{Choice: "approve"}, anna))
		}, "hello", func(r *fftest.Report[agent.Result]) {
			if r.Err != nil || r.Result.Text != "all done now" || r.Result.Usage.Total() != 20 {
				t.Errorf("%s: %+v, %v", r.Crash, r.Result, r.Err)
				return
			}
			wantTold(t, r.Result.Messages, `a_search: found {"text":"open"}`,
				`a_search: anna changed the arguments. The call was made with {"text":"public"}`+
					"\n"+` found {"text":"public"}`, "refund: paid 5",
				"failed refund: the call was not made: rejected by anna: too much", "help: it is done")
			r.Want(fftest.Want{Waits: []string{"approve 1", "children 1"}})
			if keys := slices.Compact(slices.Sorted(slices.Values(o.world.keys))); len(keys) != 3 {
				t.Errorf("%s: keys %q of three calls", r.Crash, o.world.keys)
			}

			calls := int64(0)
			for _, model := range []string{"model 1", "model 2", "sub model 1", "sub model 2"} {
				calls += int64(o.fx.Count(model))
			}
			if used := o.purse.Used["tokens"]; used < 40 || used > 10*calls || used != r.Used["purse"]["tokens"] {
				t.Errorf("%s: %d tokens are used, 40 recorded, and models were called %d times", r.Crash, used, calls)
			}
			if calls > 4 {
				repeated++
			}
			reserved := maps.Clone(o.purse.Reserved)
			maps.DeleteFunc(reserved, func(_ string, n int64) bool { return n == 0 })
			if len(reserved) > 0 {
				t.Errorf("%s: %v is still reserved: %+v", r.Crash, reserved, o.purse.Spenders)
			}

			told, shown := o.passages(o.whole), o.shown()
			for _, guest := range o.guests {
				if seen := o.passages(guest); !slices.Equal(seen, told) {
					t.Errorf("%s: a guest was told\n%s\nin the end it is\n%s", r.Crash, strings.Join(seen, "\n"),
						strings.Join(told, "\n"))
				}
			}
			if undisturbed == nil {
				undisturbed = shown
			}
			if !slices.Equal(shown, undisturbed) {
				t.Errorf("%s: readers see\n%s\nundisturbed\n%s", r.Crash, strings.Join(shown, "\n"),
					strings.Join(undisturbed, "\n"))
			}
			most = max(most, len(told))
			if o.faults = slices.Compact(o.faults); len(o.faults) > 0 || o.transit.Lost() > 0 {
				t.Errorf("%s: %q, %d lost", r.Crash, o.faults, o.transit.Lost())
			}
		}, fftest.Gates(purse), fftest.Also(func(*fftest.Effects) []handler.Binding {
			return []handler.Binding{handler.Bind(clerk, fftest.Answered(o.clerk,
				fftest.Approve("sub approve 1.2 refund", suspend.Answer{Choice: "approve"}, anna)))}
		}))
	t.Logf("%d crashes, after %d of which a model was called again; %d of at most %d events stay", crashes, repeated,
		len(undisturbed), most)
	if crashes < 100 || repeated == 0 {
		t.Errorf("%d crashes, %d repeated a call of a model", crashes, repeated)
	}
}
