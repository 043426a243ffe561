package signature

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The vectors that the schemes publish: the libraries of Standard Webhooks, and the documentation of GitHub and Slack.
const (
	standardID     = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	standardBody   = `{"test": 2432232314}`
	standardText   = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	standardSigned = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

	gitHubText   = "It's a Secret to Everybody"
	gitHubSigned = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"

	slackText = "8f742231b10e8888abcd99yyyzzz85a5"
	slackBody = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V" +
		"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=" +
		"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN" +
		"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	slackSigned = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"

	// Stripe publishes this header without the body and the secret that it is of.
	stripeHeader = "t=1492774577,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd," +
		"v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39"
)

func secretOf(t testing.TB, s Scheme, text string) []byte {
	t.Helper()
	secret, err := s.secret(text)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func verify(s Scheme, h http.Header, secret []byte, body string, now int64) error {
	c, err := s.Read(h, time.Unix(now, 0), 5*time.Minute)
	if err != nil {
		return err
	}
	return s.Check(c, [][]byte{[]byte("another secret"), secret}, []byte(body))
}

func TestPublishedVectors(t *testing.T) {
	standard := Schemes["standard"]
	secret := secretOf(t, standard, standardText)
	at := time.Unix(1614265330, 0)
	if got := Standard([][]byte{secret}, standardID, at, []byte(standardBody)); got != standardSigned {
		t.Errorf("signed %s", got)
	}
	const other = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="
	several := strings.Join([]string{other, "v2" + other[2:], standardSigned, other}, " ")
	stripe := secretOf(t, Schemes["stripe"], "whsec_of_an_endpoint")
	stripeSigned := "t=1492774577,v1=" + hex.EncodeToString(sum(stripe, "1492774577", ".", `{"id":"evt_1"}`)) +
		",v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39"
	std := func(signature string) http.Header {
		return headers("webhook-id", standardID, "webhook-timestamp", "1614265330", "webhook-signature", signature)
	}
	slack := func(at string) http.Header {
		return headers("X-Slack-Request-Timestamp", at, "X-Slack-Signature", slackSigned)
	}
	for name, c := range map[string]struct {
		scheme string
		header http.Header
		secret string
		body   string
		now    int64
		wrong  string // "": the signature is right
	}{
		"standard":              {"standard", std(standardSigned), standardText, standardBody, 1614265330, ""},
		"standard, several":     {"standard", std(several), standardText, standardBody, 1614265330 + 299, ""},
		"standard, invalid":     {"standard", std(other), standardText, standardBody, 1614265330, "no signature is"},
		"standard, partial":     {"standard", std("v1,"), standardText, standardBody, 1614265330, "no signature of"},
		"standard, old":         {"standard", std(standardSigned), standardText, standardBody, 1614265631, "5m1s off"},
		"standard, of tomorrow": {"standard", std(standardSigned), standardText, standardBody, 1614265029, "5m1s off"},
		"standard, no id": {"standard", headers("webhook-timestamp", "1614265330", "webhook-signature", standardSigned),
			standardText, standardBody, 1614265330, "webhook-id is missing"},
		"standard, no time": {"standard", headers("webhook-id", standardID, "webhook-signature", standardSigned),
			standardText, standardBody, 1614265330, "webhook-timestamp: the time"},
		"standard, another id": {"standard", headers("webhook-id", "x", "webhook-timestamp", "1614265330",
			"webhook-signature", standardSigned), standardText, standardBody, 1614265330, "no signature is"},
		"github": {"github", headers("X-Hub-Signature-256", gitHubSigned), gitHubText, "Hello, World!", 0, ""},
		"github, other body": {"github", headers("X-Hub-Signature-256", gitHubSigned), gitHubText, "Hello, World?", 0,
			"no signature is"},
		"github, sha1": {"github", headers("X-Hub-Signature", gitHubSigned), gitHubText, "Hello, World!", 0,
			"no signature of"},
		"slack":               {"slack", slack("1531420618"), slackText, slackBody, 1531420618, ""},
		"slack, old":          {"slack", slack("1531420618"), slackText, slackBody, 1531420618 + 3600, "1h0m0s off"},
		"slack, another time": {"slack", slack("1531420619"), slackText, slackBody, 1531420618, "no signature is"},
		"stripe": {"stripe", headers("Stripe-Signature", stripeSigned), "whsec_of_an_endpoint", `{"id":"evt_1"}`,
			1492774577, ""},
		"stripe, other body": {"stripe", headers("Stripe-Signature", stripeHeader), "whsec_of_an_endpoint",
			`{"id":"evt_1"}`, 1492774577, "no signature is"},
		"stripe, only v0": {"stripe", headers("Stripe-Signature", "t=1492774577,v0="+stripeHeader[16:]),
			"whsec_of_an_endpoint", `{"id":"evt_1"}`, 1492774577, "no signature of"},
		"stripe, old": {"stripe", headers("Stripe-Signature", stripeSigned), "whsec_of_an_endpoint", `{"id":"evt_1"}`,
			1492774577 + 301, "5m1s off"},
	} {
		s := Schemes[c.scheme]
		err := verify(s, c.header, secretOf(t, s, c.secret), c.body, c.now)
		switch {
		case c.wrong == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s: %v, want %q", name, err, c.wrong)
		}
	}
}

// The header of Stripe's documentation is read as it says.
func TestStripeHeader(t *testing.T) {
	c, err := readStripe(headers("Stripe-Signature", stripeHeader))
	if err != nil || c.time.Unix() != 1492774577 || len(c.signatures) != 1 ||
		hex.EncodeToString(c.signatures[0]) != "5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(standardText+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SIGNATURE_TEST_SECRET", standardText+"==")
	s := Schemes["standard"]
	got, err := s.Secrets([]string{"env:SIGNATURE_TEST_SECRET", "file:" + file})
	if err != nil || len(got) != 2 || !bytes.Equal(got[0], got[1]) || len(got[0]) != 24 {
		t.Errorf("%x, %v", got, err)
	}
	t.Setenv("SIGNATURE_TEST_SHORT", "whsec_"+base64.StdEncoding.EncodeToString(make([]byte, 23)))
	t.Setenv("SIGNATURE_TEST_PLAIN", "0123456789abcde")
	for _, c := range []struct {
		scheme string
		refs   []string
		want   string
	}{
		{"standard", nil, "secrets has 0 entries, want 1..4"},
		{"standard", []string{standardText}, "secrets[0]: want env:NAME or file:PATH"},
		{"standard", []string{"env:SIGNATURE_TEST_NONE"}, `secrets[0]: the environment variable "SIG`},
		{"standard", []string{"env:SIGNATURE_TEST_SHORT"}, "secrets[0]: the secret has 23 bytes, want 24..64"},
		{"standard", []string{"env:SIGNATURE_TEST_PLAIN"}, `does not begin with "whsec_"`},
		{"slack", []string{"file:" + file, "env:SIGNATURE_TEST_PLAIN"}, "secrets[1]: the secret has 15 bytes, want 16"},
	} {
		_, err := Schemes[c.scheme].Secrets(c.refs)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), standardText) {
			t.Errorf("%q: %v", c.refs, err)
		}
	}
}

// fuzzHeader looks for headers that pass without being signed, and for signatures that fail.
func fuzzHeader(f *testing.F, name string, build func(time, signature string) http.Header, write func([]byte) string,
	seeds ...string) {
	s := Schemes[name]
	secret := []byte("a secret of the fuzzer, long enough")
	for _, seed := range seeds {
		f.Add("1614265330", seed, "{}")
	}
	f.Fuzz(func(t *testing.T, at, signature, body string) {
		h := build(at, signature)
		c, err := s.Read(h, time.Unix(1614265330, 0), time.Minute)
		if err != nil {
			return
		}
		if len(c.signatures) == 0 || len(c.signatures) > maxSignatures {
			t.Fatalf("%d signatures of %q", len(c.signatures), h)
		}
		right := sum(secret, s.signed(c, body)...)
		found := false
		for _, one := range c.signatures {
			found = found || bytes.Equal(one, right)
		}
		if err := s.Check(c, [][]byte{secret}, []byte(body)); (err == nil) != found {
			t.Fatalf("%q: %v", h, err)
		}
		if s.Timed {
			if _, err := strconv.ParseInt(c.at, 10, 64); err != nil {
				t.Fatalf("the time %q passes", c.at)
			}
			at = c.at
		}
		again, err := s.Read(build(at, write(right)), time.Unix(1614265330, 0), time.Minute)
		if err == nil {
			err = s.Check(again, [][]byte{secret}, []byte(body))
		}
		if err != nil {
			t.Fatalf("signed at %q: %v", at, err)
		}
	})
}

func FuzzStandard(f *testing.F) {
	fuzzHeader(f, "standard", func(at, signature string) http.Header {
		return headers(HeaderID, standardID, HeaderTimestamp, at, HeaderSignature, signature)
	}, func(sum []byte) string { return "v1," + base64.StdEncoding.EncodeToString(sum) }, standardSigned, "v1, v1a,x")
}

func FuzzStripe(f *testing.F) {
	fuzzHeader(f, "stripe", func(at, signature string) http.Header {
		return headers("Stripe-Signature", "t="+at+","+signature)
	}, func(sum []byte) string { return "v1=" + hex.EncodeToString(sum) }, stripeHeader[13:], "v1=,t=,=")
}

func FuzzGitHub(f *testing.F) {
	fuzzHeader(f, "github", func(_, signature string) http.Header {
		return headers("X-Hub-Signature-256", signature)
	}, func(sum []byte) string { return "sha256=" + hex.EncodeToString(sum) }, gitHubSigned, "sha256=")
}

func FuzzSlack(f *testing.F) {
	fuzzHeader(f, "slack", func(at, signature string) http.Header {
		return headers("X-Slack-Request-Timestamp", at, "X-Slack-Signature", signature)
	}, func(sum []byte) string { return "v0=" + hex.EncodeToString(sum) }, slackSigned, "v0=")
}
