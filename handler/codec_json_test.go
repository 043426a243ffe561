package handler

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

type colour string

// shouted has a method that decodes it.
type shouted string

func (s *shouted) UnmarshalText(b []byte) error { *s = shouted(strings.ToUpper(string(b))); return nil }

type point struct {
	X, Y float64
	Note string `json:"note,omitempty"`
}

type tree struct {
	Name string `json:"name"`
	Kids []tree `json:"kids"`
}

type everything struct {
	Number  int               `json:"number"`
	Text    string            `json:"text"`
	Small   int8              `json:"small"`
	Count   uint16            `json:"count"`
	Ratio   float32           `json:"ratio"`
	OK      bool              `json:"ok"`
	Colour  colour            `json:"colour"`
	Skipped string            `json:"-"`
	Dash    string            `json:"dash-1.x"`
	Words   []string          `json:"words"`
	Points  []point           `json:"points"`
	At      point             `json:"at"`
	Loud    shouted           `json:"loud"`
	When    time.Time         `json:"when"`
	Maybe   *int              `json:"maybe"`
	Bytes   []byte            `json:"bytes"`
	Tags    map[string]string `json:"tags"`
	Any     any               `json:"any"`
	Raw     json.RawMessage   `json:"raw"`
	Exact   json.Number       `json:"exact"`
	Pair    [2]int            `json:"pair"`
	Tree    tree              `json:"tree"`
	Plain   int
}

type quoted struct {
	N int `json:"n,string"`
}

type embedding struct {
	point
	Z int
}

// same holds the codec to encoding/json for one type: in what it decodes and in what it refuses.
func same[T any](t *testing.T, data string) {
	t.Helper()
	var got, want T
	err, wrong := JSON.Decode([]byte(data), &got), json.Unmarshal([]byte(data), &want)
	if (err == nil) != (wrong == nil) || err != nil && err.Error() != wrong.Error() {
		t.Errorf("%T: %q: %v, want %v", got, data, err, wrong)
	}
	if wrong == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%T: %q was decoded to %+v, want %+v", got, data, got, want)
	}
}

func sameInAll(t *testing.T, data string) {
	t.Helper()
	same[everything](t, data)
	same[quoted](t, data)
	same[embedding](t, data)
	same[[]point](t, data)
	same[map[string]any](t, data)
	same[any](t, data)
	same[string](t, data)
	same[float64](t, data)
	same[tree](t, data)
	same[json.Number](t, data)
	same[json.RawMessage](t, data)
	same[time.Time](t, data)
	same[time.Duration](t, data)
}

var documents = []string{
	`{}`,
	` { "number" : -12 , "text" : "a b" , "ok" : true } `,
	"{\"text\":\"line\\nbreak \\\"quoted\\\" \\u003cb\\u003e \\\\ \\/ \\t é\",\"number\":0}",
	`{"small":-128,"count":65535,"ratio":1.5e-3,"ok":false,"colour":"red","Plain":7,"dash-1.x":"dash"}`,
	`{"words":[],"points":[{"X":1,"Y":-0.5,"note":"n"},{}],"at":{"Y":1E2}}`,
	`{"words":["a","b","c","d","e"]}`,
	`{"loud":"quiet","when":"2026-01-02T03:04:05Z","maybe":3,"bytes":"YWJj","tags":{"a":"}","b":"\"]"},"any":[1,{"x":null}],"raw": [1, 2] ,"exact":1.50,"pair":[1,2]}`,
	`{"tree":{"name":"a","kids":[{"name":"b","kids":[{"name":"c"}]}]}}`,
	`{"maybe":null,"any":null,"tags":null}`,
	`{"number":null}`, `null`, ``, ` `, `[]`, `"x"`, `{"text":"\ud83d\ude00"}`,
	`{"number":1,"number":2}`, `{"NUMBER":1}`, `{"unknown":1}`, `{"nu\u006dber":1}`,
	`{"number":01}`, `{"number":1.0}`, `{"number":1e2}`, `{"number":+1}`, `{"number":-}`, `{"number":"1"}`,
	`{"small":128}`, `{"count":-1}`, `{"count":-0}`, `{"ratio":1e999}`, `{"ratio":.5}`, `{"ratio":5.}`,
	`{"ratio":1e}`, `{"ratio":1e+}`, `{"ratio":1e+5}`, `{"ratio":0x1}`, `{"ratio":1_0}`, `{"ratio":-0}`,
	`{"number":1}x`, `{"number":1} {}`, `{"number":1`, `{"number":1,}`, `{"number"}`, `{"number":1 "text":""}`,
	"{\"text\":\"a\x01\"}", "{\"text\":\"a\xff\"}", "{\"text\":\"\\n\xff\"}", `{"text":"\x"}`, `{"text":"\u12"}`,
	`{"text":"\u+123"}`, `{"text":"`, `{"text":"\`,
	`{"ok":tru}`, `{"ok":truely}`, `{"ok":1}`, `{"words":[1]}`, `{"words":["a",]}`, `{"words":["a"`, `{"words":{}}`,
	`{"any":[1}}`, `{"any":[1,2}`, `{"any":"x}`, `{"any":}`, `{"any":1 2}`, `{"maybe":"x"}`, `{"hidden":1}`,
	`{"Skipped":"x"}`,
	"\x00", "{\"number\":1}\x00",
}

// The codec decodes with another library, because that does it in one pass. Nobody may notice.
func TestDecodesAsEncodingJSON(t *testing.T) {
	for _, data := range append(documents, `"text"`, `"`, `[{"X":1},{"Y":2}]`, `12`, ` true`, `{"n":"1"}`, `{"n":1}`,
		`{"X":1,"Z":2}`, `"2026-01-02T03:04:05Z"`,
		`"abc"`, `"12"`, `{"exact":"abc"}`, `{"exact":"12"}`, `{"exact":""}`, `{"x":1,"X":2,"x":3}`,
		strings.Repeat("[", 20_000)) {
		sameInAll(t, data)
	}
	at := point{X: 1, Note: "kept"}
	if err := JSON.Decode([]byte(`{"Y":2}`), &at); err != nil || at != (point{1, 2, "kept"}) {
		t.Errorf("%+v, %v", at, err)
	}
	for _, v := range []any{at, nil, (*point)(nil)} {
		if err, want := JSON.Decode([]byte(`{}`), v),
			json.Unmarshal([]byte(`{}`), v); err == nil || err.Error() != want.Error() {
			t.Errorf("into %T: %v, want %v", v, err, want)
		}
	}
}

func FuzzDecodeJSON(f *testing.F) {
	for _, data := range documents {
		f.Add(data)
	}
	f.Fuzz(sameInAll)
}
