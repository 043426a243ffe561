// Package library turns the Lua files of package lua into what a server loads: one FUNCTION library, which it
// identifies by a revision and a hash.
package library

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/flowfabric/flowfabric-go/internal/contract"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/lua"
)

// Name of the library on the server.
const Name = "flowfabric"

// Revision grows by one with every released version whose functions differ. Inside one protocol number changes only
// add, so a process uses a library of a higher revision as it is, and replaces one of a lower.
const Revision = 1

// libs are the helpers in the order of their dependencies.
var libs = []string{
	"reply", "args", "pack", "time", "keys", "record", "wait_record", "group", "links", "publish", "policy", "trail",
	"root", "timers", "route", "lane", "gate", "ready", "turns", "share", "meter", "ledger", "starts", "service",
	"feed", "graph", "core", "history", "session", "fence", "doorbell", "urgent", "listing", "catalogue", "indexes",
	"home", "token",
	"signals", "waitpoint", "steps", "mailbox", "wait_others", "subject", "expect", "wait_children", "condition",
	"suspension", "talk",
	"delivery", "keyed", "base", "purge", "create", "debounce", "member", "schedule", "stream", "settle", "chain",
	"written", "joblog",
	"flow", "replay", "rewind", "merge", "claim", "frames", "registry", "audit", "audit_entries", "audit_tables",
	"audit_root", "audit_owners", "audit_members",
}

// Variant selects what differs between servers; the rules never do.
type Variant struct {
	// Sharded publishes with SPUBLISH, which reaches one shard of a cluster only.
	Sharded bool
	// TestClock adds the root's clock_offset to the server's time. Tests only.
	TestClock bool
	// General leaves out the straight lines and plain paths: every record is decoded, every item has a table. Tests
	// only, which hold the two to each other.
	General bool
}

// Library is the FUNCTION LOAD text for a variant.
func Library(v Variant) string {
	if text, ok := built.Load(v); ok {
		return text.(string)
	}
	text, _ := built.LoadOrStore(v, build(v))
	return text.(string)
}

// built keeps what was built, by variant: a test opens many stores.
var built sync.Map

func build(v Variant) string {
	var b strings.Builder
	b.WriteString("#!lua name=" + Name + "\n")
	for _, lib := range libs {
		b.WriteString(libSource(lib, v))
	}
	b.WriteString("local decode = {}\n")
	for _, area := range contract.Areas {
		b.WriteString(read("decode/" + area + ".lua"))
	}
	for _, h := range contract.Functions() {
		// A block of its own: a chunk has at most 200 locals.
		b.WriteString("do\n" + read(h.File))
		fmt.Fprintf(&b,
			"redis.register_function{function_name='%s', callback=function(k, argv) return %s end%s}\nend\n", h.Name,
			call(h, "k, argv"), flags(h.Flags))
	}
	text := finish(bare(b.String()), v)
	for _, c := range plain {
		if strings.Count(text, c[0]) != 1 {
			panic("library: the files do not say once: " + c[0])
		}
		if v.General {
			text = strings.Replace(text, c[0], c[1], 1)
		}
	}
	return text
}

// plain has the places where a straight line or a plain path begins, and what stands there without it.
var plain = [][2]string{
	{"calm = not (h[4] or h[5] or h[6])", "calm = false"},
	{"function record.spliceable(ctx, id)", "function record.spliceable(ctx, id) if ctx then return nil end "},
	{"function record.plain(text, token)", "function record.plain(text, token) if text then return nil end "},
	{"function record.fresh(c)", "function record.fresh(c) if c then return nil end "},
	{"function create.shape(ctx, group)", "function create.shape(ctx, group) if ctx then return nil end "},
	{"local function keep(ctx, group, t)", "local function keep(ctx, group, t) if ctx then return end "},
}

// bare drops comments of whole lines and indentation, a third of what a server would have to read. Lines keep their
// numbers.
func bare(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "--") {
			b.WriteString(line)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// call is the expression that calls a function. One that works on a partition is given the state of the call, or
// enters its root itself to know more of it or with other words; what it changed of executions is written when it
// ends. Others have only keys and arguments.
func call(h contract.Function, given string) string {
	switch {
	case !enters(h):
		return h.Name + "(" + given + ")"
	case strings.Contains(read(h.File), "root.enter("):
		return "root.leave(" + h.Name + "(" + given + "))"
	default:
		if h.Decoded == contract.DecodedAll {
			given += ", decode." + h.Name
		}
		return "root.run(" + h.Name + ", " + given + ")"
	}
}

// enters tells whether a function works on a partition.
func enters(h contract.Function) bool {
	text := read(h.File)
	return strings.Contains(text, "root.enter(") || h.Decoded == contract.DecodedAll ||
		strings.Contains(text, "local function "+h.Name+"(ctx, argv)")
}

// Hash identifies the content, whatever the variant.
var Hash = sync.OnceValue(func() string {
	h := sha256.New()
	for _, lib := range libs {
		h.Write([]byte(read("lib/" + lib + ".lua")))
	}
	for _, area := range contract.Areas {
		h.Write([]byte(read("decode/" + area + ".lua")))
	}
	for _, f := range contract.Functions() {
		h.Write([]byte(read(f.File)))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
})

func flags(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ", flags={'" + strings.Join(names, "','") + "'}"
}

// table is the first statement of a helper: the table that it is known by.
var table = regexp.MustCompile(`(?m)^local (\w+) = \{`)

// libSource is the text of a helper in a block of its own, so that only its table counts among the locals that a
// chunk may have.
func libSource(lib string, v Variant) string {
	text := read(libFile(lib, v))
	at := table.FindStringSubmatchIndex(text)
	name := text[at[2]:at[3]]
	return "local " + name + "\ndo\n" + text[:at[0]] + strings.TrimPrefix(text[at[0]:], "local ") + "\nend\n"
}

func libFile(lib string, v Variant) string {
	if lib == "time" && v.TestClock {
		lib = "time_test_clock"
	}
	return "lib/" + lib + ".lua"
}

func finish(text string, v Variant) string {
	publish, count := "PUBLISH", "NUMSUB"
	if v.Sharded {
		publish, count = "SPUBLISH", "SHARDNUMSUB"
	}
	return strings.NewReplacer("@PUBLISH@", publish, "@NUMSUB@", count,
		"@PROTOCOL@", strconv.Itoa(limits.Protocol), "@REVISION@", strconv.Itoa(Revision), "@HASH@",
		Hash()).Replace(text)
}

func read(file string) string {
	text, err := lua.Files.ReadFile(file)
	if err != nil {
		panic(err)
	}
	return string(text)
}
