package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

// moment is where a call is disturbed.
type moment string

const (
	undisturbed moment = "undisturbed"
	lostBefore  moment = "the request is lost"
	lostReply   moment = "the reply is lost"
	lostTwice   moment = "two replies are lost"
)

var lostScenarios = []scenario{
	{name: "every write has the same effect, at whatever moment its reply is lost", needs: []string{"Native"},
		run: func(w *env) {
			line := newLine(w)
			e, err := engine.Open(w.ctx, engine.Config{URL: line.url(), TestClock: true, Partitions: partitions,
				Logger: slog.New(slog.DiscardHandler), CallTimeout: time.Hour})
			w.no(err)
			defer e.Close()
			w.eachWrite(func(what string, c call, rewind func()) {
				without := append(slices.Clone(byServer), renewed[what]...)
				facts := func() string {
					if renewed[what] != nil {
						return w.digest(without...)
					}
					return w.digest(without...) + w.notices()
				}
				first := w.fcall(c.name, c.args...)
				want := facts()
				again := w.fcall(c.name, c.args...)
				for _, m := range []moment{lostBefore, lostReply, lostTwice} {
					rewind()
					line.arm(c.name, m)
					send := func() ([]string, error) { return e.Make(w.notedBy(c), w.seat(c.name), c) }
					slots, err := send()
					if slices.Contains(oneTry, c.name) && errors.Is(err, flowfabric.ErrTransport) {
						slots, err = link.Persist(w.ctx, time.Minute, send)
					}
					if first.status == 0 {
						if err == nil {
							w.Fatalf("%s, %s: %v, and was refused undisturbed: %s", what, m, slots, first.code)
						}
					} else {
						w.no(err)
						answer := again.slots
						if m == lostBefore {
							answer = first.slots
						}
						sameList(w, what+", "+string(m)+": answer", slots, answer...)
					}
					if !line.fired() {
						w.Fatalf("%s, %s: the call never went through the line", what, m)
					}
					w.check()
					if now := facts(); now != want {
						w.Fatalf("%s, %s: another state than undisturbed:\n%s", what, m, difference(want, now))
					}
				}
			})
		}},
}

// oneTry are calls that the engine makes once, because its callers repeat them.
var oneTry = []string{"ff_create_execution", "ff_flow_create", "ff_flow_stage", "ff_flow_seal"}

// byServer are facts that the server gives: entries of streams are named after its clock.
var byServer = []string{":f:", ":outbox", ":br:"}

// Function and Append make a call one of package wire.
func (c call) Function() string            { return c.name }
func (c call) Append(to []string) []string { return append(to, c.args[1:]...) }

// notedBy is a context with the note of a call.
func (w *env) notedBy(c call) context.Context {
	_, note, _ := strings.Cut(c.args[0], "\x1f")
	if n, ok := trail.Parse(note); ok {
		return trail.With(w.ctx, n)
	}
	return w.ctx
}

// notices are what the outbox holds, without the ids that the server gives.
func (w *env) notices() string {
	w.Helper()
	var b strings.Builder
	for _, x := range w.dump().Outbox {
		for _, n := range x.FieldValues {
			fmt.Fprintln(&b, "outbox", n.Field, n.Value)
		}
		fmt.Fprintln(&b, "outbox", x.FieldValues)
	}
	return b.String()
}

// pass lets time pass on a stopped clock.
func (w *env) pass(d time.Duration) {
	w.Helper()
	w.set("HINCRBY", string(w.k), "clock_pin", fmt.Sprint(d.Milliseconds()))
}

// line is a proxy between one engine and the server that loses what it is told to.
type line struct {
	w        *env
	listener net.Listener
	network  string
	backend  string
	owner    sync.WaitGroup

	mu       sync.Mutex
	function []byte
	moment   moment
	left     int
	open     []net.Conn
}

func newLine(w *env) *line {
	w.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.no(err)
	n := &line{w: w, listener: l, network: "tcp", backend: strings.TrimPrefix(w.srv.URL, "redis://")}
	if path, ok := strings.CutPrefix(w.srv.URL, "unix://"); ok {
		n.network, n.backend = "unix", path
	}
	n.owner.Go(n.accept)
	w.Cleanup(func() {
		_ = l.Close()
		n.mu.Lock()
		for _, c := range n.open {
			_ = c.Close()
		}
		n.mu.Unlock()
		n.owner.Wait()
	})
	return n
}

func (n *line) url() string { return "redis://" + n.listener.Addr().String() }

// arm disturbs the next calls of a function.
func (n *line) arm(function string, m moment) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.function, n.moment = []byte(function), m
	n.left = map[moment]int{lostBefore: 1, lostReply: 1, lostTwice: 2}[m]
}

func (n *line) fired() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.left == 0
}

// disturbs tells what to do with a request.
func (n *line) disturbs(request []byte) moment {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.left == 0 || !bytes.Contains(request, n.function) {
		return undisturbed
	}
	n.left--
	return n.moment
}

func (n *line) accept() {
	for {
		near, err := n.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial(n.network, n.backend)
		if err != nil {
			_ = near.Close()
			continue
		}
		n.mu.Lock()
		n.open = append(n.open, near, far)
		n.mu.Unlock()
		mute := &sync.Once{}
		silent := make(chan struct{})
		n.owner.Go(func() { n.requests(near, far, func() { mute.Do(func() { close(silent) }) }) })
		n.owner.Go(func() { n.replies(near, far, silent) })
	}
}

// requests forwards what the engine sends. A request whose reply is to be lost is forwarded, and the connection dies
// with the reply.
func (n *line) requests(near, far net.Conn, mute func()) {
	defer func() { _ = near.Close(); _ = far.Close() }()
	buffer := make([]byte, 1<<20)
	for {
		size, err := near.Read(buffer)
		if err != nil {
			return
		}
		switch n.disturbs(buffer[:size]) {
		case lostBefore:
			return
		case lostReply, lostTwice:
			mute()
		}
		if _, err := far.Write(buffer[:size]); err != nil {
			return
		}
	}
}

func (n *line) replies(near, far net.Conn, silent chan struct{}) {
	defer func() { _ = near.Close(); _ = far.Close() }()
	buffer := make([]byte, 1<<20)
	for {
		size, err := far.Read(buffer)
		if err != nil {
			return
		}
		select {
		case <-silent:
			return
		default:
		}
		if _, err := near.Write(buffer[:size]); err != nil {
			return
		}
	}
}
