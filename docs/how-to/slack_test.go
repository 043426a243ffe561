package howto_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Deploy asks in a channel before it deploys.
var Deploy = handler.Define[string, string]("deploy")

type Deployer struct {
	Post func(ctx context.Context, message any) error // to an incoming webhook of Slack, or chat.postMessage
}

func (d *Deployer) Handle(ctx context.Context, t *handler.Task, version string) (string, error) {
	token, err := t.Pending(ctx, "channel", 24*time.Hour)
	if err != nil {
		return "", err
	}
	_, err = handler.Step(ctx, t, "post", func(ctx context.Context) (bool, error) {
		return true, d.Post(ctx, question("Deploy "+version+"?", token))
	})
	if err != nil {
		return "", err
	}
	answer, err := handler.Await[suspend.Answer](ctx, t, "channel", suspend.Within(24*time.Hour))
	if err != nil {
		return "", err
	}
	return answer.Choice + " by " + answer.By, nil
}

// question is a message with two buttons. Each has the token as its value: who presses one proves nothing else.
func question(text string, token suspend.Token) map[string]any {
	button := func(label, choice string) map[string]any {
		return map[string]any{"type": "button", "action_id": choice, "value": token.Reveal(),
			"text": map[string]any{"type": "plain_text", "text": label}}
	}
	return map[string]any{"text": text, "blocks": []any{
		map[string]any{"type": "section", "text": map[string]any{"type": "plain_text", "text": text}},
		map[string]any{"type": "actions", "elements": []any{button("Deploy", "approve"), button("Not now", "reject")}},
	}}
}

// pressed is what Slack posts when somebody presses a button.
type pressed struct {
	User struct {
		ID, Username string
	}
	Actions []struct {
		ActionID string `json:"action_id"`
		Value    string
	}
	ResponseURL string `json:"response_url"`
}

// slack takes the posts of Slack's interactivity: it checks the signature, and answers the waitpoint whose token the
// button has.
func slack(c *client.Client, secret []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || !signed(secret, r.Header, body, time.Now()) {
			http.Error(w, "not signed by Slack", http.StatusUnauthorized)
			return
		}
		var p pressed
		form, err := url.ParseQuery(string(body))
		if err == nil {
			err = json.Unmarshal([]byte(form.Get("payload")), &p)
		}
		if err != nil || len(p.Actions) != 1 {
			http.Error(w, "want one pressed button", http.StatusBadRequest)
			return
		}
		token, err := suspend.ParseToken(p.Actions[0].Value)
		if err == nil {
			answer := suspend.Answer{Choice: p.Actions[0].ActionID, By: p.User.Username}
			_, err = c.Signal(r.Context(), token, answer, client.SignalSource("slack", p.User.ID))
		}
		text := "Thank you, " + p.User.Username + "."
		if err != nil { // answered before, or too late
			text = "This question is closed."
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"response_type": "ephemeral", "text": text})
	}
}

// signed checks X-Slack-Signature: an HMAC of the time and the body. A post that is older than five minutes may be a
// copy.
func signed(secret []byte, h http.Header, body []byte, now time.Time) bool {
	stamp := h.Get("X-Slack-Request-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "v0:%s:%s", stamp, body)
	return hmac.Equal([]byte("v0="+hex.EncodeToString(mac.Sum(nil))), []byte(h.Get("X-Slack-Signature")))
}

func TestSlack(t *testing.T) {
	secret := []byte("8f742231b10e8888abcd99yyyzzz85a5")
	// The example of Slack's own documentation.
	example :=
		"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	header := http.Header{"X-Slack-Request-Timestamp": {"1531420618"},
		"X-Slack-Signature": {"v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"}}
	at := time.Unix(1531420618, 0)
	for name, good := range map[string]bool{
		"as it was":  signed(secret, header, []byte(example), at),
		"a new body": !signed(secret, header, []byte(example+"x"), at),
		"too old":    !signed(secret, header, []byte(example), at.Add(6*time.Minute)),
		"too early":  !signed(secret, header, []byte(example), at.Add(-6*time.Minute)),
		"another's":  !signed([]byte("x"), header, []byte(example), at),
	} {
		if !good {
			t.Errorf("%s: judged wrongly", name)
		}
	}

	posts := make(chan string, 2)
	d := &Deployer{Post: func(_ context.Context, message any) error {
		text, err := json.Marshal(message)
		posts <- string(text)
		return err
	}}
	ctx, c := start(t, runtime.Config{}, handler.Bind(Deploy, d.Handle))
	site := httptest.NewServer(slack(c, secret))
	defer site.Close()
	x, err := client.Submit(ctx, c, Deploy, "v2")
	if err != nil {
		t.Fatal(err)
	}
	var message struct {
		Blocks []struct {
			Elements []struct {
				ActionID string `json:"action_id"`
				Value    string
			}
		}
	}
	if err := json.Unmarshal([]byte(<-posts), &message); err != nil {
		t.Fatal(err)
	}
	button := message.Blocks[1].Elements[0]
	press := func(forge bool) (int, string) {
		payload, _ := json.Marshal(map[string]any{"user": map[string]any{"id": "U1", "username": "ann"},
			"actions": []any{map[string]any{"action_id": button.ActionID, "value": button.Value}}})
		body := url.Values{"payload": {string(payload)}}.Encode()
		r, _ := http.NewRequest(http.MethodPost, site.URL, bytes.NewReader([]byte(body)))
		stamp := strconv.FormatInt(time.Now().Unix(), 10)
		mac := hmac.New(sha256.New, secret)
		fmt.Fprintf(mac, "v0:%s:%s", stamp, body)
		r.Header.Set("X-Slack-Request-Timestamp", stamp)
		r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
		if forge {
			r.Header.Set("X-Slack-Signature", "v0="+strings.Repeat("0", 64))
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	if status, text := press(true); status != http.StatusUnauthorized {
		t.Errorf("forged: %d %s", status, text)
	}
	if status, text := press(false); status != http.StatusOK || !strings.Contains(text, "Thank you, ann") {
		t.Errorf("pressed: %d %s", status, text)
	}
	if got, err := x.Result(ctx); err != nil || got != "approve by ann" {
		t.Errorf("%q, %v", got, err)
	}
	if status, text := press(false); status != http.StatusOK || !strings.Contains(text, "closed") {
		t.Errorf("pressed again: %d %s", status, text)
	}
}
