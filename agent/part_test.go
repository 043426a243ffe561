package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// picture is a PNG of n bytes that begins like one, different for each number.
func picture(number byte, n int) []byte {
	return append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte{number}, n-8)...)
}

// counted is a store that counts what is done with each reference.
type counted struct {
	blob.Store
	mu         sync.Mutex
	puts, gets map[string]int
	failures   int // of the next calls
}

func newCounted(t testing.TB) *counted {
	return &counted{Store: blob.Folder(t.TempDir()), puts: map[string]int{}, gets: map[string]int{}}
}

var errAway = errors.New("the store is away")

func (c *counted) note(calls map[string]int, ref string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls[ref]++
	if c.failures > 0 {
		c.failures--
		return errAway
	}
	return nil
}

func (c *counted) Put(ctx context.Context, data []byte) (string, error) {
	if err := c.note(c.puts, blob.Ref(data)); err != nil {
		return "", err
	}
	return c.Store.Put(ctx, data)
}

func (c *counted) Get(ctx context.Context, ref string) ([]byte, error) {
	if err := c.note(c.gets, ref); err != nil {
		return nil, err
	}
	return c.Store.Get(ctx, ref)
}

// shots is a tool that answers with parts.
func shots(parts ...agent.Part) agent.Tool {
	return agent.NewTool("shot", "", func(context.Context, struct{}) ([]agent.Part, error) { return parts, nil })
}

var (
	large = agent.Part{Type: agent.PartImage, Name: "screen.png", Data: picture(1, 100<<10)}
	small = agent.Part{Type: agent.PartFile, Media: "text/csv", Data: []byte("a,b")}
)

// Large parts of tools, of the prompt's messages and of the inbox are references in the transcript and in frames, and
// bytes for the model; each is stored once and read once a call.
func TestBlobs(t *testing.T) {
	store := newCounted(t)
	sent, attached := picture(2, 20<<10), picture(3, 30<<10)
	uploaded, err := store.Store.Put(t.Context(), picture(4, 1<<20))
	must.No(t, err)
	var asked []agent.Request
	inner := &script{answers: []agent.Response{wants("shot", "{}"), says("first"), says("second")},
		called: func(_ int, req agent.Request) { asked = append(asked, req) }}
	model := agent.ModelFunc(func(ctx context.Context, req agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		r, err := inner.Generate(ctx, req, delta)
		if r.Message.Text() == "first" {
			for _, payload := range []any{
				[]agent.Part{{Type: agent.PartText, Text: "see"}, {Type: agent.PartImage, Data: sent}},
				agent.Message{Parts: []agent.Part{{Type: agent.PartFile, Media: "application/pdf", Blob: uploaded}}},
				[]agent.Part{{Type: "video", Data: sent[:10]}},
				[]agent.Part{{Type: agent.PartReasoning, Text: "hm"}},
			} {
				fftest.Tell(ctx, fftest.Send("talk", payload))
			}
		}
		return r, err
	})
	history := []agent.Message{{Role: agent.User, Parts: []agent.Part{{Type: agent.PartImage, Data: attached}, small}}}
	// an approval makes the handler run again, which recalls the first call
	tool := agent.NewTool("shot", "", func(context.Context, struct{}) ([]agent.Part, error) {
		return []agent.Part{{Type: agent.PartText, Text: "this:"}, large, small, large}, nil
	}, agent.Needs(func(struct{}) agent.Decision { return agent.Decision{Ask: true} }))
	r := fftest.Run(t, chat, fftest.Answered(
		func(ctx context.Context, task *handler.Task, prompt string) (agent.Result, error) {
			return agent.Run(ctx, task, agent.Config{Model: model, Tools: []agent.Tool{tool}, Mailbox: "talk",
				Blobs: store, Messages: history, Prompt: prompt})
		}, fftest.Resume()), "hello")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	wantTalk(t, r.Result.Messages, "user: ", "user: hello", "assistant:  shot{}",
		"failed tool shot c1: the call was not made: it was not approved", "assistant: first", "user fftest: see",
		"user fftest: ", `user fftest: [{"type":"video","data":"iVBORw0KGgoCAg=="}]`,
		`user fftest: [{"type":"reasoning","text":"hm"}]`,
		"assistant: second")
	checkStored(t, r, store, blob.Ref(attached), blob.Ref(sent))
	for ref, want := range map[string]int{blob.Ref(attached): 2, blob.Ref(sent): 0, uploaded: 1} {
		if store.gets[ref] != want { // not when it was new: the bytes were at hand
			t.Errorf("%s was read %d times, want %d", ref, store.gets[ref], want)
		}
	}
	if got := asked[2].Messages[6].Parts[0]; len(got.Data) != 1<<20 || got.Blob != uploaded || got.Size != 1<<20 {
		t.Errorf("a model got %d bytes, %+v", len(got.Data), got.Blob)
	}
	for _, req := range asked {
		if got := req.Messages[0].Parts; !bytes.Equal(got[0].Data, attached) || got[0].Media != "image/png" ||
			!bytes.Equal(got[1].Data, small.Data) || got[1].Media != "text/csv" {
			t.Errorf("a model got %+v", got)
		}
	}
	if history[0].Parts[0].Blob != "" || len(history[0].Parts[0].Data) != len(attached) {
		t.Error("the configuration was changed")
	}
}

// checkStored says that these were stored once each, that everything a result refers to is there, and that nothing
// large is in transcript or frames.
func checkStored(t *testing.T, r *fftest.Report[agent.Result], store *counted, refs ...string) {
	t.Helper()
	want := map[string]int{}
	for _, ref := range refs {
		want[ref] = 1
	}
	if !maps.Equal(store.puts, want) {
		t.Errorf("stored %v, want %v", store.puts, want)
	}
	seen := 0
	for i, m := range r.Result.Messages {
		for _, p := range m.Parts {
			if len(p.Data) > 1<<10 || p.Blob != "" && p.Size == 0 && !strings.Contains(p.Media, "pdf") {
				t.Errorf("message %d has %d bytes, blob %s of %d", i, len(p.Data), p.Blob, p.Size)
			}
			if p.Blob != "" {
				seen++
				if _, err := store.Store.Get(t.Context(), p.Blob); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if seen < len(refs) {
		t.Errorf("%d references", seen)
	}
	for _, payload := range r.Payloads("message") {
		if len(payload) > 4<<10 {
			t.Errorf("a frame has %d bytes", len(payload))
		}
	}
}

// What a tool shows is stored in its step, however often it comes; the transcript that is read is the one returned.
func TestToolsThatShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newCounted(t)
		var got []agent.Part
		model := &script{answers: []agent.Response{wants("shot", "{}"), says("end")},
			called: func(_ int, req agent.Request) { got = req.Messages[len(req.Messages)-1].Parts }}
		cfg := agent.Config{Model: model, Blobs: store,
			Tools: []agent.Tool{shots(agent.Part{Type: agent.PartText, Text: "this:"}, large, small, large,
				agent.Part{Type: agent.PartText})}}
		w := fftest.New(t, runtime.Config{}, handler.Bind(chat, running(cfg)))
		x := fftest.Submit(w, chat, "hello")
		r := x.Wait()
		checkStored(t, r, store, blob.Ref(large.Data))
		read, err := agent.ReadTranscript(t.Context(), w.Client(), x.ID(), agent.TranscriptOptions{})
		must.No(t, err)
		as := func(r agent.Result) string { text, _ := json.Marshal(r); return string(text) }
		if as(read) != as(r.Result) {
			t.Errorf("read\n%s\nreturned\n%s", as(read), as(r.Result))
		}
		if len(got) != 4 || !bytes.Equal(got[1].Data, large.Data) || got[1].Name != "screen.png" ||
			got[1].Media != "image/png" || !bytes.Equal(got[2].Data, small.Data) {
			t.Errorf("the model got %d parts", len(got))
		}
		if n := store.gets[blob.Ref(large.Data)]; n != 1 {
			t.Errorf("read %d times", n)
		}
	})
}

// Images that the model makes are stored, too, and what it thought is cut before the answer is too large.
func TestAnswersWithParts(t *testing.T) {
	store := newCounted(t)
	thought := agent.Part{Type: agent.PartReasoning, Text: strings.Repeat("hm ", 100<<10)}
	answer := says("look")
	answer.Message.Parts = append([]agent.Part{thought}, append(answer.Message.Parts, large)...)
	r := run(t, agent.Config{Model: &script{answers: []agent.Response{answer}}, Blobs: store})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	m := r.Result.Messages[1]
	if m.Text() != "look" || r.Result.Text != "look" || len(m.Parts) != 3 || m.Parts[2].Blob != blob.Ref(large.Data) ||
		!strings.HasSuffix(m.Parts[0].Text, "(cut: 307200 bytes)") || len(m.Parts[0].Text) < 200<<10 {
		t.Errorf("%.200v", m)
	}
	bad := says("")
	bad.Message.Parts = []agent.Part{{Type: agent.PartImage}}
	r = run(t, agent.Config{Model: &script{answers: []agent.Response{bad}}})
	r.Want(fftest.Want{Failure: "model_protocol"})
	bad.Message.Parts[0].Data = picture(1, 300<<10)
	r = run(t, agent.Config{Model: &script{answers: []agent.Response{bad}}})
	if !errors.Is(r.Err, flowfabric.ErrFailed) || !strings.Contains(r.Err.Error(), "Config.Blobs is nil") {
		t.Error(r.Err)
	}
}

// Without a store small parts stay in their messages, and the error of a large one says which it is and what to set.
func TestWithoutBlobs(t *testing.T) {
	var got []agent.Part
	model := &script{answers: []agent.Response{wants("shot", "{}"), says("end")},
		called: func(_ int, req agent.Request) { got = req.Messages[len(req.Messages)-1].Parts }}
	r := run(t, agent.Config{Model: model, Tools: []agent.Tool{shots(large, small)}})
	if r.Err != nil || len(got) != 2 || !bytes.Equal(got[0].Data, large.Data) ||
		!bytes.Equal(r.Result.Messages[2].Parts[0].Data, large.Data) {
		t.Errorf("%v, %d parts", r.Err, len(got))
	}
	for _, payload := range r.Payloads("message") {
		if len(payload) > 64<<10 {
			t.Errorf("a frame has %d bytes", len(payload))
		}
	}
	huge := agent.Part{Type: agent.PartImage, Data: picture(1, 200<<10)}
	away := agent.Part{Type: agent.PartImage, Blob: blob.Ref(nil)}
	user := func(p agent.Part) []agent.Message {
		return []agent.Message{{Role: agent.User, Parts: []agent.Part{small, p}}}
	}
	for want, cfg := range map[string]agent.Config{
		"the result of tool shot: Parts[1], of type image, has 204800 bytes, more than fit into a message: " +
			"Config.Blobs is nil: set it to a store of package blob": {Tools: []agent.Tool{shots(small, huge)}},
		"the result of tool shot: Parts[0] is a blob, and Config.Blobs is nil": {Tools: []agent.Tool{shots(away)}},
		"Config: Messages[0].Parts[1], of type image, has 204800 bytes":        {Messages: user(huge)},
		"Config: Messages[0].Parts[1] is a blob, and Config.Blobs is nil":      {Messages: user(away)},
		`Config: Messages[0].Parts[1]: type "video" is not valid`: {
			Messages: user(agent.Part{Type: "video"})},
		"Config: Messages[0].Parts[1]: type file has neither Data nor Blob": {
			Messages: user(agent.Part{Type: agent.PartFile})},
		`Config: Messages[0].Parts[1]: blob: invalid_input`: {Messages: user(agent.Part{Type: agent.PartFile,
			Blob: "sha256:1"})},
	} {
		cfg.Model = model
		r := run(t, cfg)
		if r.Err == nil || !strings.Contains(r.Err.Error(), want) || len(r.Attempts) != 1 {
			t.Errorf("%s:\n%v after %d attempts", want, r.Err, len(r.Attempts))
		}
	}
	m := result(t, one(t, shots(agent.Part{Type: agent.PartImage}), "shot", "{}"))
	if !m.Failed || m.Text() != "the result is not valid: Parts[0]: type image has neither Data nor Blob" {
		t.Errorf("%+v", m)
	}
}

// A store that is away costs a retry. Bytes that are gone or damaged end the run for good, and Edit can leave them out.
func TestBlobsThatFail(t *testing.T) {
	retried := handler.Define[string, agent.Result]("chat", handler.Retry(9, time.Second, time.Minute))
	store := newCounted(t)
	store.failures = 3
	model := &script{answers: []agent.Response{wants("shot", "{}"), says("end")}}
	user := agent.Message{Role: agent.User, Parts: []agent.Part{{Type: agent.PartImage, Data: picture(2, 9000)}}}
	cfg := agent.Config{Model: model, Blobs: store, Tools: []agent.Tool{shots(large)},
		Messages: []agent.Message{user}}
	r := fftest.Run(t, retried, running(cfg), "hello")
	if r.Err != nil || len(r.Attempts) < 2 {
		t.Errorf("%v after %d attempts", r.Err, len(r.Attempts))
	}
	cfg.Tools = []agent.Tool{shots(agent.Part{Type: agent.PartFile, Name: "gone", Blob: blob.Ref([]byte("gone"))})}
	r = fftest.Run(t, retried, running(cfg), "hello")
	if len(r.Attempts) != 1 || r.Err == nil || !strings.Contains(r.Err.Error(), "Messages[3].Parts[0]: blob sha256:") ||
		!strings.Contains(r.Err.Error(), "blob_not_found") {
		t.Errorf("%v after %d attempts", r.Err, len(r.Attempts))
	}
	cfg.Edit = func(req *agent.Request) {
		for _, m := range req.Messages {
			for i, p := range m.Parts {
				if p.Name == "gone" {
					m.Parts[i] = agent.Part{Type: agent.PartText, Text: "left out"}
				}
			}
		}
	}
	r = fftest.Run(t, retried, running(cfg), "hello")
	if r.Err != nil || r.Result.Messages[3].Parts[0].Name != "gone" {
		t.Errorf("%v, %+v", r.Err, r.Result.Messages)
	}
	big := result(t, run(t, agent.Config{Model: model, Blobs: store,
		Tools: []agent.Tool{shots(agent.Part{Type: agent.PartFile, Data: make([]byte, blob.MaxSize+1)})}}))
	if !big.Failed || big.Text() != "the result has 67108865 bytes, more than 67108864; ask for less" {
		t.Errorf("%+v", big)
	}
}

// An image that came after the last answer is in the store before the conversation goes on with another input.
func TestBlobsOfConversationsThatContinue(t *testing.T) {
	store := newCounted(t)
	sent := []agent.Part{{Type: agent.PartImage, Data: picture(5, 20<<10)}}
	var sizes []int
	r := fftest.Run(t, dialogues, fftest.Answered(
		func(ctx context.Context, task *handler.Task, in dialogue) (agent.Result, error) {
			model := agent.ModelFunc(func(ctx context.Context, req agent.Request,
				_ func(agent.Delta) error) (agent.Response, error) {
				if len(req.Messages) == 1 {
					fftest.Tell(ctx, fftest.Send("talk", sent))
				} else {
					sizes = append(sizes, len(req.Messages[len(req.Messages)-1].Parts[0].Data))
				}
				return says("yes"), nil
			})
			return agent.Run(ctx, task, agent.Config{Model: model, Messages: in.Messages, Blobs: store,
				Mailbox: "talk", Conversation: true, Idle: time.Hour, MaxTurns: 1,
				Continue: func(r agent.Result) error { return handler.Continue(dialogue{r.Messages}) }})
		}, fftest.Send("talk", "a")), dialogue{})
	if r.Err != nil || !slices.Equal(sizes, []int{20 << 10}) || store.puts[blob.Ref(sent[0].Data)] != 1 {
		t.Errorf("%v, %v, %v", r.Err, sizes, store.puts)
	}
}

// Wherever the worker dies, no image is lost, and none is stored under another digest.
func TestCrashesWithBlobs(t *testing.T) {
	shot, sent := picture(1, 50<<10), picture(2, 20<<10)
	var mu sync.Mutex
	var store *counted
	crashes := fftest.Crashes(t, chat,
		func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (agent.Result, error) {
			mine := newCounted(t)
			mu.Lock()
			store = mine
			mu.Unlock()
			tool := agent.NewTool("shot", "", func(ctx context.Context, _ struct{}) ([]agent.Part, error) {
				call, _ := agent.CallFrom(ctx)
				fx.Did(call.Step)
				return []agent.Part{{Type: agent.PartImage, Data: shot}}, nil
			})
			model := &script{answers: []agent.Response{wants("shot", "{}"), says("first"), says("second")},
				called: func(turn int, req agent.Request) {
					fx.Did(fmt.Sprint("model ", turn))
					for _, m := range req.Messages {
						for _, p := range m.Parts {
							if p.Type == agent.PartImage && !bytes.Equal(p.Data, shot) && !bytes.Equal(p.Data, sent) {
								t.Errorf("the model got %d bytes", len(p.Data))
							}
						}
					}
				}}
			return fftest.Answered(running(agent.Config{Model: model, Tools: []agent.Tool{tool}, Mailbox: "talk",
				Conversation: true, Idle: time.Hour, Blobs: mine}),
				fftest.Send("talk", []agent.Part{{Type: agent.PartImage, Data: sent}}).After(time.Minute))
		}, "hello", func(r *fftest.Report[agent.Result]) {
			if r.Err != nil {
				t.Errorf("%s: %v", r.Crash, r.Err)
				return
			}
			wantTalk(t, r.Result.Messages, "user: hello", "assistant:  shot{}", "tool shot c1: ", "assistant: first",
				"user fftest: ", "assistant: second")
			for i, data := range map[int][]byte{2: shot, 4: sent} {
				kept, err := store.Store.Get(t.Context(), r.Result.Messages[i].Parts[0].Blob)
				if err != nil || !bytes.Equal(kept, data) {
					t.Errorf("%s: message %d has lost its image: %v", r.Crash, i, err)
				}
			}
			if refs := slices.Sorted(maps.Keys(store.puts)); !slices.Equal(refs,
				slices.Sorted(slices.Values([]string{blob.Ref(shot), blob.Ref(sent)}))) {
				t.Errorf("%s: stored %v", r.Crash, refs)
			}
			for ref, n := range store.puts {
				if n > 2 {
					t.Errorf("%s: %s was stored %d times", r.Crash, ref, n)
				}
			}
		})
	if crashes < 20 {
		t.Errorf("%d crashes", crashes)
	}
}
