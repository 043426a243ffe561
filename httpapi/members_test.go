package httpapi

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// goName is what only Go calls so: an exported field or option.
var goName = regexp.MustCompile(`\b([A-Z][a-z]+[A-Z.]\w*|Priority|Lane|Timeout|Deadline|Delay|Debounce|Per|Until)\b`)

// What is wrong with a member is said by the name of the member.
func TestProblemsNameMembers(t *testing.T) {
	a := newAPI(t)
	const work = "/v1/executions"
	for _, x := range []struct{ method, path, body, member string }{
		{"POST", work, `{"kind":"echo","timeout_ms":-1}`, "timeout_ms"},
		{"POST", work, `{"kind":"echo","timeout_ms":999999999999999}`, "timeout_ms"},
		{"POST", work, `{"kind":"echo","retries":-1}`, "retries"},
		{"POST", work, `{"kind":"echo","retries":1001}`, "retries"},
		{"POST", work, `{"kind":"echo","priority":-1}`, "priority"},
		{"POST", work, `{"kind":"echo","deadline_ms":-1}`, "deadline"},
		{"POST", work, `{"kind":"echo","delay_ms":-1}`, "delay"},
		{"POST", work, `{"kind":"echo","lane":"{"}`, "lane"},
		{"POST", work, `{"kind":"echo","unique_key":"k","key_window_ms":1}`, "key_window_ms"},
		{"POST", work, `{"kind":"echo","key_window_ms":60000}`, "key_window_ms"},
		{"POST", work, `{"kind":"echo","debounce_key":"k"}`, "debounce_ms"},
		{"POST", work, `{"kind":"echo","debounce_key":"k","debounce_ms":-9}`, "debounce_ms"},
		{"POST", work, `{"kind":"echo","debounce_key":"k","debounce_ms":9,"delay_ms":9}`, "delay_ms"},
		{"POST", work, `{"kind":"echo","debounce_max_ms":5}`, "debounce_max_ms"},
		{"POST", work, `{"kind":"echo","debounce_key":"k","debounce_ms":9,"debounce_max_ms":5}`, "debounce_max_ms"},
		{"POST", work, `{"kind":"echo","limits":[{"key":"k"}]}`, "concurrency"},
		{"POST", work, `{"kind":"echo","limits":[{"key":"k","rate":-1}]}`, "rate"},
		{"POST", work, `{"kind":"echo","limits":[{"key":"k","rate":1}]}`, "per_ms"},
		{"PUT", "/v1/schedules/s", `{"kind":"echo","every_ms":60000,"timeout_ms":-1}`, "timeout_ms"},
		{"PUT", "/v1/schedules/s", `{"kind":"echo","every_ms":60000,"retries":5000}`, "retries"},
		{"POST", "/v1/flows", `{"kind":"f","nodes":[{"name":"a","kind":"echo","timeout_ms":-1}]}`, "timeout_ms"},
		{"POST", "/v1/flows", `{"kind":"f","nodes":[{"name":"a","kind":"echo","retries":-1}]}`, "retries"},
		{"GET", "/v1/executions?state=nonsense", "", "state"},
	} {
		p := into[problem](t, a.as("admin", x.method, x.path, x.body, http.StatusBadRequest))
		if goName.MatchString(p.Detail) || !strings.Contains(p.Detail+p.Field, x.member) {
			t.Errorf("%s %s: %q in %q, want %s and no name of Go's", x.path, x.body, p.Detail, p.Field, x.member)
		}
		named := strings.Contains(x.body, "limits") || strings.Contains(x.body, "nodes")
		if (p.Field == "") != named || !named && (x.method == "GET") == strings.HasPrefix(p.Field, "/") {
			t.Errorf("%s %s: the place is %q", x.path, x.body, p.Field)
		}
	}
}
