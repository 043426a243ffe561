package jsonplan

import (
	"encoding/json"
	"math"
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
	hidden  int
}

type quoted struct {
	N int `json:"n,string"`
}

type embedding struct {
	point
	Z int
}

// same holds Decode to encoding/json for one type, and tells whether it decoded.
func same[T any](t *testing.T, data string) bool {
	t.Helper()
	var got, want, zero T
	ok := Decode([]byte(data), &got)
	err := json.Unmarshal([]byte(data), &want)
	switch {
	case ok && err != nil:
		t.Errorf("%T: %q was decoded to %+v, but is wrong: %v", got, data, got, err)
	case ok && !reflect.DeepEqual(got, want):
		t.Errorf("%T: %q was decoded to %+v, want %+v", got, data, got, want)
	case !ok && !reflect.DeepEqual(got, zero):
		t.Errorf("%T: %q left %+v behind", got, data, got)
	}
	return ok
}

var documents = []struct {
	data  string
	plain bool // is decoded here
}{
	{`{}`, true},
	{` { "number" : -12 , "text" : "a b" , "ok" : true } `, true},
	{"{\"text\":\"line\\nbreak \\\"quoted\\\" \\u003cb\\u003e \\\\ \\/ \\t é\",\"number\":0}", true},
	{`{"small":-128,"count":65535,"ratio":1.5e-3,"ok":false,"colour":"red","Plain":7,"dash-1.x":"dash"}`, true},
	{`{"words":[],"points":[{"X":1,"Y":-0.5,"note":"n"},{}],"at":{"Y":1E2}}`, true},
	{`{"words":["a","b","c","d","e"]}`, true},
	{`{"loud":"quiet","when":"2026-01-02T03:04:05Z","maybe":3,"bytes":"YWJj","tags":{"a":"}","b":"\"]"},"any":[1,{"x":null}],"raw": [1, 2] ,"exact":1.50,"pair":[1,2]}`, true},
	{`{"tree":{"name":"a","kids":[{"name":"b","kids":[{"name":"c"}]}]}}`, true},
	{`{"maybe":null,"any":null,"tags":null}`, true},
	{`{"number":null}`, false}, {`null`, false}, {``, false}, {` `, false}, {`[]`, false}, {`"x"`, false}, {`{"text":"\ud83d\ude00"}`, false},
	{`{"number":1,"number":2}`, false}, {`{"NUMBER":1}`, false}, {`{"unknown":1}`, false}, {`{"nu\u006dber":1}`, false},
	{`{"number":01}`, false}, {`{"number":1.0}`, false}, {`{"number":1e2}`, false}, {`{"number":+1}`, false}, {`{"number":-}`, false}, {`{"number":"1"}`, false},
	{`{"small":128}`, false}, {`{"count":-1}`, false}, {`{"count":-0}`, false}, {`{"ratio":1e999}`, false}, {`{"ratio":.5}`, false}, {`{"ratio":5.}`, false},
	{`{"ratio":1e}`, false}, {`{"ratio":1e+}`, false}, {`{"ratio":1e+5}`, true}, {`{"ratio":0x1}`, false}, {`{"ratio":1_0}`, false}, {`{"ratio":-0}`, true},
	{`{"number":1}x`, false}, {`{"number":1} {}`, false}, {`{"number":1`, false}, {`{"number":1,}`, false}, {`{"number"}`, false}, {`{"number":1 "text":""}`, false},
	{"{\"text\":\"a\x01\"}", false}, {"{\"text\":\"a\xff\"}", false}, {"{\"text\":\"\\n\xff\"}", false}, {`{"text":"\x"}`, false}, {`{"text":"\u12"}`, false}, {`{"text":"\u+123"}`, false}, {`{"text":"`, false}, {`{"text":"\`, false},
	{`{"ok":tru}`, false}, {`{"ok":truely}`, false}, {`{"ok":1}`, false}, {`{"words":[1]}`, false}, {`{"words":["a",]}`, false}, {`{"words":["a"`, false}, {`{"words":{}}`, false},
	{`{"any":[1}}`, false}, {`{"any":[1,2}`, false}, {`{"any":"x}`, false}, {`{"any":}`, false}, {`{"any":1 2}`, false}, {`{"maybe":"x"}`, false}, {`{"hidden":1}`, false}, {`{"Skipped":"x"}`, false},
	{"\x00", false}, {"{\"number\":1}\x00", false},
}

func TestDecodesAsEncodingJSON(t *testing.T) {
	for _, d := range documents {
		if got := same[everything](t, d.data); got != d.plain {
			t.Errorf("%q: decoded here: %v, want %v", d.data, got, d.plain)
		}
	}
	for data, plain := range map[string]bool{`"text"`: true, `"`: false} {
		if got := same[string](t, data); got != plain {
			t.Errorf("%q: decoded here: %v, want %v", data, got, plain)
		}
	}
	if !same[[]point](t, `[{"X":1},{"Y":2}]`) || !same[int](t, `12`) || !same[bool](t, ` true`) {
		t.Error("a plain value that is no struct was not decoded here")
	}
	for _, foreigner := range []bool{same[quoted](t, `{"n":"1"}`), same[embedding](t, `{"X":1,"Z":2}`), same[time.Time](t, `"2026-01-02T03:04:05Z"`), same[any](t, `1`),
		same[map[string]int](t, `{"a":1}`), same[[]byte](t, `"YQ=="`)} {
		if foreigner {
			t.Error("a type that encoding/json alone knows was decoded here")
		}
	}
}

// What is there already is encoding/json's affair: it keeps what the data do not name.
func TestLeavesWhatIsNotZero(t *testing.T) {
	p := point{X: 1, Note: "kept"}
	if Decode([]byte(`{"Y":2}`), &p) || p != (point{X: 1, Note: "kept"}) {
		t.Errorf("decoded over it: %+v", p)
	}
	if Decode([]byte(`{}`), p) || Decode([]byte(`{}`), nil) || Decode([]byte(`{}`), (*point)(nil)) {
		t.Error("decoded into no pointer")
	}
}

// What encoding/json writes of plain data is decoded here, or the package is of no use.
func TestDecodesWhatIsWritten(t *testing.T) {
	maybe := math.MinInt
	full := everything{Number: math.MaxInt64, Text: "a <b> & \"c\"\n\u2028 é", Small: -1, Count: 7, Ratio: 1e-7, OK: true, Colour: "red", Dash: "x", Words: []string{"", "w"},
		Points: []point{{1e21, -3.25, ""}}, Loud: "L", When: time.Unix(1, 0).UTC(), Maybe: &maybe, Bytes: []byte{0}, Tags: map[string]string{"k": "v"}, Any: "x", Raw: json.RawMessage(`{}`), Exact: "1"}
	data, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	if full.hidden != 0 || !same[everything](t, strings.Replace(string(data), `"kids":null`, `"kids":[]`, 1)) {
		t.Errorf("%s was not decoded here", data)
	}
}

func FuzzDecode(f *testing.F) {
	for _, d := range documents {
		f.Add(d.data)
	}
	f.Fuzz(func(t *testing.T, data string) {
		same[everything](t, data)
		same[[]point](t, data)
		same[string](t, data)
		same[float64](t, data)
		same[tree](t, data)
	})
}
