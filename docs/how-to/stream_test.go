package howto_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
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
	transcript stream.Transcript
	position   stream.Position // its text is all that another process needs
}

func (r *reader) follow(ctx context.Context, exec *client.Execution[Article]) error {
	for event, err := range exec.Tail(ctx, client.From(r.position)) {
		if err != nil {
			return err
		}
		r.transcript.Add(event) // drops what a later run or attempt repeats
		r.position = event.Position
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
	if got := r.words(); !slices.Equal(got, []string{"all", "about", "tides"}) {
		t.Errorf("words %q", got)
	}
	whole, err := exec.Transcript(ctx)
	must(t, err)
	if whole.Text() != r.transcript.Text() || whole.Position() != r.position {
		t.Errorf("%q, %q", whole.Text(), r.transcript.Text())
	}
	summary, err := exec.Summary(ctx)
	must(t, err)
	if string(summary.Document) != `{"words":3}` {
		t.Errorf("summary %s", summary.Document)
	}
}

var Parts = handler.Define[Draft, Article]("parts-article")

func writeParts(ctx context.Context, t *handler.Task, in Draft) (Article, error) {
	parts := flow.Children("parts")
	first := flow.Child(parts, "first", Stream, Draft{in.Topic + " at noon"}, flow.Streamed())
	flow.Child(parts, "second", Stream, Draft{in.Topic + " at night"}, flow.Streamed())
	if err := t.WaitChildren(ctx, parts); err != nil {
		return Article{}, err
	}
	return handler.ChildResult(ctx, t, first)
}

// printAll prints all that the execution and its children put out.
func printAll(ctx context.Context, exec *client.Execution[Article], out io.Writer) error {
	for event, err := range exec.Tail(ctx) {
		if err != nil {
			return err
		}
		name := "parent"
		if event.Child != nil {
			name = strings.Join(event.Child.Path, "/")
		}
		fmt.Fprintln(out, name, event.Kind, string(event.Frame.Payload))
	}
	return nil
}

func TestStreamOfChildren(t *testing.T) {
	ctx, c := start(t, runtime.Config{}, handler.Bind(Stream, writeStream), handler.Bind(Parts, writeParts))
	exec, err := client.Submit(ctx, c, Parts, Draft{"tides"})
	must(t, err)
	var out strings.Builder
	must(t, printAll(ctx, exec, &out))
	for _, line := range []string{"first frame noon\n", "second frame night\n", "second end \n", "parent end \n"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no line %q in\n%s", line, out.String())
		}
	}
	whole, err := exec.Transcript(ctx)
	must(t, err)
	said := map[string]string{}
	for child, transcript := range whole.Children() {
		said[child.Path[0]] = transcript.Text()
	}
	if len(said) != 2 || whole.Text() != "" || said["second"] != "allabouttidesatnight" {
		t.Errorf("%q, %q", said, whole.Text())
	}
	for event, err := range exec.Tail(ctx, client.WithoutChildren()) {
		if must(t, err); event.Child != nil || event.Kind == stream.TailFrame {
			t.Errorf("%+v", event)
		}
	}
}

// words are what the execution wrote.
func (r *reader) words() (words []string) {
	for _, f := range r.transcript.Frames() {
		if f.Type == "word" {
			words = append(words, string(f.Payload))
		}
	}
	return words
}
