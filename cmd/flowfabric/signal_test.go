package main

import (
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// What an answer delivers: approve says "approve" unless told otherwise, a signal without anything says nothing.
func TestAnswers(t *testing.T) {
	for _, tc := range []struct{ otherwise, line, want string }{
		{"approve", "", `{"choice":"approve","by":"anna"}`},
		{"approve", "--comment fine", `{"choice":"approve","comment":"fine","by":"anna"}`},
		{"approve", "--choice reject", `{"choice":"reject","by":"anna"}`},
		{"approve", `--choice approve --arguments {"cents":5}`,
			`{"choice":"approve","by":"anna","arguments":{"cents":5}}`},
		{"approve", "--payload null", `null`},
		{"", "", `null`}, // nothing is sent
		{"", "--payload 7", `7`},
	} {
		a := &app{out: io.Discard, by: "anna"}
		v := verb{use: "answer", flags: answerFlags("", "")}
		cmd := v.command(a)
		must.No(t, cmd.Flags().Parse(words(t.Fatalf, tc.line)))
		q, err := a.request(v, cmd, nil)
		must.No(t, err)
		q.door = &door{client: &client.Client{}}
		err = q.answer(tc.otherwise)
		got, _ := json.Marshal(q.body["payload"])
		if err != nil || string(got) != tc.want {
			t.Errorf("%q delivers %s, want %s (%v)", tc.line, got, tc.want, err)
		}
	}
}

// What is stopped ends its request first, so that it can say what was done.
func TestEnding(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	later, cancel := ending(ctx)
	defer cancel()
	stop()
	if later.Err() != nil {
		t.Error("a request ends at once")
	}
	testwait.Until(t, "the request has ended", func() bool { return later.Err() != nil })
}
