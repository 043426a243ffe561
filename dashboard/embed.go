package dashboard

import (
	"fmt"
	"html"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

const (
	themePath = "/assets/theme.css"
	maxTitle  = 40
)

var (
	colorNames = []string{"main", "on-main", "main-soft", "paper", "card", "ink", "dim", "line", "soft"}
	color      = regexp.MustCompile(`^#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$`)
)

// head is what the configuration adds to the head of the page, for its scripts: the policy allows none in it.
func (c Config) head() (string, error) {
	trace, err := c.trace()
	if err != nil {
		return "", err
	}
	bad := func(format string, args ...any) (string, error) {
		return "", fmt.Errorf("%w: dashboard: "+format, append([]any{flowfabric.ErrConfig}, args...)...)
	}
	if err := c.signIn(); err != "" {
		return bad("SignInURL %.80q %s", c.SignInURL, err)
	}
	if len(c.Title) > maxTitle || strings.ContainsFunc(c.Title, unicode.IsControl) {
		return bad("Title %.80q: want at most %d bytes in one line", c.Title, maxTitle)
	}
	for name, value := range c.Colors {
		if !slices.Contains(colorNames, strings.TrimPrefix(name, "dark-")) {
			return bad("Colors: there is no colour %.40q, want %s, or one of them behind dark-", name,
				strings.Join(colorNames, ", "))
		}
		if !color.MatchString(value) {
			return bad("Colors[%q] is %.40q, want #rgb or #rrggbb", name, value)
		}
	}
	meta := func(name, value string) {
		if value != "" {
			trace += `<meta name="flowfabric-` + name + `" content="` + html.EscapeString(value) + "\">\n"
		}
	}
	meta("sign-in", c.SignInURL)
	meta("title", c.Title)
	if len(c.Colors) > 0 {
		trace += `<link rel="stylesheet" href="` + themePath[1:] + "\">\n"
	}
	return trace, nil
}

// signIn says what is wrong with SignInURL.
func (c Config) signIn() string {
	if c.SignInURL == "" {
		return ""
	}
	if len(c.SignInURL) > maxTraceURL {
		return fmt.Sprintf("has %d bytes, want at most %d", len(c.SignInURL), maxTraceURL)
	}
	to, err := url.Parse(strings.ReplaceAll(c.SignInURL, "{return}", "x"))
	switch {
	case err != nil || strings.ContainsAny(c.SignInURL, "\\\t\n\r "):
	case to.Scheme == "" && strings.HasPrefix(c.SignInURL, "/") && !strings.HasPrefix(c.SignInURL, "//"):
		return ""
	case to.Host != "" && (to.Scheme == "http" || to.Scheme == "https"):
		return ""
	}
	return "is neither an address that begins with http:// or https:// nor a path that begins with one slash"
}

// theme is the style sheet of Colors, which were judged; "" without any.
func (c Config) theme() string {
	var light, dark strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.Colors)) {
		if plain, isDark := strings.CutPrefix(name, "dark-"); isDark {
			dark.WriteString("--" + plain + ":" + c.Colors[name] + ";")
		} else {
			light.WriteString("--" + name + ":" + c.Colors[name] + ";")
		}
	}
	if len(c.Colors) == 0 {
		return ""
	}
	return ":root{" + light.String() + "}\n@media (prefers-color-scheme: dark){:root:not([data-theme=light]){" +
		dark.String() + "}}\n:root[data-theme=dark]{" + dark.String() + "}\n"
}
