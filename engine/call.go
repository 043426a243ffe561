package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

var protocol = strconv.Itoa(flowfabric.Protocol)

// Repeats of a call whose reply was lost or that met a server that is loading or failing over.
const (
	repeats      = 4
	repeatFirst  = 20 * time.Millisecond
	repeatAtMost = 500 * time.Millisecond
)

// call runs a function on a partition's root.
func (e *Engine) call(ctx context.Context, f function, partition uint16, args ...string) (*reader, error) {
	return e.callOn(ctx, e.client, f, partition, args)
}

func (e *Engine) callOn(ctx context.Context, client rueidis.Client, f function, partition uint16, args []string) (*reader, error) {
	if int(partition) >= len(e.roots) {
		return nil, fmt.Errorf("%s: %w: partition %d of %d", f.name, flowfabric.ErrInvalidInput, partition, len(e.roots))
	}
	return e.run(ctx, client, f, e.roots[partition:partition+1], args)
}

func (e *Engine) callKeys(ctx context.Context, f function, keys []string, args ...string) (*reader, error) {
	return e.run(ctx, e.client, f, keys, args)
}

// run makes the call and, because every function is idempotent or fenced, makes it again while the outcome is
// unknown.
func (e *Engine) run(ctx context.Context, client rueidis.Client, f function, keys, args []string) (r *reader, err error) {
	if e.cfg.OnCall != nil {
		began := time.Now()
		defer func() { e.cfg.OnCall(f.name, time.Since(began), err) }()
	}
	r, err = e.once(ctx, client, f, keys, args)
	if err == nil || !errors.Is(err, flowfabric.ErrTransport) {
		return r, err
	}
	policy := backoff.NewExponentialBackOff(backoff.WithInitialInterval(repeatFirst), backoff.WithMaxInterval(repeatAtMost),
		backoff.WithMaxElapsedTime(0))
	r, err = backoff.RetryWithData(func() (*reader, error) {
		r, again := e.once(ctx, client, f, keys, args)
		if again != nil && !errors.Is(again, flowfabric.ErrTransport) {
			return nil, backoff.Permanent(again)
		}
		return r, again
	}, backoff.WithContext(backoff.WithMaxRetries(policy, repeats-1), ctx))
	if _, answered := errors.AsType[*flowfabric.Error](err); err != nil && !answered && !errors.Is(err, flowfabric.ErrTransport) {
		// The server refused the repeat before it ran (memory, rights); what became of the first try is still unknown.
		err = fmt.Errorf("%w: an earlier try was not answered, then: %w", flowfabric.ErrTransport, err)
	}
	return r, err
}

// once makes one call, loading the library or script on the node that turned out to lack it.
func (e *Engine) once(ctx context.Context, client rueidis.Client, f function, keys, args []string) (*reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.resolve(ctx, keys[0])
	r, err := decode(f.name, client.Do(ctx, e.command(client, f, keys, args)))
	if err == nil {
		r.doubt, r.root = &e.doubts, keys[0]
	}
	if err == nil || !missingFunction(err) {
		return r, err
	}
	if e.scripts != nil {
		return decode(f.name, client.Do(ctx, e.eval(client, f, keys, args)))
	}
	e.loading.Lock()
	err = e.loadFor(ctx, keys[0])
	e.loading.Unlock()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	r, err = decode(f.name, client.Do(ctx, e.command(client, f, keys, args)))
	if missingFunction(err) && e.server.cluster { // the slot has gone to a node that the driver has not heard of yet
		return nil, fmt.Errorf("%s: %w: the node that serves the partition now lacks the library", f.name, flowfabric.ErrTransport)
	}
	if missingFunction(err) {
		return nil, fmt.Errorf("%s: %w: the library was loaded but the server does not find the function", f.name, flowfabric.ErrInternalScript)
	}
	return r, err
}

func (e *Engine) command(client rueidis.Client, f function, keys, args []string) rueidis.Completed {
	if e.scripts != nil {
		return client.B().Evalsha().Sha1(e.scripts[f.name].sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
	}
	return client.B().Fcall().Function(f.name).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
}

func (e *Engine) eval(client rueidis.Client, f function, keys, args []string) rueidis.Completed {
	return client.B().Eval().Script(e.scripts[f.name].text).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
}

// decode reads the envelope.
func decode(op string, resp rueidis.RedisResult) (*reader, error) {
	msgs, err := resp.ToArray()
	if err != nil {
		return nil, callError(op, err)
	}
	r := &reader{op: op, slots: msgs}
	if len(msgs) < 2 {
		return nil, fmt.Errorf("%s: %w: %d slots", op, flowfabric.ErrReply, len(msgs))
	}
	status, err := msgs[0].AsInt64()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: status: %w", op, flowfabric.ErrReply, err)
	}
	r.at = 1
	code := r.text()
	if r.err != nil {
		return nil, r.fail()
	}
	if status == 0 {
		detail := make([]string, 0, len(msgs)-2)
		for r.at < len(msgs) && r.err == nil {
			detail = append(detail, r.text())
		}
		return nil, flowfabric.NewError(op, code, detail...)
	}
	switch code {
	case "OK", "DUPLICATE":
	case "ALREADY_SATISFIED":
		r.already = true
	default:
		return nil, fmt.Errorf("%s: %w: success called %q", op, flowfabric.ErrReply, clip(code))
	}
	return r, nil
}

// callError sorts what the driver and the server report outside the envelope.
func callError(op string, err error) error {
	if re, ok := rueidis.IsRedisErr(err); ok {
		text := re.Error()
		word, _, _ := strings.Cut(text, " ")
		switch word {
		case "NOAUTH", "WRONGPASS", "NOPERM":
			return fmt.Errorf("%s: %w: %s", op, flowfabric.ErrAuth, text)
		case "OOM":
			return fmt.Errorf("%s: %w: %s", op, flowfabric.ErrOutOfMemory, text)
		case "LOADING", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "READONLY", "BUSY", "NOREPLICAS", "MOVED", "ASK", "UNBLOCKED":
			return fmt.Errorf("%s: %w: %s", op, flowfabric.ErrTransport, text)
		case "NOSCRIPT":
			return fmt.Errorf("%s: %w", op, errMissingFunction)
		}
		if strings.HasPrefix(text, "ACL failure in script") || strings.HasPrefix(text, "The user executing the script can't") {
			return fmt.Errorf("%s: %w: inside the function, which runs with the rights of its caller: %s", op, flowfabric.ErrAuth, text)
		}
		if strings.Contains(text, "unction not found") {
			return fmt.Errorf("%s: %w", op, errMissingFunction)
		}
		return fmt.Errorf("%s: %w: %s", op, flowfabric.ErrInternalScript, text)
	}
	if rueidis.IsRedisNil(err) || rueidis.IsParseErr(err) {
		return fmt.Errorf("%s: %w: %w", op, flowfabric.ErrReply, err)
	}
	return fmt.Errorf("%s: %w: %w", op, flowfabric.ErrTransport, err)
}

// dialError names the address and the usual remedy.
func dialError(address string, err error) error {
	if _, ok := rueidis.IsRedisErr(err); ok {
		return fmt.Errorf("connect to %s: %w", address, callError("hello", err))
	}
	if _, ok := errors.AsType[*net.OpError](err); ok || errors.Is(err, io.EOF) {
		return fmt.Errorf("connect to %s: %w: is a Valkey or Redis server listening there? (%w)", address, flowfabric.ErrTransport, err)
	}
	return fmt.Errorf("connect to %s: %w: %w", address, flowfabric.ErrTransport, err)
}
