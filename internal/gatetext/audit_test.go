package gatetext

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/admission"
)

// What the detail of an entry says is told by name, whatever text stands in front of it.
func TestAuditWords(t *testing.T) {
	for _, x := range []struct{ what, detail, want string }{
		{"created", "all of it strict fail allow 86400000 0 failed 0 0 0 0  h:cost,500,s:cost,0,h:tokens,10,s:tokens,8",
			`"gate":{"name":"n","scope":"all of it","limits":{"cost":{"hard":500},"tokens":{"hard":10,"soft":8}},` +
				`"reset_ms":86400000,"on_hard":"fail","refund":["failed"]}`},
		{"created", " warn fail warn 0 1  0 0 0 0  h:tokens,0,s:tokens,8",
			`"gate":{"name":"n","limits":{"tokens":{"soft":8}},"on_hard":"fail","warn":true,"warn_soft":true,` +
				`"strict":true}`},
		{"created", " strict fail allow 0 0  0 0 0 0  ", `"gate":{"name":"n","on_hard":"fail"}`},
		{"changed", " strict reject allow 0 0  0 0 4 0  ", `"gate":{"name":"n","on_hard":"reject","concurrency":4}`},
		{"changed", "mail and more strict reject allow 0 0  100 60000 5 20  h:tokens,9,s:tokens,0",
			`"gate":{"name":"n","scope":"mail and more","limits":{"tokens":{"hard":9}},"on_hard":"reject","rate":100,` +
				`"window_ms":60000,"jitter_ms":20,"concurrency":5}`},
		{"created", "a b c d e f g h i j k l m strict reject allow 0 0  0 0 4 0  ",
			`"gate":{"name":"n","scope":"a b c d e f g h i j k l m","on_hard":"reject","concurrency":4}`},
		{"changed", "team strict reject allow 0 0  0 0 4 0 firm ",
			`"gate":{"name":"n","scope":"team","parent":"firm","on_hard":"reject","concurrency":4}`},
		{"created", "m strict reject allow 0 0  0 0 0 0   sv,requests=500/12,tokens=9/2,cl,20,pt,2000,t:a,3,t:b,2",
			`"gate":{"name":"n","scope":"m","on_hard":"reject","service":{"per_minute":{"requests":500,"tokens":9},` +
				`"burst":{"requests":12,"tokens":2},"calls":20,"patience_ms":2000,"weights":{"a":3,"b":2}}}`},
		{"created", " strict reject allow 0 0  0 0 0 0   sv,,cl,2,pt,0",
			`"gate":{"name":"n","on_hard":"reject","service":{"calls":2}}`},
		{"period", "3 1700000000000 0 tokens=5,cost=1",
			`"amounts":{"cost":1,"tokens":5},"period":3,"period_began_at":"2023-11-14T22:13:20Z"`},
		{"period", "3 1700000000000 2 ", `"period":3,"period_began_at":"2023-11-14T22:13:20Z","periods_missed":2`},
		{"adjusted", "tokens=-5 counted twice", `"amounts":{"tokens":-5},"reason":"counted twice"`},
		{"release", "some-id failed tokens=5", `"amounts":{"tokens":5},"execution":"some-id","outcome":"failed"`},
		{"soft_limit", "tokens 9 8", `"breach":{"dimension":"tokens","hard":false,"used":9,"limit":8,"crossed":true}`},
		{"adjusted", "what is this", ""},
		{"something", "new", ""},
	} {
		e := admission.AuditEntry{What: x.what, Detail: x.detail}
		auditWords(&e, "n")
		got, err := json.Marshal(e)
		_, words, _ := strings.Cut(string(got), x.detail+`"`)
		if err != nil || strings.Trim(words, ",}") != strings.Trim(x.want, ",}") {
			t.Errorf("%s %q: %s, want %s, %v", x.what, x.detail, words, x.want, err)
		}
	}
}
