package httpapi

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/tailpos"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/stream"
)

// durableReads calls the route of the Durable Streams protocol.
func (a *api) durableReads() {
	t := a.t
	talk := a.submit(`{"kind":"talks","input":3}`)
	a.until(talk, "completed")
	const as = "viewer"
	g := a.as(as, "GET", talk+"/stream", "", 200)
	var kinds []string
	for _, e := range into[[]stream.TailEvent](t, g) {
		kinds = append(kinds, string(e.Kind))
	}
	if got := strings.Join(kinds, " "); got != "attempt frame frame frame frame attempt_end end" {
		t.Errorf("%s", got)
	}
	end := g.header.Get("Stream-Next-Offset")
	if g.header.Get("Stream-Closed") != "true" || g.header.Get("Stream-Up-To-Date") != "true" ||
		len(end) != offsetLength {
		t.Errorf("%v", g.header)
	}
	if g := a.as(as, "GET", talk+"/stream?offset="+end, "", 200); string(g.body) != "[]" ||
		g.header.Get("Stream-Closed") != "true" || g.header.Get("Stream-Next-Offset") != end {
		t.Errorf("%s %v", g.body, g.header)
	}
	if g := a.as(as, "GET", talk+"/stream?live=long-poll&offset="+end, "",
		204); g.header.Get("Stream-Closed") != "true" {
		t.Errorf("%v", g.header)
	}
	if g := a.do(request{method: "GET", path: talk + "/stream", role: as,
		header: http.Header{"If-None-Match": {`"x", ` + g.header.Get("ETag")}}}); g.status != 304 || len(g.body) > 0 {
		t.Errorf("%d %s", g.status, g.body)
	}
	for _, query := range []string{"offset=", "offset=1&offset=2", "offset=x",
		"offset=" + strings.Repeat("f", offsetLength), "live=sse", "live=maybe&offset=-1", "as=xml", "live=long-poll"} {
		a.as(as, "GET", talk+"/stream?"+query, "", 400)
	}
	a.as("producer", "POST", talk+"/stream", "{}", 405)
}

// What an execution puts out is one stream for whoever speaks the protocol, in every view, also while it runs.
func TestDurableStream(t *testing.T) {
	a := newAPI(t)
	x := a.submit(`{"kind":"stuck"}`)
	a.until(x, "active")
	ask := func(query string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", a.server.URL+x+"/stream?"+query, nil)
		must.No(t, err)
		r.Header.Set("Authorization", "Bearer "+secrets["viewer"])
		answer, err := http.DefaultClient.Do(r)
		must.No(t, err)
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	get := func(query string) (*http.Response, string) {
		t.Helper()
		answer := ask(query)
		body, err := io.ReadAll(answer.Body)
		must.No(t, err)
		return answer, string(body)
	}
	until := func(query, want string) (g *http.Response) {
		t.Helper()
		testwait.Progress(t, query+" is "+want, func() (bool, any) {
			var body string
			g, body = get(query)
			return body == want, body
		})
		return g
	}
	g := until("as=text", "before")
	offset := g.Header.Get("Stream-Next-Offset")
	if g.Header.Get("Stream-Closed") != "" || g.Header.Get("Content-Type") != "text/plain" || offset == "" {
		t.Errorf("%v", g.Header)
	}
	until("as=json", `["before"]`)
	until("as=bytes", "before")
	if g, body := get("as=text&offset=now"); body != "" || g.Header.Get("Stream-Next-Offset") != offset ||
		g.Header.Get("Stream-Up-To-Date") != "true" {
		t.Errorf("%q %v", body, g.Header)
	}
	events := bufio.NewReader(ask("as=text&live=sse&offset=-1").Body)
	seen := ""
	for !strings.Contains(seen, "event: data\ndata:before\n\n") { // it follows by then
		line, err := events.ReadString('\n')
		if seen += line; err != nil {
			t.Fatalf("%q: %v", seen, err)
		}
	}
	polled := make(chan string, 1)
	go func() {
		g, body := get("as=text&live=long-poll&offset=" + offset)
		polled <- fmt.Sprint(body, " ", g.Header.Get("Stream-Cursor") != "")
	}()
	select {
	case got := <-polled:
		t.Fatalf("a poll did not wait: %q", got)
	case <-time.After(200 * time.Millisecond):
	}
	close(a.release)
	if got := <-polled; got != "after true" {
		t.Errorf("%q", got)
	}
	rest, err := io.ReadAll(events)
	if got := string(rest); err != nil || !strings.Contains(got, "event: data\ndata:after\n\n") ||
		!strings.HasSuffix(got, `"upToDate":true,"streamClosed":true}`+"\n\n") {
		t.Errorf("%q %v", got, err)
	}
	a.until(x, "completed")
	r, err := http.NewRequestWithContext(t.Context(), "HEAD", a.server.URL+x+"/stream?as=text", nil)
	must.No(t, err)
	r.Header.Set("Authorization", "Bearer "+secrets["viewer"])
	answer, err := http.DefaultClient.Do(r)
	must.No(t, err)
	answer.Body.Close()
	if after := answer.Header.Get("Stream-Next-Offset"); answer.StatusCode != 200 ||
		answer.Header.Get("Stream-Closed") != "true" || after <= offset {
		t.Errorf("%d %v", answer.StatusCode, answer.Header)
	}
}

// A stream that is longer than a chunk is read chunk by chunk, with nothing lost or twice.
func TestChunks(t *testing.T) {
	a := newAPI(t)
	x := a.submit(`{"kind":"talks","input":500}`)
	a.until(x, "completed")
	id, err := flowfabric.ParseExecutionID(strings.TrimPrefix(x, "/v1/executions/"))
	must.No(t, err)
	r, err := http.NewRequestWithContext(t.Context(), "GET", x, nil)
	must.No(t, err)
	d := &tailLog{d: &durable{c: &call{h: a.h, r: r}, view: views["text"]}, id: id}
	var text, want strings.Builder
	for i := range 500 {
		fmt.Fprintf(&want, "word %d ", i)
	}
	from, chunks := stream.Position(""), 0
	for ; ; chunks++ {
		c, err := d.read(from, 100)
		must.No(t, err)
		for _, m := range c.messages {
			text.Write(m)
		}
		if from, err = parseOffset(offsetText(c.next)); err != nil {
			t.Fatal(err)
		}
		if c.upToDate {
			if !c.closed {
				t.Error("it is not closed")
			}
			break
		}
	}
	if text.String() != want.String() || chunks < 30 {
		t.Errorf("%d chunks: %q", chunks, text.String())
	}
	var b strings.Builder
	dataLines(&b, []byte(" a\r\nb\rc\n\n d"))
	if b.String() != "data:  a\ndata:b\ndata:c\ndata:\ndata:  d\n" {
		t.Errorf("%q", b.String())
	}
}

// What an execution waits for is in no durable stream, since it does not last: an offset that was read then stays good.
func TestStreamOfASuspendedExecution(t *testing.T) {
	a := newAPI(t)
	x := a.submit(`{"kind":"asks"}`)
	a.until(x, "suspended")
	g := a.as("viewer", "GET", x+"/stream", "", 200)
	if list := into[[]stream.TailEvent](t, g); len(list) != 1 || list[0].Kind != "attempt" ||
		g.header.Get("Stream-Closed") != "" {
		t.Errorf("%s", g.body)
	}
	parts, err := tailpos.Parse(mustOffset(t, g.header.Get("Stream-Next-Offset")))
	if err != nil || parts.Wait != 0 {
		t.Errorf("%+v, %v", parts, err)
	}
	a.as("operator", "POST", x+"/waitpoints/approval:answer", `{"payload":"yes"}`, 200)
	a.until(x, "completed")
	rest := into[[]stream.TailEvent](t, a.as("viewer", "GET", x+"/stream?offset="+g.header.Get("Stream-Next-Offset"),
		"", 200))
	var kinds []string
	for _, e := range rest {
		kinds = append(kinds, string(e.Kind))
	}
	if got := strings.Join(kinds, " "); got != "attempt_end end" {
		t.Errorf("%s", got)
	}
}

// An event has one id, one instant and one text for every reader: who followed live, who comes late, who comes back,
// and who reads the durable stream.
func TestEveryReaderIsToldTheSame(t *testing.T) {
	a := newAPI(t)
	x := a.submit(`{"kind":"drafts"}`)
	follow := func(query string, header http.Header) (told []string) {
		all, _ := a.follow(x+"/events"+query, header, nil)
		for _, e := range all {
			if e.name == "suspended" || e.name == "retry" { // told to those alone who are there
				continue
			}
			text, err := json.Marshal(e.data)
			if err != nil {
				t.Error(err)
			}
			told = append(told, e.id+" "+string(text))
		}
		return told
	}
	var live, lasting []string
	var following conc.WaitGroup
	following.Go(func() { live = follow("", nil) })
	following.Go(func() { lasting = follow("?durable=true", nil) })
	a.until(x, "suspended")
	a.as("operator", "POST", x+"/waitpoints/approval:answer", `{"payload":"yes"}`, 200)
	a.until(x, "completed")
	following.Wait()
	if len(live) != 10 { // two attempts, each with its draft; the second in two runs
		t.Fatalf("%q", live)
	}
	for reader, told := range map[string][]string{"another one who was there": lasting,
		"who comes late": follow("", nil), "who comes late for what lasts": follow("?durable=true", nil)} {
		if !slices.Equal(told, live) {
			t.Errorf("%s was told\n%s\nand not\n%s", reader, strings.Join(told, "\n"), strings.Join(live, "\n"))
		}
	}
	for i, event := range live[:len(live)-1] {
		id, _, _ := strings.Cut(event, " ")
		if rest := follow("", http.Header{"Last-Event-ID": {id}}); !slices.Equal(rest, live[i+1:]) {
			t.Errorf("behind %s:\n%s", event, strings.Join(rest, "\n"))
		}
	}
	for i, e := range into[[]stream.TailEvent](t, a.as("viewer", "GET", x+"/stream", "", 200)) {
		if text, _ := json.Marshal(e); i >= len(live) || !strings.HasSuffix(live[i], " "+string(text)) {
			t.Errorf("the durable stream says %s", text)
		}
	}
}

func mustOffset(t *testing.T, text string) string {
	t.Helper()
	p, err := parseOffset(text)
	must.No(t, err)
	return string(p)
}

// Offsets are positions, and sort as these follow each other.
func TestOffsets(t *testing.T) {
	last := ""
	for _, parts := range []tailpos.Parts{{}, {Attempt: 1, Stage: tailpos.Begun},
		{Attempt: 1, Stage: tailpos.Begun, Ms: 9, Seq: 1, Sequence: 1,
			Durables: 1}, {Attempt: 1, Stage: tailpos.Begun, Ms: 9, Seq: 2, Sequence: 2, Durables: 2},
		{Attempt: 1, Stage: tailpos.Begun, Ms: 10, Sequence: 3},
		{Attempt: 1, Stage: tailpos.Begun, Ms: 10, Run: 2, Sequence: 3}, {Attempt: 2},
		{Attempt: 2, Stage: tailpos.Announced}, {Attempt: 2, Stage: tailpos.Over, Ms: 1700000000000},
		{Attempt: 2, Stage: tailpos.Begun}, {Attempt: 1<<32 - 1, Stage: tailpos.Begun, Ms: 1<<64 - 1, Seq: 1<<64 - 1,
			Sequence: 1<<64 - 1, Durables: 1<<64 - 1, Run: 1<<32 - 1}} {
		p := stream.Position(tailpos.Text(parts))
		text := offsetText(p)
		again, err := parseOffset(text)
		if err != nil || again != p || text <= last {
			t.Errorf("%+v: %q, %q, %v, after %q", parts, text, again, err, last)
		}
		last = text
	}
}

func FuzzOffset(f *testing.F) {
	f.Add("")
	f.Add("-1")
	f.Add(offsetText(""))
	f.Add(offsetText("a3.17-1.5.4.2.0"))
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseOffset(text)
		if err == nil && offsetText(p) != text {
			t.Fatalf("%q is %q, which is %q", text, p, offsetText(p))
		}
	})
}

// A cursor is above the one that was sent, whatever that is.
func TestCursors(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	usual := (&durable{}).nextCursor(now)
	for _, given := range []string{"", "0", "x", "-5", "99999999999999999999999"} {
		if got := (&durable{cursor: given}).nextCursor(now); got != usual {
			t.Errorf("%q: %s, want %s", given, got, usual)
		}
	}
	for _, given := range []string{usual, "999999999999"} {
		var was, is json.Number = json.Number(given), json.Number((&durable{cursor: given}).nextCursor(now))
		a, _ := was.Int64()
		b, err := is.Int64()
		if err != nil || b <= a {
			t.Errorf("%s: %s", given, is)
		}
	}
}
