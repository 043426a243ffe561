// Command hello is a worker and a producer in one program.
package main

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

const url = "embedded://" // a server inside this process; in production redis://host:6379

// Greet is shared by workers and producers: a name, and the types of input and result.
var Greet = handler.Define[string, string]("greet")

func greet(ctx context.Context, t *handler.Task, name string) (string, error) {
	return "Hello, " + name + "!", nil
}

func main() {
	ctx, stop := context.WithCancel(context.Background())
	var worker sync.WaitGroup
	worker.Go(func() { log.Print(runtime.Run(ctx, runtime.Config{URL: url}, runtime.Handle(Greet, greet))) })

	c, err := client.Connect(ctx, client.Config{URL: url})
	if err != nil {
		log.Fatal(err)
	}
	exec, err := client.Submit(ctx, c, Greet, "world") // stored: any worker may run it
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(exec.Result(ctx)) // waits for the typed result
	stop()
	worker.Wait() // a stopped worker lets its handlers finish
}
