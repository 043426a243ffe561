package conformance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
)

type object = map[string]any

// exact is a value of JSON whose numbers keep their digits.
type exact struct{ v any }

func (e exact) MarshalJSON() ([]byte, error) { return json.Marshal(e.v) }
func (e *exact) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(&e.v)
}

// plain is a value as its JSON says it.
func plain(v any) any {
	text, err := json.Marshal(v)
	var e exact
	if err = cmp.Or(err, e.UnmarshalJSON(text)); err != nil {
		panic(err)
	}
	return e.v
}

func into[T any](v any) (to T) {
	text, err := json.Marshal(v)
	if err = cmp.Or(err, json.Unmarshal(text, &to)); err != nil {
		panic(wrong(err.Error()))
	}
	return to
}

// member is a member of an object or an item of a list, nil if there is none.
func member(v any, name string) any {
	switch v := v.(type) {
	case object:
		return v[name]
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i < len(v) {
			return v[i]
		}
	}
	return nil
}

type wrong string

func (w wrong) Error() string { return string(w) }

// coded is an error with a code of its own.
type coded struct {
	code string
	error
}

// play is a scenario while it runs.
type play struct {
	scenario
	ctx    context.Context
	api    string
	client *client.Client
	admin  *admin.Admin
	kinds  map[string][]object
	store  string

	mu      sync.Mutex
	vars    object
	effects map[string]int
	flags   map[string]chan struct{}
	workers map[string]*worker
}

type worker struct {
	stop  context.CancelFunc
	ended chan struct{}
}

var (
	reference = regexp.MustCompile(`^\$[a-zA-Z]`)
	inside    = regexp.MustCompile(`\$\{[^}]*\}`)
)

func (p *play) fill(v any, more object) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = p.fill(v[i], more)
		}
		return out
	case object:
		if text, ok := v["$repeat"].(string); ok {
			return strings.Repeat(text, number(v["times"]))
		}
		if n, ok := v["$numbers"]; ok {
			out := make([]int, number(n))
			for i := range out {
				out[i] = i
			}
			return plain(out)
		}
		if n, ok := v["$nested"]; ok {
			out := object{}
			for range number(n) {
				out = object{"in": out}
			}
			return out
		}
		out := object{}
		for name, one := range v {
			out[name] = p.fill(one, more)
		}
		return out
	case string:
		if reference.MatchString(v) && v != "$any" && v != "$none" {
			return p.look(v[1:], more)
		}
		return inside.ReplaceAllStringFunc(v, func(s string) string {
			return fmt.Sprint(p.look(s[2:len(s)-1], more))
		})
	}
	return v
}

func (p *play) look(path string, more object) any {
	parts := strings.Split(path, ".")
	v, there := more[parts[0]]
	if p.mu.Lock(); !there {
		v, there = p.vars[parts[0]]
	}
	p.mu.Unlock()
	if !there {
		panic(wrong("there is no " + path))
	}
	for _, part := range parts[1:] {
		v = member(v, part)
	}
	return v
}

func number(v any) int {
	n, _ := v.(json.Number).Int64()
	return int(n)
}

func (p *play) matches(want, got any) bool {
	if text, ok := want.(string); ok {
		want = p.fill(text, nil)
	}
	switch w := want.(type) {
	case []any:
		list, _ := got.([]any)
		return slices.EqualFunc(w, list, p.matches)
	case object:
		list, _ := got.([]any)
		if n, ok := w["$count"]; ok {
			return len(list) == number(n)
		}
		if text, ok := w["$contains"].(string); ok {
			return strings.Contains(fmt.Sprint(got), text)
		}
		for name, one := range w {
			if !p.matches(one, member(got, name)) {
				return false
			}
		}
		return got != nil
	}
	return want == "$any" || want == "$none" && got == nil || reflect.DeepEqual(want, got)
}

func (p *play) effect(name string, n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.effects[name] += n
	most := strings.Replace(name, "in ", "most ", 1)
	p.effects[most] = max(p.effects[most], p.effects[name])
	return p.effects[name]
}

func (p *play) count(name string) int { return p.effect(name, 0) }

func (p *play) flag(name string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flags[name] == nil {
		p.flags[name] = make(chan struct{})
	}
	return p.flags[name]
}

func (p *play) raise(name string) {
	flag := p.flag(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-flag:
	default:
		close(flag)
	}
}

func define(kind any) *handler.Definition[exact, exact] {
	return handler.Define[exact, exact](fmt.Sprint(kind))
}

// first is the member of a step that names its operation: the only one that is known.
func first[F any](op object, known map[string]F) (string, F) {
	for name := range op {
		if f, ok := known[name]; ok && !(name == "fail" && op["step"] != nil) {
			return name, f
		}
	}
	panic(wrong(fmt.Sprintf("nobody knows %v", op)))
}

func (p *play) start(name string, how object) {
	var bindings []handler.Binding
	for kind, ops := range p.kinds {
		def := handler.Define[exact, exact](text(p.look(kind, nil)), handler.Retry(3, 10*time.Millisecond, time.Second))
		handle := func(ctx context.Context, t *handler.Task, in exact) (exact, error) {
			known := object{"input": in.v, "id": t.ID().String(), "attempt": plain(t.Attempt()), "kind": t.Kind(),
				"tags": plain(t.Tags()), "inputs": object{}}
			for _, name := range t.Inputs() {
				v, _, err := handler.Given(t, flow.Input[exact]{Name: name})
				if err != nil {
					return exact{}, err
				}
				known["inputs"].(object)[name] = v.v
			}
			_, out, err := p.handle(ctx, t, ops, known)
			return exact{out}, err
		}
		bindings = append(bindings, handler.Bind(def, handle))
	}
	cfg := runtime.Config{URL: p.store, TokenKeys: tokenKeys, Logger: slog.New(slog.DiscardHandler), Concurrency: 16}
	if n, ok := how["concurrency"]; ok {
		cfg.Concurrency = number(n)
	}
	if n, ok := how["drain_ms"]; ok {
		cfg.DrainTimeout = time.Duration(number(n)) * time.Millisecond
	}
	w, err := runtime.New(cfg, bindings...)
	if err != nil {
		panic(wrong(err.Error()))
	}
	ctx, stop := context.WithCancel(p.ctx)
	p.workers[name] = &worker{stop, make(chan struct{})}
	go func() {
		defer close(p.workers[name].ended)
		_ = w.Run(ctx)
	}()
}

// run plays a scenario, and says what went wrong.
func (p *play) run(unique string) (failed string) {
	defer func() {
		for name := range p.flags {
			if strings.HasPrefix(name, "let ") {
				p.raise(name)
			}
		}
		for _, w := range p.workers {
			w.stop()
			<-w.ended
		}
	}()
	defer func() {
		if e, ok := recover().(wrong); ok {
			failed = string(e)
		}
	}()
	p.vars, p.effects, p.flags = object{"u": unique}, map[string]int{}, map[string]chan struct{}{}
	p.workers, p.kinds = map[string]*worker{}, map[string][]object{}
	for name, ops := range plain(p.Kinds).(object) {
		p.vars[name] = unique + "-" + name
		for _, op := range ops.([]any) {
			p.kinds[name] = append(p.kinds[name], op.(object))
		}
	}
	if !p.Manual {
		how, _ := plain(p.Worker).(object)
		p.start("w", how)
	}
	for _, step := range plain(p.Do).([]any) {
		step := step.(object)
		name, do := first(step, steps)
		op := p.fill(step, nil).(object)
		got, err := do(p, op[name], op)
		code, had := flowfabric.CodeOf(err), err != nil
		if e, ok := errors.AsType[coded](err); ok {
			code = e.code
		}
		want, wants := step["error"]
		if had != wants || had && !p.matches(want, code) {
			return fmt.Sprintf("%v: the error is %q: %v, the answer %v", step, code, err, got)
		}
		if want, ok := step["expect"]; ok && !p.matches(want, plain(got)) {
			return fmt.Sprintf("%v: it answers %v", step, plain(got))
		}
		if as, ok := step["as"].(string); ok {
			p.mu.Lock()
			p.vars[as] = plain(got)
			p.mu.Unlock()
		}
	}
	return ""
}

func runGo(t *testing.T, ctx context.Context, all []scenario, api, store string) {
	c, err := client.Connect(ctx, client.Config{URL: store, TokenKeys: tokenKeys, Creator: "conformance"})
	must.No(t, err)
	defer c.Close()
	var mu sync.Mutex
	said := map[string]string{}
	pool := pool.New().WithMaxGoroutines(8)
	for i, s := range all {
		if slices.Contains(s.Not, "go") {
			continue
		}
		pool.Go(func() {
			p := &play{scenario: s, ctx: ctx, api: api, client: c, admin: admin.New(c), store: store}
			failed := p.run("go" + strconv.Itoa(i))
			mu.Lock()
			defer mu.Unlock()
			said[s.Name] = failed
		})
	}
	pool.Wait()
	judge(t, "go", all, said)
}

// call asks the API for something that has no place in the packages.
func (p *play) call(call string, body any) (any, error) {
	method, target, _ := strings.Cut(call, " ")
	text, _ := json.Marshal(body)
	q, err := http.NewRequestWithContext(p.ctx, method, p.api+target, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	var out exact
	if text, err = io.ReadAll(a.Body); err == nil {
		err = out.UnmarshalJSON(text)
	}
	return out.v, err
}
