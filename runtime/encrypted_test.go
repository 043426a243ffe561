package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/schedule"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// secret is a text to look for, of one field; open is one of a field that stays readable. They name the rows of the
// table in SECURITY.md.
func secret(field string) string   { return "s3cret." + strings.ReplaceAll(field, " ", "_") }
func readable(field string) string { return "r3adable." + strings.ReplaceAll(field, " ", "_") }

var marks = regexp.MustCompile(`(s3cret|r3adable)\.([a-z_]+)`)

// found looks for such texts in every key and every value of a server.
func found(ctx context.Context, t *testing.T, url string) map[string]string {
	t.Helper()
	option, err := rueidis.ParseURL(url)
	must.No(t, err)
	option.DisableCache, option.ForceSingleClient = true, true
	c, err := rueidis.NewClient(option)
	must.No(t, err)
	defer c.Close()
	keys, err := c.Do(ctx, c.B().Keys().Pattern("*").Build()).AsStrSlice()
	must.No(t, err)
	seen := map[string]string{}
	for _, key := range keys {
		kind, err := c.Do(ctx, c.B().Type().Key(key).Build()).ToString()
		must.No(t, err)
		var answer rueidis.RedisResult
		switch kind {
		case "string":
			answer = c.Do(ctx, c.B().Get().Key(key).Build())
		case "hash":
			answer = c.Do(ctx, c.B().Hgetall().Key(key).Build())
		case "list":
			answer = c.Do(ctx, c.B().Lrange().Key(key).Start(0).Stop(-1).Build())
		case "set":
			answer = c.Do(ctx, c.B().Smembers().Key(key).Build())
		case "zset":
			answer = c.Do(ctx, c.B().Zrange().Key(key).Min("0").Max("-1").Build())
		case "stream":
			answer = c.Do(ctx, c.B().Xrange().Key(key).Start("-").End("+").Build())
		default:
			continue // it went
		}
		m, err := answer.ToMessage()
		if rueidis.IsRedisNil(err) {
			continue
		}
		must.No(t, err)
		for _, mark := range marks.FindAllStringSubmatch(key+" "+texts(m), -1) {
			seen[mark[0]] = kind + " " + key
		}
	}
	return seen
}

// texts are all that an answer has, one after the other.
func texts(m rueidis.RedisMessage) string {
	var b strings.Builder
	if list, err := m.ToArray(); err == nil {
		for i := range list {
			b.WriteString(texts(list[i]) + "\n")
		}
	} else if pairs, err := m.ToMap(); err == nil {
		for name, value := range pairs {
			b.WriteString(name + "\n" + texts(value) + "\n")
		}
	} else if text, err := m.ToString(); err == nil {
		b.WriteString(text)
	}
	return b.String()
}

var (
	secretWork  = handler.Define[string, string](readable("kind"), flowfabric.Retries(0))
	secretChild = handler.Define[string, string]("child", flowfabric.Retries(0))
	secretLater = handler.Define[string, string]("later", flowfabric.Retries(0))
	gathered    = flow.Input[string]{Name: readable("input name")}
)

// everything is a handler that stores something of every kind.
func everything(ctx context.Context, t *handler.Task, in string) (string, error) {
	if t.Continues() == 0 {
		_, err := handler.Step(ctx, t, "first", func(ctx context.Context) (string, error) { return "", nil })
		return "", errors.Join(err, handler.Continue(secret("continue input")))
	}
	t.Logger().Info(secret("log line"), "at", secret("log attribute"))
	_, err := handler.Step(ctx, t, readable("step name"), func(ctx context.Context) (string, error) {
		return secret("step"), errors.Join(t.Frame(ctx, readable("frame type"), secret("frame")),
			t.FrameBytes(ctx, stream.Frame{Type: "x", Encoding: stream.Bytes, Correlation: readable("correlation"),
				Payload: []byte("\x00" + secret("bytes frame"))}),
			t.Live(ctx, "tick", secret("live frame"), time.Minute),
			t.Summary(ctx, map[string]string{"at": secret("summary")}), t.Progress(ctx, 5, secret("progress")))
	})
	if err != nil {
		return "", err
	}
	set := flow.Children("parts")
	child := flow.Child(set, "a", secretChild, secret("child input"))
	if err := t.WaitChildren(ctx, set); err != nil {
		return "", err
	}
	result, err := handler.ChildResult(ctx, t, child)
	if err != nil || result != secret("child result") {
		return "", fmt.Errorf("child: %q, %w", result, err)
	}
	for _, mailbox := range []string{readable("mailbox"), "taken"} {
		if _, err := handler.Receive[string](ctx, t, mailbox); err != nil {
			return "", err
		}
	}
	if v, err := handler.Await[string](ctx, t, readable("wait")); err != nil || v != secret("signal") {
		return "", errors.Join(err, fmt.Errorf("signal %q", v))
	}
	answer, err := t.Ask(ctx, "ask", suspend.Question{Title: secret("question title"), Text: secret("question text"),
		Assignee: secret("assignee"), Choices: []suspend.Choice{{Name: readable("choice"), Label: secret("label")},
			{Name: "no"}}})
	if err != nil || answer.Comment != secret("comment") {
		return "", errors.Join(err, fmt.Errorf("answer %+v", answer))
	}
	answers, err := t.AskAll(ctx, "all", []suspend.Question{{Key: readable("wait"), Title: secret("question title"),
		Text: secret("question text"), Assignee: secret("assignee"),
		Arguments: fmt.Appendf(nil, `{"a":%q}`, secret("arguments")), Schema: []byte(`{"type":"object"}`),
		Choices: []suspend.Choice{{Name: readable("choice"), Label: secret("label")}, {Name: "no"}}}})
	if err != nil || !strings.Contains(string(answers[0].Arguments), secret("arguments")+`","b":1`) {
		return "", errors.Join(err, fmt.Errorf("answers %+v", answers))
	}
	return secret("result"), nil
}

// live is a running worker with clients of its store.
type live struct {
	*env
	c, blind *client.Client
}

// connect is a client with a cipher, which may be nil.
func (w *env) connect(c flowfabric.Cipher) *client.Client {
	w.Helper()
	out, err := client.Connect(w.ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: w.url,
		Logger: quiet, Cipher: c})
	must.No(w, err)
	w.Cleanup(out.Close)
	return out
}

// fill has a worker store everything.
func fill(w *env, cipher flowfabric.Cipher) (l live, id flowfabric.ExecutionID) {
	l = live{w, w.connect(cipher), w.connect(nil)}
	cfg := signing()
	cfg.Cipher, cfg.Concurrency = cipher, 8
	w.start(cfg, handler.Bind(secretWork, everything),
		handler.Bind(secretChild, func(ctx context.Context, t *handler.Task, in string) (string, error) {
			if in == secret("child input") || in == secret("flow input") {
				return secret("child result"), nil
			}
			_, err := handler.Step(ctx, t, "s", func(ctx context.Context) (string, error) {
				return "", handler.Category(flowfabric.Category(readable("category")), errors.New(secret("failure")))
			})
			return "", err
		}),
		handler.Bind(secretLater, func(ctx context.Context, t *handler.Task, in string) (string, error) {
			v, err := handler.Need(t, gathered)
			if err == nil && v != secret("child result") {
				err = errors.New("the input is " + v)
			}
			return secret("node result"), err
		}))
	ctx := w.ctx
	why := flowfabric.Reason(secret("operator reason"))
	by := flowfabric.By(readable("operator"))
	x, err := client.Submit(ctx, l.c, secretWork, secret("input"), flowfabric.IdempotencyKey(secret("key")),
		flowfabric.Tags(map[string]string{"team.of": readable("tag")}))
	must.No(w, err)
	e := l.c.Execution(x.ID())
	for _, mailbox := range []string{readable("mailbox"), "taken", "left"} {
		_, err = e.Send(ctx, mailbox, secret("message"), flowfabric.By(readable("sender")))
		must.No(w, err)
	}
	l.waits(x.ID(), readable("wait"))
	_, err = e.Approve(ctx, readable("wait"), secret("signal"), by)
	must.No(w, err)
	l.waits(x.ID(), "ask")
	s, err := e.Suspension(ctx)
	if err != nil || s.Question == nil || s.Question.Title != secret("question title") {
		w.Errorf("the question is %+v, %v", s.Question, err)
	}
	if cipher != nil {
		s, err = l.blind.Execution(x.ID()).Suspension(ctx)
		if err != nil || s.Question == nil || s.Question.Title != "(encrypted)" ||
			s.Question.Choices[0].Name != readable("choice") {
			w.Errorf("without a key the question is %+v, %v", s.Question, err)
		}
	}
	_, err = e.Approve(ctx, "ask", suspend.Answer{Choice: readable("choice"), Comment: secret("comment")},
		client.SignalName(readable("choice")), by)
	must.No(w, err)
	l.waits(x.ID(), "all")
	edited := suspend.Answer{Choice: readable("choice"),
		Arguments: fmt.Appendf(nil, `{"a":%q,"b":1}`, secret("arguments"))}
	if cipher != nil {
		s, err = l.blind.Execution(x.ID()).Suspension(ctx)
		q := s.Waitpoints[slices.IndexFunc(s.Waitpoints,
			func(p suspend.Waitpoint) bool { return p.Key == readable("wait") && p.Open() })].Question
		if err != nil || q == nil || q.Title != "(encrypted)" || q.Choices[0].Name != readable("choice") ||
			q.Arguments != nil {
			w.Errorf("without a key one of several questions is %+v, %v", q, err)
		}
		_, err = l.blind.Execution(x.ID()).Approve(ctx, readable("wait"), edited, by)
		if !errors.Is(err, flowfabric.ErrInvalidInput) { // it cannot tell whether they fit
			w.Errorf("without a key changed arguments are taken: %v", err)
		}
	}
	_, err = e.Approve(ctx, readable("wait"), edited, by)
	must.No(w, err)
	if got, err := x.Result(ctx); err != nil || got != secret("result") {
		w.Fatalf("the result is %q, %v", got, err)
	}

	failed, err := client.Submit(ctx, l.c, secretChild, secret("lost input"))
	must.No(w, err)
	if _, err := failed.Result(ctx); !errors.Is(err, flowfabric.ErrFailed) ||
		!strings.Contains(err.Error(), secret("failure")) {
		w.Errorf("it failed with %v", err)
	}
	late, err := client.Submit(ctx, l.c, secretChild, secret("input"), flowfabric.Lane("nobody"))
	must.No(w, err)
	must.No(w, admin.New(l.c).Hold(ctx, late.ID(), why, by))
	must.No(w, late.Cancel(ctx, why, by))

	f := flow.New(readable("flow kind"))
	flow.Add(f, readable("node"), secretLater, secret("later input"),
		gathered.From(flow.Add(f, "up", secretChild, secret("flow input"))))
	submitted, err := client.SubmitFlow(ctx, l.c, f)
	must.No(w, err)
	if end, err := submitted.Wait(ctx); err != nil || end.State != flowfabric.FlowCompleted {
		w.Errorf("the flow: %+v, %v", end, err)
	}
	stopped, err := client.SubmitFlow(ctx, l.c, f, flowfabric.Tags(map[string]string{"team.of": readable("flow tag")}))
	must.No(w, err)
	_, _ = stopped.Cancel(ctx, flowfabric.CancelAll, why, by) // it may have ended
	every := schedule.Every(time.Hour, time.Time{})
	_, err = l.c.PutTrigger(ctx, client.Trigger{Name: readable("trigger"), Subject: readable("subject"),
		Where: map[string]any{"filter": readable("filter")}, Start: flowfabric.Start{Kind: "nobody"}})
	must.No(w, err)
	_, err = l.c.Publish(ctx, client.Event{Subject: readable("subject"), ID: readable("event id"),
		Data: map[string]string{"filter": readable("filter"), "data": secret("event data")}})
	must.No(w, err)
	_, err = client.Schedule(ctx, l.c, readable("schedule"), every, secretChild, secret("schedule input"))
	must.No(w, err)
	_, err = client.ScheduleFlow(ctx, l.c, "flows", every, f, client.FirstRunNow())
	must.No(w, err)
	w.eventually("the scheduled flow has run", func() bool {
		s, err := admin.New(l.c).GetSchedule(ctx, "flows")
		if err != nil || s.LastFlow.IsZero() {
			return false
		}
		r, err := l.c.Flow(s.LastFlow).Wait(ctx)
		return err == nil && r.State == flowfabric.FlowCompleted
	})
	return l, x.ID()
}

func (l *live) waits(id flowfabric.ExecutionID, name string) {
	l.Helper()
	l.eventually("it waits for "+name, func() bool {
		s, err := l.blind.Execution(id).Suspension(l.ctx)
		return err == nil && s.Name == name && s.ClosedAt.IsZero()
	})
}

// whole is all that a client reads of an execution.
func whole(ctx context.Context, t *testing.T, c *client.Client, id flowfabric.ExecutionID) string {
	t.Helper()
	var b strings.Builder
	e := c.Execution(id)
	for event, err := range e.Tail(ctx, client.Stored()) {
		must.No(t, err)
		if event.Kind == stream.TailFrame {
			fmt.Fprintf(&b, "%s %t %s\n", event.Frame.Encoding, event.Frame.Encrypted, event.Frame.Payload)
		}
	}
	for line, err := range e.Logs(ctx, stream.LogRange{}) {
		must.No(t, err)
		fmt.Fprintf(&b, "%s %s\n", line.Message, line.Attributes)
	}
	s, err := e.Get(ctx)
	must.No(t, err)
	input, err := e.Input(ctx)
	must.No(t, err)
	result, err := e.Result(ctx)
	must.No(t, err)
	step, _, err := e.StepValue(ctx, readable("step name"))
	must.No(t, err)
	summary, err := e.Summary(ctx)
	must.No(t, err)
	left, err := e.Messages(ctx, 0)
	must.No(t, err)
	fmt.Fprintln(&b, s.Progress.Message, string(input), string(result), string(step), string(summary.Document))
	for _, m := range left.Messages {
		b.Write(m.Payload)
	}
	return b.String()
}

// What SECURITY.md says of each row is so: with a cipher nothing that it calls encrypted is in any key or value of the
// server, and what it calls readable is; without one all of it is there, so that each was put there indeed.
func TestWhatStaysReadable(t *testing.T) {
	text, err := os.ReadFile("../SECURITY.md")
	must.No(t, err)
	rows := map[string]bool{} // whether it is encrypted
	for _, m := range regexp.MustCompile(`(?m)^\| (encrypted|readable) \| (.*) \|$`).FindAllStringSubmatch(string(text),
		-1) {
		for _, field := range strings.Split(m[2], ", ") {
			rows[field] = m[1] == "encrypted"
		}
	}
	cipher, err := flowfabric.CipherKeys("k1:" + strings.Repeat("ab", 32))
	must.No(t, err)
	for _, on := range []bool{false, true} {
		w := envAt(t, testserver.Redis(t))
		c := flowfabric.Cipher(nil)
		if on {
			c = cipher
		}
		l, id := fill(w, c)
		seen := found(w.ctx, t, w.url)
		for _, field := range slices.Sorted(maps.Keys(rows)) {
			hidden := rows[field]
			mark, want := readable(field), true
			if hidden {
				mark, want = secret(field), !on
			}
			if at, there := seen[mark]; there != want {
				t.Errorf("with a cipher: %t: %q is there: %t (%s), want %t", on, mark, there, at, want)
			}
			delete(seen, mark)
		}
		for mark, at := range seen {
			t.Errorf("with a cipher: %t: %s is in %s, and in no row of SECURITY.md", on, mark, at)
		}
		told := whole(w.ctx, t, l.c, id)
		for _, field := range []string{"frame", "bytes frame", "live frame", "summary", "log line", "progress",
			"continue input", "result", "step", "message"} {
			if !strings.Contains(told, secret(field)) {
				t.Errorf("with the key, %s is not told: %s", field, told)
			}
		}
		if !on {
			continue
		}
		if told := whole(w.ctx, t, l.blind, id); strings.Contains(told, "s3cret") || !strings.Contains(told,
			"bytes true") || !strings.Contains(told, "(encrypted)") {
			t.Errorf("without the key: %q", told)
		}
		if _, err := client.Attach(l.blind, secretWork, id).Result(w.ctx); !errors.Is(err, flowfabric.ErrEncrypted) {
			t.Errorf("a result without the key: %v", err)
		}
	}
}

// An event that a handler expects is encrypted while it is kept for the wait, and as its answer. What a filter asks for
// is no text in the store, encrypted or not. An event of a process without keys is taken, too.
func TestExpectedEventsAreEncrypted(t *testing.T) {
	cipher, err := flowfabric.CipherKeys("k1:" + strings.Repeat("ab", 32))
	must.No(t, err)
	for _, on := range []bool{false, true} {
		w := envAt(t, testserver.Redis(t))
		cfg := signing()
		if on {
			cfg.Cipher = cipher
		}
		l := live{w, w.connect(cfg.Cipher), w.connect(nil)}
		expecting, wait := make(chan struct{}, 9), make(chan struct{})
		pays := handler.Define[string, string]("pays", flowfabric.Retries(0))
		w.start(cfg, handler.Bind(pays, func(ctx context.Context, t *handler.Task, _ string) (string, error) {
			for _, key := range []string{"kept", "plain"} {
				if err := t.Expect(ctx, key, "order.paid", map[string]any{"of": secret(key)}); err != nil {
					return "", err
				}
			}
			expecting <- struct{}{}
			<-wait
			kept, err := handler.Await[map[string]string](ctx, t, "kept")
			if err != nil {
				return "", err
			}
			plain, err := handler.Await[map[string]string](ctx, t, "plain")
			if err == nil && (kept["data"] != secret("event data") || plain["data"] != readable("event")) {
				err = fmt.Errorf("it got %v and %v", kept, plain)
			}
			return "", err
		}))
		x, err := client.Submit(w.ctx, l.c, pays, "")
		must.No(w, err)
		<-expecting
		look := func(when string, want bool) {
			t.Helper()
			seen := found(w.ctx, t, w.url)
			for _, mark := range []string{secret("event data"), secret("kept")} {
				if at, there := seen[mark]; there != want {
					t.Errorf("with a cipher: %t, %s: %s is there: %t (%s)", on, when, mark, there, at)
				}
			}
		}
		publish := func(c *client.Client, key, data string) {
			t.Helper()
			p, err := c.Publish(w.ctx, client.Event{Subject: "order.paid",
				Data: map[string]string{"of": secret(key), "data": data}})
			if err != nil || p.Resumes != 1 {
				t.Errorf("with a cipher: %t, %s: %+v, %v", on, key, p, err)
			}
		}
		look("a filter", false)
		publish(l.c, "kept", secret("event data"))
		w.eventually("the event is kept", func() bool {
			list, err := l.blind.Execution(x.ID()).Waitpoints(w.ctx)
			return err == nil && slices.ContainsFunc(list, func(p suspend.Waitpoint) bool { return p.Signals == 1 })
		})
		look("kept", !on)
		close(wait)
		l.waits(x.ID(), "plain")
		look("an answer", !on)
		publish(l.blind, "plain", readable("event"))
		if _, err := x.Result(w.ctx); err != nil {
			t.Errorf("with a cipher: %t: %v", on, err)
		}
		look("over", !on)
	}
}

// A worker that cannot read an input fails the execution with a clear word, and another one replays it; plain work
// runs on a worker with keys; and a worker with the next key reads what the last one wrote.
func TestOtherKeys(t *testing.T) {
	servers(t, func(w *env) {
		keys := func(text string) flowfabric.Cipher {
			c, err := flowfabric.CipherKeys(text)
			must.No(w, err)
			return c
		}
		a, b := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
		old, next := keys("a:"+a), keys("b:"+b+",a:"+a)
		work := handler.Define[string, string]("work", handler.Retry(1, time.Millisecond, time.Millisecond))
		run := func(c flowfabric.Cipher) *running {
			cfg := signing()
			cfg.Cipher = c
			return w.start(cfg, handler.Bind(work, handler.Plain(func(_ context.Context, in string) (string, error) {
				return in + "!", nil
			})))
		}
		submit := func(c flowfabric.Cipher) *client.Execution[string] {
			x, err := client.Submit(w.ctx, w.connect(c), work, "hello")
			must.No(w, err)
			return x
		}
		for name, tc := range map[string]struct {
			worker   flowfabric.Cipher
			attempts uint32
			says     string
		}{
			"no key":         {nil, 2, "this process does not have the key"},
			"another key":    {keys("c:" + b), 2, "it was encrypted with key a, here are cipher keys c"},
			"another secret": {keys("a:" + b), 1, "another secret has the same key id"},
		} {
			worker := run(tc.worker)
			x := submit(old)
			_, err := x.Result(w.ctx)
			if tc.worker != nil { // the reason is sealed, too
				s, readErr := w.connect(tc.worker).Execution(x.ID()).Get(w.ctx)
				must.No(w, readErr)
				err = errors.Join(err, errors.New(s.Failure.Message))
			}
			end, _ := errors.AsType[*client.OutcomeError](err)
			if end == nil || string(end.Category) != causes.Decode || uint32(end.Attempts) != tc.attempts ||
				!strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %v (%+v)", name, err, end)
			}
			must.No(w, worker.stop())
			worker = run(next)
			must.No(w, admin.New(w.connect(nil)).Replay(w.ctx, x.ID(), admin.Replay{}, flowfabric.By("anna")))
			if got, err := client.Attach(w.connect(next), work, x.ID()).Result(w.ctx); err != nil || got != "hello!" {
				t.Errorf("%s, replayed: %q, %v", name, got, err)
			}
			must.No(w, worker.stop())
		}
		run(next)
		for name, c := range map[string]flowfabric.Cipher{"plain": nil, "the old key": old, "the next": next} {
			x := submit(c)
			if got, err := client.Attach(w.connect(next), work, x.ID()).Result(w.ctx); err != nil || got != "hello!" {
				t.Errorf("submitted with %s: %q, %v", name, got, err)
			}
		}
		if _, err := runtime.New(runtime.Config{URL: w.url}, handler.Bind(work, handler.Plain(
			func(_ context.Context, in string) (string, error) { return in, nil }))); err != nil {
			t.Error(err)
		}
	})
}
