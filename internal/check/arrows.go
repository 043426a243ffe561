package main

import (
	"fmt"
	"slices"
	"strings"
)

const module = "github.com/flowfabric/flowfabric-go"

// Package is what `go list` tells of one package; tests are not part of it.
type Package struct {
	ImportPath string
	Imports    []string // direct
	Deps       []string // all the way down
}

// levels is the spine: a package imports only from levels before its own.
var levels = [][]string{
	{"lua", "internal/fault", "internal/limits", "internal/ids", "internal/trail",
		"internal/prose", "internal/roundtrip", "internal/slowbody", "internal/words", "internal/integer",
		"internal/misfit", "internal/causes", "internal/sealed", "internal/spread", "internal/signature",
		"internal/markdown"},
	{"."},
	{"internal/codes", "internal/denied", "internal/contract", "internal/wire", "internal/apiv1", "internal/mint"},
	{"internal/narrow", "internal/failed", "internal/rollout"},
	{"internal/valid", "internal/option", "internal/digest", "internal/kindschema"},
	{"blob"},
	{"internal/library", "internal/keys", "internal/record", "internal/inproc", "internal/tracing",
		"internal/mergepatch", "internal/tailpos", "internal/waitwords", "schedule"},
	{"suspend", "admission", "internal/calendar", "internal/trigger"},
	{"stream", "internal/gatetext", "internal/timeline", "internal/busy"},
	{"internal/joblog"},
	{"internal/engine"},
	{"internal/keeper", "internal/framelog", "internal/tokenkeys", "internal/admit", "internal/ledger",
		"internal/offer", "internal/times",
		"internal/flowplan"},
	{"flow"},
	{"internal/source"},
	{"internal/session"},
	{"internal/waits"},
	{"internal/tasks"},
	{"handler"},
}

// beside names the packages beside the spine: what each sits on, and what it may import besides.
var beside = map[string]struct {
	on   string
	also []string
}{
	"internal/maintain":    {on: "internal/engine", also: []string{"internal/admit", "internal/flowplan"}},
	"internal/partmetrics": {on: "internal/engine"},
	"internal/functions":   {on: "lua"},
	"internal/store":       {on: "internal/functions", also: []string{"."}},
	"embedded":             {on: "internal/engine", also: []string{"internal/functions", "internal/store"}},
	"internal/explain":     {on: "internal/engine"},
	"internal/flowdraw":    {on: "internal/engine"},
	"internal/link":        {on: "handler"},
	"internal/backfill":    {on: "handler", also: []string{"internal/link"}},
	"internal/coalesce":    {on: "internal/engine", also: []string{"internal/link"}},
	"internal/submission":  {on: "handler", also: []string{"internal/coalesce", "internal/link"}},
	"internal/edit":        {on: "suspend"},
	"client": {on: "handler",
		also: []string{"internal/flowdraw", "internal/coalesce", "internal/edit", "internal/link", "internal/submission"}},
	"outbox": {on: "handler",
		also: []string{"client", "internal/coalesce", "internal/link", "internal/submission"}},
	"admin": {on: "handler",
		also: []string{"client", "internal/explain", "internal/link", "internal/maintain"}},
	"internal/gateway":      {on: "handler"},
	"lease":                 {on: "handler", also: []string{"embedded", "internal/maintain"}},
	"handler/middleware":    {on: "handler"},
	"approval":              {on: "suspend"},
	"agent":                 {on: "handler", also: []string{"client", "internal/edit"}},
	"chat":                  {on: "handler", also: []string{"agent", "client", "admin"}},
	"dashboard":             {on: "."},
	"internal/webhook":      {on: "handler", also: []string{"client", "admin"}},
	"internal/hookin":       {on: "handler", also: []string{"client"}},
	"internal/browsertoken": {on: "."},
	"internal/clientmodels": {on: ".", also: []string{"internal/apiv1"}},
	"internal/doctor":       {on: "internal/engine"},
	"httpapi": {on: "handler", also: []string{"client", "admin", "internal/browsertoken", "internal/link",
		"internal/gateway", "internal/doctor", "internal/explain", "internal/backfill"}},
	"fftest": {on: "handler",
		also: []string{"embedded", "internal/maintain", "client", "admin", "runtime"}},
	"runtime": {on: "handler",
		also: []string{"client", "embedded", "internal/maintain", "internal/partmetrics"}},

	"agent/fallback":      {on: "agent"},
	"agent/internal/wire": {on: "agent"},
	"agent/agenttest":     {on: "agent", also: []string{"admin"}},
}

// tops are the trees that nothing imports. They may import what they like, except that examples show what
// a user can do and so see no internal package.
var tops = []string{"agent/internal/modeltest", "clients", "cmd", "examples", "benchmarks", "internal/check", "internal/childtest", "internal/clienttest", "internal/cluster",
	"internal/conformance", "internal/contract/generate", "internal/crash", "internal/demotest", "internal/invariant",
	"internal/model", "internal/must", "internal/mutants", "internal/race", "internal/sentinel",
	"internal/simulate",
	"internal/storetest", "internal/testgate", "internal/testnode", "internal/testserver", "internal/testwait",
	"internal/toxic", "docs", "ops"}

// owners lists who may import a library, and everything below its path, directly. A name covers the tree
// under it; no name at all means nobody.
var owners = map[string][]string{
	"go.uber.org/fx":                      {"runtime", "examples"},
	"go.uber.org/dig":                     {"runtime"},
	"go.uber.org/zap":                     {},
	"go.uber.org/goleak":                  {"internal/demotest"},
	"github.com/redis/rueidis":            {"internal/engine", "internal/invariant"},
	"github.com/netresearch/go-cron":      {"schedule"},
	"github.com/spf13/cobra":              {"cmd/flowfabric"},
	"github.com/tidwall/btree":            {"internal/store"},
	"github.com/yuin/gopher-lua":          {"internal/functions", "internal/mutants"},
	"github.com/prometheus/client_golang": {"runtime", "internal/partmetrics", "outbox", "examples", "cmd/flowfabric"},
	"github.com/google/jsonschema-go": {"httpapi", "agent", "internal/edit", "internal/clientmodels",
		"internal/kindschema"},
	"golang.org/x/time":                 {"handler/middleware"},
	"github.com/sony/gobreaker":         {"handler/middleware"},
	"go.opentelemetry.io/otel":          {"internal/tracing", "client", "runtime", "agent"},
	"pgregory.net/rapid":                {},
	"github.com/anishathalye/porcupine": {},
	"testing": {"agent/internal/modeltest", "fftest", "internal/clienttest", "internal/conformance",
		"internal/demotest", "internal/must", "internal/testnode", "internal/testserver", "internal/testwait"},
}

// light are the packages a producer links; heavy is what must not come with them, however indirectly.
var (
	light = []string{"client", "admin", "flow", "internal/maintain"}
	heavy = []string{"go.uber.org/fx", "go.uber.org/dig", "go.uber.org/zap", "github.com/prometheus",
		"go.opentelemetry.io/otel/sdk", "github.com/tidwall/btree", "github.com/yuin/gopher-lua"}
)

// arrows reports every import inside the module that points the wrong way.
func arrows(packages []Package) (breaches []string) {
	for _, p := range packages {
		from := local(p.ImportPath)
		top := underAny(from, tops)
		allowed, known := below(from)
		if !top && !known {
			breaches = append(breaches, fmt.Sprintf(
				"%s: unknown package; give it a place in docs/architecture.md and in internal/check/arrows.go", from))
			continue
		}
		for _, path := range p.Imports {
			to := local(path)
			switch {
			case to == "":
			case underAny(to, tops) && !top:
				breaches = append(breaches, fmt.Sprintf("%s imports %s, which nothing but tests may import", from, to))
			case under(from, "examples") && under(to, "internal"):
				breaches = append(breaches, fmt.Sprintf("%s imports %s: an example uses what a user can use", from, to))
			case !top && !slices.Contains(allowed, to):
				breaches = append(breaches, fmt.Sprintf("%s imports %s against the arrows of internal/check/arrows.go",
					from, to))
			}
		}
	}
	return breaches
}

// below returns what a package may import inside the module.
func below(name string) (allowed []string, known bool) {
	if b, ok := beside[name]; ok {
		on, _ := below(b.on)
		return slices.Concat(on, []string{b.on}, b.also), true
	}
	for _, level := range levels {
		if slices.Contains(level, name) {
			return allowed, true
		}
		allowed = append(allowed, level...)
	}
	return nil, false
}

// libraries reports third-party imports in the wrong package.
func libraries(packages []Package) (breaches []string) {
	for _, p := range packages {
		from := local(p.ImportPath)
		for _, path := range p.Imports {
			for library, by := range owners {
				if under(path, library) && !underAny(from, by) {
					breaches = append(breaches, fmt.Sprintf("%s imports %s, which belongs to %v", from, path, by))
				}
			}
		}
		if !slices.Contains(light, from) {
			continue
		}
		for _, path := range p.Deps {
			if underAny(path, heavy) {
				breaches = append(breaches,
					fmt.Sprintf(
						"%s links %s through its imports: a producer links neither fx nor zap nor Prometheus nor the development server",
						from, path))
			}
		}
	}
	return breaches
}

// local is a package's path inside the module, "." for the root and "" for a package of someone else.
func local(path string) string {
	if path == module {
		return "."
	}
	name, ok := strings.CutPrefix(path, module+"/")
	if !ok {
		return ""
	}
	return name
}

func under(path, tree string) bool {
	return path == tree || strings.HasPrefix(path, tree+"/")
}

func underAny(path string, trees []string) bool {
	return slices.ContainsFunc(trees, func(tree string) bool { return under(path, tree) })
}
