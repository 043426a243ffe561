package failed_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric-go/internal/failed"
)

func TestShape(t *testing.T) {
	for _, c := range []struct{ message, want string }{
		{"", failed.NoMessage},
		{" \n\t ", failed.NoMessage},
		{"connection refused", "connection refused"},
		{"order 17: timeout after 2.5s", "order <n>: timeout after <time>"},
		{"order 4711: timeout after 1m3s", "order <n>: timeout after <time>"},
		{"-3 of 1,200.5 (7%)", "-<n> of <n> (<n>%)"},
		{"dial tcp 10.0.0.1:6379: connect: connection refused", "dial tcp <n>: connect: connection refused"},
		{"dial tcp [fe80::1]:6379: i/o timeout", "dial tcp [<id>]:<n>: i/o timeout"},
		{`no user "anna" in 'EU west'`, "no user <text> in <text>"},
		{`{"error":{"code":500,"message":"it\"s"}}`, "{<text>:{<text>:<n>,<text>:<text>}}"},
		{"can't read “a” of Anna's `b`", "can't read <text> of Anna's <text>"},
		{"don't 'quote", "don't 'quote"},
		{"execution 3-6ba7b810-9dad-11d1-80b4-00c04fd430c8 is gone", "execution <id> is gone"},
		{"commit deadbeefcafe, blob 9f86d081884c", "commit <id>, blob <id>"},
		{"address 0x1f and 0xff", "address <id> and <id>"},
		{"pod-7d9f4b-xkcdw was killed", "pod-<id> was killed"},
		{"req_8fK2p9 failed in us-east-1, node12 says utf8", "req_<id> failed in us-east-<n>, node<n> says utf<n>"},
		{"at 2026-01-31T17:00:00.123Z, then 2026-01-31 17:00:00 +0000 UTC, then 17:00:01",
			"at <time>, then <time>, then <time>"},
		{"open /var/lib/x/17.db: no such file", "open <path>: no such file"},
		{"open ./a/b.go:12:5. Read and/or write", "open <path>. Read and/or write"},
		{"main.go:12 in internal/x/y.go:3", "main.go:<n> in <path>:<n>"},
		{`open C:\temp\a.txt, ~/b`, "open <path>, <path>"},
		{"GET https://me:pw@api2.example.com/v1/users/17?x=1: 503", "GET https://<id>@api<n>.example.com/<path>: <n>"},
		{"GET http://127.0.0.1:8080/x and https://example.com.", "GET http://<n>/<path> and https://example.com."},
		{"mail to anna+x@example.com bounced", "mail to <id> bounced"},
		{"rate  limit\nreached\x00", "rate limit reached"},
		{"\xff\xfe", "\uFFFD"},
		{"überlastet: 3 Prozesse", "überlastet: <n> Prozesse"},
		{strings.Repeat("a ", 300), strings.Repeat("a ", 99) + "a…"},
	} {
		if got := failed.Shape(c.message); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.message, got, c.want)
		}
	}
}

// FuzzShape holds shapes to what readers of them rely on: a bound, text that can be shown, no digit, and that digits do
// not matter.
func FuzzShape(f *testing.F) {
	for _, seed := range []string{"order 17: timeout after 2.5s", `no "user" '3 in /a/b.c:1`, "2026-01-31T17:00:00Z",
		"0x1f ff:1::2 a1-b2-c3 7d9f4 x@y.z", "https://a1.example.com/x?y=2", "“3’ \\\" µs 1µs ٣"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		shape := failed.Shape(message)
		if n := utf8.RuneCountInString(shape); n < 1 || n > failed.MaxShape || !utf8.ValidString(shape) {
			t.Fatalf("%q has the shape %q of %d characters", message, shape, n)
		}
		if strings.ContainsAny(shape, "0123456789") {
			t.Fatalf("%q has the shape %q, with a digit", message, shape)
		}
		other := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return '0' + (r-'0'+1)%10
			}
			return r
		}, message)
		if got := failed.Shape(other); got != shape && utf8.ValidString(message) {
			t.Fatalf("%q has the shape %q, and %q has %q", message, shape, other, got)
		}
	})
}
