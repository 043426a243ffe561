package engine

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// serverInfo is what the server says of itself.
type serverInfo struct {
	name, version string
	cluster       bool
	embedded      bool
}

// identify asks for name, version and mode. Valkey keeps answering as a Redis of a compatible version in some
// fields, so INFO's own line wins where it exists. What HELLO told is returned with the error of INFO.
func identify(ctx context.Context, client rueidis.Client) (serverInfo, error) {
	m, err := client.Do(ctx, client.B().Arbitrary("HELLO", "3").Build()).AsMap()
	if err != nil {
		if re, ok := rueidis.IsRedisErr(err); ok && strings.HasPrefix(re.Error(), "unknown command") {
			return serverInfo{}, fmt.Errorf("%w: the server does not know HELLO", denied.ServerVersion)
		}
		return serverInfo{}, CallError("identify server", err)
	}
	text := func(k string) string {
		v := m[k]
		s, _ := v.ToString()
		return s
	}
	if text("mode") == "sentinel" {
		return serverInfo{}, fmt.Errorf("%w: a Sentinel answers there, which keeps no data; write %s",
			flowfabric.ErrConfig, sentinelExample)
	}
	s := serverInfo{name: text("server"), version: text("version")}
	s.embedded = s.name == inproc.ServerName
	s.cluster = text("mode") == "cluster"
	info, err := client.Do(ctx, client.B().Info().Section("server").Build()).ToString()
	if err != nil {
		return s, CallError("identify server (INFO)", err)
	}
	facts := ParseInfo(info)
	if v := facts["valkey_version"]; v != "" {
		s.name, s.version = "valkey", v
	}
	if s.embedded {
		s.version = facts["flowfabric_version"]
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
	return fmt.Errorf("%w: this is %s %s", denied.ServerVersion, s.name, s.version)
}

// known refuses a store of another protocol number, before a library is loaded for it that its processes could not use.
func (e *Engine) known(ctx context.Context) error {
	text, err := e.client.Do(ctx, e.client.B().Hget().Key(keys.Root(0)).Field("protocol").Build()).ToString()
	if rueidis.IsRedisNil(err) || err == nil && text == protocol {
		return nil
	}
	if err != nil {
		return CallError("read the store's protocol", err)
	}
	theirs, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("open: %w: the store's protocol is %q", denied.Reply, clip(text))
	}
	return mismatch("open", "store", theirs)
}

// load makes sure that every primary carries a usable library. It never replaces a newer one. In a cluster a node that
// cannot be reached is passed over, it may be dead or a replica: the first call that finds it lacking makes up for it.
func (e *Engine) load(ctx context.Context) error {
	if !e.server.cluster {
		return e.loadOn(ctx, e.client)
	}
	var away error
	reached := false
	for _, n := range e.client.Nodes() {
		err := e.loadOnPrimary(ctx, n)
		if err != nil && !errors.Is(err, flowfabric.ErrTransport) {
			return err
		}
		if err != nil {
			away = err
		}
		reached = reached || err == nil
	}
	if !reached {
		return away
	}
	return nil
}

func (e *Engine) loadOnPrimary(ctx context.Context, node rueidis.Client) error {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.CallTimeout)
	defer cancel()
	if role, err := readRole(ctx, node); err != nil || role != "master" {
		return err
	}
	return e.loadOn(ctx, node)
}

// readRole asks a node for its role, "master" or "slave". Some providers switch ROLE off.
func readRole(ctx context.Context, node rueidis.Client) (string, error) {
	role, err := node.Do(ctx, node.B().Role().Build()).ToArray()
	if err != nil || len(role) == 0 {
		text, also := node.Do(ctx, node.B().Info().Section("replication").Build()).ToString()
		if name := ParseInfo(text)["role"]; also == nil && name != "" {
			return name, nil
		}
		return "", CallError("role", err)
	}
	name, _ := role[0].ToString()
	return name, nil
}

// renew replaces an older library wherever a server carries one: it came from an older process, in place of one that
// was lost. A failure is no error of the call that noticed; the next registration tries again.
func (e *Engine) renew(ctx context.Context) {
	e.loading.Lock()
	defer e.loading.Unlock()
	if err := e.load(ctx); err != nil {
		e.log.WarnContext(ctx, "replace an older function library", "error", err)
	}
}

// loadFor makes sure that the node that serves a key carries the library, whatever state the other nodes are in. When
// that is not the node the driver takes it for, the slot has moved or is moving: then all of them are looked at.
func (e *Engine) loadFor(ctx context.Context, key string) error {
	if !e.server.cluster {
		return e.loadOn(ctx, e.client)
	}
	err := e.client.Dedicated(func(node rueidis.DedicatedClient) error { return e.loadOn(ctx, node, key) })
	if errors.Is(err, flowfabric.ErrTransport) {
		return e.load(ctx)
	}
	return err
}

// loadOn compares versions (lua/system/ff_version.lua) on one node and loads the library there when it is missing,
// older, or of the same revision with other content (a development build). A key makes a node that does not serve it
// refuse, and binds a dedicated client to the one that does.
func (e *Engine) loadOn(ctx context.Context, node rueidis.CoreClient, key ...string) error {
	resp := node.Do(ctx, node.B().Fcall().Function("ff_version").Numkeys(int64(len(key))).Key(key...).Build())
	r, _, err := read[wire.VersionReply](decode("ff_version", resp))
	switch {
	case err == nil:
		if r.Protocol != limits.Protocol {
			return mismatch("load function library", "library", int64(r.Protocol))
		}
		if err := e.sameClock(r.Hash); err != nil {
			return err
		}
		if r.Revision > library.Revision || r.Revision == library.Revision && r.Hash == e.hash() {
			return nil
		}
	case !missingFunction(err):
		return err
	}
	e.log.Info("load function library", "server", e.Server(), "revision", library.Revision, "hash", e.hash())
	err = node.Do(ctx, node.B().FunctionLoad().Replace().FunctionCode(strings.ReplaceAll(library.Library(e.variant),
		library.Hash(), e.hash())).Build()).Error()
	if err == nil {
		return nil
	}
	if err = CallError("function load", err); errors.Is(err, flowfabric.ErrAuth) {
		return fmt.Errorf(
			"load function library: the server lacks revision %d, and this user may not FUNCTION LOAD it; let one who may connect first (ops/acl/loader.acl): %w",
			library.Revision, err)
	}
	return fmt.Errorf("load function library: %w", err)
}

// testMark ends the hash of the variant with the test clock; it is no hex digit.
const testMark = "t"

// hash tells variants apart, so that a test build never passes for the real one.
func (e *Engine) hash() string {
	if e.variant.TestClock {
		return library.Hash() + testMark
	}
	return library.Hash()
}

// sameClock refuses a server that carries the other variant, of whatever revision. A hash that is none of ours says
// nothing about the clock.
func (e *Engine) sameClock(hash string) error {
	content, movable := strings.CutSuffix(hash, testMark)
	if _, err := hex.DecodeString(content); err != nil || len(content) != len(library.Hash()) ||
		movable == e.variant.TestClock {
		return nil
	}
	if movable {
		return fmt.Errorf(
			"%w: the server carries the test-clock variant of the library; use another server, or FUNCTION DELETE %s on this one",
			flowfabric.ErrConfig, library.Name)
	}
	return fmt.Errorf(
		"%w: Config.TestClock is set and the server carries the real library; tests want a server of their own",
		flowfabric.ErrConfig)
}

var errMissingFunction = errors.New("function not found")

func missingFunction(err error) bool { return errors.Is(err, errMissingFunction) }
