// Package signature makes and checks signatures of webhooks: HMAC-SHA256 over the raw body, in the formats of Standard
// Webhooks (https://www.standardwebhooks.com), Stripe, GitHub and Slack. It reads no body and keeps no state; comparing
// takes the same time for every signature.
package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Headers of Standard Webhooks.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// maxSignatures is how many signatures of a header are compared: a sender that changes its secret sends two.
const maxSignatures = 16

// Standard signs a message by Standard Webhooks, once with each secret, for the header webhook-signature.
func Standard(secrets [][]byte, id string, at time.Time, body []byte) string {
	signed := make([]string, len(secrets))
	for i, secret := range secrets {
		signed[i] = "v1," + base64.StdEncoding.EncodeToString(sum(secret, id, ".", stamp(at), ".", string(body)))
	}
	return strings.Join(signed, " ")
}

func stamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

func sum(secret []byte, parts ...string) []byte {
	h := hmac.New(sha256.New, secret)
	for _, part := range parts {
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

// Claim is what the headers of a request say before its body is read.
type Claim struct {
	at         string // as it was signed
	id         string // of Standard Webhooks
	time       time.Time
	signatures [][]byte
}

// Scheme is a format of signatures.
type Scheme struct {
	// Timed tells that the time is signed, so that old requests can be told from new ones.
	Timed  bool
	header string
	read   func(http.Header) (Claim, error)
	signed func(c Claim, body string) []string
	secret func(text string) ([]byte, error)
}

// Schemes are all formats, by the names that configurations use.
var Schemes = map[string]Scheme{
	"standard": {Timed: true, header: HeaderSignature, read: readStandard, secret: standardSecret,
		signed: func(c Claim, body string) []string { return []string{c.id, ".", c.at, ".", body} }},
	"stripe": {Timed: true, header: "Stripe-Signature", read: readStripe, secret: plainSecret,
		signed: func(c Claim, body string) []string { return []string{c.at, ".", body} }},
	"github": {header: "X-Hub-Signature-256", read: readGitHub, secret: plainSecret,
		signed: func(_ Claim, body string) []string { return []string{body} }},
	"slack": {Timed: true, header: "X-Slack-Signature", read: readSlack, secret: plainSecret,
		signed: func(c Claim, body string) []string { return []string{"v0:", c.at, ":", body} }},
}

// Read takes the signatures and the time from headers. It refuses a time that is further than tolerance from now, to
// either side. Errors name the header, and never what a right signature would be.
func (s Scheme) Read(h http.Header, now time.Time, tolerance time.Duration) (Claim, error) {
	c, err := s.read(h)
	if err != nil {
		return Claim{}, fmt.Errorf("%s: %w", s.header, err)
	}
	if off := now.Sub(c.time).Abs(); s.Timed && off > tolerance {
		return Claim{}, fmt.Errorf("%s: the time is %s off, at most %s is allowed", s.header, off.Round(time.Second),
			tolerance)
	}
	return c, nil
}

// Check tells whether one of the signatures is that of the body with one of the secrets.
func (s Scheme) Check(c Claim, secrets [][]byte, body []byte) error {
	for _, secret := range secrets {
		want := sum(secret, s.signed(c, string(body))...)
		for _, signature := range c.signatures {
			if hmac.Equal(want, signature) {
				return nil
			}
		}
	}
	return fmt.Errorf("%s: no signature is that of the body", s.header)
}

func (c *Claim) timed(text string) (err error) {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 || seconds > 1<<40 {
		return errors.New("the time is no number of seconds")
	}
	c.at, c.time = text, time.Unix(seconds, 0)
	return nil
}

// add keeps a signature if it has the right size; others can match nothing.
func (c *Claim) add(signature []byte, err error) {
	if err == nil && len(signature) == sha256.Size && len(c.signatures) < maxSignatures {
		c.signatures = append(c.signatures, signature)
	}
}

func (c *Claim) some() error {
	if len(c.signatures) == 0 {
		return errors.New("it has no signature of this scheme")
	}
	return nil
}

func readStandard(h http.Header) (c Claim, err error) {
	if c.id = h.Get(HeaderID); c.id == "" {
		return c, errors.New("webhook-id is missing")
	}
	if err := c.timed(h.Get(HeaderTimestamp)); err != nil {
		return c, fmt.Errorf("webhook-timestamp: %w", err)
	}
	for one := range strings.FieldsSeq(h.Get(HeaderSignature)) {
		if text, ok := strings.CutPrefix(one, "v1,"); ok {
			c.add(base64.StdEncoding.DecodeString(text))
		}
	}
	return c, c.some()
}

func readStripe(h http.Header) (c Claim, err error) {
	at := ""
	for part := range strings.SplitSeq(h.Get("Stripe-Signature"), ",") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(part), "="); name {
		case "t":
			at = value
		case "v1":
			c.add(hex.DecodeString(value))
		}
	}
	if err := c.timed(at); err != nil {
		return c, err
	}
	return c, c.some()
}

func readGitHub(h http.Header) (c Claim, err error) {
	if text, ok := strings.CutPrefix(h.Get("X-Hub-Signature-256"), "sha256="); ok {
		c.add(hex.DecodeString(text))
	}
	return c, c.some()
}

func readSlack(h http.Header) (c Claim, err error) {
	if err := c.timed(h.Get("X-Slack-Request-Timestamp")); err != nil {
		return c, err
	}
	if text, ok := strings.CutPrefix(h.Get("X-Slack-Signature"), "v0="); ok {
		c.add(hex.DecodeString(text))
	}
	return c, c.some()
}
