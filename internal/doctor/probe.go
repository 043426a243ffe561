package doctor

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/prose"
)

// Ability is one thing that FlowFabric needs of a server, and whether it was there when it was tried: ok, fail, skip if
// it could not be tried, or warn for one that FlowFabric works without.
type Ability struct {
	Name   string `json:"ability"`
	Status Status `json:"status"`
	Needed string `json:"needed_for"`
	Said   string `json:"said,omitempty"` // what was found, or the words of the server
}

// Probing is what a server was found able to do.
type Probing struct {
	Able      bool      `json:"able"` // nothing that FlowFabric needs is missing or could not be tried
	Server    string    `json:"server"`
	Abilities []Ability `json:"abilities"`
}

func (r *Probing) add(name string, s Status, needed, said string) {
	r.Able = r.Able && (s == OK || s == Warn)
	r.Abilities = append(r.Abilities, Ability{name, s, needed, said})
}

// tried adds an ability that is there unless it was refused.
func (r *Probing) tried(name, needed, found string, err error) {
	if err != nil {
		r.add(name, Fail, needed, err.Error())
		return
	}
	r.add(name, OK, needed, found)
}

//go:embed probe.lua
var probeLibrary string

// prober has what is thrown away when it ends: a library, and keys that each call removes itself.
type prober struct {
	*engine.Probe
	Probing
	name   string // of the library, which nobody else has
	remove string // the command by which keys are removed; "" if the user may not
	loaded []*engine.Probe
}

// cleanAfter bounds how long what was loaded is removed, whatever became of the caller.
const cleanAfter = time.Minute

// Try tries each ability that FlowFabric needs, on the servers of a deployment or of one to be. It loads a small
// library under a name of its own and writes keys that no store has; nothing is left of either. What it could not
// remove it does not make. The library of FlowFabric and its records stay as they are.
//
// Errors: ErrConfig before any I/O; ErrTransport; ErrAuth; and that the library of the probe could not be removed.
func Try(ctx context.Context, cfg engine.Config) (Probing, error) {
	p, err := engine.Dial(ctx, cfg)
	if err != nil {
		return Probing{}, err
	}
	defer p.Close()
	name := "ff_probe_" + strings.ToLower(rand.Text())
	r := prober{Probe: p, Probing: Probing{Able: true, Server: p.Server}, name: name}
	r.tried("connection", "all calls (RESP3, Redis ≥ 7.0 or Valkey ≥ 7.2)", p.Server, p.Supported)
	r.reads(ctx)
	r.load(ctx)
	if len(r.loaded) > 0 {
		r.functions(ctx)
	} else {
		for _, a := range [][2]string{functionCalls, undeclared, oneCall, clock, bigCall, severalSlots, wakeUps} {
			r.add(a[0], Skip, a[1], "not tried without a function")
		}
	}
	r.settings(ctx)
	return r.Probing, r.unload(ctx)
}

// The abilities that take a function.
var (
	functionCalls = [2]string{"FCALL", "every call of FlowFabric"}
	undeclared    = [2]string{"derived keys", "a function gets one key and derives others, in the same slot"}
	oneCall       = [2]string{"commands", "the functions"}
	clock         = [2]string{"server time", "deadlines, leases and timers: TIME in a function that then writes"}
	bigCall       = [2]string{"big calls", "payloads of up to 1 MiB"}
	severalSlots  = [2]string{"several slots", "one poll of all partitions, outside of a cluster"}
	wakeUps       = [2]string{"publishing", "work starts at once, results and streams arrive"}
)

func (r *prober) root() string { return "ff:{" + r.name + "}" }

// refusedBy lists which commands were refused, and why the first was.
func refusedBy(names []string, refusals map[string]error) error {
	var refused []string
	var first error
	for _, name := range names {
		if err := refusals[name]; err != nil {
			refused = append(refused, name)
			if first == nil {
				first = err
			}
		}
	}
	if first == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", strings.Join(refused, ", "), first)
}

// reads tries what is sent outside of functions.
func (r *prober) reads(ctx context.Context) {
	names := slices.DeleteFunc(slices.Clone(engineCommands), func(name string) bool {
		return strings.HasSuffix(name, "SUBSCRIBE") || name == "SPUBLISH" || name == "FCALL" || name == "FUNCTION"
	})
	refusals := map[string]error{}
	for _, name := range names {
		words, c := strings.Fields(samples[name]), engine.Command{Name: name}
		if len(words) > 0 && words[0] == "K" {
			c.Key, words = r.root(), words[1:]
		}
		c.Args = words
		if err := r.Do(ctx, c)[0].Error(); !engine.IsNil(err) {
			refusals[name] = err
		}
	}
	r.tried("reads", "what is read without a function", prose.Count(len(names), "command"), refusedBy(names, refusals))
}

// load loads the library of the probe on every primary, if it could be removed from there.
func (r *prober) load(ctx context.Context) {
	const needed = "the function library, which each process loads where it is missing"
	for _, remove := range []string{"UNLINK", "DEL"} {
		if r.remove == "" && r.Do(ctx, engine.On(remove, r.root()))[0].Error() == nil {
			r.remove = remove
		}
	}
	nodes := r.Nodes()
	for _, address := range slices.Sorted(maps.Keys(nodes)) {
		node := nodes[address]
		if role, err := node.Role(ctx); err == nil && role != "master" {
			continue
		}
		err := node.Ask(ctx, "FUNCTION", "DELETE", r.name).Error()
		if err == nil || !strings.Contains(err.Error(), "ibrary not found") {
			r.add("FUNCTION LOAD", Skip, needed,
				fmt.Sprintf("not tried: the user may not FUNCTION DELETE what was loaded (%v)", err))
			return
		}
		err = node.Ask(ctx, "FUNCTION", "LOAD", strings.ReplaceAll(probeLibrary, "@NAME@", r.name)).Error()
		if err != nil && strings.HasPrefix(err.Error(), "READONLY") { // a replica that does not tell its role
			continue
		}
		if err != nil {
			r.add("FUNCTION LOAD", Fail, needed, prose.Join(": ", address, err.Error()))
			return
		}
		r.loaded = append(r.loaded, node)
	}
	r.add("FUNCTION LOAD", OK, needed, prose.Count(len(r.loaded), "primary"))
}

// unload removes the library from where it was loaded.
func (r *prober) unload(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanAfter)
	defer cancel()
	var left []error
	for _, node := range r.loaded {
		if err := node.Ask(ctx, "FUNCTION", "DELETE", r.name).Error(); err != nil {
			left = append(left, fmt.Errorf("remove the library of the probe (FUNCTION DELETE %s): %w", r.name, err))
		}
	}
	return errors.Join(left...)
}

// run runs commands in a function; each has the keys that end with a word of its own. It returns what was refused.
func (r *prober) run(ctx context.Context, commands ...[]string) ([]error, error) {
	var made, lines []string
	for i, words := range commands {
		key := r.root() + ":" + strconv.Itoa(i)
		made = append(made, key)
		lines = append(lines, strconv.Itoa(len(words)))
		for _, word := range words {
			switch word {
			case "K":
				word = key
			case "C":
				word = r.root() + ":channel"
			}
			lines = append(lines, word)
		}
	}
	args := slices.Concat([]string{r.remove, strconv.Itoa(len(made))}, made, lines)
	said, err := r.Call(ctx, r.name, []string{r.root()}, args...).AsStrSlice()
	if err == nil && len(said) != len(commands) {
		err = fmt.Errorf("%w: %d answers to %d commands", denied.Reply, len(said), len(commands))
	}
	if err != nil { // the function may have ended early
		for _, key := range made {
			r.Do(context.WithoutCancel(ctx), engine.On(r.remove, key))
		}
		return nil, err
	}
	refused := make([]error, len(said))
	for i, text := range said {
		// Some commands find nothing to work on, which says that they are there.
		if text != "" && !strings.Contains(text, "no such key") && !strings.Contains(text, "objects are the same") {
			refused[i] = errors.New(text)
		}
	}
	return refused, nil
}

// functions tries what takes a function.
func (r *prober) functions(ctx context.Context) {
	// Removing a key that is not there writes nothing.
	err := r.Call(ctx, r.name, []string{r.root()}, "EXISTS", "1", r.root()).Error()
	r.tried(functionCalls[0], functionCalls[1], "", err)
	if err != nil || r.remove == "" {
		for _, a := range [][2]string{undeclared, oneCall, clock, bigCall} {
			r.add(a[0], Skip, a[1], "not tried: the user may call no function, or not UNLINK or DEL what it made")
		}
	} else {
		r.written(ctx)
	}
	if !r.Cluster {
		other := "ff:{" + r.name + "-2}"
		r.tried(severalSlots[0], severalSlots[1], "",
			r.Call(ctx, r.name, []string{r.root(), other}, "EXISTS", "2", r.root(), other).Error())
	}
	r.heard(ctx)
}

// written tries what writes keys.
func (r *prober) written(ctx context.Context) {
	try := func(a [2]string, commands ...[]string) {
		refused, err := r.run(ctx, commands...)
		for i := range refused {
			if refused[i] != nil && err == nil {
				err = fmt.Errorf("%s: %w", commands[i][0], refused[i])
			}
		}
		r.tried(a[0], a[1], "", err)
	}
	try(undeclared, []string{"SET", "K", "v"})

	var names []string
	var commands [][]string
	for _, found := range calls.FindAllStringSubmatch(library.Library(library.Variant{Sharded: !r.Embedded}), -1) {
		names = append(names, found[1])
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names {
		commands = append(commands, append([]string{name}, strings.Fields(samples[name])...))
	}
	if r.Embedded {
		commands[slices.Index(names, "PUBSUB")][1] = "NUMSUB"
	} else {
		commands[slices.Index(names, "PUBSUB")][1] = "SHARDNUMSUB"
	}
	refused, err := r.run(ctx, commands...)
	refusals := map[string]error{}
	for i, err := range refused {
		refusals[names[i]] = err
	}
	if err == nil {
		err = refusedBy(names, refusals)
	}
	r.tried(oneCall[0], oneCall[1], prose.Count(len(names), "command"), err)

	try(clock, []string{"TIME"}, []string{"SET", "K", "v"})
	try(bigCall, []string{"SET", "K", strings.Repeat("x", limits.MaxPayload)})
}

// heard tries whether a message that a function publishes reaches who has subscribed.
func (r *prober) heard(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	channel, publish := r.root()+":channel", "SPUBLISH"
	if r.Embedded {
		publish = "PUBLISH"
	}
	var sent error
	message, err := r.Hear(ctx, channel, func() {
		// One command, which names no key: nothing is to be removed.
		said, err := r.Call(ctx, r.name, []string{r.root()},
			"EXISTS", "1", r.root(), "3", publish, channel, "ding").AsStrSlice()
		if sent = err; err == nil && said[0] != "" {
			sent = fmt.Errorf("%s: %s", publish, said[0])
		}
		if sent != nil {
			cancel()
		}
	})
	switch {
	case sent != nil:
		err = sent
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%s was answered, and no message came within %s", publish, r.Timeout)
	case err == nil && message != "ding":
		err = fmt.Errorf("%w: the message is %q", denied.Reply, message)
	}
	r.tried(wakeUps[0], wakeUps[1], publish, err)
}

// settings reads what helps to judge a server. FlowFabric works where it is forbidden.
func (r *prober) settings(ctx context.Context) {
	optional := func(name, needed, found string, err error) {
		if err != nil {
			r.add(name, Warn, needed, err.Error())
			return
		}
		r.add(name, OK, needed, found)
	}
	wanted := []string{"maxmemory-policy", "appendonly", "appendfsync", "save", "busy-reply-threshold"}
	values, err := r.Ask(ctx, "CONFIG", append([]string{"GET"}, wanted...)...).AsStrMap()
	var found []string
	for _, name := range wanted {
		if value := values[name]; value != "" {
			found = append(found, name+" "+value)
		}
	}
	optional("CONFIG GET", "doctor judges eviction and persistence", strings.Join(found, ", "), err)
	info, infoErr := r.Ask(ctx, "INFO", "memory").ToString()
	const kept = "no record vanishes when memory is full: noeviction"
	switch policy := cmp.Or(engine.ParseInfo(info)["maxmemory_policy"], values["maxmemory-policy"]); {
	case policy == "noeviction":
		r.add("maxmemory-policy", OK, kept, policy)
	case policy == "" && r.Embedded:
	case policy == "":
		r.add("maxmemory-policy", Warn, kept, fmt.Sprintf("the server does not tell (%v)", cmp.Or(infoErr, err)))
	default:
		r.add("maxmemory-policy", Fail, kept, policy)
	}
	if !r.Embedded {
		rights := readRights(ctx, r.Probe)
		optional("ACL DRYRUN", "doctor judges the rights of the user", rights.User, rights.Err)
	}
	if r.Cluster {
		slots := readSlots(ctx, r.Probe)
		optional("CLUSTER INFO", "doctor judges the slots", slots.State, slots.Err)
	}
}
