package engine

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/lua"
)

// A server keeps its clock: the variant with the test clock and the real one never replace each other, whichever is
// older, and an engine that runs finds its own again.
func TestVariantsDoNotReplaceEachOther(t *testing.T) {
	for carried, hint := range map[bool]string{
		true: "the server carries the test-clock variant", false: "Config.TestClock is set and the server carries the real library",
	} {
		for _, revision := range []string{"", "0", "999"} {
			url := testserver.Redis(t)
			e := open(t, Config{URL: url, Partitions: 1, TestClock: carried})
			if revision != "" {
				text := strings.ReplaceAll(lua.Library(e.variant), lua.Hash(), e.hash())
				must(t, e, "FUNCTION", "LOAD", "REPLACE", strings.Replace(text, "reply.ok('1', '"+strconv.Itoa(lua.Revision)+"'", "reply.ok('1', '"+revision+"'", 1))
			}
			carries := version(t, e)
			if revision != "" && carries[1] != revision {
				t.Fatalf("carries %v, want revision %s", carries, revision)
			}
			before := strings.Join(carries, " ")
			for range 2 {
				other, err := Open(t.Context(), Config{URL: url, TestClock: !carried})
				if err == nil {
					other.Close()
				}
				oneLine(t, "the other variant over revision "+revision, err, flowfabric.ErrConfig, hint)
			}
			if after := strings.Join(version(t, e), " "); after != before {
				t.Errorf("version %s became %s", before, after)
			}
			open(t, Config{URL: url, TestClock: carried}).Close()
		}
	}
	url := testserver.Embedded(t) // sends each its own scripts
	open(t, Config{URL: url, TestClock: true})
	open(t, Config{URL: url})
}

// A library that does not know frames of which only the type is said gets them spelled out, and is replaced by ours.
func TestPlainFramesOnAnOlderLibrary(t *testing.T) {
	url := testserver.Redis(t)
	e := open(t, Config{URL: url, Partitions: 1})
	text := strings.Replace(lua.Library(e.variant), "local plain = count and #argv == 9 + count", "local plain = false", 1)
	text = strings.Replace(text, "reply.ok('1', '"+strconv.Itoa(lua.Revision)+"'", "reply.ok('1', '0'", 1)
	must(t, e, "FUNCTION", "LOAD", "REPLACE", strings.ReplaceAll(text, lua.Hash(), "older"))
	frames := []Frame{{Type: "token", Payload: []byte("a")}, {Type: "token", Payload: []byte("b")}}
	for _, want := range []string{"0", strconv.Itoa(lua.Revision)} {
		if carries := version(t, e); carries[1] != want {
			t.Fatalf("carries %v, want revision %s", carries, want)
		}
		f := flowfabric.Fence{Execution: flowfabric.NewExecutionID(0), Session: "w~1", Claim: 1, Epoch: 1, Attempt: 0}
		if _, err := e.AppendFrames(t.Context(), f, 1, frames); !errors.Is(err, flowfabric.ErrNotFound) {
			t.Errorf("a holder of nothing is answered %v, want that the execution is not there", err)
		}
	}
}
