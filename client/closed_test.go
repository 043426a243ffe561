package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// byID is every method about one execution, by the verb its errors begin with.
func byID(c *Client) map[string]func(context.Context, flowfabric.ExecutionID) error {
	return map[string]func(context.Context, flowfabric.ExecutionID) error{
		"get": func(ctx context.Context, id flowfabric.ExecutionID) error {
			_, err := c.Execution(id).Get(ctx)
			return err
		},
		"wait for": func(ctx context.Context, id flowfabric.ExecutionID) error {
			_,
				err := c.Execution(id).Result(ctx)
			return err
		},
		"cancel": func(ctx context.Context, id flowfabric.ExecutionID) error { return c.Execution(id).Cancel(ctx) },
		"suspension of": func(ctx context.Context, id flowfabric.ExecutionID) error {
			_, err := c.Execution(id).Suspension(ctx)
			return err
		},
		"waitpoints of": func(ctx context.Context, id flowfabric.ExecutionID) error {
			_, err := c.Execution(id).Waitpoints(ctx)
			return err
		},
		"approve": func(ctx context.Context, id flowfabric.ExecutionID) error {
			_, err := c.Execution(id).Approve(ctx, "release", nil, flowfabric.By(""))
			return err
		},
		"signal": func(ctx context.Context, id flowfabric.ExecutionID) error {
			_, err := c.DeliverSignal(ctx, id, flowfabric.UUID(known), "", suspend.SentSignal{})
			return err
		},
		"tail": func(ctx context.Context, id flowfabric.ExecutionID) error {
			for _, err := range c.Execution(id).Tail(ctx) {
				return err
			}
			return nil
		},
	}
}

// A closed client says so before it looks at anything else, and asks nobody.
func TestEveryCallAfterClose(t *testing.T) {
	f := newFake()
	c := f.client(t)
	c.Close()
	id := mint.ID(1)
	for verb, call := range byID(c) {
		if err := call(t.Context(), id); !errors.Is(err, ErrClosed) ||
			err.Error() != fmt.Sprintf("%s %s: the client is closed", verb, id) {
			t.Errorf("%s: %v", verb, err)
		}
		if err := call(t.Context(), flowfabric.ExecutionID{}); !errors.Is(err, ErrClosed) {
			t.Errorf("%s, no id: %v", verb, err)
		}
	}
	_, one := Submit(t.Context(), c, echo, "x", flowfabric.Priority(-1))
	_, many := SubmitMany(t.Context(), c, echo, []string{"x", "y"}, flowfabric.Priority(-1))
	_, token := c.Signal(t.Context(), suspend.Token{}, nil)
	for what, err := range map[string]error{"ping": c.Ping(t.Context()), "submit": one, "many": many,
		"no token": token} {
		if !errors.Is(err, ErrClosed) || denied.ClassOf(err) != 0 {
			t.Errorf("%s: %v, want ErrClosed", what, err)
		}
	}
	if len(f.asked) != 0 || f.reads != 0 || len(f.Seen()) != 0 {
		t.Errorf("the server was asked %v, read %d times, sent %d", f.asked, f.reads, len(f.Seen()))
	}
}

func TestTheZeroIDIsRefusedBeforeAnyCall(t *testing.T) {
	f := newFake()
	for verb, call := range byID(f.client(t)) {
		err := call(t.Context(), flowfabric.ExecutionID{})
		if !errors.Is(err, flowfabric.ErrInvalidInput) || !strings.HasPrefix(err.Error(), verb+": ") ||
			!strings.HasSuffix(err.Error(), "the execution id is empty") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if len(f.asked) != 0 || f.reads != 0 {
		t.Errorf("the server was asked %v, read %d times", f.asked, f.reads)
	}
}

func TestNilDefinition(t *testing.T) {
	f := newFake()
	c := f.client(t)
	var def *handler.Definition[string, string]
	_, one := Submit(t.Context(), c, def, "x")
	_, many := SubmitMany(t.Context(), c, def, []string{"x", "y"})
	x := Attach(c, def, mint.ID(1))
	f.end(x.ID(), codes.Completed, `"wet"`)
	_, result := x.Result(t.Context())
	for what, err := range map[string]error{"submit": one, "many": many, "result": result} {
		if !errors.Is(err, flowfabric.ErrInvalidInput) || strings.Count(err.Error(), "the definition is nil") != 1 {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What is wrong with all inputs alike is said once.
func TestSubmitManyRefusesOptionsOnce(t *testing.T) {
	f := newFake()
	c := f.client(t)
	for what, opt := range map[string]SubmitOption{"priority": flowfabric.Priority(9001),
		"key": flowfabric.IdempotencyKey("k"), "retention": flowfabric.Retention(time.Millisecond),
		"tags": flowfabric.Tags(map[string]string{"plain": ""})} {
		_, err := SubmitMany(t.Context(), c, echo, make([]string, 1000), opt)
		if _, item := errors.AsType[*ItemError](err); item || !errors.Is(err, flowfabric.ErrInvalidInput) ||
			len(err.Error()) > 300 {
			t.Errorf("%s: %.400v", what, err)
		}
	}
	_, err := SubmitMany(t.Context(), c, echo, make([]string, 2),
		Keys(func(i int) flowfabric.Key { return flowfabric.IdempotencyKey(strings.Repeat("k", i)) }))
	if item, ok := errors.AsType[*ItemError](err); !ok || item.Index != 0 || !strings.Contains(err.Error(),
		"has 0 bytes, want 1..256") {
		t.Errorf("an empty key: %v", err)
	}
	if len(f.Seen()) != 0 {
		t.Error("something was sent")
	}
}
