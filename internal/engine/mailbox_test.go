package engine

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// encodeReceipt is what lua/lib/mailbox.lua makes of one.
func encodeReceipt(r Receipt) string {
	out := []string{string(r.Why)}
	for _, m := range r.Messages {
		at := ""
		if !m.SentAt.IsZero() {
			at = strconv.FormatInt(m.SentAt.UnixMilli(), 10)
		}
		if at == "0" { // which stands for no time
			at = "00"
		}
		text := strings.Join([]string{strconv.FormatUint(m.Number, 10), m.Mailbox, at, m.By, m.Encoding,
			string(m.Payload)}, unit)
		out = append(out, strconv.Itoa(len(text))+":"+text)
	}
	return strings.Join(out, unit)
}

func TestDecodeReceipt(t *testing.T) {
	for _, text := range []string{"", "\x1f", "looked\x1f5:1\x1fa\x1f1", "\x1f3:abc", "\x1f99:abc", "\x1f-1:",
		"\x1fx:y", "\x1f13:1\x1fa\x1f1\x1f\x1fjson\x1f", "why\x1f12:1\x1fa\x1f1\x1f\x1fjson\x1f"} {
		if r, err := DecodeReceipt([]byte(text)); !errors.Is(err, denied.Reply) {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
	if r, err := DecodeReceipt([]byte("timeout")); err != nil || r.Why != "timeout" || r.Messages != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

func FuzzDecodeReceipt(f *testing.F) {
	f.Add("looked")
	f.Add(encodeReceipt(Receipt{Messages: []suspend.Message{{Number: 1, Mailbox: "user", By: "ann", Encoding: "json",
		Payload: []byte("1")}, {Number: 2, Mailbox: "a:b", Encoding: "bytes", Payload: []byte("\x1f7:")}}}))
	f.Add("\x1f0:")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := DecodeReceipt([]byte(text))
		if err != nil {
			if !errors.Is(err, denied.Reply) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		back, err := DecodeReceipt([]byte(encodeReceipt(r)))
		if err != nil || !reflect.DeepEqual(r, back) {
			t.Fatalf("%q: %v\n%+v\n%+v", text, err, r, back)
		}
	})
}
