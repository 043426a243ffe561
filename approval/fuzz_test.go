package approval

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// A body is either refused, or says what a server can be asked.
func FuzzParseCallback(f *testing.F) {
	for _, seed := range []string{"", "{}", "null", "[]", "{}{}", `{"token":"x","name":"go","payload":{"a":[1,2]}}`,
		`{"payload":1e999}`, `{"Name":"a","name":"b"}`, `{"name":"\u0000"}`,
		`{"payload":"\ud800"}`, `{"x":1}`, "{} ", " {\n}", strings.Repeat(`{"payload":[`, 50)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		b, ok := parseCallback(body)
		if !ok {
			return
		}
		if !json.Valid(body) || b.Payload != nil && !json.Valid(b.Payload) {
			t.Errorf("%q is accepted with payload %q", body, b.Payload)
		}
		s := b.signal()
		err := s.Validate()
		if s.Name == "" || s.Encoding != "json" || err != nil && !errors.Is(err, flowfabric.ErrInvalidInput) &&
			!errors.Is(err, flowfabric.ErrPayloadTooLarge) {
			t.Errorf("%q: %+v, %v", body, s, err)
		}
	})
}

// A form is either refused, or has one choice of the page.
func FuzzForm(f *testing.F) {
	for _, seed := range []string{"choice=go&by=ivy&comment=a%0D%0Ab", "choice=go&choice=no", "by=%ff", "",
		"choice=x"} {
		f.Add(seed)
	}
	p := page{Choices: []suspend.Choice{{Name: "go"}, {Name: "no"}}}
	f.Fuzz(func(t *testing.T, text string) {
		fields, _ := url.ParseQuery(text)
		a, wrong := readAnswer(fields, p)
		if wrong == nil && (!p.offers(a.Choice) || !utf8.ValidString(a.Comment+a.By)) {
			t.Errorf("%q: %+v", text, a)
		}
	})
}
