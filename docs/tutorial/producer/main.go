// Command producer submits one article and follows it to its end.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/docs/tutorial/articles"
	"github.com/flowfabric/flowfabric-go/stream"
)

func main() {
	if err := produce(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func produce(ctx context.Context, topic string) error {
	c, err := client.Connect(ctx, client.Config{URL: os.Getenv("FLOWFABRIC_URL")})
	if err != nil {
		return err
	}
	defer c.Close()
	exec, err := client.Submit(ctx, c, articles.Write, articles.Draft{Topic: topic}, flowfabric.Priority(5))
	if err != nil {
		return err
	}
	fmt.Println("submitted", exec.ID())
	for event, err := range exec.Tail(ctx) {
		if err != nil {
			return err
		}
		switch event.Kind {
		case stream.TailAttempt:
			fmt.Printf("\nattempt %d: ", event.Attempt)
		case stream.TailFrame:
			fmt.Printf("%s", event.Frame.Payload)
		}
	}
	article, err := exec.Result(ctx)
	fmt.Printf("\napproved by %s: %s\n", article.ApprovedBy, article.Text)
	return err
}
