package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/functions"
	"github.com/flowfabric/flowfabric-go/internal/store"
)

// importer writes what it reads of a server to a store.
type importer struct {
	to   *store.Store
	keys int
}

// Bounds of one call: with the largest values its answer is some hundred MiB.
const (
	keysPerCall  = 200
	partsPerCall = 100 // of a value
)

// all reads the keys of one server.
func (i *importer) all(ctx context.Context, node *engine.Probe) error {
	cursor := "0"
	for {
		found, err := node.Ask(ctx, "SCAN", cursor, "MATCH", "ff:*", "COUNT", strconv.Itoa(keysPerCall)).AsScanEntry()
		if err != nil {
			return engine.CallError("scan", err)
		}
		if err := i.some(ctx, node, found.Elements); err != nil {
			return err
		}
		if cursor = strconv.FormatUint(found.Cursor, 10); cursor == "0" {
			return nil
		}
	}
}

// some reads keys: first their types and times, then the beginnings of all values, then what is left of long ones.
func (i *importer) some(ctx context.Context, node *engine.Probe, keys []string) error {
	type found struct {
		key, kind string
		until     int64
	}
	var all []found
	var ask []engine.Command
	for _, key := range keys {
		ask = append(ask, engine.On("TYPE", key), engine.On("PEXPIRETIME", key))
	}
	answers := node.Do(ctx, ask...)
	ask = ask[:0]
	for n, key := range keys {
		kind, err := answers[2*n].ToString()
		until, err2 := answers[2*n+1].AsInt64()
		if err := cmp.Or(err, err2); err != nil {
			return engine.CallError("type", err)
		}
		if kind == "none" || i.has(key) { // SCAN may name a key twice
			continue
		}
		if _, known := readings[kind]; !known {
			return fmt.Errorf("key %q has the type %s, which FlowFabric does not use", key, kind)
		}
		all = append(all, found{key, kind, until})
		ask = append(ask, readings[kind].ask(key, ""))
	}
	for n, answer := range node.Do(ctx, ask...) {
		key := all[n]
		if err := i.value(ctx, node, key.key, key.kind, answer); err != nil {
			return fmt.Errorf("key %q: %w", key.key, err)
		}
		if key.until > 0 {
			if err := i.write([]string{"PEXPIREAT", key.key, strconv.FormatInt(key.until, 10)}); err != nil {
				return err
			}
		}
		i.keys++
	}
	return nil
}

func (i *importer) has(key string) bool {
	i.to.Lock()
	defer i.to.Unlock()
	return i.to.Do([]string{"EXISTS", key}).Int > 0
}

// value writes a value, of which answer is the beginning.
func (i *importer) value(ctx context.Context, node *engine.Probe, key, kind string, answer engine.Response) error {
	how, at := readings[kind], ""
	for {
		commands, next, err := how.build(key, at, answer)
		if err != nil {
			return engine.CallError("read", err)
		}
		if err := i.write(commands...); err != nil || next == "" {
			return err
		}
		at = next
		answer = node.Do(ctx, how.ask(key, at))[0]
	}
}

// write carries out commands as one call of the store.
func (i *importer) write(commands ...[]string) (err error) {
	i.to.Lock()
	for _, args := range commands {
		if r := i.to.Do(args); r.Kind == functions.KindError && err == nil {
			err = fmt.Errorf("%s: %s", args[0], r.Text)
		}
	}
	return errors.Join(err, i.to.Wait(i.to.Unlock()))
}

// reading is how a value of a type is read in parts. ask reads the part behind a place, "" for the first; build makes
// commands of the answer, and next is the place of the next part, "" for none.
type reading struct {
	ask   func(key, at string) engine.Command
	build func(key, at string, answer engine.Response) (commands [][]string, next string, err error)
}

var readings = map[string]reading{
	"string": {
		func(key, _ string) engine.Command { return engine.On("GET", key) },
		func(key, _ string, answer engine.Response) ([][]string, string, error) {
			text, err := answer.ToString()
			return [][]string{{"SET", key, text}}, "", err
		}},
	"hash":   scanned("HSCAN", "HSET"),
	"set":    scanned("SSCAN", "SADD"),
	"list":   ranged("LRANGE", "RPUSH"),
	"zset":   ranged("ZRANGE", "ZADD", "WITHSCORES"),
	"stream": {askStream, buildStream},
}

// scanned reads by a cursor.
func scanned(read, write string) reading {
	return reading{
		func(key, at string) engine.Command {
			return engine.On(read, key, cmp.Or(at, "0"), "COUNT", strconv.Itoa(partsPerCall))
		},
		func(key, _ string, answer engine.Response) (commands [][]string, next string, err error) {
			found, err := answer.AsScanEntry()
			if len(found.Elements) > 0 {
				commands = [][]string{append([]string{write, key}, found.Elements...)}
			}
			if found.Cursor != 0 {
				next = strconv.FormatUint(found.Cursor, 10)
			}
			return commands, next, err
		}}
}

// ranged reads by indexes.
func ranged(read, write string, how ...string) reading {
	return reading{
		func(key, at string) engine.Command {
			from, _ := strconv.Atoi(at)
			return engine.On(read, key,
				append([]string{strconv.Itoa(from), strconv.Itoa(from + partsPerCall - 1)}, how...)...)
		},
		func(key, at string, answer engine.Response) (commands [][]string, next string, err error) {
			from, _ := strconv.Atoi(at)
			var parts []string
			n := 0
			if len(how) == 0 {
				parts, err = answer.AsStrSlice()
				n = len(parts)
			} else {
				scores, err2 := answer.AsZScores()
				for _, z := range scores {
					parts = append(parts, score(z.Score), z.Member)
				}
				n, err = len(scores), err2
			}
			if n > 0 {
				commands = [][]string{append([]string{write, key}, parts...)}
			}
			if n == partsPerCall {
				next = strconv.Itoa(from + n)
			}
			return commands, next, err
		}}
}

func score(f float64) string {
	if math.IsInf(f, 0) {
		return strings.ToLower(strings.TrimPrefix(fmt.Sprint(f), "+")) // inf, -inf
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// streamEnd is the place behind the entries of a stream, where its last id is read: it may be that of an entry that
// was removed, and no later entry may have a lower one.
const streamEnd = "end"

func askStream(key, at string) engine.Command {
	if at == streamEnd {
		return engine.On("XINFO", "", "STREAM", key)
	}
	return engine.On("XRANGE", key, cmp.Or(at, "-"), "+", "COUNT", strconv.Itoa(partsPerCall))
}

func buildStream(key, at string, answer engine.Response) (commands [][]string, next string, err error) {
	if at == streamEnd {
		commands, err = endStream(key, answer)
		return commands, "", err
	}
	entries, err := answer.AsXRangeSlices()
	for _, e := range entries {
		args := []string{"XADD", key, e.ID}
		for _, f := range e.FieldValues {
			args = append(args, f.Field, f.Value)
		}
		commands = append(commands, args)
		next = "(" + e.ID
	}
	if len(entries) < partsPerCall {
		next = streamEnd
	}
	return commands, next, err
}

func endStream(key string, answer engine.Response) (commands [][]string, err error) {
	info, err := answer.AsMap()
	if err != nil {
		return nil, err
	}
	length, added, last, deleted := info["length"], info["entries-added"], info["last-generated-id"],
		info["max-deleted-entry-id"]
	n, err1 := length.AsInt64()
	ever, err2 := added.AsInt64()
	lastID, err3 := last.ToString()
	deletedID, err4 := deleted.ToString()
	if err := cmp.Or(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	switch {
	case n == 0 && lastID == "0-0": // nothing was ever in it
		return nil, nil
	case n == 0: // it is made by adding and trimming
		commands = append(commands, []string{"XADD", key, "MAXLEN", "=", "0", lastID, "", ""})
	}
	return append(commands, []string{"XSETID", key, lastID, "ENTRIESADDED", strconv.FormatInt(ever, 10), "MAXDELETEDID",
		deletedID}), nil
}

var functionCalls = regexp.MustCompile(`(?m)^cmdstat_fcall:calls=(\d+)`)

// writes counts the calls of functions that may write. Processes of FlowFabric make some every second.
func writes(ctx context.Context, primaries []*engine.Probe) (sum int, err error) {
	for _, p := range primaries {
		stats, err := p.Ask(ctx, "INFO", "commandstats").ToString()
		if err != nil {
			return 0, engine.CallError("info", err)
		}
		if !strings.Contains(stats, "cmdstat_") {
			return 0, errors.New("the server does not count its calls (INFO commandstats), so nobody could tell " +
				"whether a process of FlowFabric writes meanwhile")
		}
		if m := functionCalls.FindStringSubmatch(stats); m != nil {
			n, _ := strconv.Atoi(m[1]) // just matched
			sum += n
		}
	}
	return sum, nil
}
