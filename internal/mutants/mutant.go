package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Mutant is one seeded bug.
type Mutant struct {
	Name string // what is broken, in a few words; unique
	In   string // the function it is in, see Sources
	Old  string // text that occurs exactly once there
	New  string // what takes its place
	By   Test   // the tests that must notice
}

// Test names tests: a package of the module, and a pattern for go test -run.
type Test struct {
	Package, Run string
}

// suite names topics of the conformance suite on Redis.
func suite(topics string) Test {
	return Test{"./internal/conformance", "^TestRedis$/^(" + topics + ")$"}
}

// pinned names topics of the suite on the embedded server, where the clock can be stopped.
func pinned(topics string) Test {
	return Test{"./internal/conformance", "^TestEmbedded$/^(" + topics + ")$"}
}

// in names tests of one package.
func in(pkg, run string) Test { return Test{"./" + pkg, run} }

// catalogue lists every bug.
func catalogue() []Mutant {
	return slices.Concat(fenceMutants, sessionMutants, claimMutants, orderMutants, bellMutants, homeMutants, createMutants, settleMutants,
		streamMutants, operatorMutants, tickMutants, engineMutants, holdingMutants, workerMutants, signalMutants, mailboxMutants, childrenMutants, awaitMutants, continueMutants, suspendMutants, modeMutants,
		scheduleMutants, laneMutants, retentionMutants, keyMutants, debounceMutants, batchMutants, apiMutants, middlewareMutants, trailMutants, whyMutants, registryMutants, feedMutants, auditMutants, flowMutants, cleanupMutants, gateMutants, clockMutants, agentMutants)
}

// Apply returns the part of a source with the bug. How the text is laid out does not matter. It fails unless the old text is there exactly
// once, so that an entry which the sources have outgrown is noticed instead of changing something else.
func (m Mutant) Apply(part string) (string, error) {
	text, from := squeeze(part)
	old, _ := squeeze(m.Old)
	old = strings.TrimSpace(old)
	if n := strings.Count(text, old); n != 1 || old == "" {
		return "", fmt.Errorf("%s: the old text occurs %d times in %s, not once:\n%s", m.Name, n, m.In, m.Old)
	}
	at := strings.Index(text, old)
	changed := part[:from[at]] + strings.TrimSpace(m.New) + part[from[at+len(old)-1]+1:]
	if changed == part {
		return "", fmt.Errorf("%s: changes nothing", m.Name)
	}
	return changed, nil
}

// moduleRoot is the directory of the module's go.mod.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	file := strings.TrimSpace(string(out))
	if file == "" || file == os.DevNull {
		return "", fmt.Errorf("not in a module")
	}
	return filepath.Dir(file), nil
}
