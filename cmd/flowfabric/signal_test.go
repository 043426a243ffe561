package main

import (
	"encoding/json"
	"io"
	"testing"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

// What an answer delivers: approve says "approve" unless told otherwise, a signal without anything says nothing.
func TestAnswers(t *testing.T) {
	for _, tc := range []struct{ otherwise, line, want string }{
		{"approve", "", `{"choice":"approve","by":"anna"}`},
		{"approve", "--comment fine", `{"choice":"approve","comment":"fine","by":"anna"}`},
		{"approve", "--choice reject", `{"choice":"reject","by":"anna"}`},
		{"approve", "--payload null", `null`},
		{"", "", `null`},
		{"", "--payload 7", `7`},
	} {
		f, cmd := answerFlags{otherwise: tc.otherwise}, &cobra.Command{}
		f.add(cmd)
		must.No(t, cmd.Flags().Parse(words(t.Fatalf, tc.line)))
		payload, _, err := f.answer(&app{out: io.Discard}, "anna", cmd.Flags().Changed)
		got, _ := json.Marshal(payload)
		if err != nil || string(got) != tc.want {
			t.Errorf("%q delivers %s, want %s (%v)", tc.line, got, tc.want, err)
		}
	}
}
