package engine

import (
	"errors"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

// Whatever the store holds is read or refused.
func FuzzStored(f *testing.F) {
	signal := strings.Join([]string{sampleUUID, "", "k", "go", "c", "t", "s", "", "", "1", "2", "json", "e", "3", "4",
		"{}"}, unit)
	waitpoint := strings.Join([]string{"p", "k", "kid", "d", "", "1", "2", "3", sampleUUID, "0", "0", "", "", "", "0"},
		unit)
	for _, seed := range []string{sampleUUID + " kid nonce 5 key", signal, waitpoint,
		strings.Join([]string{"w", "signal", sampleUUID, "1", "2", "c", "b", "r", "0"}, unit),
		"gate acme amount tokens 5 4 1", "gate gpu rate", "unavailable route", "3." + sampleUUID + ":7",
		sampleUUID + " T1 1 2 3 w1", sampleUUID + " " + sampleUUID + " " + sampleUUID + " resumed go", "ff:{fp:3}:x:a",
		"l\x1fblue\x1fslow", "t\x1fa\x1fb", "5 m"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, err := range map[string]error{
			"opened":     second(DecodeOpened([]byte(text))),
			"resumption": second(DecodeResume([]byte(text))),
			"signal":     second(decodeSignal(text)),
			"waitpoint":  second(decodeWaitpoint("w", text)),
			"receipt":    second(DecodeReceipt([]byte(text))),
			"message":    second(decodeMessage(text)),
			"hold":       second(ParseHold(text)),
		} {
			if err != nil && !errors.Is(err, denied.Reply) && !errors.Is(err, flowfabric.ErrInvalidInput) &&
				!errors.Is(err, flowfabric.ErrCorrupt) {
				t.Errorf("%s %q: %v", name, text, err)
			}
		}
		_, _ = parseResumption(text)
		for _, kind := range []string{"c", "l", "s"} {
			_, _ = parseFeedEvent(3, kind, text)
		}
		if h, err := ParseHold(text); err == nil {
			if again, err := ParseHold(h.String()); err != nil || again != h {
				t.Errorf("%q: %+v, then %+v, %v", text, h, again, err)
			}
		}
		if id, err := parseFull(3, text); err == nil {
			if again, err := parseFull(0, full(id)); err != nil || again != id {
				t.Errorf("%q: %s, then %s, %v", text, id, again, err)
			}
		}
		if k, ok := parseKey(text); ok && !strings.HasPrefix(text, "ff:{") {
			t.Errorf("%q is the key %+v", text, k)
		}
	})
}

func second[V any](_ V, err error) error { return err }

// Whatever URL a configuration has is taken or refused, and its password is in no error.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{"@host:6379/1", "@[::1]:6379", "@a,b:26379/main?sentinel_username=u", "@/run/s.sock",
		"@host/x", "%zz", "", "@host?x=y", "#@"} {
		for scheme := range uint8(6) {
			f.Add(scheme, seed)
		}
	}
	schemes := []string{"redis", "rediss", "valkey", "unix", "redis+sentinel", "embedded"}
	const password = "s3cr3t-0f-th3-st0r3"
	f.Fuzz(func(t *testing.T, scheme uint8, text string) {
		url := schemes[int(scheme)%len(schemes)] + "://user:" + password + text
		_, err := Config{URL: url}.withDefaults().options()
		if err != nil && (!errors.Is(err, flowfabric.ErrConfig) || strings.Contains(err.Error(), password)) {
			t.Errorf("%q: %v", url, err)
		}
	})
}
