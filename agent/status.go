package agent

import (
	"net/http"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric-go/handler"
)

// Categories of failed model calls, by which a policy and a dashboard tell them apart.
const (
	categoryRateLimited = "model_rate_limited" // the service wants fewer requests; retried
	categoryOverloaded  = "model_overloaded"   // the service cannot answer now, or broke off; retried
	// the service refuses the request as it is: keys, limits of size, unknown models; not retried
	categoryRefused  = "model_refused"
	categoryProtocol = "model_protocol" // the service answers what is no answer; retried
)

const statusOverloaded = 529 // as services of models use it

// StatusError is the error of a model's service by the status of HTTP that it answered, 0 if it answered none or
// broke off in mid-answer, which is like being overloaded: a category, no retry where none helps (4xx but 408, 409,
// 425 and 429), and the pause that the service asks for in the headers of its answer, which may be nil: retry-after-ms,
// or Retry-After in seconds or as a date. 429, 503 and 529 are
// refusals, of which the gate of the service is told ([Config].Governor). A nil err stays nil.
func StatusError(status int, header http.Header, err error) error {
	switch {
	case err == nil:
		return nil
	case status == http.StatusTooManyRequests:
		err = handler.Category(categoryRateLimited, err)
	case status >= 400 && status < 500 && status != http.StatusRequestTimeout && status != http.StatusConflict &&
		status != http.StatusTooEarly:
		return handler.Category(categoryRefused, handler.Permanent(err))
	case status == http.StatusServiceUnavailable || status == statusOverloaded:
		err = handler.Category(categoryOverloaded, busy{err})
	default:
		err = handler.Category(categoryOverloaded, err)
	}
	if after := retryAfter(header, time.Now()); after > 0 {
		err = handler.RetryAfter(after, err)
	}
	return err
}

// retryAfter reads the pause that a service asks for. 0 if it asks for none, or for one that has passed.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return pause(ms / 1000)
	}
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		return pause(s)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// pause is a number of seconds, from 0 to a day; not a number is 0.
func pause(seconds float64) time.Duration {
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, 86400) * float64(time.Second))
}
