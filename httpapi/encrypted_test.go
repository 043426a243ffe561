package httpapi

import (
	"encoding/base64"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/clienttest"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/schedule"
	"github.com/flowfabric/flowfabric-go/stream"
)

// An API that has no key shows of what is encrypted that it is, in every view, and everything else as ever.
func TestWithoutTheKey(t *testing.T) {
	a := newAPI(t)
	cipher, err := flowfabric.CipherKeys("k1:" + strings.Repeat("ab", 32))
	must.No(t, err)
	quiet := slog.New(slog.DiscardHandler)
	e, err := engine.Open(t.Context(), engine.Config{CallTimeout: time.Hour, URL: a.store.URL(), Logger: quiet,
		Box: sealed.New(cipher)})
	must.No(t, err)
	t.Cleanup(e.Close)
	c, err := client.Connect(t.Context(), client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour,
		URL: a.store.URL(), Logger: quiet, Cipher: cipher})
	must.No(t, err)
	t.Cleanup(c.Close)
	id := clienttest.Submit(t.Context(), t, c, "hidden").ID()
	_, err = c.Execution(id).Send(t.Context(), "m", "hidden")
	must.No(t, err)
	held := clienttest.Claim(t.Context(), t, e, id)
	must.No(t, e.UpdateProgress(t.Context(), held.Fence, 5, "hidden"))
	_, err = e.AppendFrames(t.Context(), held.Fence, 1, []stream.Frame{
		{Type: "token", Payload: []byte("hidden")},
		{Type: "summary", Mode: stream.ModeSummary, Encoding: stream.JSON, SummaryVersion: 1,
			Payload: []byte(`{"a":"hidden"}`), Document: []byte(`{"a":"hidden"}`)}})
	must.No(t, err)
	_, err = e.RecordStep(t.Context(), held.Fence, "s", []byte(`"hidden"`), 0)
	must.No(t, err)
	messages := a.as("viewer", "GET", "/v1/executions/"+id.String()+"/messages", "", http.StatusOK)
	_, _, err = e.CompleteExecutions(t.Context(), id.Partition(), []engine.Completion{{Fence: held.Fence,
		Result: []byte(`"hidden"`)}}, nil)
	must.No(t, err)
	for path, want := range map[string]string{"": `"message":"(encrypted)"`, "/input": `"encrypted":true`,
		"/result": `"encrypted":true`, "/steps/s": `"encrypted":true`, "/frames": `"encrypted":true`,
		"/summary": `"encrypted":true`, "/transcript": `(encrypted, `, "/stream?as=text": "(encrypted, ",
		"/stream?as=json": `"encrypted":true`, "/stream?as=events": `"encrypted":true`} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", a.server.URL+"/v1/executions/"+id.String()+path, nil)
		must.No(t, err)
		r.Header.Set("Authorization", "Bearer "+secrets["viewer"])
		answer, err := http.DefaultClient.Do(r)
		must.No(t, err)
		body, err := io.ReadAll(answer.Body)
		must.No(t, err)
		answer.Body.Close()
		if text := string(body); strings.Contains(text, "hidden") || !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %s", path, text, want)
		}
	}
	hiding, every := handler.Define[string, string]("hides"), schedule.Every(time.Hour, time.Time{})
	steps := flow.New("steps")
	flow.Add(steps, "a", hiding, "hidden")
	_, err = client.Schedule(t.Context(), c, "one", every, hiding, "hidden")
	must.No(t, err)
	_, err = client.ScheduleFlow(t.Context(), c, "flow", every, steps)
	must.No(t, err)
	settings := a.as("operator", "GET", "/v1/settings", "", http.StatusOK)
	if text := string(settings.body); strings.Contains(text, "hidden") || strings.Count(text,
		"its input is encrypted, and this server has no key for it") != 2 {
		t.Errorf("settings: %s", text)
	}
	if text := string(messages.body); strings.Contains(text, "hidden") || !strings.Contains(text, `"encrypted":true`) {
		t.Errorf("messages: %s", text)
	}
}

// What is encrypted cannot be sent: a server with the key would open it for whoever reads it.
func TestNobodySendsWhatIsEncrypted(t *testing.T) {
	a := newAPI(t)
	cipher, err := flowfabric.CipherKeys("k1:" + strings.Repeat("ab", 32))
	must.No(t, err)
	box := sealed.New(cipher)
	stolen, err := box.Seal([]byte("of somebody else"))
	must.No(t, err)
	path := a.submit(`{"kind":"stuck"}`)
	coded := base64.StdEncoding.EncodeToString(stolen)
	text := "see " + box.SealText("of somebody else", 500)
	for at, body := range map[string]string{
		"/v1/executions":   `{"kind":"echo","input_base64":"` + strings.Replace(coded, "/", `\/`, 1) + `"}`,
		path + "/messages": `{"mailbox":"user","base64":"` + coded + `"}`,
		path + ":stop":     `{"reason":"` + text + `"}`,
		path + ":cancel":   `{"reason":"` + strings.Replace(text, "sealed", `\u0073ealed`, 1) + `"}`,
	} {
		if p := into[problem](t, a.as("operator", "POST", at, body, 400)); !strings.Contains(p.Detail, "encrypted") {
			t.Errorf("%s: %+v", at, p)
		}
	}
	a.as("operator", "POST", path+"/messages", `{"mailbox":"user","base64":"/0ZG"}`, 200)
	close(a.release)
	a.until(path, "completed")
}
