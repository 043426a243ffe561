package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

func TestPublish(t *testing.T) {
	for server, start := range servers {
		t.Run(server, func(t *testing.T) {
			w := newEnv(t, start(t))
			const put = "triggers put ship --subject order.paid --kind echo"
			for _, call := range []struct {
				line, stdin string
				code        int
				says        string
			}{
				{put + " --where order.state=paid --where order.id=7", "", exitOK, "trigger ship: put"},
				{put + " --where order.id=7 --where order.state=paid", "", exitOK, "already"},
				{"publish order.paid --id e1 --data -", `{"order":{"id":7,"state":"paid"}}`, exitOK, "1 execution"},
				{"publish order.paid --id e1 --data -", `{"order":{"id":7,"state":"paid"}}`, exitOK,
					"duplicate, nothing started (1 execution, 0 waits the first time)"},
				{"publish order.paid --data -", `{"order":{"id":"7","state":"paid"}}`, exitOK, "0 executions"},
				{"triggers list", "", exitOK, `order.id=7 order.state="paid"`},
				{"triggers put x --subject order.paid --kind echo --where order", "", exitUsage, "want field=value"},
				{"triggers put x --kind echo", "", exitUsage, "subject"},
				{"publish order.paid --data nope", "", exitUsage, "JSON"},
				{"triggers remove ship --subject order.paid", "", exitOK, "removed"},
			} {
				code, out, failed := w.run(call.line, call.stdin)
				if code != call.code || !strings.Contains(out+failed, call.says) {
					t.Errorf("%s: %d, %s%s", call.line, code, out, failed)
				}
			}
			var p client.Published
			_, out, _ := w.run("publish order.paid --id e2 --json", "")
			must.No(t, json.Unmarshal([]byte(out), &p))
			if p != (client.Published{ID: "e2"}) {
				t.Errorf("%+v", p)
			}
		})
	}
}
