package howto_test

import (
	"context"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
)

var Stream = handler.Define[Draft, Article]("stream-article")

func writeStream(ctx context.Context, t *handler.Task, in Draft) (Article, error) {
	words := strings.Fields("all about " + in.Topic)
	for i, word := range words {
		if err := t.Frame(ctx, "word", word); err != nil {
			return Article{}, err
		}
		if err := t.Summary(ctx, map[string]any{"words": i + 1}); err != nil {
			return Article{}, err
		}
	}
	return Article{strings.Join(words, " ")}, nil
}

// reader follows one execution and can go on where it stopped.
type reader struct {
	attempt uint32
	cursor  stream.Cursor
	words   []string
}

func (r *reader) follow(ctx context.Context, exec *client.Execution[Article]) error {
	for event, err := range exec.Tail(ctx, client.FromAttempt(r.attempt), client.After(r.cursor)) {
		if err != nil {
			return err
		}
		switch event.Kind {
		case stream.TailAttempt: // a new attempt starts with no output
			if event.Attempt != r.attempt {
				r.attempt, r.words = event.Attempt, nil
			}
		case stream.TailFrame:
			r.cursor = event.Frame.ID
			if event.Frame.Type == "word" {
				r.words = append(r.words, string(event.Frame.Payload))
			}
		}
	}
	return nil
}

func TestStream(t *testing.T) {
	ctx, c := start(t, runtime.Config{}, handler.Bind(Stream, writeStream))
	exec, err := client.Submit(ctx, c, Stream, Draft{"tides"})
	must(t, err)
	var r reader
	must(t, r.follow(ctx, exec))
	must(t, r.follow(ctx, exec)) // nothing twice
	if got := strings.Join(r.words, " "); got != "all about tides" {
		t.Errorf("words %q", got)
	}
	summary, err := exec.Summary(ctx)
	must(t, err)
	if string(summary.Document) != `{"words":3}` {
		t.Errorf("summary %s", summary.Document)
	}
}
