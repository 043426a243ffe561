package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sourcegraph/conc"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/approval"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/doctor"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Canaries: texts that occur nowhere else. Each stands where a secret does.
const (
	canaryUser     = "Zebrafinkuser"
	canaryPassword = "Quetzalpassw"
	canaryQuery    = "Wrynecksecret"
	canaryKey      = "5ec2e7c0ffee5ec2e7c0ffee0badcafe5ec2e7c0ffee5ec2e7c0ffee0badcafe"
	canaryMAC      = "4eac4eac0123dead4eac4eac4567beef4eac4eac89abdead4eac4eaccdefbeef"
)

// secretPart is the length from which a part of a secret counts as shown.
const secretPart = 8

// leak is the part of a secret that a text shows, "" for none.
func leak(text string, secrets ...string) string {
	text = strings.ToLower(text)
	for _, s := range secrets {
		s = strings.ToLower(s)
		for i := 0; i+secretPart <= len(s); i++ {
			if strings.Contains(text, s[i:i+secretPart]) {
				return s[i : i+secretPart]
			}
		}
	}
	return ""
}

// spill collects whatever is said, from all goroutines.
type spill struct {
	sync.Mutex
	bytes.Buffer
}

func (s *spill) Write(p []byte) (int, error) {
	s.Lock()
	defer s.Unlock()
	return s.Buffer.Write(p)
}

// take empties it.
func (s *spill) take() string {
	s.Lock()
	defer s.Unlock()
	defer s.Reset()
	return s.String()
}

func (s *spill) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// say takes in an error, however it is printed.
func (s *spill) say(err error) { fmt.Fprintf(s, "%v\n%+v\n%#v\n%q\n", err, err, err, err) }

// tell runs what a configuration is given to, and returns all that it said.
func tell(t *testing.T, address, keys string) string {
	t.Helper()
	var said spill
	previous := slog.Default()
	slog.SetDefault(said.logger())
	defer slog.SetDefault(previous)
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()

	const dial = time.Second // many of the addresses have no server, and what is said of them counts
	e, err := engine.Open(ctx, engine.Config{URL: address, Logger: said.logger(), DialTimeout: dial})
	if said.say(err); err == nil {
		e.Close()
	}
	_, err = doctor.Diagnose(ctx, engine.Config{URL: address, Logger: said.logger(), DialTimeout: dial})
	said.say(err)
	_, release, err := embedded.Resolve(ctx, address, said.logger())
	said.say(err)
	release()
	c, err := client.Connect(ctx,
		client.Config{URL: address, TokenKeys: keys, Logger: said.logger(), DialTimeout: dial})
	if said.say(err); err == nil {
		fmt.Fprintf(&said, "%v %+v %#v\n", c, c, c)
		c.Close()
	}
	k, err := tokenkeys.Parse(keys)
	said.say(err)
	fmt.Fprintf(&said, "%v %+v %#v\n", k, k, k)
	cfg := runtime.Config{URL: address, TokenKeys: keys, Logger: said.logger(),
		FxLogger: &fxevent.SlogLogger{Logger: said.logger()}}
	bound := handler.Bind(echo, func(_ context.Context, _ *handler.Task, in map[string]any) (map[string]any, error) {
		return in, nil
	})
	w, err := runtime.New(cfg, bound)
	if said.say(err); err == nil {
		fmt.Fprintf(&said, "%v %+v %#v\n", w, w, w)
		// timed: a worker that finds no store does not end by itself
		run, stop := context.WithTimeout(ctx, time.Second)
		said.say(w.Run(run))
		stop()
		said.say(w.Ready())
	}
	// timed: a worker that finds no store does not end by itself
	run, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	said.say(runtime.Run(run, cfg, runtime.Provide(echo, func() canaryHandler { return canaryHandler{} })))
	said.say(fx.New(runtime.Module(cfg), fx.WithLogger(func() fxevent.Logger { return cfg.FxLogger })).Err())
	return said.take()
}

type canaryHandler struct{}

func (canaryHandler) Handle(_ context.Context, _ *handler.Task, in map[string]any) (map[string]any, error) {
	return in, nil
}

// commandLines are command lines, each with the text in another place.
func commandLines(text string) [][]string {
	return [][]string{
		{text}, {"ls", text}, {"show", text}, {"why", text}, {"cancel", text}, {"signal", text},
		{"keys", "rotate", text}, {"ls", "--timeout", text},
		{"ls", "--" + text}, {"tail", text}, {"dev", "--addr", text}, {"waitpoints", text}, {"send", text},
		{"messages", text}, {"lane", text}, {"flow", "show", text},
		{"schedules", text}, {"gate", text}, {"replay", text}, {"show", text, text}, {"submit", text, text},
	}
}

// cli runs a command line and returns all that it printed.
func cli(t *testing.T, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(""), &out, &errOut)
	return fmt.Sprintf("exit %d\n%s\n%s", code, &out, &errOut)
}

// No part of a URL gets into an error, a log or the output of a command, wherever its secrets stand. Nobody listens
// on the ports, so what is well formed fails too.
func TestNoErrorShowsAURL(t *testing.T) {
	t.Setenv(suspend.EnvTokenKeys, "")
	u, p, q := canaryUser, canaryPassword, canaryQuery
	for _, address := range []string{
		"redis://" + u + ":" + p + "@127.0.0.1:1/0",
		"rediss://" + u + ":" + p + "@127.0.0.1:1",
		"redis://" + p + "@127.0.0.1:1",
		"redis://:" + p + "@127.0.0.1:port",
		"redis://" + u + ":" + p,
		"redis://" + u + ":" + p + "/0",
		"redis://" + u + ":" + p + "@",
		"redis://" + u + ":" + p + "@h:99999",
		"redis://" + u + ":" + p + "@h1:1,h2:2,",
		"redis://" + u + ":" + p + "/x@127.0.0.1:1",
		"redis://" + u + ":x/" + p + "@127.0.0.1:1",
		"redis://" + u + ":x?" + p + "=" + q + "@127.0.0.1:1",
		"redis://" + u + ":" + p + "%zz@127.0.0.1:1",
		"redis://127.0.0.1:1/" + p,
		"redis://127.0.0.1:1/0#" + p,
		"redis://127.0.0.1:1#" + p,
		"redis://h?password=" + q,
		"redis://127.0.0.1:1/0?password=" + q,
		"redis://127.0.0.1:1?user=" + u + "&password=" + q,
		"redis://127.0.0.1:1/0?password=x@" + q,
		"redis://127.0.0.1:1/0?" + q,
		"redis://127.0.0.1:1/0?%zz" + q,
		"redis+sentinel://" + u + ":" + p + "@127.0.0.1:1/main?sentinel_password=" + q,
		"redis+sentinel://127.0.0.1:1/main?sentinel_username=" + u + "&password=" + q,
		"redis+sentinel://127.0.0.1:1/main?sentinel_password=x@" + q,
		"redis+sentinel://127.0.0.1:1/main?sentinel_password=%zz" + q,
		"redis+sentinel://" + u + ":" + p + "@h",
		"unix:///none.sock?password=" + q,
		"unix:///none.sock?db=0&password=" + q,
		"unix:///none.sock?db=" + q,
		"unix:///none.sock?%zz" + q,
		"unix://" + u + ":" + p + "@/none.sock",
		"unix://" + u + ":" + p + "@none.sock",
		"unix://?password=" + q,
		u + ":" + p + "@127.0.0.1:1",
		"127.0.0.1:1?password=" + q,
		"redis:/" + u + ":" + p + "@h",
		"password=" + q + " redis://h",
		q + "://h",
		"postgres://" + u + ":" + p + "@h/db?password=" + q,
		"embedded://" + p + "?password=" + q,
		"inproc://" + p,
	} {
		hidden := []string{canaryUser, canaryPassword, canaryQuery}
		if got := tell(t, address, ""); leak(got, hidden...) != "" {
			t.Errorf("%s: shows %q:\n%s", address, leak(got, hidden...), got)
		} else if !strings.Contains(got, "URL") && !strings.Contains(got, "connect to") {
			t.Errorf("%s: nothing was refused:\n%s", address, got)
		}
		t.Setenv("FLOWFABRIC_URL", "")
		for _, flags := range [][]string{{}, {"--json"}} {
			for _, command := range []string{"ls", "doctor", "top", "check", "keys", "load"} {
				args := append([]string{command, "--timeout", "500ms", "--url", address}, flags...)
				if got := cli(t, args...); leak(got, hidden...) != "" {
					t.Errorf("flowfabric %s: shows %q:\n%s", strings.Join(args, " "), leak(got, hidden...), got)
				}
			}
		}
		t.Setenv("FLOWFABRIC_URL", address)
		if got := cli(t, "ls", "--timeout", "500ms"); leak(got, hidden...) != "" {
			t.Errorf("FLOWFABRIC_URL=%s: shows %q:\n%s", address, leak(got, hidden...), got)
		}
	}
	// Where no command expects a URL, what looks like one is hidden all the same.
	t.Setenv("FLOWFABRIC_URL", "redis://127.0.0.1:1")
	for _, address := range []string{"redis://" + u + ":" + p + "@h:1/0", "redis://h/0?password=" + q,
		"redis://" + u + ":" + p, u + ":" + p + "@h:1"} {
		for _, args := range commandLines(address) {
			if got := cli(t, append(args, "--timeout=500ms")...); leak(got, p, q) != "" {
				t.Errorf("flowfabric %s: shows %q:\n%s", strings.Join(args, " "), leak(got, p, q), got)
			}
		}
	}
}

// No part of a token key that is refused is shown, a key id neither: it may be the secret that somebody wrote without
// one.
func TestNoErrorShowsATokenKey(t *testing.T) {
	t.Setenv("FLOWFABRIC_URL", "redis://127.0.0.1:1")
	k := canaryKey
	for _, keys := range []string{
		k, k[:32], k[:16], ":" + k, k + ":", k + ":k1", k[:32] + ":k1", k[:32] + ":" + k[32:], "k1=" + k, "k1;" + k,
		"k1 " + k, "k1:" + k + "x", "k1:0x" + k, "k1: " + k, "k1:" + k[:62], "k1:" + k[:61], "k1:" + k + k + k, "k 1:" +
			k, "k1:" + k + ",", "k1:" + k + "," + k, "k1:" + k + ",k1:" + k, k[:32] + ":" + k + "," + k[:32] + ":" + k,
		`"k1:` + k + `"`, "{" + k + "}", "kid:k1:" + k, strings.ToUpper(k), "k1:" + k + "\nk2:" + k,
	} {
		got := tell(t, "redis://127.0.0.1:1", keys)
		if leak(got, k) != "" {
			t.Errorf("%s: shows %q:\n%s", keys, leak(got, k), got)
		}
		if !strings.Contains(got, "token key ") {
			t.Errorf("%s: was not refused:\n%s", keys, got)
		}
		t.Setenv(suspend.EnvTokenKeys, keys)
		for _, args := range [][]string{{"ls"}, {"keys"}, {"keys", "rotate", "k1"}, {"ls", "--json"}} {
			if got := cli(t, append(args, "--timeout=500ms")...); leak(got, k) != "" ||
				!strings.Contains(got, "token key ") {
				t.Errorf("%s: flowfabric %s shows %q:\n%s", keys, strings.Join(args, " "), leak(got, k), got)
			}
		}
		t.Setenv(suspend.EnvTokenKeys, "")
		if strings.Contains(keys, "\n") || len(keys) == 16 { // too short to be told from any other word
			continue
		}
		for _, args := range commandLines(keys) {
			if got := cli(t, append(args, "--timeout=500ms")...); leak(got, k) != "" {
				t.Errorf("flowfabric %s: shows %q:\n%s", strings.Join(args, " "), leak(got, k), got)
			}
		}
	}
}

// No part of a waitpoint's token is shown when it is not taken, by what reads tokens or by what reads something else.
func TestNoErrorShowsAWaitpointToken(t *testing.T) {
	t.Setenv("FLOWFABRIC_URL", "redis://127.0.0.1:1")
	id := mint.ID(3)
	whole := "3." + ids.UUID(id).String() + "." + ids.UUID(id).String() + ".k1:" + canaryMAC
	for _, text := range []string{
		whole, whole[:len(whole)-1], whole + "0", strings.ToUpper(whole), "3." + whole, whole[2:], canaryMAC,
		"k1:" + canaryMAC, canaryMAC[:40], strings.Replace(whole, "k1", "", 1), strings.Replace(whole, ":", ".", 1),
		strings.Replace(whole, ":", "", 1), "Bearer " + whole,
	} {
		var said spill
		token, err := suspend.ParseToken(text)
		said.say(err)
		fmt.Fprintf(&said, "%v %+v %#v %s\n", token, token, token, struct{ T suspend.Token }{token})
		if strings.Contains(text,
			ids.UUID(id).String()) { // else it is not to be told from any other text that is no id
			_, err = flowfabric.ParseExecutionID(text)
			said.say(err)
			_, err = ids.ParseUUID(text)
			said.say(err)
		}
		web := httptest.NewServer(approval.New(approval.Config{Deliver: refusing{}, Logger: said.logger()}))
		for _, at := range []string{web.URL + "/?token=" + url.QueryEscape(text), web.URL + "/"} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				body := url.Values{"token": {text}, "choice": {"approve"}}.Encode()
				request, err := http.NewRequestWithContext(t.Context(), method, at, strings.NewReader(body))
				must.No(t, err)
				request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				answer, err := http.DefaultClient.Do(request)
				must.No(t, err)
				if method == http.MethodPost { // the page's form has the token, which its reader sent
					fmt.Fprintf(&said, "%s %v\n", answer.Status, answer.Header)
				}
				_ = answer.Body.Close()
			}
		}
		web.Close()
		http.DefaultClient.CloseIdleConnections()
		if got := said.take(); leak(got, canaryMAC) != "" {
			t.Errorf("%s: shows %q:\n%s", text, leak(got, canaryMAC), got)
		}
		for _, args := range commandLines(text) {
			if got := cli(t, append(args, "--timeout=500ms")...); leak(got, canaryMAC) != "" {
				t.Errorf("flowfabric %s: shows %q:\n%s", strings.Join(args, " "), leak(got, canaryMAC), got)
			}
		}
	}
}

// refusing takes no signal.
type refusing struct{}

func (refusing) DeliverSignal(context.Context, flowfabric.ExecutionID, flowfabric.UUID, string,
	suspend.SentSignal) (suspend.Delivered, error) {
	return suspend.Delivered{}, errors.New("refused")
}

// A deployment with passwords and keys does its work and meets every refusal of a server, logged as loudly as
// possible: no secret is in a log, an error, a metric, a printed value or the output of a command.
func TestNoSecretIsShownAtWork(t *testing.T) {
	for _, kind := range []testserver.Kind{testserver.ServerRedis, testserver.ServerValkey} {
		t.Run(string(kind), func(t *testing.T) { secretsAtWork(t, kind) })
	}
}

func secretsAtWork(t *testing.T, kind testserver.Kind) {
	s := testserver.Start(t, kind, testserver.TCP(), testserver.Args(
		"--user", canaryUser, "on", ">"+canaryPassword, "~*", "&*", "+@all",
		"--user", "weak"+canaryUser, "on", ">"+canaryPassword, "~ff:*", "&*", "+@all", "-fcall", "-ping"))
	address := func(user, password string) string { return "redis://" + user + ":" + password + "@" + s.Address() }
	good, wrong, weak := address(canaryUser, canaryPassword), address(canaryUser, canaryPassword+"x"),
		address("weak"+canaryUser, canaryPassword)
	keys := "k1:" + canaryKey
	t.Setenv("FLOWFABRIC_URL", good)
	t.Setenv(suspend.EnvTokenKeys, keys)

	var said spill
	registry := prometheus.NewPedanticRegistry()
	var token suspend.Token
	worker, err := runtime.New(runtime.Config{URL: good, TokenKeys: keys, Logger: said.logger(), Registerer: registry,
		Instance: "w1"},
		handler.Bind(ask, func(ctx context.Context, t *handler.Task, _ map[string]any) (suspend.Answer, error) {
			var err error
			if token, err = t.Pending(ctx, "editor", time.Hour); err != nil {
				return suspend.Answer{}, err
			}
			return handler.Await[suspend.Answer](ctx, t, "editor", suspend.Within(time.Hour))
		}))
	must.No(t, err)
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	running, stop := context.WithCancel(ctx)
	var serving conc.WaitGroup
	defer serving.Wait()
	defer stop()
	serving.Go(func() { said.say(worker.Run(running)) })
	c, err := client.Connect(ctx, client.Config{URL: good, TokenKeys: keys, Logger: said.logger(),
		CallTimeout: time.Hour, SubmitTimeout: time.Hour})
	must.No(t, err)
	defer c.Close()
	x, err := client.Submit(ctx, c, ask, map[string]any{})
	must.No(t, err)
	if _, err := x.AwaitSuspension(ctx); err != nil {
		t.Fatal(err)
	}
	mac := token.Reveal()[strings.LastIndexByte(token.Reveal(), ':')+1:]
	hidden := []string{canaryPassword, canaryKey, mac, token.Digest()}
	bad, err := suspend.ParseToken(token.Reveal()[:len(token.Reveal())-8] + "00000000")
	must.No(t, err)
	_, err = c.Signal(ctx, bad, "x")
	said.say(err)
	for _, args := range [][]string{{"ls"}, {"show", x.ID().String()}, {"why", x.ID().String()},
		{"history", x.ID().String()}, {"waitpoints", x.ID().String()},
		{"doctor"}, {"keys"}, {"workers"}, {"keys", "rotate", "k2"}, {"keys", "rotate", keys}, {"signal", bad.Reveal()},
		{"signal", token.Reveal(), "--payload", "{"},
		{"show", token.Reveal()}, {"ls", "--url", wrong}, {"ls", "--url", weak}, {"doctor", "--url", wrong},
		{"doctor", "--url", weak}, {"top", "--url", wrong},
		{"signal", token.Reveal(), "--choice", "approve"}} {
		fmt.Fprintln(&said, cli(t, append(args, "--timeout=1h")...))
		fmt.Fprintln(&said, cli(t, append(args, "--timeout=1h", "--json")...))
	}
	for _, url := range []string{wrong, weak} {
		fmt.Fprintln(&said, tell(t, url, keys))
	}
	if _, err := x.Result(ctx); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil || len(families) == 0 {
		t.Fatal(len(families), err)
	}
	for _, f := range families {
		fmt.Fprintln(&said, f)
	}
	fmt.Fprintf(&said, "%v %+v %#v\n%v %+v %#v\n", c, c, c, worker, worker, worker)
	s.Kill()
	// timed: the server is gone, so that only its context ends the call
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err = client.Submit(short, c, ask, map[string]any{})
	said.say(err)
	said.say(c.Ping(ctx))
	fmt.Fprintln(&said, cli(t, "ls", "--timeout=500ms"))
	stop()
	serving.Wait()

	got := said.take()
	if leak(got, hidden...) != "" {
		i := strings.Index(strings.ToLower(got), leak(got, hidden...))
		t.Errorf("shows %q: …%s…", leak(got, hidden...), got[max(0, i-200):min(len(got), i+200)])
	}
	for _, want := range []string{"auth_refused", "invalid_token", "k1", "transport", "flowfabric_"} {
		if !strings.Contains(got, want) {
			t.Errorf("nothing says %q, so this test has not seen what it must", want)
		}
	}
}
