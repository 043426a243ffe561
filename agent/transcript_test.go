package agent_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// The frames of a run are the conversation: each message once, when it is new, and the pieces of an answer before the
// answer.
func TestFrames(t *testing.T) {
	inner := &script{answers: []agent.Response{wants("search", `{"text":"x"}`, "search", `{"text":"bad"}`),
		says("the end")}}
	inner.answers[0].Message.Private = json.RawMessage(`{"signature":"secret"}`)
	model := agent.ModelFunc(func(ctx context.Context, req agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		if err := delta(agent.Delta{Reasoning: "hm"}); err != nil {
			return agent.Response{}, err
		}
		return inner.Generate(ctx, req, delta)
	})
	r := run(t, agent.Config{Model: model, Tools: []agent.Tool{search(nil)}})
	var lines []string
	for _, f := range r.Frames {
		if f.Type == agent.FrameUsage || f.Type == agent.FrameResult {
			lines = append(lines, f.Type)
			continue
		}
		if f.Type != agent.FrameMessage {
			lines = append(lines, f.Type+" "+string(f.Payload))
			continue
		}
		var m agent.Message
		if err := json.Unmarshal(f.Payload, &m); err != nil || f.Encoding != "json" || m.Private != nil {
			t.Errorf("%v, %s, %s", err, f.Encoding, f.Payload)
		}
		lines = append(lines, talk([]agent.Message{m})...)
	}
	want := []string{"user: hello", "reasoning hm", `assistant:  search{"text":"x"} search{"text":"bad"}`,
		"usage", "result", "result", "tool search c1: about x", "failed tool search c2: nothing is there",
		"reasoning hm", "token the ", "token end", "assistant: the end", "usage"}
	if !slices.Equal(lines, want) {
		t.Errorf("frames\n%q\nwant\n%q", lines, want)
	}
	if string(r.Result.Messages[1].Private) != `{"signature":"secret"}` {
		t.Errorf("what is private is lost: %s", r.Result.Messages[1].Private)
	}
}

// Pieces longer than a frame come in several, messages are cut, and the conversation itself stays whole.
func TestLongFrames(t *testing.T) {
	long := strings.Repeat("é", 50_000) // 100,000 bytes
	model := agent.ModelFunc(func(_ context.Context, req agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		if len(req.Messages) == 1 {
			r := wants("echo", `{"text":"`+strings.Repeat("a", 80_000)+`"}`)
			r.Message.Parts = agent.Text(long)
			return r, delta(agent.Delta{Text: long})
		}
		return says("end"), delta(agent.Delta{Text: "e\xff"})
	})
	echo := agent.NewTool("echo", "", func(_ context.Context, q query) (string, error) { return q.Text + "\x00<", nil })
	r := fftest.Run(t, chat, func(ctx context.Context, task *handler.Task, _ string) (agent.Result, error) {
		return agent.Run(ctx, task, agent.Config{Model: model, Tools: []agent.Tool{echo}, Prompt: long})
	}, "")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if got := strings.Join(r.Payloads("token"), ""); got != long+"e\ufffd" || len(r.Payloads("token")) != 3 {
		t.Errorf("%d tokens of %d bytes", len(r.Payloads("token")), len(got))
	}
	for i, payload := range r.Payloads("message") {
		var m agent.Message
		if err := json.Unmarshal([]byte(payload), &m); err != nil || len(payload) > 64<<10 {
			t.Errorf("message %d: %v, %d bytes", i, err, len(payload))
		}
		if whole := r.Result.Messages[i]; i < 3 && !strings.HasSuffix(m.Text(), "bytes)") || m.Role != whole.Role ||
			m.Tool != whole.Tool || len(m.Calls) != len(whole.Calls) {
			t.Errorf("message %d: %+.200v", i, m)
		}
	}
	if m := r.Result.Messages; m[0].Text() != long || m[1].Text() != long || len(m[1].Calls[0].Arguments) < 80_000 ||
		m[2].Text() != strings.Repeat("a", 80_000)+"\x00<" {
		t.Error("the conversation was cut")
	}
}

// The transcript that was recorded is what the run returned, and can be read while the execution waits.
func TestReadTranscript(t *testing.T) {
	for name, codec := range map[string]handler.Codec{"": nil, "writer": coded{}} {
		synctest.Test(t, func(t *testing.T) {
			def := chat
			if codec != nil {
				def = handler.Define[string, agent.Result]("secret", handler.WithCodec(codec))
			}
			model := &script{answers: []agent.Response{wants("search", `{"text":"x"}`, "refund", `{"cents":1}`),
				says("end")}}
			w := fftest.New(t, runtime.Config{},
				handler.Bind(def, running(agent.Config{Name: name, Model: model,
					Tools: []agent.Tool{search(nil), refund(agent.Decision{Ask: true})}})))
			x := fftest.Submit(w, def, "hello")
			x.AwaitSuspension()
			read := func() agent.Result {
				got, err := agent.ReadTranscript(t.Context(), w.Client(), x.ID(),
					agent.TranscriptOptions{Name: name, Codec: codec})
				must.No(t, err)
				return got
			}
			waiting := read()
			wantTalk(t, waiting.Messages, "user: hello", `assistant:  search{"text":"x"} refund{"cents":1}`,
				"tool search c1: about x")
			if waiting.Turns != 1 || waiting.Usage.Total() != 10 || waiting.Stop != agent.StopTools {
				t.Errorf("%+v", waiting)
			}
			x.Answer(fftest.Approve(strings.TrimSpace(name+" approve 1.2 refund"), suspend.Answer{Choice: "approve"}))
			r := x.Wait()
			if got := read(); !reflect.DeepEqual(got, r.Result) || r.Err != nil {
				t.Errorf("read\n%+v\nreturned\n%+v, %v", got, r.Result, r.Err)
			}
			if other, err := agent.ReadTranscript(t.Context(), w.Client(), x.ID(),
				agent.TranscriptOptions{Name: "other"}); err != nil || len(other.Messages) != 0 {
				t.Errorf("%+v, %v", other, err)
			}
			if codec != nil {
				if _, err := agent.ReadTranscript(t.Context(), w.Client(), x.ID(), agent.TranscriptOptions{
					Name: name}); err == nil || !strings.Contains(err.Error(), "model call 1 does not decode") {
					t.Error(err)
				}
			}
		})
	}
}

// coded is a codec that the default one cannot read.
type coded struct{}

func (coded) Encode(v any) ([]byte, error) {
	plain, err := handler.JSON.Encode(v)
	return []byte("!" + base64.StdEncoding.EncodeToString(plain)), err
}

func (coded) Decode(data []byte, v any) error {
	plain, err := base64.StdEncoding.DecodeString(string(data[1:]))
	if err != nil {
		return err
	}
	return handler.JSON.Decode(plain, v)
}

// However much the user has said before an answer, the answer can be recorded, and the model gets all of it.
func TestLongHistoriesLeaveRoomForTheAnswer(t *testing.T) {
	var history []agent.Message
	for range 300 {
		history = append(history, agent.Message{Role: agent.User, From: "anna",
			Parts: agent.Text(strings.Repeat("<", 4000))})
	}
	asked := 0
	model := &script{answers: []agent.Response{says(strings.Repeat("x", 230<<10))},
		called: func(_ int, req agent.Request) { asked = len(req.Messages) }}
	r := fftest.Run(t, handler.Define[string, int]("count"),
		func(ctx context.Context, task *handler.Task, _ string) (int, error) {
			result, err := agent.Run(ctx, task, agent.Config{Model: model, Messages: history})
			return len(result.Messages), err
		}, "")
	if r.Err != nil || asked != 300 || r.Result != 301 {
		t.Errorf("%v, %d asked, %d messages", r.Err, asked, r.Result)
	}
}
