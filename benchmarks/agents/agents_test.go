// Package agents measures agents whose transcripts have many images.
package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"testing"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	ff "github.com/flowfabric/flowfabric-go/runtime"
)

const (
	images = 50
	size   = 1 << 20 // bytes of an image
)

var look = handler.Define[string, agent.Result]("look")

// picture is an image that no other number has.
func picture(number int) []byte {
	return append([]byte(fmt.Sprintf("\x89PNG\r\n\x1a\n%04d", number)), bytes.Repeat([]byte{byte(number)}, size-12)...)
}

// shot is a tool that answers with an image of 1 MiB, another one each time.
var shot = agent.NewTool("shot", "", func(_ context.Context, in struct{ N int }) ([]agent.Part, error) {
	return []agent.Part{{Type: agent.PartImage, Data: picture(in.N)}}, nil
})

// looks is a model that asks for so many images and then ends. most is how much of the heap was live in its calls.
type looks struct {
	images int
	seen   int64 // bytes in the last call
	most   uint64
}

func (m *looks) Generate(_ context.Context, req agent.Request,
	_ func(agent.Delta) error) (agent.Response, error) {
	shown := 0
	m.seen = 0
	for _, msg := range req.Messages {
		for _, p := range msg.Parts {
			if p.Type == agent.PartImage {
				shown, m.seen = shown+1, m.seen+int64(len(p.Data))
			}
		}
	}
	if shown < m.images {
		call := agent.ToolCall{ID: "1", Name: "shot", Arguments: fmt.Appendf(nil, `{"N":%d}`, shown)}
		return agent.Response{Message: agent.Message{Calls: []agent.ToolCall{call}}}, nil
	}
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	runtime.KeepAlive(req)
	m.most = max(m.most, stats.HeapAlloc)
	return agent.Response{Message: agent.Message{Parts: agent.Text("seen")}}, nil
}

// start runs a worker on the embedded server, until the benchmark ends.
func start(b *testing.B, cfg func() agent.Config) *client.Client {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.Connect(ctx, client.Config{URL: "embedded://", Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	worker, err := ff.New(ff.Config{URL: "embedded://", Logger: quiet}, handler.Bind(look,
		func(ctx context.Context, t *handler.Task, in string) (agent.Result, error) {
			cfg := cfg()
			cfg.Prompt = in
			return agent.Run(ctx, t, cfg)
		}))
	if err != nil {
		b.Fatal(err)
	}
	var running conc.WaitGroup
	running.Go(func() { _ = worker.Run(ctx) })
	b.Cleanup(func() {
		cancel()
		running.Wait()
		c.Close()
	})
	return c
}

// BenchmarkTranscript is a transcript of 50 MiB, as it comes about with 50 images of tools, and as one call reads it.
// Each model call reads all images so far, so the first reads 25 times as much as the second.
func BenchmarkTranscript(b *testing.B) {
	store := blob.Folder(b.TempDir())
	var history []agent.Message
	var model *looks
	c := start(b, func() agent.Config {
		return agent.Config{Model: model, Tools: []agent.Tool{shot}, Blobs: store, Messages: history, MaxTurns: 100}
	})
	run := func(b *testing.B) (r agent.Result) {
		b.ReportAllocs()
		var before runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for b.Loop() {
			model = &looks{images: images}
			h, err := client.Submit(b.Context(), c, look, "look")
			if err != nil {
				b.Fatal(err)
			}
			r, err = h.Result(b.Context())
			data, bad := json.Marshal(r)
			if err != nil || bad != nil || model.seen != images*size {
				b.Fatalf("%v, %v, the model saw %d bytes", err, bad, model.seen)
			}
			b.ReportMetric(float64(len(data)), "transcript-B")
			b.ReportMetric((float64(model.most)-float64(before.HeapAlloc))/(1<<20), "live-MiB")
		}
		return r
	}
	var grown agent.Result
	b.Run("grown", func(b *testing.B) { grown = run(b) })
	b.Run("read", func(b *testing.B) {
		history = grown.Messages
		run(b)
	})
}
