package adk_test

import (
	"context"
	"fmt"

	"github.com/sourcegraph/conc"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/genai"

	"github.com/flowfabric/flowfabric-go/agent/adk"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store, err := embedded.Start(ctx, embedded.Config{})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	worker, err := supporting(store.URL(), &script{answers: []*genai.Content{says("Ask again tomorrow.")}}, nil)
	if err != nil {
		panic(err)
	}
	var running conc.WaitGroup
	running.Go(func() { _ = worker.Run(ctx) })
	c, err := client.Connect(ctx, client.Config{URL: store.URL()})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	x, err := client.Submit(ctx, c, question, "When does my parcel come?")
	if err != nil {
		panic(err)
	}
	fmt.Println(x.Result(ctx))
	stop()
	running.Wait()
	// Output: Ask again tomorrow. <nil>
}

var question = handler.Define[string, string]("question")

func supporting(url string, gemini model.LLM, tools []tool.Tool) (*runtime.Worker, error) {
	support, err := llmagent.New(llmagent.Config{Name: "support", Model: adk.Model(gemini), Tools: tools})
	if err != nil {
		return nil, err
	}
	answer := handler.Bind(question, func(ctx context.Context, t *handler.Task, text string) (string, error) {
		s, err := adk.New(ctx, t, adk.Config{Runner: runner.Config{Agent: support}, Stream: true})
		if err != nil {
			return "", err
		}
		answer, err := s.Send(ctx, genai.NewContentFromText(text, genai.RoleUser))
		return answer.Text, err
	})
	return runtime.New(runtime.Config{URL: url, Logger: quiet}, answer)
}
