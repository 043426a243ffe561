package engine

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/lua"
)

// serverInfo is what the server says of itself.
type serverInfo struct {
	name, version string
	cluster       bool
	embedded      bool
}

// identify asks for name, version and mode. Valkey keeps answering as a Redis of a compatible version in some
// fields, so INFO's own line wins where it exists.
func identify(ctx context.Context, client rueidis.Client) (serverInfo, error) {
	m, err := client.Do(ctx, client.B().Arbitrary("HELLO", "3").Build()).AsMap()
	if err != nil {
		if re, ok := rueidis.IsRedisErr(err); ok && strings.HasPrefix(re.Error(), "unknown command") {
			return serverInfo{}, fmt.Errorf("%w: the server does not know HELLO", flowfabric.ErrServerVersion)
		}
		return serverInfo{}, callError("identify server", err)
	}
	text := func(k string) string {
		v, ok := m[k]
		if !ok {
			return ""
		}
		s, _ := v.ToString()
		return s
	}
	s := serverInfo{name: text("server"), version: text("version"), cluster: text("mode") == "cluster"}
	s.embedded = s.name == "miniredis"
	if s.embedded {
		s.cluster = false
		return s, nil
	}
	info, err := client.Do(ctx, client.B().Info().Section("server").Build()).ToString()
	if err != nil {
		return serverInfo{}, callError("identify server", err)
	}
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "valkey_version:"); ok {
			s.name, s.version = "valkey", v
		}
	}
	return s, nil
}

// supported refuses Redis < 7.0 and Valkey < 7.2; anything else that has functions is taken at its word.
func (s serverInfo) supported() error {
	if s.embedded {
		return nil
	}
	major, rest, _ := strings.Cut(s.version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, _ := strconv.Atoi(major)
	b, _ := strconv.Atoi(minor)
	if a > 7 || a == 7 && (s.name != "valkey" || b >= 2) {
		return nil
	}
	return fmt.Errorf("%w: this is %s %s", flowfabric.ErrServerVersion, s.name, s.version)
}

// load makes sure that every primary carries a usable library. It never replaces a newer one.
func (e *Engine) load(ctx context.Context) error {
	if e.server.embedded {
		e.scripts = make(map[string]script, len(functions))
		for _, f := range functions {
			text := lua.Script(f.name, e.variant)
			sum := sha1.Sum([]byte(text))
			e.scripts[f.name] = script{sha: hex.EncodeToString(sum[:]), text: text}
		}
		return nil
	}
	nodes := []rueidis.Client{e.client}
	if e.server.cluster {
		nodes = nodes[:0]
		for _, n := range e.client.Nodes() {
			nodes = append(nodes, n)
		}
	}
	for _, n := range nodes {
		if e.server.cluster {
			role, err := n.Do(ctx, n.B().Role().Build()).ToArray()
			if err != nil {
				return callError("role", err)
			}
			if name, _ := role[0].ToString(); name != "master" {
				continue
			}
		}
		if err := e.loadOn(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// loadOn compares versions (lua/system/ff_version.lua) on one node and loads the library there when it is missing,
// older, or of the same revision with other content (a development build).
func (e *Engine) loadOn(ctx context.Context, node rueidis.Client) error {
	resp := node.Do(ctx, node.B().Fcall().Function(fnVersion.name).Numkeys(0).Build())
	r, err := decode(fnVersion.name, resp)
	switch {
	case err == nil:
		p, rev, hash := r.number(), r.number(), r.text()
		if r.err != nil {
			return r.fail()
		}
		if p > flowfabric.Protocol {
			return fmt.Errorf("%w: server has protocol %d, this application %d", flowfabric.ErrNewerLibrary, p, flowfabric.Protocol)
		}
		if p == flowfabric.Protocol && (rev > lua.Revision || rev == lua.Revision && hash == e.hash()) {
			return nil
		}
	case !missingFunction(err):
		return err
	}
	e.log.Info("load function library", "server", e.Server(), "revision", lua.Revision, "hash", e.hash())
	err = node.Do(ctx, node.B().FunctionLoad().Replace().FunctionCode(strings.ReplaceAll(lua.Library(e.variant), lua.Hash(), e.hash())).Build()).Error()
	if err != nil {
		return fmt.Errorf("load function library: %w", callError("function load", err))
	}
	return nil
}

// hash tells variants apart, so that a test build never passes for the real one.
func (e *Engine) hash() string {
	if e.variant.TestClock {
		return lua.Hash() + "t"
	}
	return lua.Hash()
}

var errMissingFunction = errors.New("function not found")

func missingFunction(err error) bool { return errors.Is(err, errMissingFunction) }
