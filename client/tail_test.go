package client

import (
	"reflect"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Each option of a tail sets what it is named after, and nothing else.
func TestTailOptions(t *testing.T) {
	three, frame := uint32(3), stream.Frame{Sequence: 7}
	cursor, err := stream.ParseCursor("5-1")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		option TailOption
		want   framelog.TailOptions
	}{
		"OnlyAttempt": {OnlyAttempt(3), framelog.TailOptions{Attempt: &three}}, "FromAttempt": {FromAttempt(3), framelog.TailOptions{From: 3}},
		"After": {After(cursor), framelog.TailOptions{After: cursor}}, "AfterFrame": {AfterFrame(frame), framelog.TailOptions{AfterFrame: &frame}},
		"FromNow": {FromNow(), framelog.TailOptions{FromNow: true}}, "WithoutBestEffort": {WithoutBestEffort(), framelog.TailOptions{WithoutBestEffort: true}},
	} {
		var got framelog.TailOptions
		if c.option.set(&got); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
