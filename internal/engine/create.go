package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// CreateExecutions admits 1..100 executions of one partition, with at most 1 MiB of payload and 2,000 tags in all, in
// one atomic call (lua/execution/ff_create_execution.lua). Each item is judged alone: Created.Err tells why one was
// refused, the others are admitted. An id that exists already, and a key that another execution has, answer Duplicate
// when the digests agree, or one is empty, and denied.Idempotency when they do not; a key that debounces answers
// Replaced as well. The call may be repeated with the same ids, which is up to the caller: the engine makes one try.
func (e *Engine) CreateExecutions(ctx context.Context, partition uint16, items []NewExecution) ([]Created, error) {
	if len(items) < 1 || len(items) > limits.MaxBatch {
		return nil, fmt.Errorf("ff_create_execution: %w: %d items, want 1..%d", flowfabric.ErrInvalidInput, len(items),
			limits.MaxBatch)
	}
	items, failed := e.sealItems(ctx, items)
	out, sent := make([]Created, len(items)), make([]int, 0, len(items))
	total, tags := 0, 0
	for i := range items {
		x := &items[i]
		if x.ID.Partition() != partition || x.ID.IsZero() {
			return nil, fmt.Errorf("ff_create_execution: %w: item %d: id %q is not of partition %d",
				flowfabric.ErrInvalidInput, i, x.ID, partition)
		}
		out[i].ID = x.ID
		if out[i].Err = failed[i]; out[i].Err != nil {
			continue
		}
		if err := valid.Stored(&x.Start); err != nil {
			out[i].Err = fmt.Errorf("ff_create_execution: %w", err)
			continue
		}
		sent = append(sent, i)
		total += len(x.Payload)
		tags += len(x.Tags)
	}
	if total > limits.MaxCallBytes {
		return nil, fmt.Errorf("ff_create_execution: %w: the batch has %d payload bytes, want at most %d",
			flowfabric.ErrPayloadTooLarge, total, limits.MaxCallBytes)
	}
	if tags > limits.MaxCallTags {
		return nil, fmt.Errorf("ff_create_execution: %w: the batch has %d tags, want at most %d",
			flowfabric.ErrInvalidInput, tags, limits.MaxCallTags)
	}
	if len(sent) == 0 {
		return out, nil
	}
	root, err := e.root(fnCreate, partition)
	if err != nil {
		return nil, err
	}
	args := appendItems(append(make([]string, 0, 13+3*len(sent)), protocol), len(sent),
		func(i int) *NewExecution { return &items[sent[i]] })
	r, err := e.run(ctx, e.client, fnCreate, root, args)
	if err != nil {
		return nil, err
	}
	if n := r.Count(1); n != len(sent) {
		r.Stop("%d answers to %d items", n, len(sent))
	}
	for _, i := range sent {
		text, mark, refused := r.answer()
		if refused != nil {
			out[i].Err = refused
			continue
		}
		code, holder, other := strings.Cut(text, " ")
		if other {
			owner, err := ids.ParseUUID(holder)
			if err != nil {
				r.Stop("the holder of a key: %v", err)
				break
			}
			out[i].ID = mint.Join(partition, owner)
		}
		state, _ := codes.Project(codes.Code(code))
		out[i].State, out[i].Duplicate, out[i].Replaced = state.Public, mark != '+', mark == '~'
	}
	return out, r.fail()
}

// appendItems adds new executions as the server reads them: of each row of alike ones what they have in common and
// how many there are, then three arguments for each. It makes no list of rows first, because every submission does it.
func appendItems(args []string, n int, item func(i int) *NewExecution) []string {
	words := make(words, 0, uuidWords*n)
	for from, upto := 0, 0; from < n; from = upto {
		var start wire.Start
		upto, start = startOf(from, n, item)
		args = append(start.Append(args), strconv.Itoa(upto-from))
		for i := from; i < upto; i++ {
			x := item(i)
			args = append(args, x.slot(&words), x.Digest, rueidis.BinaryString(x.Payload))
		}
	}
	return args
}

// startOf tells up to which of n items those from one on differ in nothing but id, key, digest and payload, and what
// they have in common.
func startOf(from, n int, item func(i int) *NewExecution) (upto int, start wire.Start) {
	x := item(from)
	policy := valid.PackPolicy(x.Policy)
	for upto = from + 1; upto < n && item(upto).alike(x, policy); upto++ {
	}
	return upto, wire.Start{Namespace: x.Namespace, Lane: x.Lane, Kind: x.Kind,
		Capabilities: requirements(x.Capabilities, x.Gates()), Priority: x.Priority, Delay: when(x.DelayUntil,
			time.Duration(x.Delay)), Deadline: when(x.DeadlineAt, time.Duration(x.Deadline)), Policy: policy,
		Timeout: whole(time.Duration(x.AttemptTimeout)), Creator: x.Creator, Tags: x.Tags}
}

// whole is a span that is none if it is not positive, and else at least a millisecond.
func whole(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return max(d, time.Millisecond)
}

// slot is the id of an item, with its key if it has one.
func (x *NewExecution) slot(words *words) string {
	id := words.uuid(ids.UUID(x.ID))
	if x.KeyID == uuid.Nil {
		return id
	}
	return id + " " + x.KeyID.String() + " " + held(x.Key)
}

// held is for how long a key is, as lua/lib/keyed.lua reads it.
func held(k *flowfabric.Key) string {
	switch {
	case k.Debounce > 0:
		return "~" + strconv.FormatInt(k.DebounceMax.Milliseconds(), 10)
	case k.WhileActive || k.Window > 0:
		return strconv.FormatInt(k.Window.Milliseconds(), 10)
	}
	return "-"
}

// alike tells whether an item differs from another, whose policy is packed, in nothing but id, key, digest and payload.
func (x *NewExecution) alike(y *NewExecution, policy string) bool {
	return x.Namespace == y.Namespace && x.Lane == y.Lane && x.Kind == y.Kind && x.Creator == y.Creator &&
		maps.Equal(x.Tags, y.Tags) && x.Priority == y.Priority && x.Delay == y.Delay && x.Deadline == y.Deadline &&
		x.DelayUntil.Equal(y.DelayUntil) && x.DeadlineAt.Equal(y.DeadlineAt) &&
		slices.Equal(x.Capabilities, y.Capabilities) && slices.Equal(x.Names, y.Names) &&
		slices.Equal(x.Limits, y.Limits) &&
		x.AttemptTimeout == y.AttemptTimeout && valid.PacksTo(x.Policy, policy)
}
