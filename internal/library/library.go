// Package library turns the Lua files of package lua into what a server loads: one FUNCTION library for Valkey and Redis, one script per
// function for the embedded development server. It reads the headers of the functions, and identifies the whole by a revision and a hash.
package library

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/lua"
)

// Name of the library on the server.
const Name = "flowfabric"

// Revision grows by one with every released version whose functions differ. Inside one protocol number changes only add, so a process
// uses a library of a higher revision as it is, and replaces one of a lower.
const Revision = 1

// libs are the helpers in the order of their dependencies.
var libs = []string{
	"reply", "args", "pack", "time", "keys", "record", "waits", "group", "links", "publish", "policy", "trail", "root", "route", "lane", "gate", "ready", "turns", "share", "budget", "quota", "feed", "graph", "core", "steps", "history", "session", "fence",
	"doorbell", "urgent", "listing", "indexes", "tagging", "token", "inbox", "waitpoint", "mailbox", "awaited", "wait", "condition", "suspension", "arrival", "signal",
	"keyed", "purge", "create", "debounce", "member", "schedule", "stream", "settle", "chain", "flow", "replay", "merge", "claim", "frames", "registry", "audit", "audit_entries", "audit_tables", "audit_root", "audit_owners", "joined",
}

var areas = []string{"system", "execution", "worker", "stream", "suspend", "operate", "read", "flow", "admission", "tick"}

// Variant selects what differs between servers; the rules never do.
type Variant struct {
	// Sharded publishes with SPUBLISH, which reaches one shard of a cluster only.
	Sharded bool
	// TestClock adds the root's clock_offset to the server's time. Tests only.
	TestClock bool
}

// Header is the first comment of a function file.
type Header struct {
	Name    string
	Purpose string
	Flags   []string // no-writes, allow-oom
	Method  string   // "Engine.ClaimNext"
	Args    string
	Replies string
	Errors  []string
	File    string
}

// Functions lists the headers of all functions, by name. It panics on a malformed header, which a test of this
// package would have found.
var Functions = sync.OnceValue(func() []Header {
	var out []Header
	for _, area := range areas {
		entries, err := lua.Files.ReadDir(area)
		if err != nil {
			panic(err)
		}
		for _, e := range entries {
			h, err := parseHeader(path.Join(area, e.Name()))
			if err != nil {
				panic(err)
			}
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b Header) int { return strings.Compare(a.Name, b.Name) })
	return out
})

func parseHeader(file string) (Header, error) {
	h := Header{Name: strings.TrimSuffix(path.Base(file), ".lua"), File: file}
	label := ""
	for line := range strings.Lines(read(file)) {
		text, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "-- ")
		if !ok {
			break
		}
		if name, rest, ok := strings.Cut(text, ":"); ok && slices.Contains([]string{"Flags", "Go", "Args", "Replies", "Errors", h.Name}, name) {
			label, text = name, strings.TrimSpace(rest)
		}
		switch label {
		case h.Name:
			h.Purpose = strings.TrimSpace(h.Purpose + " " + text)
		case "Flags":
			if text != "none" {
				h.Flags = strings.Fields(text)
			}
		case "Go":
			h.Method = text
		case "Args":
			h.Args = text
		case "Replies":
			h.Replies = text
		case "Errors":
			if text != "none" {
				h.Errors = strings.Fields(text)
			}
		}
	}
	if h.Purpose == "" || h.Method == "" || h.Args == "" || h.Replies == "" {
		return Header{}, fmt.Errorf("lua/%s: the header lacks its purpose, Go, Args or Replies line", file)
	}
	return h, nil
}

// Library is the FUNCTION LOAD text for a variant.
func Library(v Variant) string {
	var b strings.Builder
	b.WriteString("#!lua name=" + Name + "\n")
	for _, lib := range libs {
		b.WriteString(libSource(lib, v))
	}
	for _, h := range Functions() {
		// A block of its own: a chunk has at most 200 locals.
		b.WriteString("do\n" + read(h.File))
		fmt.Fprintf(&b, "redis.register_function{function_name='%s', callback=function(k, argv) return %s end%s}\nend\n", h.Name, call(h, "k, argv"), flags(h.Flags))
	}
	return finish(b.String(), v)
}

// call is the expression that calls a function. One that works on a partition is given the state of the call, or enters its root itself to
// know more of it or with other words; what it changed of executions is written when it ends. Others have only keys and arguments.
func call(h Header, given string) string {
	switch {
	case !enters(h):
		return h.Name + "(" + given + ")"
	case strings.Contains(read(h.File), "root.enter("):
		return "root.leave(" + h.Name + "(" + given + "))"
	default:
		return "root.run(" + h.Name + ", " + given + ")"
	}
}

// enters tells whether a function works on a partition.
func enters(h Header) bool {
	text := read(h.File)
	return strings.Contains(text, "root.enter(") || strings.Contains(text, "local function "+h.Name+"(ctx, argv)")
}

// Hash identifies the content, whatever the variant.
var Hash = sync.OnceValue(func() string {
	h := sha256.New()
	for _, lib := range libs {
		h.Write([]byte(read("lib/" + lib + ".lua")))
	}
	for _, f := range Functions() {
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

// libSource is the text of a helper in a block of its own, so that only its table counts among the locals that a chunk may have.
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
		"@PROTOCOL@", strconv.Itoa(limits.Protocol), "@REVISION@", strconv.Itoa(Revision), "@HASH@", Hash()).Replace(text)
}

func read(file string) string {
	text, err := lua.Files.ReadFile(file)
	if err != nil {
		panic(err)
	}
	return string(text)
}
