package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/signature"
)

// Namespace is where the relay and the deliveries are.
const Namespace = "ff.webhooks"

const (
	maxAnswer     = 16 << 10 // bytes of an answer that are read, so that its connection may serve again
	maxRetryAfter = 24 * time.Hour
	// atOnce is how many deliveries to one endpoint there are at the same time. Few are dear: each batch goes through
	// the limit of the endpoint, and with 8 a delivery takes 5.9 calls, with 32 less than half (BenchmarkDeliveries).
	atOnce = 32
	// Concurrency is for the worker that delivers: seven endpoints that do not answer keep no other one waiting.
	Concurrency = 8 * atOnce
)

// Delivery is one message to one endpoint: the input of a delivery.
type Delivery struct {
	Endpoint string          `json:"endpoint"`
	ID       string          `json:"webhook_id"`
	Body     json.RawMessage `json:"body"` // as it is sent
	// Seal shows that the relay of a process with the endpoint's secrets wrote this.
	Seal string `json:"seal"`
}

// Receipt is the result of a delivery.
type Receipt struct {
	Status int `json:"status"` // of HTTP
}

// retry tries 20 times in about three days: after 5 s, 15 s, 45 s … 6 h.
var retry = flowfabric.RetryPolicy{MaxRetries: 20, Initial: 5 * time.Second, Multiplier: 3, Max: 6 * time.Hour,
	Jitter: true}

func deliveries(retry flowfabric.RetryPolicy) *handler.Definition[Delivery, Receipt] {
	return handler.Define[Delivery, Receipt]("ff.webhook", handler.RetryPolicy(retry), handler.MaxReclaims(1000),
		handler.MaxReplays(1000), handler.NoSchema())
}

// idOf is the id of a message: the same for an event and an endpoint, whoever makes it.
func idOf(event, endpoint string) string {
	sum := sha256.Sum256([]byte(event + "\n" + endpoint))
	return "msg_" + hex.EncodeToString(sum[:16])
}

func seal(secret []byte, d Delivery) string {
	h := hmac.New(sha256.New, secret)
	fmt.Fprintf(h, "flowfabric delivery\n%s\n%s\n%s", d.Endpoint, d.ID, d.Body)
	return hex.EncodeToString(h.Sum(nil))
}

// sealed tells whether a process with one of the secrets made a delivery.
func (e *endpoint) sealed(d Delivery) bool {
	for _, secret := range e.secrets {
		if hmac.Equal([]byte(seal(secret, d)), []byte(d.Seal)) {
			return true
		}
	}
	return false
}

// deliver is the handler of deliveries.
func (w *Webhooks) deliver(ctx context.Context, _ *handler.Task, d Delivery) (Receipt, error) {
	e := w.endpoints[d.Endpoint]
	if e == nil {
		return Receipt{}, fmt.Errorf("the endpoint %.40q is not configured here", d.Endpoint)
	}
	if !e.sealed(d) {
		return Receipt{}, handler.Permanent(errors.New(
			"the message was not made by the relay, or all secrets of the endpoint are others by now"))
	}
	return e.send(ctx, d)
}

func (e *endpoint) send(ctx context.Context, d Delivery) (Receipt, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, strings.NewReader(string(d.Body)))
	if err != nil {
		return Receipt{}, handler.Permanent(errors.New("the URL of the endpoint cannot be called"))
	}
	now := time.Now()
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("User-Agent", "FlowFabric-Webhooks")
	q.Header.Set(signature.HeaderID, d.ID)
	q.Header.Set(signature.HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	q.Header.Set(signature.HeaderSignature, signature.Standard(e.secrets, d.ID, now, d.Body))
	answer, err := e.http.Do(q)
	if err != nil {
		return Receipt{}, unsent(err)
	}
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer)
	_ = answer.Body.Close()
	return Receipt{answer.StatusCode}, refusal(answer, now)
}

// unsent is why there was no answer, without the URL, which may have a secret.
func unsent(err error) error {
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	err = fmt.Errorf("the receiver cannot be reached: %w", err)
	if refused := (*addressError)(nil); errors.As(err, &refused) {
		return handler.Permanent(err)
	}
	return err
}

// refusal is why an answer is no success; its body is nobody's business.
func refusal(answer *http.Response, now time.Time) error {
	status := answer.StatusCode
	if status >= 200 && status < 300 {
		return nil
	}
	err := fmt.Errorf("the receiver answered %d %s", status, http.StatusText(status))
	switch {
	case status == http.StatusGone:
		return handler.Permanent(err)
	case status >= 300 && status < 400:
		return fmt.Errorf("%w: redirects are not followed, configure the new URL", err)
	}
	if pause := retryAfter(answer.Header.Get("Retry-After"), now); pause > 0 {
		return handler.RetryAfter(min(pause, maxRetryAfter), err)
	}
	return err
}

func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return at.Sub(now)
	}
	return 0
}
