package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

const gpt = "openai/gpt-5"

// governed runs an agent in a store with the gate of its model's service, and returns what that says at the end.
func governed(t *testing.T, s admission.Service, cfg agent.Config,
	opts ...handler.DefineOption) (r *fftest.Report[agent.Result], end admission.ServiceState) {
	t.Helper()
	cfg.Governor = gpt
	synctest.Test(t, func(t *testing.T) {
		def := handler.Define[string, agent.Result]("governed", opts...)
		w := fftest.New(t, runtime.Config{}, handler.Bind(def, running(cfg)))
		a := admin.New(w.Client())
		if err := a.PutGate(t.Context(), admission.Gate{Name: gpt, Service: &s}, flowfabric.IfNew()); err != nil {
			t.Fatal(err)
		}
		r = fftest.Submit(w, def, "hello").Wait()
		gate, err := a.GetGate(t.Context(), gpt)
		if err != nil {
			t.Fatal(err)
		}
		end = *gate.State
	})
	return r, end
}

// Each model call waits for its turn: far from it the agent gives its slot up, and goes on with what was recorded.
// Nothing is shown or asked twice for that.
func TestGovernor(t *testing.T) {
	asked := 0
	model := &script{answers: []agent.Response{wants("search", `{"text":"x"}`), says("end")},
		called: func(int, agent.Request) { asked++ }}
	r, end := governed(t, admission.Service{PerMinute: map[string]int64{"requests": 2, "tokens": 100_000}, Calls: 1},
		agent.Config{Model: model, Tools: []agent.Tool{search(nil)}})
	if r.Err != nil || r.Result.Text != "end" || asked != 2 || len(r.Attempts) != 1 || r.Attempts[0].Category != "" ||
		r.Elapsed < 50*time.Second {
		t.Errorf("%v, %+v, asked %d times in %v: %+v", r.Err, r.Result, asked, r.Elapsed, r.Attempts)
	}
	r.Want(fftest.Want{Steps: []string{"model 1", "tool 1.1 search", "model 2"}})
	if n := len(r.Kept("message")); n != 4 || len(r.Frames) != 7 {
		t.Errorf("readers see %d messages in %d frames", n, len(r.Frames))
	}
	if end.UnderWay != 0 || end.Waiting != 0 || end.Refused != 0 {
		t.Errorf("%+v", end)
	}
}

// A call is taken to use what is sent, four bytes a token, and as much as the longest of the last answers; what the
// model reports corrects that. The three dimensions are those that services limit.
func TestGovernorCountsWhatIsUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		prompt    string
		dimension string
		used      int64
	}{
		"all":    {"", "tokens", 10},
		"input":  {"", "input_tokens", 7},
		"output": {"", "output_tokens", 3},
	} {
		t.Run(name, func(t *testing.T) {
			_, end := governed(t, admission.Service{PerMinute: map[string]int64{tc.dimension: 24_000}},
				agent.Config{Model: &script{answers: []agent.Response{says("end")}}})
			if end.Room[tc.dimension] != 600-tc.used {
				t.Errorf("%+v", end)
			}
		})
	}
	large := agent.Config{Model: &script{answers: []agent.Response{says("end")}}, System: strings.Repeat("x", 4000)}
	r, _ := governed(t, admission.Service{PerMinute: map[string]int64{"tokens": 1000}}, large)
	if r.Err == nil || !strings.Contains(r.Err.Error(), "a minute has 1000") {
		t.Errorf("4,000 bytes are 1,000 tokens and an answer: %v", r.Err)
	}
	image := []agent.Part{{Type: agent.PartImage, Data: make([]byte, 100_000)}}
	shows := agent.Config{Model: large.Model, Blobs: blob.Folder(t.TempDir()),
		Messages: []agent.Message{{Role: agent.User, Parts: image}}}
	for most, fits := range map[int64]bool{1700: false, 2000: true} {
		r, _ = governed(t, admission.Service{PerMinute: map[string]int64{"tokens": most}}, shows)
		if fits != (r.Err == nil) {
			t.Errorf("an image is 1,500 tokens, however many bytes it has: %v of %d", r.Err, most)
		}
	}
	large.System = ""
	large.MaxOutput = 100
	r, _ = governed(t, admission.Service{PerMinute: map[string]int64{"output_tokens": 100}}, large)
	if r.Err != nil {
		t.Errorf("an answer has at most MaxOutput: %v", r.Err)
	}
	long := says("")
	long.Message.Calls, long.Usage.Output = wants("search", `{"text":"x"}`).Message.Calls, 300
	r, _ = governed(t, admission.Service{PerMinute: map[string]int64{"output_tokens": 299}},
		agent.Config{Model: &script{answers: []agent.Response{long, says("end")}}, Tools: []agent.Tool{search(nil)}})
	if r.Err == nil || r.Result.Turns != 0 || !strings.Contains(r.Err.Error(), "a minute has 299") ||
		len(r.Steps) != 2 {
		t.Errorf("the second answer may be as long as the first: %v, %d steps", r.Err, len(r.Steps))
	}
}

// A service that has too many calls is closed for as long as it says; other failures do not close it, and are counted
// as far as it is known what they used.
func TestGovernorHearsOfRefusals(t *testing.T) {
	after := http.Header{"Retry-After": {"20"}}
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		err     error
		refused uint64
		left    int64 // of 25,000 after a call that used nothing or all of 256 and a few, and one that used 3
	}{
		"429":         {agent.StatusError(429, after, boom), 1, 25_000 - 3},
		"429, bare":   {agent.StatusError(429, nil, boom), 1, 25_000 - 3},
		"by category": {handler.Category("model_rate_limited", boom), 1, 25_000 - 3},
		"529":         {agent.StatusError(529, after, boom), 1, 25_000 - 3},
		"503":         {agent.StatusError(503, nil, boom), 1, 25_000 - 3},
		"500":         {agent.StatusError(500, nil, boom), 0, 25_000 - 3 - 256},
		"broken off":  {agent.StatusError(0, nil, boom), 0, 25_000 - 3 - 256},
		"no reason":   {boom, 0, 25_000 - 3 - 256},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			model := agent.ModelFunc(func(context.Context, agent.Request,
				func(agent.Delta) error) (agent.Response, error) {
				if asked++; asked == 1 {
					return agent.Response{}, tc.err
				}
				return says("end"), nil
			})
			r, end := governed(t, admission.Service{Calls: 1, PerMinute: map[string]int64{"output_tokens": 1_000_000}},
				agent.Config{Model: model}, handler.Retry(3, time.Millisecond, time.Millisecond))
			if r.Err != nil || asked != 2 || end.Refused != tc.refused || end.UnderWay != 0 {
				t.Errorf("%v, asked %d times: %+v", r.Err, asked, end)
			}
			if room := end.Room["output_tokens"]; room > 25_000 || room < tc.left {
				t.Errorf("%d are left, want at least %d", room, tc.left)
			}
			if pause := 20 * time.Second; strings.HasSuffix(name, "29") && r.Elapsed < pause {
				t.Errorf("over after %v", r.Elapsed)
			}
		})
	}
	_, end := governed(t, admission.Service{PerMinute: map[string]int64{"output_tokens": 1_000_000, "requests": 400}},
		agent.Config{Model: agent.ModelFunc(func(context.Context, agent.Request,
			func(agent.Delta) error) (agent.Response, error) {
			return agent.Response{}, agent.StatusError(400, nil, boom)
		})})
	if end.Room["output_tokens"] != 25_000 || end.Room["requests"] != 9 || end.Refused != 0 {
		t.Errorf("a request that was bad used a request and no tokens: %+v", end)
	}
}

// A gate that nobody made, and a name that is none, are errors that say so; the model is not called.
func TestGovernorThatIsNotThere(t *testing.T) {
	for want, cfg := range map[string]agent.Config{
		"nobody made this service's gate": {Governor: "nobody/model"},
		`Governor "a b", want 1..`:        {Governor: "a b"},
	} {
		cfg.Model = &script{called: func(int, agent.Request) { t.Error("called") }}
		if r := run(t, cfg); r.Err == nil || !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%v, want %s", r.Err, want)
		}
	}
}

// Wherever the worker dies around an agent whose calls wait for their turn at a service that takes one at a time, it
// ends, and no recorded answer is asked for again.
func TestGovernorCrashes(t *testing.T) {
	gate := admission.Gate{Name: gpt,
		Service: &admission.Service{Calls: 1, PerMinute: map[string]int64{"requests": 20, "tokens": 100_000}}}
	var mu sync.Mutex
	var fx *fftest.Effects
	crashes := fftest.Crashes(t, chat,
		func(next *fftest.Effects) func(context.Context, *handler.Task, string) (agent.Result, error) {
			mu.Lock()
			fx = next
			mu.Unlock()
			cfg := agent.Config{Governor: gpt, Tools: []agent.Tool{search(nil)}, Model: &script{
				answers: []agent.Response{wants("search", `{"text":"x"}`), says("all done now")},
				called:  func(turn int, _ agent.Request) { next.Did(fmt.Sprint("model ", turn)) }}}
			return running(cfg)
		}, "hello", func(r *fftest.Report[agent.Result]) {
			if r.Result.Text != "all done now" || r.Result.Turns != 2 {
				t.Errorf("%s: %+v, %v", r.Crash, r.Result, r.Err)
			}
			if made := fx.Count("model 1") + fx.Count("model 2"); made > 3 {
				t.Errorf("%s: the model was called %d times", r.Crash, made)
			}
		}, fftest.Gates(gate))
	if crashes < 20 {
		t.Errorf("%d crashes", crashes)
	}
}
