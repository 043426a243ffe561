package migrate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// Invoice is the input of a job, Receipt its result.
type Invoice struct {
	Number int
	To     string
}
type Receipt struct{ MessageID string }

// SendInvoice is imported by producers and workers.
var SendInvoice = handler.Define[Invoice, Receipt]("invoice:send", flowfabric.Lane("mail"),
	handler.Retry(24, time.Second, time.Hour), flowfabric.Timeout(30*time.Minute))

// Mailer is the handler with what it depends on.
type Mailer struct {
	Send func(ctx context.Context, key string, in Invoice) (messageID string, err error)
}

func (m *Mailer) Handle(ctx context.Context, t *handler.Task, in Invoice) (Receipt, error) {
	if in.To == "" {
		return Receipt{}, handler.Permanent(errors.New("no address")) // no retry can help
	}
	id, err := handler.Step(ctx, t, "send", func(ctx context.Context) (string, error) {
		return m.Send(ctx, t.ID().String(), in) // a key by which the mail service knows a repeat
	})
	return Receipt{MessageID: id}, err // an error is retried
}

func NewWorker(url string, m *Mailer, log *slog.Logger) (*runtime.Worker, error) {
	return runtime.New(runtime.Config{URL: url, Lanes: []string{"mail", "default"}, Concurrency: 20, Logger: log},
		handler.Bind(SendInvoice, m.Handle))
}

// InvoiceKey names the work: submits of the same invoice get the same execution.
func InvoiceKey(in Invoice) flowfabric.Key {
	return flowfabric.IdempotencyKey(fmt.Sprintf("invoice-%d", in.Number))
}

func SubmitInvoice(ctx context.Context, c *client.Client, in Invoice) (*client.Execution[Receipt], error) {
	return client.Submit(ctx, c, SendInvoice, in, InvoiceKey(in), flowfabric.Delay(time.Minute), flowfabric.Retries(5),
		flowfabric.Timeout(time.Minute), flowfabric.Priority(100), flowfabric.Retention(7*24*time.Hour))
}

// Adopt takes over one job that still waits in the old queue, with its payload and its time. It may be repeated.
func Adopt(ctx context.Context, c *client.Client, payload []byte, at time.Time) (*client.Execution[Receipt], error) {
	var in Invoice
	if err := json.Unmarshal(payload, &in); err != nil {
		return nil, err
	}
	return client.Submit(ctx, c, SendInvoice, in, InvoiceKey(in), flowfabric.DelayUntil(at))
}

// ReadyHandler is a readiness probe.
func ReadyHandler(w *runtime.Worker) http.Handler {
	return http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		if err := w.Ready(); err != nil {
			http.Error(answer, err.Error(), http.StatusServiceUnavailable)
		}
	})
}

// The whole program: a worker, a producer, and who asks later.
func Example() {
	const url = "embedded://" // redis://host:6379 in production
	quiet := slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(context.Background())
	var running conc.WaitGroup
	defer running.Wait()
	defer stop()

	mailer := &Mailer{Send: func(_ context.Context, _ string, in Invoice) (string, error) {
		return "message to " + in.To, nil
	}}
	worker, err := NewWorker(url, mailer, quiet)
	if err != nil {
		fmt.Println(err)
		return
	}
	running.Go(func() {
		if err := worker.Run(ctx); err != nil { // until ctx ends, then it drains
			fmt.Println("worker:", err)
		}
	})

	c, err := client.Connect(ctx, client.Config{URL: url, Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	in := Invoice{Number: 17, To: "anna@example.com"}
	exec, err := client.Submit(ctx, c, SendInvoice, in, InvoiceKey(in))
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := client.Submit(ctx, c, SendInvoice, in, InvoiceKey(in))
	fmt.Println("the same one:", again.ID() == exec.ID(), again.Duplicate(), err)
	_, err = client.Submit(ctx, c, SendInvoice, Invoice{Number: 17, To: "bert@example.com"}, InvoiceKey(in))
	fmt.Println("another payload under its key:", errors.Is(err, flowfabric.ErrConflict))

	// whoever knows the key, as long as the execution is retained
	known, err := client.AttachKey(ctx, c, SendInvoice, "invoice-17")
	if err != nil {
		fmt.Println(err)
		return
	}
	receipt, err := known.Result(ctx)
	fmt.Println(receipt.MessageID, err)
	// Output:
	// the same one: true true <nil>
	// another payload under its key: true
	// message to anna@example.com <nil>
}

func TestSendInvoice(t *testing.T) {
	failures := 2
	mailer := &Mailer{Send: func(context.Context, string, Invoice) (string, error) {
		if failures--; failures >= 0 {
			return "", errors.New("mail server busy")
		}
		return "m-1", nil
	}}
	r := fftest.Run(t, SendInvoice, mailer.Handle, Invoice{17, "anna@example.com"})
	r.WantResult(Receipt{"m-1"})
	r.Want(fftest.Want{
		Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial, flowfabric.AttemptRetry, flowfabric.AttemptRetry},
		Steps:    []string{"send"},
	})
}

// The worker dies before and after each of its writes: the mail is never lost, and not sent again once that is known.
func TestSendInvoiceSurvivesCrashes(t *testing.T) {
	fftest.Crashes(t, SendInvoice,
		func(fx *fftest.Effects) func(context.Context, *handler.Task, Invoice) (Receipt, error) {
			return (&Mailer{Send: func(context.Context, string, Invoice) (string, error) {
				fx.Did("send")
				return "m-1",
					nil
			}}).Handle
		}, Invoice{17, "anna@example.com"}, nil)
}

// What the options of a submission do, on the server: a delay, retries and a timeout of its own.
func TestSubmitInvoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := &Mailer{Send: func(ctx context.Context, _ string, _ Invoice) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}}
		w := fftest.New(t, runtime.Config{}, handler.Bind(SendInvoice, stuck.Handle))
		began := time.Now()
		exec, err := SubmitInvoice(t.Context(), w.Client(), Invoice{17, "anna@example.com"})
		if err != nil {
			t.Fatal(err)
		}
		w.Sleep(10 * time.Minute)
		s, err := exec.Get(t.Context())
		if err != nil || s.State.Public != flowfabric.Expired || s.Attempts != 6 ||
			s.Failure.Category != "attempt_timeout" || s.Priority != 100 {
			t.Errorf("%s after %d attempts, %s, priority %d: %v", s.State.Public, s.Attempts, s.Failure.Category,
				s.Priority, err)
		}
		if first := s.StartedAt.Sub(began); first < time.Minute || first > time.Minute+2*time.Second {
			t.Errorf("it began after %s", first)
		}
		if took := s.EndedAt.Sub(s.StartedAt); took < 6*time.Minute || took > 8*time.Minute {
			t.Errorf("six attempts of a minute took %s", took)
		}
		raw, err := exec.Input(t.Context())
		if string(raw) != `{"Number":17,"To":"anna@example.com"}` || err != nil {
			t.Errorf("input %s, %v", raw, err)
		}
	})
}

// Taken over from the old queue twice, and submitted anew: it runs once, at its time.
func TestAdopt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []time.Duration
		began := time.Now()
		mailer := &Mailer{Send: func(context.Context, string, Invoice) (string, error) {
			sent = append(sent, time.Since(began).Truncate(time.Minute))
			return "m-1", nil
		}}
		w := fftest.New(t, runtime.Config{}, handler.Bind(SendInvoice, mailer.Handle))
		in := Invoice{17, "anna@example.com"}
		for range 2 {
			if _, err := Adopt(t.Context(), w.Client(), []byte(`{"To":"anna@example.com", "Number":17}`),
				began.Add(10*time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
		exec, err := client.Submit(t.Context(), w.Client(), SendInvoice, in, InvoiceKey(in))
		if err != nil || !exec.Duplicate() {
			t.Errorf("duplicate %t, %v", exec.Duplicate(), err)
		}
		w.Sleep(20 * time.Minute)
		if !slices.Equal(sent, []time.Duration{10 * time.Minute}) {
			t.Errorf("sent after %v", sent)
		}
		if _, err := Adopt(t.Context(), w.Client(), []byte(`{`), began); err == nil {
			t.Error("half a payload was taken over")
		}
	})
}

func TestReadyHandler(t *testing.T) {
	w, err := NewWorker("embedded://", &Mailer{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	probe := func() int {
		answer := httptest.NewRecorder()
		ReadyHandler(w).ServeHTTP(answer, httptest.NewRequest("GET", "/ready", nil))
		return answer.Code
	}
	if got := probe(); got != http.StatusServiceUnavailable {
		t.Errorf("before the start: %d", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running conc.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	testwait.Until(t, "the worker is ready", func() bool { return probe() == http.StatusOK })
	stop()
	running.Wait()
	if got := probe(); got != http.StatusServiceUnavailable {
		t.Errorf("after the end: %d", got)
	}
}
