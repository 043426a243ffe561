package mcp_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/roundtrip"
	"github.com/flowfabric/flowfabric-go/mcp/internal/operations"
)

// The official suite finds what testdata/node/operations.yml says it must of the tools that operate, and nothing else.
func TestOfficialConformanceSuiteOnOperations(t *testing.T) {
	dir, program := needNode(t)
	e := start(t)
	api, err := httpapi.New(httpapi.Config{Admin: admin.New(e.client), Authorize: httpapi.Open, Logger: quiet})
	must.No(t, err)
	t.Cleanup(api.Close)
	s, err := operations.New(e.ctx, operations.Config{Write: true, Logger: quiet,
		Door: operations.Door{Base: "http://localhost", Send: roundtrip.To{Handler: api}}})
	must.No(t, err)
	t.Cleanup(s.Close)
	suite := exec.CommandContext(e.ctx, program, filepath.Join(dir,
		"node_modules/@modelcontextprotocol/conformance/dist/index.js"), "server", "--url",
		e.listen(t, s.HTTP(true)), "--suite", "all", "--expected-failures", filepath.Join(dir, "operations.yml"),
		"--output-dir", t.TempDir())
	suite.Dir = dir
	out, err := suite.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for _, scenario := range []string{"server-initialize", "ping", "tools-list"} { // nothing was renamed away
		if !regexp.MustCompile(`✓ .*` + scenario + `: [1-9]\d* passed, 0 failed`).Match(out) {
			t.Errorf("%s did not pass: %s", scenario, out)
		}
	}
}
