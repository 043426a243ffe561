package httpapi

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	stored "github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
)

// stream makes a request about a written stream as a producer, unless the name of a role stands before its name.
func (a *api) stream(method, path, body string, status int, headers ...string) got {
	a.t.Helper()
	role, rest, named := strings.Cut(path, "@")
	if !named {
		role, rest = "producer", path
	}
	r, err := http.NewRequestWithContext(a.t.Context(), method, a.server.URL+"/v1/streams/"+rest,
		strings.NewReader(body))
	must.No(a.t, err)
	r.Header.Set("Authorization", "Bearer "+secrets[role])
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	must.No(a.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must.No(a.t, err)
	if answer.StatusCode != status {
		a.t.Fatalf("%s %s: %d, want %d: %s", method, path, answer.StatusCode, status, text)
	}
	return got{answer.StatusCode, answer.Header, text}
}

// writtenStreams has every answer that the document knows of the routes of written streams.
func (a *api) writtenStreams() {
	const path = "/v1/streams/every/route"
	call := func(method, role, query, body string, status int, header http.Header) got {
		a.t.Helper()
		g := a.do(request{method: method, path: path + query, role: role, body: body, header: header})
		if g.status != status {
			a.t.Fatalf("%s %s: %d, want %d: %s", method, query, g.status, status, g.body)
		}
		return g
	}
	call("PUT", "producer", "", "[1]", 201, nil)
	call("PUT", "producer", "", "", 200, http.Header{"Content-Type": {"application/json"}})
	call("POST", "producer", "", "[2]", 204, nil)
	call("POST", "producer", "", "[3]", 200,
		http.Header{"Producer-Id": {"p"}, "Producer-Epoch": {"0"}, "Producer-Seq": {"0"}})
	call("POST", "producer", "", "", 204, http.Header{"Stream-Closed": {"true"}})
	g := call("GET", "viewer", "", "", 200, nil)
	if string(g.body) != "[1,2,3]" {
		a.t.Errorf("%s", g.body)
	}
	call("GET", "viewer", "", "", 304, http.Header{"If-None-Match": {g.header.Get("ETag")}})
	call("GET", "viewer", "?live=long-poll&offset="+g.header.Get("Stream-Next-Offset"), "", 204, nil)
	call("DELETE", "producer", "", "", 204, nil)
}

// What the protocol's suite does not look at: names, sizes, who may, and what is refused with which words.
func TestStreams(t *testing.T) {
	a := newAPI(t)
	text := []string{"Content-Type", "text/plain"}
	made := a.stream("PUT", "one/a%20b?x=1", "begin", 201, text...)
	if at := made.header.Get("Location"); at != a.server.URL+"/v1/streams/one/a%20b" {
		t.Error(at)
	}
	a.stream("POST", "one/a%20b", " more", 204, text...)
	if g := a.stream("GET", "viewer@one/a%20b", "", 200); string(g.body) != "begin more" {
		t.Errorf("%q", g.body)
	}
	for _, method := range []string{"PUT", "POST", "DELETE"} {
		a.stream(method, "viewer@one/a%20b", "x", 403, text...)
		a.stream(method, "worker@one/a%20b", "x", 403, text...)
	}
	a.stream("GET", "worker@one/a%20b", "", 403)
	for path, status := range map[string]int{"": 400, strings.Repeat("n", 513): 400, "a%00b": 400, "a%ff": 400,
		"a//b": 404, "a/../b": 404} {
		a.stream("PUT", path, "", status, text...)
	}
	most := strings.Repeat("x", 1<<20)
	a.stream("PUT", strings.Repeat("n", 512), most, 201, text...)
	if g := a.stream("GET", strings.Repeat("n", 512)+"?offset=0000000000000000_0000000000000001", "",
		200); string(g.body) != most[1:] {
		t.Errorf("%d bytes", len(g.body))
	}
	a.stream("POST", "one/a%20b", most+"x", 413, text...)
	a.stream("GET", "one/a%20b?offset=0000000000000000_0000000000000011", "", 400)
	for _, fork := range []struct {
		from, code string
		status     int
	}{{"/v1/streams/one/a%20b", "", 201}, {"/api/v1/streams/one/a%20b", "", 200}, {"/one/a%20b", "", 200},
		{"/two/a", "invalid_input", 400}, {"/one/none", "stream_conflict", 409}} {
		g := a.stream("PUT", "one/fork", "", fork.status, "Stream-Forked-From", fork.from)
		if fork.code != "" && into[problem](t, g).Code != fork.code {
			t.Errorf("%s: %s", fork.from, g.body)
		}
	}
	if p := into[problem](t, a.stream("PUT", "one/new", "", 404, "Stream-Forked-From",
		"one/none")); p.Code != "stream_not_found" {
		t.Errorf("%+v", p)
	}
	a.stream("PUT", "one/over", "", 201, "Stream-Expires-At", "0001-01-01T00:00:00Z")
	a.stream("GET", "one/over", "", 404)
	a.stream("DELETE", "one/fork", "", 204)
	if p := into[problem](t, a.stream("DELETE", "one/fork", "", 404)); p.Code != "stream_not_found" {
		t.Errorf("%+v", p)
	}
	for _, header := range []string{"application", "a/b/c", "text/plain; a=" + strings.Repeat("x", 255)} {
		a.stream("PUT", "media", "", 400, "Content-Type", header)
	}
}

// Messages of JSON are kept as they are, and a number keeps its digits.
func TestStreamsOfJSON(t *testing.T) {
	a := newAPI(t)
	json := []string{"Content-Type", "application/json; charset=utf-8"}
	a.stream("PUT", "j", "", 201, json...)
	a.stream("POST", "j", "[ 12345678901234567890.10 ,\n\t\"a\\n b\", [1,\n2], {\"k\" : null}, null ]", 204, json...)
	a.stream("POST", "j", " null ", 204, json...)
	want := `[12345678901234567890.10,"a\n b",[1,2],{"k":null},null,null]`
	g := a.stream("GET", "j", "", 200)
	if string(g.body) != want || g.header.Get("Content-Type") != "application/json; charset=utf-8" ||
		g.header.Get("Stream-Next-Offset") != positionText(6) {
		t.Errorf("%s %v", g.body, g.header)
	}
	if g = a.stream("GET", "j?offset="+positionText(2), "", 200); string(g.body) != `[[1,2],{"k":null},null,null]` {
		t.Errorf("%s", g.body)
	}
	a.stream("PUT", "j/fork", "3", 201, "Stream-Forked-From", "j", "Stream-Fork-Offset", "-1",
		"Stream-Fork-Sub-Offset", "2")
	if g = a.stream("GET", "j/fork", "", 200); string(g.body) != `[12345678901234567890.10,"a\n b",3]` {
		t.Errorf("%s", g.body)
	}
}

// A token that is bound to a namespace has streams of its own there, and sees none elsewhere.
func TestStreamsOfNamespaces(t *testing.T) {
	a := newAPI(t)
	text := []string{"Content-Type", "text/plain"}
	a.stream("PUT", "same", "of all", 201, text...)
	a.stream("GET", "blue@same", "", 404)
	a.stream("GET", "blue@same?namespace=default", "", 403)
	a.stream("PUT", "blue@same?namespace=default", "", 403, text...)
	a.stream("PUT", "blue@same", "of blue", 201, text...)
	if g := a.stream("GET", "same", "", 200); string(g.body) != "of all" {
		t.Errorf("%s", g.body)
	}
	if g := a.stream("GET", "same?namespace=blue", "", 200); string(g.body) != "of blue" {
		t.Errorf("%s", g.body)
	}
	a.stream("PUT", "blue@same/fork", "", 400, "Stream-Forked-From", "other")
	a.stream("DELETE", "blue@same", "", 204)
	a.stream("GET", "same", "", 200)
}

// All who read live get the same, from one subscription, and none of it is left when they have gone.
func TestManyReadersOfAStream(t *testing.T) {
	a := newAPI(t)
	json := []string{"Content-Type", "application/json"}
	a.stream("PUT", "live", `["begin"]`, 201, json...)
	c := a.gather(200, "/v1/streams/live?offset=-1&live=sse")
	a.stream("POST", "live", `["first"]`, 204, json...)
	c.first.Wait()
	a.h.rooms.mu.Lock()
	rooms := len(a.h.rooms.named)
	a.h.rooms.mu.Unlock()
	if rooms > 1 {
		t.Errorf("%d rooms for one stream", rooms)
	}
	a.stream("POST", "live", `["second"]`, 204, json...)
	c.second.Wait()
	a.stream("POST", "live", `["last"]`, 204, append(json, "Stream-Closed", "true")...)
	c.group.Wait()
	for i, text := range c.texts {
		var said []string
		for line := range strings.Lines(text) {
			if data, ok := strings.CutPrefix(line, "data:["); ok {
				said = append(said, strings.TrimSuffix(strings.TrimSpace(data), "]"))
			}
		}
		if got := strings.Join(said, ","); got != `"begin","first","second","last"` {
			t.Fatalf("reader %d: %s", i, text)
		}
	}
	a.h.rooms.close()
	if len(a.h.rooms.named) > 0 {
		t.Error("a room is left")
	}
}

// What is written is shown as Config.Redact says, message by message, and kept as it is.
func TestStreamsAreRedacted(t *testing.T) {
	a := newAPI(t, func(cfg *Config) {
		cfg.Redact = func(r Redaction) []byte {
			switch {
			case r.What != "stream" || r.Kind != "s/x" || r.Namespace != "default" || r.Reader.Name == "":
				return nil
			case strings.Contains(string(r.Payload), "secret"):
				return []byte(`"***"`)
			}
			return r.Payload
		}
	})
	a.stream("PUT", "s/x", `["open","secret"]`, 201, "Content-Type", "application/json", "Stream-Closed", "true")
	a.stream("PUT", "s/y", "secret", 201, "Content-Type", "text/plain", "Stream-Closed", "true")
	for path, want := range map[string]string{"s/x": `["open","***"]`, "s/y": withheld,
		"s/x?offset=-1&live=sse": `data:["open","***"]`, "s/y?offset=-1&live=sse": "data:" + withheld,
		"s/x?offset=-1&live=long-poll": `["open","***"]`} {
		if g := a.stream("GET", path, "", 200); !strings.Contains(string(g.body), want) ||
			strings.Contains(string(g.body), "secret") {
			t.Errorf("%s: %s", path, g.body)
		}
	}
}

// What a server with a cipher stores of a stream is encrypted; one without the key says so, at the same offsets.
func TestStreamsAreEncrypted(t *testing.T) {
	a := newAPI(t)
	cipher, err := flowfabric.CipherKeys("k1:" + strings.Repeat("ab", 32))
	must.No(t, err)
	e, err := engine.Open(t.Context(), engine.Config{URL: a.store.URL(), Box: sealed.New(cipher)})
	must.No(t, err)
	t.Cleanup(e.Close)
	for name, media := range map[string]string{"json": "application/json", "text": "text/plain"} {
		q := engine.NewStream{Media: media, Payload: []byte("1"), Units: 1}
		_, _, err = e.OpenStream(t.Context(), e.Written("default", name), q)
		must.No(t, err)
		_, list, err := e.ReadStream(t.Context(), e.Written("default", name), engine.StreamPart{Most: 10})
		must.No(t, err)
		if len(list) != 1 || string(list[0].Payload) != "1" {
			t.Errorf("with the key: %+v", list)
		}
		g := a.stream("GET", name, "", 200)
		if want := map[string]string{"json": `"encrypted":true`, "text": "(encrypted, "}[name]; !strings.Contains(
			string(g.body), want) || g.header.Get("Stream-Next-Offset") != positionText(1) {
			t.Errorf("%s: %s %v", name, g.body, g.header)
		}
	}
}

// What is sealed cannot be written, or a server with the key would open it for whoever reads.
func TestStreamsAreNoWayToDecrypt(t *testing.T) {
	a := newAPI(t)
	cipher, err := flowfabric.CipherKeys("k1:" + strings.Repeat("ab", 32))
	must.No(t, err)
	stolen, err := sealed.New(cipher).Seal([]byte("of somebody else"))
	must.No(t, err)
	a.stream("PUT", "oracle", string(stolen), 400)
	a.stream("PUT", "oracle", "", 201)
	a.stream("POST", "oracle", string(stolen), 400, "Content-Type", "application/octet-stream")
	a.stream("POST", "oracle", string(stolen[1:]), 204, "Content-Type", "application/octet-stream")
}

// A reader who chooses where it begins, or where a fork ends, gets no part that Config.Redact would not know.
func TestNoPartOfWhatIsRedacted(t *testing.T) {
	a := newAPI(t, func(cfg *Config) {
		cfg.Redact = func(r Redaction) []byte {
			if string(r.Payload) == "a secret" {
				return []byte("***")
			}
			return r.Payload
		}
	})
	text := []string{"Content-Type", "text/plain"}
	a.stream("PUT", "cut", "open ", 201, text...)
	a.stream("POST", "cut", "a secret", 204, text...)
	a.stream("PUT", "cut/fork", " end", 201, append(text, "Stream-Forked-From", "cut", "Stream-Fork-Offset",
		positionText(5), "Stream-Fork-Sub-Offset", "7", "Stream-Closed", "true")...)
	a.stream("POST", "cut", " end", 204, append(text, "Stream-Closed", "true")...)
	for path, want := range map[string]string{
		"cut?offset=" + positionText(1):                "pen *** end",
		"cut?offset=" + positionText(6):                withheld + " end",
		"cut/fork":                                     "open " + withheld + " end",
		"cut?live=long-poll&offset=" + positionText(7): withheld + " end",
		"cut?live=sse&offset=" + positionText(8):       "data:" + withheld + " end\n",
		"cut/fork?live=sse&offset=" + positionText(6):  "data:" + withheld + " end\n",
	} {
		if g := a.stream("GET", path, "", 200); !strings.Contains(string(g.body), want) {
			t.Errorf("%s: %q, want %q", path, g.body, want)
		}
	}
}

// A stream has the type that its writer chose, on the address of the API: a browser runs nothing of it, and keeps
// nothing for a reader with another token.
func TestStreamsInBrowsers(t *testing.T) {
	a := newAPI(t)
	a.stream("PUT", "page", "<script>alert(1)</script>", 201, "Content-Type", "text/html")
	h := a.stream("GET", "page", "", 200).header
	if h.Get("Content-Type") != "text/html" || !strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox") ||
		h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Vary") != "Authorization" {
		t.Errorf("%v", h)
	}
	a.stream("PUT", "page?namespace=%2e%7b", "", 400)
	a.stream("PUT", "page?namespace="+strings.Repeat("n", 2000), "", 400)
}

// A stream of which the server lost entries is an error, and no read that never ends. What failed once is read again.
func TestStreamsThatLostEntries(t *testing.T) {
	a := newAPI(t)
	ref := a.h.conn.Engine.Written("default", "lost")
	r := &room{e: a.h.conn.Engine, ref: ref, changed: make(chan struct{}), pages: map[string]*page{}}
	if _, err := r.page(t.Context(), positionText(0)); err == nil {
		t.Error("there is no stream")
	}
	a.stream("PUT", "lost", "all", 201, "Content-Type", "text/plain")
	x, err := r.page(t.Context(), positionText(0))
	must.No(t, err)
	if len(x.messages) != 1 {
		t.Errorf("%q", x.messages)
	}
	option, err := rueidis.ParseURL(a.store.URL())
	must.No(t, err)
	option.DisableCache, option.ForceSingleClient = true, true
	raw, err := rueidis.NewClient(option)
	must.No(t, err)
	t.Cleanup(raw.Close)
	gone := raw.B().Del().Key(stored.Of(ref.Partition).WrittenLog(ref.ID)).Build()
	if n, err := raw.Do(t.Context(), gone).AsInt64(); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	for _, query := range []string{"offset=-1", "offset=-1&live=sse", "offset=-1&live=long-poll"} {
		if p := into[problem](t, a.stream("GET", "lost?"+query, "", 500)); p.Code != "corrupt" {
			t.Errorf("%s: %+v", query, p)
		}
	}
}
