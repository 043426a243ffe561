package engine

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// Probe is the connection of who examines a deployment: it sends plain commands, to the store or to one of its nodes.
// It loads no library, boots no store and repeats nothing.
type Probe struct {
	Embedded  bool          // the store of FlowFabric itself
	Cluster   bool          // of several nodes
	Server    string        // name and version
	Supported error         // why this server is too old for FlowFabric, or nil
	Timeout   time.Duration // of one call, Config.CallTimeout
	client    rueidis.Client
}

// Command is one that a server knows. In a cluster the key decides which node is asked; without one any may be.
type Command struct {
	Name, Key string
	Args      []string
}

// On is a command that begins with a key.
func On(name, key string, args ...string) Command { return Command{name, key, args} }

// Response is what a server said, read as the driver reads it.
type Response struct{ rueidis.RedisResult }

// Dial connects without opening the store, so it also helps where [Open] fails. The caller closes the probe.
//
// Errors: ErrConfig before any I/O; ErrTransport; ErrAuth.
func Dial(ctx context.Context, cfg Config) (*Probe, error) {
	cfg = cfg.withDefaults()
	option, err := cfg.options()
	if err != nil {
		return nil, err
	}
	client, err := firstSeed(option)
	if err != nil {
		return nil, err
	}
	server, err := identify(ctx, client)
	if err != nil && server.name != "" {
		err = nil // only INFO failed, which each node is asked again
	}
	if err == nil && watched(option) {
		err = server.watchable()
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	if server.cluster {
		client.Close()
		option.ForceSingleClient = false
		if client, err = rueidis.NewClient(option); err != nil {
			return nil, connectError(option, err)
		}
	}
	return server.probe(client, cfg.CallTimeout), nil
}

// Probed lets look examine an open store over its connection. In a cluster it connects anew if it can: an open
// connection may not know nodes that came later.
func Probed[T any](ctx context.Context, e *Engine, look func(*Probe) T) T {
	if e.server.cluster {
		out, err := within(ctx, &e.dials, "diagnose", func() (out T, err error) {
			client, err := e.another()
			if err != nil {
				return out, err
			}
			defer client.Close()
			return look(e.server.probe(client, e.cfg.CallTimeout)), nil
		})
		if err == nil {
			return out
		}
	}
	return look(e.server.probe(e.client, e.cfg.CallTimeout))
}

func (s serverInfo) probe(client rueidis.Client, timeout time.Duration) *Probe {
	return &Probe{s.embedded, s.cluster, s.name + " " + s.version, s.supported(), timeout, client}
}

// Close ends the connection of [Dial].
func (p *Probe) Close() { p.client.Close() }

// Nodes are the nodes that could be found, by address; one outside of a cluster.
func (p *Probe) Nodes() map[string]*Probe {
	out := map[string]*Probe{}
	for address, client := range p.client.Nodes() {
		node := *p
		node.client = client
		out[address] = &node
	}
	return out
}

// Do sends commands at once.
func (p *Probe) Do(ctx context.Context, commands ...Command) []Response {
	built := make(rueidis.Commands, len(commands))
	for i, c := range commands {
		built[i] = p.build(c)
	}
	out := make([]Response, len(commands))
	for i, resp := range p.client.DoMulti(ctx, built...) {
		out[i] = Response{resp}
	}
	return out
}

// Ask sends one command, of no key.
func (p *Probe) Ask(ctx context.Context, name string, args ...string) Response {
	return Response{p.client.Do(ctx, p.build(Command{Name: name, Args: args}))}
}

func (p *Probe) build(c Command) rueidis.Completed {
	words := p.client.B().Arbitrary(c.Name)
	if c.Key != "" {
		words = words.Keys(c.Key)
	}
	return words.Args(c.Args...).Build()
}

// Call runs a function of any library.
func (p *Probe) Call(ctx context.Context, name string, keys []string, args ...string) Response {
	return Response{p.client.Do(ctx, command(p.client, function{name: name}, keys, args))}
}

// Hear subscribes to a channel as the engine does, calls subscribed once the server has confirmed it, and returns the
// first message.
func (p *Probe) Hear(ctx context.Context, channel string, subscribed func()) (message string, err error) {
	hearing, heard := context.WithCancel(ctx)
	defer heard()
	join, leave := subscription(p.client, []string{channel}, !p.Embedded)
	confirmed, ended := make(chan struct{}), make(chan struct{})
	hooked := rueidis.WithOnSubscriptionHook(hearing, func(s rueidis.PubSubSubscription) {
		if s.Kind == "subscribe" || s.Kind == "ssubscribe" {
			close(confirmed)
		}
	})
	var owner conc.WaitGroup
	owner.Go(func() {
		defer close(ended)
		err = p.client.Receive(hooked, join, func(m rueidis.PubSubMessage) {
			message = m.Message
			heard()
		})
	})
	select {
	case <-confirmed:
		subscribed()
	case <-ended:
	}
	owner.Wait()
	if hearing.Err() != nil {
		p.client.Do(context.Background(), leave) // see Engine.carry
	}
	if message != "" {
		return message, nil
	}
	return "", err
}

// Role asks a node for its role, "master" or "slave".
func (p *Probe) Role(ctx context.Context) (string, error) { return readRole(ctx, p.client) }

// Version asks a node for the version of its function library (lua/system/ff_version.lua), and tells an error that
// says that it has none.
func (p *Probe) Version(ctx context.Context) (r wire.VersionReply, missing bool, err error) {
	r, _, err = read[wire.VersionReply](decode("ff_version", p.Ask(ctx, "FCALL", "ff_version", "0").RedisResult))
	return r, missingFunction(err), err
}

// Lost is the error of a store whose partition counts are lost, nil for a new one.
func (p *Probe) Lost(ctx context.Context) error { return rootsWithoutConfig(ctx, p.client) }

// IsNil tells whether an answer was nil.
func IsNil(err error) bool { return rueidis.IsRedisNil(err) }

// Info is an answer of the INFO family: "name:value" lines.
type Info map[string]string

// ParseInfo reads such an answer.
func ParseInfo(text string) Info {
	f := Info{}
	for line := range strings.Lines(strings.TrimPrefix(text, "txt:")) { // the type of a verbatim text
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			f[name] = value
		}
	}
	return f
}

// Number is 0 for what is not there.
func (f Info) Number(name string) int64 {
	n, _ := strconv.ParseInt(f[name], 10, 64)
	return n
}
