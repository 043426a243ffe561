package client

import (
	"reflect"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Each option of a tail sets what it is named after, and nothing else.
func TestTailOptions(t *testing.T) {
	three := uint32(3)
	position, err := stream.ParsePosition("a2r")
	must.No(t, err)
	for name, c := range map[string]struct {
		option TailOption
		want   framelog.TailOptions
	}{
		"OnlyAttempt":       {OnlyAttempt(3), framelog.TailOptions{Attempt: &three}},
		"From":              {From(position), framelog.TailOptions{From: position}},
		"Stored":            {Stored(), framelog.TailOptions{Stored: true}},
		"FromNow":           {FromNow(), framelog.TailOptions{FromNow: true}},
		"WithoutChildren":   {WithoutChildren(), framelog.TailOptions{WithoutChildren: true}},
		"WithoutBestEffort": {WithoutBestEffort(), framelog.TailOptions{WithoutBestEffort: true}},
	} {
		var got framelog.TailOptions
		if c.option.set(&got); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
