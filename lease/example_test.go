package lease_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/lease"
)

// work is a worker loop of one's own: it claims what there is, runs it, and settles it, until ctx ends.
func work(ctx context.Context, url string, run func(ctx context.Context, h *lease.Held) ([]byte, error)) error {
	session, err := lease.Open(ctx, lease.Config{URL: url, Kinds: []string{"resize"}})
	if err != nil {
		return err
	}
	defer func() {
		// timed: a server that does not answer must not keep the process
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := session.Close(ctx); err != nil {
			log.Print(err)
		}
	}()
	for {
		claimed, err := session.Claim(ctx, 10) // new work, granted work, retries, work of dead workers
		switch {
		case err != nil && ctx.Err() != nil:
			return nil // asked to stop
		case err != nil:
			return err
		}
		for _, h := range claimed {
			result, err := run(h.Context(), h)
			if err != nil {
				_, _, err = h.Fail(ctx, handler.Failure{Reason: err.Error()})
			} else {
				err = h.Complete(ctx, result)
			}
			if err != nil {
				log.Print(err) // the lease was lost, or ctx has ended: somebody else will run it
			}
			if failed := h.Renewal().Failed; failed > 0 {
				log.Printf("%d renewals in a row were not answered", failed)
			}
		}
	}
}

// A worker loop of your own, without package runtime.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	producer, err := client.Connect(ctx, client.Config{URL: "embedded://"})
	if err != nil {
		log.Fatal(err)
	}
	defer producer.Close()
	var loop conc.WaitGroup
	loop.Go(func() {
		err := work(ctx, "embedded://", func(ctx context.Context, h *lease.Held) ([]byte, error) {
			if err := h.Renew(ctx); err != nil { // now, not only every third of the lease
				return nil, err
			}
			return fmt.Appendf(nil, `"%s of %s, attempt %d"`, h.Kind, h.Input, h.Fence.Attempt), nil
		})
		fmt.Println("the loop ended:", err)
	})
	resize := handler.Define[int, string]("resize")
	handle, err := client.Submit(ctx, producer, resize, 640)
	if err != nil {
		log.Fatal(err)
	}
	result, err := handle.Result(ctx)
	fmt.Println(result, err)
	stop()
	loop.Wait()
	// Output:
	// resize of 640, attempt 1 <nil>
	// the loop ended: <nil>
}
