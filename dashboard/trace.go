package dashboard

import (
	"fmt"
	"html"
	"net/url"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

const (
	traceMark   = "{trace}"
	maxTraceURL = 2048
)

// trace is the line of the page that tells its scripts Config.TraceURL: the policy allows none in the page itself.
func (c Config) trace() (string, error) {
	if c.TraceURL == "" {
		return "", nil
	}
	bad := func(what string) (string, error) {
		return "", fmt.Errorf("%w: dashboard: TraceURL %.80q %s", flowfabric.ErrConfig, c.TraceURL, what)
	}
	if len(c.TraceURL) > maxTraceURL {
		return bad(fmt.Sprintf("has %d bytes, want at most %d", len(c.TraceURL), maxTraceURL))
	}
	if !strings.Contains(c.TraceURL, traceMark) {
		return bad("has no " + traceMark)
	}
	to, err := url.Parse(strings.ReplaceAll(c.TraceURL, traceMark, "0"))
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return bad("is no address that begins with http:// or https://")
	}
	return `<meta name="flowfabric-trace" content="` + html.EscapeString(c.TraceURL) + "\">\n", nil
}
