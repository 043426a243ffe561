package main

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sourcegraph/conc"
	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// TestMain lets the crash demo start this test binary as its workers.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-worker") {
		main()
		return
	}
	os.Exit(m.Run())
}

// terminal is what the demo prints to. Safe for concurrent use.
type terminal struct {
	mu   sync.Mutex
	text bytes.Buffer
	news chan struct{}
}

func (m *terminal) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.news)
	m.news = make(chan struct{})
	return m.text.Write(p)
}

func (m *terminal) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text.String()
}

// await returns once the text is there.
func (m *terminal) await(t *testing.T, text string) {
	t.Helper()
	for end := testwait.End(t); ; {
		m.mu.Lock()
		found, news := strings.Contains(m.text.String(), text), m.news
		m.mu.Unlock()
		if found {
			return
		}
		select {
		case <-news:
		case <-end:
			t.Fatalf("no %q:\n%s", text, m)
		}
	}
}

// begin starts the program; end returns what it returned.
func begin(t *testing.T, environment map[string]string, args ...string) (m *terminal, stop func(), end func() error) {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	m = &terminal{news: make(chan struct{})}
	var program conc.WaitGroup
	var err error
	program.Go(func() {
		err = run(ctx, append([]string{"-pace", "1ms"}, args...), func(name string) string { return environment[name] },
			strings.NewReader(""), m, os.Stderr)
	})
	t.Cleanup(func() { cancel(); program.Wait() })
	return m, cancel, func() error { program.Wait(); return err }
}

// servers are what the program runs on, as the environment names them.
func servers(t *testing.T, test func(t *testing.T, environment map[string]string)) {
	t.Run("embedded", func(t *testing.T) { test(t, nil) })
	t.Run("redis", func(t *testing.T) {
		test(t, map[string]string{"FLOWFABRIC_URL": testserver.Redis(t), suspend.EnvTokenKeys: "k1:" + randomHex(32)})
	})
}

const once = "build ran 1×, plan ran 1×, link to ivy mailed 1×, link to raj mailed 1×"

// All that needs nobody ends by itself, without an error, and says what happened; nothing is done twice.
func TestByItself(t *testing.T) {
	if testing.Short() {
		t.Skip("takes several seconds: it waits for leases to run out")
	}
	crashed := []string{
		"worker-1 was killed (SIGKILL) once the build was recorded;", "worker-2 takes over",
		"worker-2 was killed (SIGKILL) once the links were mailed;", "worker-3 takes over",
	}
	deployed := []string{"ivy approves: 1 of 2.", "ivy answers again. A link answers once: still 1 of 2.",
		"raj approves: 2 of 2.", "shop:9.1 is deployed, approved by ivy and raj.", once + ", deploy ran 1×.\n"}
	refused := []string{"ivy approves: 1 of 2.", "raj refuses",
		"shop:9.1 is not deployed: refused by raj (not on a Friday).", once + ".\n"}
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"auto":   {[]string{"-auto"}, append(deployed, "on worker-1.")},
		"refuse": {[]string{"-refuse"}, refused},
		"crash": {[]string{"-crash", "-lease", "6s"},
			slices.Concat(crashed, deployed, []string{"on worker-3."})},
		"crash and refuse": {[]string{"-crash", "-lease", "6s", "-refuse"}, slices.Concat(crashed, refused)},
		"deadline":         {[]string{"-within", "1s"}, []string{"shop:9.1 is not deployed: deadline.", once + ".\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getenv("FLOWFABRIC_SOAK") == "" && name == "crash and refuse" {
				t.Skip("a crash and a refusal have tests of their own; FLOWFABRIC_SOAK runs both in one")
			}
			servers(t, func(t *testing.T, environment map[string]string) {
				defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
				m, _, end := begin(t, environment, append(c.args, "-version", "9.1")...)
				if err := end(); err != nil {
					t.Fatalf("%v\n%s", err, m)
				}
				out := m.String()
				for _, want := range append(c.want, "suspended  The release waits, and holds nothing",
					"waiting_for_approval, until ") {
					if !strings.Contains(out, want) {
						t.Errorf("no %q in:\n%s", want, out)
					}
				}
				if n := strings.Count(out, "/release?token="); n != 2 {
					t.Errorf("%d links were shown, want 2:\n%s", n, out)
				}
				if deploys := strings.Contains(out, "\ndeploy "); deploys != slices.Contains(c.want, deployed[3]) {
					t.Errorf("deployed: %v:\n%s", deploys, out)
				}
			})
		})
	}
}

var linkPattern = regexp.MustCompile(`to (\w+) +(http://127\.0\.0\.1:\d+/release\?token=\S+)`)

// visit opens a link as a browser does, and returns the page.
func visit(t *testing.T, link string, form url.Values) string {
	t.Helper()
	browser := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var response *http.Response
	var err error
	if form == nil {
		response, err = browser.Get(link)
	} else {
		response, err = browser.PostForm(link, form)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v:\n%s", response.Status, err, page)
	}
	return string(page)
}

// People open the links and click.
func TestPeopleClick(t *testing.T) {
	servers(t, func(t *testing.T, environment map[string]string) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		m, _, end := begin(t, environment)
		m.await(t, "Now you:")
		links := linkPattern.FindAllStringSubmatch(m.String(), -1)
		if len(links) != 2 {
			t.Fatalf("links %q in:\n%s", links, m)
		}
		for _, link := range links {
			page := visit(t, link[2], nil)
			for _, want := range []string{"Release 2.4.0", "ivy and raj", "Approve", "Refuse", `method="post"`} {
				if !strings.Contains(page, want) {
					t.Errorf("no %q in the page of %s:\n%s", want, link[1], page)
				}
			}
			if strings.Contains(m.String(), link[1]+" approves") {
				t.Errorf("%s has approved by opening the link", link[1])
			}
			if page := visit(t, link[2], url.Values{"choice": {approve}}); !strings.Contains(page, "Thank you") {
				t.Errorf("%s is told:\n%s", link[1], page)
			}
		}
		if err := end(); err != nil || !strings.Contains(m.String(), "is deployed, approved by ivy and raj.") {
			t.Errorf("%v:\n%s", err, m)
		}
	})
}

// Ctrl-C ends the demo without an error, and the release with it.
func TestInterrupt(t *testing.T) {
	servers(t, func(t *testing.T, environment map[string]string) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		m, stop, end := begin(t, environment)
		m.await(t, "Now you:")
		stop()
		if err := end(); err != nil ||
			!strings.HasSuffix(m.String(), "stopped    You interrupted it, so the release was cancelled.\n") {
			t.Errorf("%v:\n%s", err, m)
		}
		link, err := url.Parse(linkPattern.FindStringSubmatch(m.String())[2])
		if err != nil {
			t.Fatal(err)
		}
		token, err := suspend.ParseToken(link.Query().Get("token"))
		if err != nil {
			t.Fatal(err)
		}
		if environment == nil { // the server has ended with the demo
			return
		}
		c, err := client.Connect(t.Context(), client.Config{URL: environment["FLOWFABRIC_URL"]})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if s, err := c.Execution(token.Execution()).Get(t.Context()); err != nil ||
			s.State.Public != flowfabric.Cancelled {
			t.Errorf("the release is %s, %v; want cancelled", s.State.Public, err)
		}
	})
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-within", "0s"}, {"-no-such-flag"}, {"extra"}, {"-url", "ftp://nowhere"},
		{"-url", "redis://127.0.0.1:1"}} {
		var out, errs bytes.Buffer
		if err := run(t.Context(), args, func(string) string { return "" }, strings.NewReader(""), &out,
			&errs); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}
