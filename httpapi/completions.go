package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	measured "github.com/flowfabric/flowfabric-go/internal/times"
)

// maxResults is how many bytes of results go in one call to the server, unless it has only one.
const maxResults = 900 << 10

type completeBody struct {
	leased
	Result json.RawMessage `json:"result,omitempty" jsonschema:"any JSON value, at most 1 MiB; default null"`
}

// completedAnswer is what became of one completion of many.
type completedAnswer struct {
	Lease string `json:"lease"`
	Held  bool   `json:"held" jsonschema:"the execution was this worker's to complete. Else stop working on it, and tell nobody"`
	already
	Code string `json:"code,omitempty" jsonschema:"why it has not completed; absent: it has. One that is held can still fail"`
}

// completion is one that a worker asks for, and what became of it.
type completion struct {
	lease string
	item  engine.Completion
	out   engine.Settled
}

func (c *call) complete(f flowfabric.Fence, b *completeBody) (*already, error) {
	one := []*completion{{item: engine.Completion{Fence: f, Result: value(b.Result)}}}
	if err := c.settle1(f.Execution.Partition(), one); err != nil {
		return nil, err
	}
	return &already{one[0].out.Already}, one[0].out.Err
}

// settle1 completes executions of one partition in one call. What is wrong with one of them is in its out.
func (c *call) settle1(partition uint16, list []*completion) error {
	items := make([]engine.Completion, len(list))
	for i, x := range list {
		items[i] = x.item
	}
	settled, _, err := c.h.conn.Engine.CompleteExecutions(c.ctx(), partition, items, nil)
	if err != nil {
		return err
	}
	for i, x := range list {
		if x.out = settled[i]; x.out.Already && x.out.Err == nil {
			x.out.Err = c.sameResult(x.item)
		}
	}
	return nil
}

// sameResult refuses a completion that repeats another one with another result.
func (c *call) sameResult(x engine.Completion) error {
	before, _, err := c.h.conn.Engine.ReadResult(c.ctx(), x.Fence.Execution, x.Fence.Attempt)
	if err == nil && !bytes.Equal(before, x.Result) { // what was purged since is not known
		return &problem{Status: http.StatusConflict, Code: "idempotency_conflict", Field: "/result",
			Detail: "the execution has completed with another result"}
	}
	return nil
}

// completions reads those of a body.
func (s *workerSession) completions(list []completeBody) ([]*completion, error) {
	if len(list) > limits.MaxBatch {
		return nil, invalid("/complete", "there are %d, want at most %d", len(list), limits.MaxBatch)
	}
	out, places := make([]*completion, len(list)), make(map[string]int, len(list))
	for i, b := range list {
		x := &completion{lease: b.Lease, item: engine.Completion{Result: value(b.Result)}}
		var err error
		if x.item.Fence, x.out.Err, err = s.fenceOfMany("/complete", b.Lease, i, places); err != nil {
			return nil, err
		}
		out[i] = x
	}
	return out, nil
}

// completeAll ends executions with their results, in a call for each partition, and tells what became of each. An error
// is that of a call whose outcome is not known: all of it may be repeated.
func (c *call) completeAll(list []*completion) ([]completedAnswer, error) {
	byPartition := map[uint16][]*completion{}
	for _, x := range list {
		if p := x.item.Fence.Execution.Partition(); x.out.Err == nil {
			byPartition[p] = append(byPartition[p], x)
		}
	}
	settling := pool.New().WithErrors().WithFirstError().WithMaxGoroutines(16)
	for p, of := range byPartition {
		settling.Go(func() error {
			for len(of) > 0 {
				n := together(of)
				if err := c.settle1(p, of[:n]); err != nil {
					return err
				}
				of = of[n:]
			}
			return nil
		})
	}
	if err := settling.Wait(); err != nil {
		return nil, err
	}
	out := make([]completedAnswer, len(list))
	for i, x := range list {
		held, code, err := verdict(hidden("complete", x.out.Err))
		if err != nil {
			return nil, err
		}
		c.settled(x.lease, measured.Completed, x.out.Err != nil || x.out.Already)
		out[i] = completedAnswer{Lease: x.lease, Held: held, already: already{x.out.Already}, Code: code}
	}
	return out, nil
}

// together is how many completions go in one call: as many results as fit, and no execution twice. A worker that lost
// one and claimed it again may send both leases.
func together(list []*completion) int {
	size, there := 0, make(map[flowfabric.ExecutionID]bool, len(list))
	for n, x := range list {
		size += len(x.item.Result)
		if n > 0 && (size > maxResults || there[x.item.Fence.Execution]) {
			return n
		}
		there[x.item.Fence.Execution] = true
	}
	return len(list)
}

// fenceOfMany reads the lease of member at of a list in a body, none of which is there twice: places has where they
// were. One of another session is refused alone.
func (s *workerSession) fenceOfMany(list, lease string, at int, places map[string]int) (f flowfabric.Fence, refused,
	err error) {
	place := fmt.Sprintf("%s/%d/lease", list, at)
	f, err = s.fence(place, lease)
	if p, ok := errors.AsType[*problem](err); ok && p.Status == http.StatusConflict {
		refused, err = denied.StaleLease, nil
	}
	if before, twice := places[lease]; err == nil && twice {
		err = invalid(place, "it is that of %s/%d, too", list, before)
	}
	places[lease] = at
	return f, refused, err
}

// hidden is an error without what it tells of an execution that the lease does not hold: see notHeld.
func hidden(action string, err error) error {
	if _, told := errors.AsType[*problem](err); !told && slices.ContainsFunc(notHeld, func(of error) bool {
		return errors.Is(err, of)
	}) {
		return denied.New(action, flowfabric.CodeOf(denied.StaleLease))
	}
	return err
}
