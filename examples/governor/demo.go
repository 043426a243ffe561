package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/sourcegraph/conc"
	"go.uber.org/fx"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/examples/governor/model"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// errOver ends the fleet once there is nothing left to do.
var errOver = errors.New("the demo is over")

const (
	think  = 200 * time.Millisecond // of the model for a call
	tokens = 500                    // that an answer may have
	ahead  = 90                     // executions of a tenant that have not called the model yet
	slots  = 48
	lining = 2 // seconds until all that waits is in line
)

// tenant is a customer: a namespace of its own.
type tenant struct {
	name   string // for people
	weight int
	id     string // the name of its namespace
	client *client.Client
	made   int64
	open   []*client.Execution[int64]
}

// show is one run of the demo.
type show struct {
	options
	out     io.Writer
	gate    string
	tenants []*tenant
}

// demo opens the tenants, runs the fleet beside the story, and cleans up.
func demo(outer context.Context, o options, stdout io.Writer) (err error) {
	url, release, err := embedded.Resolve(outer, o.url, o.log)
	if err != nil {
		return err
	}
	defer release()
	run := strings.ToLower(rand.Text()[:6]) // of its own, so that several programs may run on one server
	d := &show{options: o, out: stdout, gate: "fake-" + run + "/model",
		tenants: []*tenant{{name: "small", weight: 1}, {name: "middle", weight: 2}, {name: "large", weight: 3}}}
	d.url = url
	d.intro(o.url == embedded.URL)
	defer func() { err = errors.Join(err, d.close(outer)) }()
	for _, t := range d.tenants {
		t.id = t.name + "-" + run
		t.client, err = client.Connect(outer, client.Config{URL: url, Namespace: t.id, Logger: o.log})
		if err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(outer)
	var fleet conc.WaitGroup
	fleet.Go(func() {
		if err := d.fleet(ctx); err != nil {
			cancel(err)
		}
	})
	err = d.story(ctx)
	cancel(errOver)
	fleet.Wait()
	switch cause := context.Cause(ctx); {
	case err != nil && outer.Err() != nil:
		d.say("You interrupted it.")
		return nil
	case err != nil && !errors.Is(cause, errOver):
		return cause
	}
	return err
}

func (d *show) intro(own bool) {
	server := "as given" // its URL may hold a password
	if own {
		server = d.url + ", embedded in this program, in memory, for development only"
	}
	d.say("FlowFabric: three tenants flood a model service that allows %d calls in a minute. They share a fleet of "+
		"workers with %d slots, and nothing else.", d.rate*60, slots)
	d.say("Server: %s.", server)
}

// fleet is one worker that serves all tenants; there may be hundreds of them.
func (d *show) fleet(ctx context.Context) error {
	cfg := runtime.Config{URL: d.url, Logger: d.log, DrainTimeout: -1, Concurrency: slots}
	for _, t := range d.tenants {
		cfg.Namespaces = append(cfg.Namespaces, t.id)
	}
	caller := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: slots}}
	defer caller.CloseIdleConnections()
	return runtime.Run(ctx, cfg, runtime.Provide(Ask, NewCaller), fx.Supply(caller))
}

// serve serves a model until the returned function is called.
func serve(ctx context.Context, m *model.Service) (url string, stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: m, ReadHeaderTimeout: 10 * time.Second}
	var serving conc.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	return "http://" + l.Addr().String(), func() { _ = server.Close(); serving.Wait() }, nil
}

// story is what is to be seen.
func (d *show) story(ctx context.Context) error {
	if err := d.without(ctx); err != nil {
		return err
	}
	return d.with(ctx)
}

// without lets the tenants call a model as they like.
func (d *show) without(ctx context.Context) error {
	allowed := int64(20 * d.rate)
	m := model.New(model.Limits{Requests: allowed}, think/4, nil)
	url, stop, err := serve(ctx, m)
	if err != nil {
		return err
	}
	defer stop()
	d.say("1. Without a gate. Together they want to make %d calls, of a service that allows %d in a minute.",
		allowed*3/2, allowed)
	for _, t := range d.tenants {
		if err := t.submit(ctx, Prompt{URL: url, Tenant: t.name, Tokens: tokens}, int(allowed/2)); err != nil {
			return err
		}
	}
	for {
		by, _ := m.Counts()
		if all := by[""]; all.Calls+all.Refused >= allowed*3/2 {
			d.print("    %d calls are answered, and %d refused (429): those wait for a minute and then try again.",
				all.Calls, all.Refused)
			d.print("")
			return d.takeBack(ctx)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// service is the gate of the model.
func (d *show) service() admission.Gate {
	s := &admission.Service{PerMinute: map[string]int64{"requests": int64(60 * d.rate)}, Weights: map[string]int{}}
	for _, t := range d.tenants {
		s.Weights[t.id] = t.weight
	}
	return admission.Gate{Name: d.gate, Service: s}
}

// with is the same under the gate of the service, which is overloaded for two seconds when most of it is over.
func (d *show) with(ctx context.Context) error {
	m := model.New(model.Limits{Requests: int64(60 * d.rate)}, think, nil)
	url, stop, err := serve(ctx, m)
	if err != nil {
		return err
	}
	defer stop()
	if err := admin.New(d.tenants[0].client).PutGate(ctx, d.service(), flowfabric.IfNew()); err != nil {
		return err
	}
	d.say("2. With a gate. Each call waits for its turn there. The service allows %d calls in a second on average; "+
		"the weights of the tenants are 1, 2 and 3, and all want more. In the end the service is overloaded for two "+
		"seconds: it refuses the next calls, the gate hears of it, and nobody calls until it is over. After that the "+
		"gate is careful for a while.", d.rate)
	d.print("%s", heads(d.tenants))
	var before, from, to map[string]model.Count
	closes := d.seconds * 2 / 3
	for second := range d.seconds {
		if second == lining {
			from = before
		}
		if second == closes {
			to = before
			m.Close(2 * time.Second)
			d.print("    the service is overloaded for two seconds")
		}
		for range 10 {
			by, _ := m.Counts()
			for _, t := range d.tenants {
				p := Prompt{Service: d.gate, URL: url, Tenant: t.name, Tokens: tokens}
				if n := ahead - int(t.made-by[t.name].Calls); n > ahead/3 {
					if err := t.submit(ctx, p, n); err != nil {
						return err
					}
				}
			}
			if err := pause(ctx, 100*time.Millisecond); err != nil {
				return err
			}
		}
		by, _ := m.Counts()
		d.print("%s", row(d.tenants, second+1, before, by))
		before = by
	}
	d.print("")
	d.print("    Of seconds %d to %d:", lining+1, closes)
	for _, line := range shares(d.tenants, from, to) {
		d.print("%s", line)
	}
	calls, refused := to[""].Calls-from[""].Calls, to[""].Refused
	d.print("    %d calls, %d%% of what the service allows; %d refused.", calls,
		calls*100/int64(d.rate*(closes-lining)), refused)
	d.print("    Refused because it was overloaded: %d.", before[""].Refused-refused)
	d.print("")
	return d.takeBack(ctx)
}

// submit makes n executions.
func (t *tenant) submit(ctx context.Context, in Prompt, n int) error {
	inputs := make([]Prompt, n)
	for i := range inputs {
		inputs[i] = in
	}
	list, err := client.SubmitMany(ctx, t.client, Ask, inputs)
	for _, x := range list {
		if x != nil {
			t.open = append(t.open, x)
			t.made++
		}
	}
	return err
}

// takeBack cancels what has not ended.
func (d *show) takeBack(ctx context.Context) (failed error) {
	for _, t := range d.tenants {
		for _, x := range t.open {
			if err := x.Cancel(ctx); err != nil && !errors.Is(err, flowfabric.ErrTerminal) {
				failed = errors.Join(failed, err)
			}
		}
		t.open, t.made = nil, 0
	}
	return failed
}

// close takes back what is open, also after an interruption.
func (d *show) close(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if d.tenants[len(d.tenants)-1].client != nil {
		err = d.takeBack(ctx)
		if _, gone := admin.New(d.tenants[0].client).RemoveGate(ctx, d.gate); !errors.Is(gone, flowfabric.ErrNotFound) {
			err = errors.Join(err, gone)
		}
	}
	for _, t := range d.tenants {
		if t.client != nil {
			t.client.Close()
		}
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *show) print(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }
