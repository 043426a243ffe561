package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

var protocol = strconv.Itoa(limits.Protocol)

// Repeats of a call whose reply was lost or that met a server that is loading or failing over.
const (
	repeats      = 4
	repeatFirst  = 20 * time.Millisecond
	repeatAtMost = 500 * time.Millisecond
)

// call runs a function on a partition's root.
func (e *Engine) call(ctx context.Context, f function, partition uint16, args ...string) (*reader, error) {
	root, err := e.root(f, partition)
	if err != nil {
		return nil, err
	}
	return e.run(ctx, e.client, f, root, args)
}

// ask makes a call that package wire writes and whose answer it reads. already: the envelope says so.
func ask[R any, P interface {
	*R
	wire.Reply
}](ctx context.Context, e *Engine, partition uint16, q wire.Call) (out R, already bool, err error) {
	return read[R, P](e.send(ctx, partition, q))
}

// read reads the answer to a call.
func read[R any, P interface {
	*R
	wire.Reply
}](r *reader, err error) (out R, already bool, _ error) {
	if err != nil {
		return out, false, err
	}
	P(&out).Read(&r.Reader)
	return out, r.Already, r.fail()
}

// send makes a call that package wire writes.
func (e *Engine) send(ctx context.Context, partition uint16, q wire.Call) (*reader, error) {
	return e.call(ctx, functionOf[q.Function()], partition, arguments(q)...)
}

// arguments are those of a call, with room for as many as most have.
func arguments(q wire.Call) []string { return q.Append(append(make([]string, 0, 12), protocol)) }

// sendTo is send to a root of another kind.
func (e *Engine) sendTo(ctx context.Context, root string, q wire.Call) (*reader, error) {
	f := functionOf[q.Function()]
	if _, once := q.(oneTry); once {
		f.once = true
	}
	return e.run(ctx, e.client, f, []string{root}, arguments(q))
}

// Make makes a call on a root as every method does, and returns the slots of its answer.
func (e *Engine) Make(ctx context.Context, root string, q wire.Call) (slots []string, err error) {
	r, err := e.sendTo(ctx, root, q)
	if err != nil {
		return nil, err
	}
	for r.More() {
		slots = append(slots, r.Text())
	}
	return slots, r.fail()
}

// oneTry is a call that its caller repeats, not the engine.
type oneTry struct{ wire.Call }

// root is the key of a partition, as the only one of a call.
func (e *Engine) root(f function, partition uint16) ([]string, error) {
	if err := e.exists(f.name, partition); err != nil {
		return nil, err
	}
	return e.roots[partition : partition+1], nil
}

func (e *Engine) callKeys(ctx context.Context, f function, keys []string, args ...string) (*reader, error) {
	return e.run(ctx, e.client, f, keys, args)
}

// request is a call of a function, as it may have to be made several times.
type request struct {
	client     rueidis.Client
	f          function
	keys, args []string
}

// run makes the call and, because every function is idempotent or fenced, makes it again while the outcome is
// unknown, unless its caller does.
func (e *Engine) run(ctx context.Context, client rueidis.Client, f function, keys,
	args []string) (r *reader, err error) {
	if note := trail.Of(ctx); note != "" && !f.readonly && !f.bare && args[0] == protocol {
		args = append([]string{protocol + e.sealWhy(f.name, note)}, args[1:]...)
	}
	if e.cfg.OnCall != nil {
		began := time.Now()
		defer func() { e.cfg.OnCall(f.name, time.Since(began), err) }()
	}
	boots := e.reboots.count.Load()
	if r, err = e.do(ctx, client, f, command(client, f, keys, args)); err == nil {
		return r, nil
	}
	q := request{client, f, keys, args}
	r, err = e.equipped(ctx, q, boots, err)
	if err == nil || f.once || !errors.Is(err, flowfabric.ErrTransport) {
		return r, err
	}
	return e.repeated(ctx, q, err)
}

// repeated makes a call again, whose first try ended with an unknown outcome.
func (e *Engine) repeated(ctx context.Context, q request, first error) (*reader, error) {
	sent := !NotSent(first)
	policy := backoff.NewExponentialBackOff(backoff.WithInitialInterval(repeatFirst),
		backoff.WithMaxInterval(repeatAtMost), backoff.WithMaxElapsedTime(0))
	r, err := backoff.RetryWithData(func() (*reader, error) {
		boots := e.reboots.count.Load()
		r, again := e.do(ctx, q.client, q.f, command(q.client, q.f, q.keys, q.args))
		if again != nil {
			r, again = e.equipped(ctx, q, boots, again)
		}
		if again != nil && !errors.Is(again, flowfabric.ErrTransport) {
			return nil, backoff.Permanent(again)
		}
		sent = sent || !NotSent(again)
		return r, again
	}, backoff.WithContext(backoff.WithMaxRetries(policy, repeats-1), ctx))
	if err == nil {
		return r, nil
	}
	if !sent {
		if !NotSent(err) { // ctx ended between two tries
			err = fmt.Errorf("%w; %w", err, first)
		}
		return r, err
	}
	return r, Unanswered(err)
}

// Unanswered is the error of a call that was repeated, when an earlier try was sent and not answered. A refusal of
// the repeat by the server itself (memory, rights), before the function ran, leaves open what became of that try:
// then it is flowfabric.ErrTransport.
func Unanswered(err error) error {
	if _, answered := errors.AsType[*flowfabric.Error](err); !answered && !errors.Is(err, flowfabric.ErrTransport) {
		return fmt.Errorf("%w: an earlier try was not answered, then: %w", flowfabric.ErrTransport, err)
	}
	if NotSent(err) {
		return fmt.Errorf("%w: an earlier try was not answered, then: %s", flowfabric.ErrTransport, err)
	}
	return err
}

// equipped makes a call again after it has loaded the library that the node lacked, or booted a store that turned out
// to have lost the partition; err is why the call failed, and boots is how often the store had been booted before it.
// Other errors stay as they are.
func (e *Engine) equipped(ctx context.Context, q request, boots uint64, err error) (r *reader, _ error) {
	if missingFunction(err) {
		r, err = e.loaded(ctx, q)
	}
	if err == nil || !errors.Is(err, denied.PartitionMissing) || !slices.Contains(e.roots, q.keys[0]) {
		// others are made by need
		return r, err
	}
	if err := e.bootAgain(ctx, boots); err != nil {
		return nil, fmt.Errorf("%s: %w", q.f.name, err)
	}
	if r, err = e.do(ctx, q.client, q.f, command(q.client, q.f, q.keys, q.args)); missingFunction(err) {
		return e.loaded(ctx, q)
	}
	return r, err
}

// loaded loads the library on the node that turned out to lack it, and makes the call.
func (e *Engine) loaded(ctx context.Context, q request) (*reader, error) {
	e.loading.Lock()
	err := e.loadFor(ctx, q.keys[0])
	e.loading.Unlock()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q.f.name, err)
	}
	r, err := e.do(ctx, q.client, q.f, command(q.client, q.f, q.keys, q.args))
	if missingFunction(err) && e.server.cluster { // the slot has gone to a node that the driver has not heard of yet
		return nil, fmt.Errorf("%s: %w: the node that serves the partition now lacks the library", q.f.name,
			flowfabric.ErrTransport)
	}
	if missingFunction(err) {
		return nil, fmt.Errorf("%s: %w: the library was loaded but the server does not find the function", q.f.name,
			denied.Script)
	}
	return r, err
}

// do sends a command. While a connection is being made the call may have to wait for that; its context bounds the wait.
func (e *Engine) do(ctx context.Context, client rueidis.Client, f function,
	command rueidis.Completed) (*reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if client == e.client {
		own := e.lone.begin(&e.dials)
		defer e.lone.end()
		if own != nil {
			return decode(f.name, e.lone.do(ctx, own, command))
		}
	}
	if e.dials.underway.Load() == 0 {
		return decode(f.name, client.Do(ctx, command))
	}
	return within(ctx, &e.dials, f.name, func() (*reader, error) { return decode(f.name, client.Do(ctx, command)) })
}

func command(client rueidis.Client, f function, keys, args []string) rueidis.Completed {
	return client.B().Fcall().Function(f.name).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
}

// decode reads the envelope.
func decode(op string, resp rueidis.RedisResult) (*reader, error) {
	msgs, err := resp.ToArray()
	if err != nil {
		return nil, CallError(op, err)
	}
	r := &reader{op: op, slots: msgs}
	r.Reader = wire.NewReader(&r.slots, 1)
	if len(msgs) < 2 {
		return nil, fmt.Errorf("%s: %w: %d slots", op, denied.Reply, len(msgs))
	}
	status, err := msgs[0].AsInt64()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: status: %w", op, denied.Reply, err)
	}
	code := r.Text()
	if r.Err != nil {
		return nil, r.fail()
	}
	if status == 0 {
		detail := make([]string, 0, len(msgs)-2)
		for r.More() {
			detail = append(detail, r.Text())
		}
		if code == "protocol_mismatch" && len(detail) == 3 {
			theirs, _ := strconv.ParseInt(detail[0], 10, 64)
			return nil, mismatch(op, detail[2], theirs)
		}
		return nil, denied.New(op, code, detail...)
	}
	switch code {
	case "OK", "DUPLICATE":
	case "ALREADY_SATISFIED":
		r.Already = true
	default:
		return nil, fmt.Errorf("%s: %w: success called %q", op, denied.Reply, clip(code))
	}
	return r, nil
}

// mismatch refuses a store or a library of another protocol number: what is "store" or "library".
func mismatch(op, what string, theirs int64) error {
	advice := "upgrade this application"
	switch {
	case theirs > limits.Protocol:
	case what == "store":
		advice =
			"it holds an older layout, which this version cannot read: let the older version finish its work, then use an empty store"
	default:
		advice = "stop the processes of the older version, then run FUNCTION DELETE " + library.Name +
			" on every primary"
	}
	return fmt.Errorf("%s: %w: the %s has protocol %d, this application %d; %s", op, flowfabric.ErrProtocol, what,
		theirs, limits.Protocol, advice)
}

// wrongType tells whether a key was of another type than it should be: the store is damaged there.
func wrongType(err error) bool {
	return errors.Is(err, denied.Script) && strings.Contains(err.Error(), "WRONGTYPE")
}

// Damaged says of a key of another type that the store is damaged.
func Damaged(err error) error {
	if wrongType(err) {
		return fmt.Errorf("%w: %w", flowfabric.ErrCorrupt, err)
	}
	return err
}

// CallError sorts what the driver and the server report outside the envelope.
func CallError(op string, err error) error {
	if re, ok := rueidis.IsRedisErr(err); ok {
		text := re.Error()
		word, _, _ := strings.Cut(text, " ")
		switch word {
		case "NOAUTH", "WRONGPASS", "NOPERM":
			return fmt.Errorf("%s: %w: %s", op, flowfabric.ErrAuth, text)
		case "OOM":
			return fmt.Errorf("%s: %w: %s", op, flowfabric.ErrOutOfMemory, text)
		case "LOADING", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "READONLY", "BUSY", "NOREPLICAS", "MISCONF", "MOVED",
			"ASK", "UNBLOCKED":
			return fmt.Errorf("%s: %w: %s", op, flowfabric.ErrTransport, text)
		}
		if strings.HasPrefix(text, "ACL failure in script") ||
			strings.HasPrefix(text, "The user executing the script can't") {
			return fmt.Errorf("%s: %w: inside the function, which runs with the rights of its caller: %s", op,
				flowfabric.ErrAuth, text)
		}
		if strings.Contains(text, "unction not found") {
			return fmt.Errorf("%s: %w", op, errMissingFunction)
		}
		if command, unknown := unknownCommand(text); unknown {
			return fmt.Errorf(
				"%s: %w: the server does not know %s, which FlowFabric needs: it was renamed or switched off (rename-command in the server's configuration), or the server is no Valkey or Redis (%s)",
				op, flowfabric.ErrConfig, command, text)
		}
		if strings.Contains(text, "max number of clients") { // of a connection that was made for this call
			return fmt.Errorf("%s: %w: %s", op, flowfabric.ErrTransport, text)
		}
		return fmt.Errorf("%s: %w: %s", op, denied.Script, text)
	}
	if rueidis.IsRedisNil(err) || rueidis.IsParseErr(err) {
		return fmt.Errorf("%s: %w: %w", op, denied.Reply, err)
	}
	return fmt.Errorf("%s: %w: %w", op, flowfabric.ErrTransport, err)
}

// unknownCommand tells whether a refusal says that the server lacks a command, and names the command, if the server
// does.
func unknownCommand(text string) (command string, unknown bool) {
	if strings.HasPrefix(text, "Unknown ") && strings.Contains(text, "command called from script") {
		return "a command of the function library", true
	}
	rest, unknown := strings.CutPrefix(text, "unknown command ")
	if !unknown {
		if rest, unknown = strings.CutPrefix(text, "Command "); !strings.HasSuffix(rest, " not found") {
			return "", false
		}
	}
	words := strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune("'`, ", r) })
	if !unknown || len(words) == 0 {
		return "", false
	}
	return "the command " + strings.ToUpper(clip(words[0])), true
}

// connectRefusals are words with which servers refuse a connection before it carries any call, and what they mean.
var connectRefusals = []struct {
	words string
	kind  error
	do    string
}{
	{"DB index is out of range", flowfabric.ErrConfig,
		"the server has no database of the number in the URL; it has 16 (0..15) unless its setting databases says otherwise"},
	{"SELECT is not allowed in cluster mode", flowfabric.ErrConfig,
		"a cluster has only database 0; take the number out of the URL"},
	{"Multiple databases are not supported in cluster mode", flowfabric.ErrConfig,
		"a cluster has only database 0; take the number out of the URL"},
	{"called without any password configured", flowfabric.ErrAuth,
		"the server has no password for this user; take user and password out of the configuration"},
	{"NOAUTH", flowfabric.ErrAuth, "the server wants a password: name it in the URL, before the @"},
	{"DENIED", flowfabric.ErrAuth, "the server takes connections from its own machine only until it has a password"},
	{"unknown command", denied.ServerVersion, "the server does not know a command that a connection begins with"},
	{"NOPROTO", denied.ServerVersion, "the server does not know RESP3"},
}

// dialError names the address and the usual remedy. No refusal of a connection is a defect of the library.
func dialError(address string, err error) error {
	if re, ok := rueidis.IsRedisErr(err); ok {
		for _, r := range connectRefusals {
			if strings.Contains(re.Error(), r.words) {
				return fmt.Errorf("connect to %s: %w: %s (%s)", address, r.kind, r.do, re.Error())
			}
		}
		if err = CallError("hello", err); errors.Is(err, denied.Script) || missingFunction(err) {
			err = fmt.Errorf("%w: the server refused the connection: %s", flowfabric.ErrConfig, re.Error())
		}
		return fmt.Errorf("connect to %s: %w", address, err)
	}
	if errors.Is(err, denied.Config) {
		return fmt.Errorf("connect to %s: %w", address, err)
	}
	if _, ok := errors.AsType[*net.OpError](err); ok || errors.Is(err, io.EOF) {
		return fmt.Errorf("connect to %s: %w: is a Valkey, Redis or FlowFabric server listening "+
			"there? (%w)", address, flowfabric.ErrTransport, err)
	}
	return fmt.Errorf("connect to %s: %w: %w", address, flowfabric.ErrTransport, err)
}
