package engine

import (
	"strconv"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// A server keeps its clock: the variant with the test clock and the real one never replace each other, whichever is
// older, and an engine that runs finds its own again.
func TestVariantsDoNotReplaceEachOther(t *testing.T) {
	for carried, hint := range map[bool]string{
		true:  "the server carries the test-clock variant",
		false: "Config.TestClock is set and the server carries the real library",
	} {
		for _, revision := range []string{"", "0", "999"} {
			url := testserver.Redis(t)
			e := open(t, Config{URL: url, Partitions: 1, TestClock: carried})
			if revision != "" {
				text := strings.ReplaceAll(library.Library(e.variant), library.Hash(), e.hash())
				answered(t, e, "FUNCTION", "LOAD", "REPLACE", strings.Replace(text, "reply.ok('"+protocol+"', '"+
					strconv.Itoa(library.Revision)+"'", "reply.ok('"+protocol+"', '"+revision+"'", 1))
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
}
