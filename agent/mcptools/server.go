package mcptools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
)

// The defaults and bounds of a [Server].
const (
	defaultCall = time.Minute
	maxCall     = time.Hour
	defaultTask = 24 * time.Hour
	maxTask     = 7 * 24 * time.Hour
	maxMessage  = 16 << 20 // bytes of a message of a server
	endWithin   = 2 * time.Second
)

// Server says how to reach an MCP server, and what its tools may do. One of Command, URL and Transport is set. Zero
// fields have the stated defaults.
type Server struct {
	// Name is the server's in this process: 1..32 of A-Z a-z 0-9 _ -. It begins the names of its tools and is in the
	// name of the step that records them, so it must not change while executions run.
	Name string

	// Command is a program and its arguments, started when it is first needed and spoken to over its standard input
	// and output. It runs in Dir; default: that of this process. Its environment is Env, entries "NAME=value", and of
	// this process only HOME, LANG, LC_ALL, LOGNAME, PATH, SHELL, TMPDIR, TZ and USER: a server gets no secrets by
	// accident. At the end its input is closed, and it is killed if it has not ended some seconds later.
	Command []string
	Env     []string
	Dir     string

	// URL is the address of a server of the transport streamable HTTP. Header makes headers of each request to it, for
	// example Authorization, so a token may be renewed; it may be called concurrently, and an error keeps the request
	// from being made. Redirects to other hosts do not get them. HTTPClient makes the requests; default: one without
	// timeout, whose connections the pool closes.
	URL        string
	Header     func(context.Context) (http.Header, error)
	HTTPClient *http.Client

	// Transport makes a transport for each session, in place of Command and URL.
	Transport func(context.Context) (sdk.Transport, error)
	// Protocol is the version to ask for first. Default: the newest of the SDK. 2025-11-25 is for servers that do not
	// answer the request server/discover of the versions after it.
	Protocol string

	// Include are the tools to have and Exclude those to leave out of them, by the server's names, with the patterns
	// of path.Match. Default: all, none. They hold for executions that have recorded their tools, too.
	Include, Exclude []string
	// Options are those of a tool, for example agent.Needs for all that do not only read. The tool is as it
	// was recorded: name, description, schema and annotations. The function must decide by its argument alone; it is
	// called once or several times. Hints of servers that you do not trust are no reason to leave an approval out.
	// agent.EndsRun makes every failure of a call end the run, those of the tool itself, too. Default: none.
	Options func(*sdk.Tool) []agent.ToolOption

	// CallTimeout bounds a call, a list, and a poll of a task, connecting included: 1 ms to 1 h. Default 1 minute.
	CallTimeout time.Duration
	// RetryAway fails the attempt, category mcp_away, when the server cannot be reached or the connection is lost
	// during a call. If the policy has another attempt, it begins after this pause and makes the call again, with the
	// same key. Default 0: the model is told.
	RetryAway time.Duration
	// NoTasks tells the server not to answer with tasks.
	NoTasks bool
	// TaskLimit is how long a task may take, by the pauses between polls: 1 s to 7 days. Then it is cancelled, and the
	// model is told. A task of a day takes up to 140 of the 1,000 steps of an execution, one of a week 430. Default
	// 24 h.
	TaskLimit time.Duration
}

var serverName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// validate fills in defaults and names the first field that is not valid.
func (s *Server) validate() error {
	s.CallTimeout, s.TaskLimit = cmp.Or(s.CallTimeout, defaultCall), cmp.Or(s.TaskLimit, defaultTask)
	ways := 0
	for _, way := range []bool{len(s.Command) > 0, s.URL != "", s.Transport != nil} {
		if way {
			ways++
		}
	}
	switch {
	case !serverName.MatchString(s.Name):
		return s.invalid("Name is not valid, want 1..32 of A-Z a-z 0-9 _ -")
	case ways != 1:
		return s.invalid("%d of Command, URL and Transport are set, want one", ways)
	case s.CallTimeout < time.Millisecond || s.CallTimeout > maxCall:
		return s.invalid("CallTimeout is %v, want 1 ms to %v", s.CallTimeout, maxCall)
	case s.TaskLimit < time.Second || s.TaskLimit > maxTask:
		return s.invalid("TaskLimit is %v, want 1 s to %v", s.TaskLimit, maxTask)
	case s.RetryAway < 0:
		return s.invalid("RetryAway is %v, want at least 0", s.RetryAway)
	}
	if s.URL != "" {
		if u, err := url.Parse(s.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return s.invalid("URL is not an address of http or https")
		}
	}
	for _, pattern := range slices.Concat(s.Include, s.Exclude) {
		if _, err := path.Match(pattern, ""); err != nil {
			return s.invalid("the pattern %.80q: %v", pattern, err)
		}
	}
	return nil
}

func (s *Server) invalid(format string, args ...any) error {
	return fmt.Errorf("%w: mcptools: server %.40q: %s", flowfabric.ErrConfig, s.Name, fmt.Sprintf(format, args...))
}

// has says that a tool is one of those to have.
func (s *Server) has(tool string) bool {
	matches := func(pattern string) bool { ok, _ := path.Match(pattern, tool); return ok }
	return (len(s.Include) == 0 || slices.ContainsFunc(s.Include, matches)) && !slices.ContainsFunc(s.Exclude, matches)
}

// transport is that of a session. told says what a program wrote to its standard error last.
func (s *Server) transport(ctx context.Context, client *http.Client) (t sdk.Transport, told func() string, err error) {
	told = func() string { return "" }
	switch {
	case s.URL != "":
		return &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: client, MaxEventSize: maxMessage}, told, nil
	case s.Transport != nil:
		t, err = s.Transport(ctx)
		if err != nil || t == nil {
			return nil, told, cmp.Or(err, errors.New("the function Transport made none"))
		}
		if over, ok := t.(*sdk.StreamableClientTransport); ok { // the SDK must see its own connection
			own := *over
			own.HTTPClient = rewriting(cmp.Or(over.HTTPClient, http.DefaultClient), own.Endpoint, nil)
			return &own, told, nil
		}
		return renaming{t}, told, nil
	}
	cmd := exec.Command(s.Command[0], s.Command[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.Dir, environment(s.Env), endWithin
	last := new(lastWords)
	cmd.Stderr = last
	return renaming{&sdk.CommandTransport{Command: cmd, TerminateDuration: endWithin}}, last.String, nil
}

// environment is that of a program.
func environment(own []string) (all []string) {
	for _, name := range []string{"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER",
		"SYSTEMROOT", "TEMP", "USERPROFILE"} { // the last three are Windows'
		if value, ok := os.LookupEnv(name); ok {
			all = append(all, name+"="+value)
		}
	}
	return append(all, own...)
}

// lastWords keeps the end of what a program writes, for the error if it ends at once.
type lastWords struct {
	mu   sync.Mutex
	text []byte
}

const maxWords = 1 << 10 // bytes

func (w *lastWords) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, text[max(0, len(text)-maxWords):]...)
	w.text = slices.Clone(w.text[max(0, len(w.text)-maxWords):])
	return len(text), nil
}

func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.TrimSpace(strings.ToValidUTF8(string(w.text), "\ufffd"))
	if text == "" {
		return ""
	}
	return "; it wrote: " + text
}
