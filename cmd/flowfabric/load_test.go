package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/doctor"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// load needs no more than the loader's rights, and brings all that a producer, who may not load, needs then.
func TestLoad(t *testing.T) {
	for _, kind := range []testserver.Kind{testserver.ServerRedis, testserver.ServerValkey} {
		t.Run(string(kind), func(t *testing.T) {
			rules := "user default on nopass ~* &* +@all\n"
			for _, user := range []string{"loader", "producer"} {
				own, err := os.ReadFile(filepath.Join("..", "..", "ops", "acl", user+".acl"))
				must.No(t, err)
				rules += string(own)
			}
			file := filepath.Join(t.TempDir(), "users.acl")
			must.No(t, os.WriteFile(file, []byte(rules), 0o600))
			s := testserver.Start(t, kind, testserver.TCP(), testserver.Args("--aclfile", file))
			as := func(user string, args ...string) (int, string) {
				var out bytes.Buffer
				url := "redis://" + user + ":change-me-" + user + "@" + s.Address()
				code := run(t.Context(), append(args, "--url", url), strings.NewReader(""), &out, &out)
				return code, out.String()
			}
			if code, out := as("producer", "submit", "report"); code != exitDenied {
				t.Fatalf("submit before load: exit %d: %s", code, out)
			}
			for range 2 {
				code, out := as("loader", "load", "--json")
				var v loaded
				if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitOK ||
					v.Revision != library.Revision || v.Partitions == 0 ||
					!strings.HasPrefix(v.Server, strings.TrimSuffix(string(kind), "-server")+" ") {
					t.Fatalf("load: exit %d: %s", code, out)
				}
			}
			if code, out := as("producer", "submit", "report"); code != exitOK {
				t.Errorf("submit after load: exit %d: %s", code, out)
			}
			if code, out := as("producer", "load"); code != exitOK || !strings.Contains(out, "revision") {
				t.Errorf("load of somebody else when nothing is to be done: exit %d: %s", code, out)
			}
		})
	}
}

// A node with no library, an old one or no answer is named; a replica is not looked at.
func TestCarried(t *testing.T) {
	carrying := func(revision int) doctor.LibraryReport { return doctor.LibraryReport{Revision: revision} }
	revision, without := carried([]doctor.NodeReport{
		{Address: "newer", Role: "master", Library: carrying(library.Revision + 1)},
		{Address: "same", Role: "master", Library: carrying(library.Revision)},
		{Address: "replica", Role: "slave"}, {Address: "old", Role: "master", Library: carrying(library.Revision - 1)},
		{Address: "empty", Role: "master", Library: doctor.LibraryReport{Missing: true}},
		{Address: "away", Err: flowfabric.ErrTransport},
	})
	if got := strings.Join(without, " "); revision != library.Revision || got != "old empty away" {
		t.Errorf("revision %d, without %s", revision, got)
	}
}
