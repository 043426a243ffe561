// Command worker runs the handler of the tutorial until it is stopped.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/flowfabric/flowfabric-go/docs/tutorial/articles"
	"github.com/flowfabric/flowfabric-go/runtime"
)

func main() {
	writer := &articles.Writer{Model: articles.Model{Pause: 500 * time.Millisecond}}
	err := runtime.Run(context.Background(), runtime.Config{
		URL:      os.Getenv("FLOWFABRIC_URL"),
		LeaseTTL: 3 * time.Second, // how soon another worker takes over the work of a dead one; the default is 30 s
	}, runtime.Handle(articles.Write, writer.Handle))
	if err != nil {
		log.Fatal(err)
	}
}
