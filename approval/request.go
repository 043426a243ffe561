package approval

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/suspend"
)

const (
	typeJSON = "application/json"
	typeForm = "application/x-www-form-urlencoded"

	// A body may have a payload of full size, and names, sources and keys besides. A form says less than a payload,
	// also in escapes, which make it three times as long.
	maxBody = limits.MaxSignal + 16<<10
)

// mediaType is the type of the body without its parameters, "" if there is none that can be read.
func mediaType(r *http.Request) string {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

// readBody reads what may be read of the body.
func (x *exchange) readBody(w http.ResponseWriter) ([]byte, *reply) {
	body, err := io.ReadAll(http.MaxBytesReader(w, x.r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, x.tooLarge()
	}
	if err != nil {
		return nil, x.invalid("The body could not be read.")
	}
	return body, nil
}

func queryTokens(r *http.Request) []string { return r.URL.Query()["token"] }

// bearerTokens are those of Authorization headers; other schemes are not for us.
func bearerTokens(r *http.Request) (tokens []string) {
	for _, value := range r.Header.Values("Authorization") {
		if scheme, text, _ := strings.Cut(value, " "); strings.EqualFold(scheme, "Bearer") {
			tokens = append(tokens, strings.TrimSpace(text))
		}
	}
	return tokens
}

// onlyToken reads the token of a request, which may be in several places, and there the same. Whatever is wrong with
// it is answered alike.
func (x *exchange) onlyToken(places ...[]string) (suspend.Token, *reply) {
	found := slices.DeleteFunc(slices.Concat(places...), func(text string) bool { return text == "" })
	if len(found) == 0 {
		return suspend.Token{}, x.unauthorized()
	}
	if slices.ContainsFunc(found, func(text string) bool { return text != found[0] }) {
		return suspend.Token{}, x.invalid("The request has two different tokens.")
	}
	t, err := suspend.ParseToken(found[0])
	if err != nil {
		return suspend.Token{}, x.unauthorized()
	}
	return t, nil
}

// wantsJSON tells what to answer: what Accept prefers, else what was sent, else a page.
func wantsJSON(r *http.Request) bool {
	var page, data float64
	for _, value := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(value, ",") {
			kind, params, err := mime.ParseMediaType(part)
			if err != nil {
				continue
			}
			q := 1.0
			if text, ok := params["q"]; ok {
				if q, err = strconv.ParseFloat(text, 64); err != nil {
					continue
				}
			}
			switch {
			case kind == typeJSON || strings.HasSuffix(kind, "+json"):
				data = max(data, q)
			case kind == "text/html" || kind == "application/xhtml+xml" || kind == "text/*":
				page = max(page, q)
			}
		}
	}
	if data != page {
		return data > page
	}
	return r.Method == http.MethodPost && mediaType(r) != typeForm
}
