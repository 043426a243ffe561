// Package articles is the service of the tutorial: what its worker and its producer share, and the handler.
package articles

import (
	"context"
	"fmt"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Draft is the input of a job, Article its result.
type Draft struct{ Topic string }
type Article struct{ Text, ApprovedBy string }

// Write is imported by producers and workers.
var Write = handler.Define[Draft, Article]("write-article",
	handler.Retry(5, time.Second, time.Minute), flowfabric.Timeout(10*time.Minute))

// Writer handles Write with a model.
type Writer struct{ Model Model }

func (w *Writer) Handle(ctx context.Context, t *handler.Task, in Draft) (Article, error) {
	outline, err := handler.Step(ctx, t, "outline", func(ctx context.Context) (string, error) {
		return w.Model.Outline(ctx, in.Topic)
	})
	if err != nil {
		return Article{}, err
	}
	text, err := handler.Step(ctx, t, "text", func(ctx context.Context) (string, error) {
		return w.Model.Write(ctx, outline, func(word string) error { return t.Frame(ctx, "word", word) })
	})
	if err != nil {
		return Article{}, err
	}
	answer, err := handler.Await[suspend.Answer](ctx, t, "editor", suspend.Within(48*time.Hour))
	if err != nil {
		return Article{}, err // while nobody has answered, this suspends the execution
	}
	if answer.Choice != "approve" {
		return Article{}, handler.Cancel("rejected by " + answer.By)
	}
	return Article{Text: text, ApprovedBy: answer.By}, nil
}

// Model stands for a language model: it takes its time, and every call costs money.
type Model struct{ Pause time.Duration }

// Outline returns the plan of an article.
func (m Model) Outline(ctx context.Context, topic string) (string, error) {
	fmt.Println("model: outline of", topic)
	return topic + " rise and fall twice a day because the moon pulls at the sea and the earth turns below it",
		m.wait(ctx)
}

// Write calls emit with each word as soon as it is there, and returns the whole text.
func (m Model) Write(ctx context.Context, outline string, emit func(word string) error) (string, error) {
	fmt.Println("model: write")
	for word := range strings.FieldsSeq(outline) {
		if err := m.wait(ctx); err != nil {
			return "", err
		}
		if err := emit(word + " "); err != nil {
			return "", err
		}
	}
	return outline, nil
}

func (m Model) wait(ctx context.Context) error {
	select {
	case <-time.After(m.Pause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
