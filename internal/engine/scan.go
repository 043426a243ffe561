package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/flowfabric/flowfabric-go/internal/keys"
)

// Primary is one server that holds keys: the only one, or a primary of the cluster.
type Primary struct {
	Address string
	e       *Engine
	node    rueidis.Client
}

// Key is one key of a partition: ":x:<execution>" has the area "x" and is of the execution.
type Key struct {
	Kind      string // of the partition: "" executions, "g" gates
	Partition uint16
	Area, Of  string
}

// Primaries lists the servers that hold keys, as the driver knows them now. Those that cannot be asked, and replicas,
// which may still show what their primary has deleted, are left out. ErrTransport when none answers.
func (e *Engine) Primaries(ctx context.Context) ([]Primary, error) {
	var list []Primary
	var away error
	nodes := e.client.Nodes()
	for address, node := range nodes {
		if e.server.cluster {
			asking, cancel := context.WithTimeout(ctx, e.cfg.CallTimeout)
			role, err := readRole(asking, node)
			cancel()
			if err != nil {
				away = cmp.Or(away, fmt.Errorf("ask %s for its role: %w", address, err))
			}
			if role != "master" {
				continue
			}
		}
		list = append(list, Primary{Address: address, e: e, node: node})
	}
	if len(list) == 0 && away != nil {
		return nil, away
	}
	slices.SortFunc(list, func(a, b Primary) int { return cmp.Compare(a.Address, b.Address) })
	return list, nil
}

// Serves tells which partitions live on the server at this moment.
func (p Primary) Serves(ctx context.Context) (map[uint16]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, p.e.cfg.CallTimeout)
	defer cancel()
	commands := make(rueidis.Commands, len(p.e.roots))
	for i, root := range p.e.roots {
		commands[i] = p.node.B().Exists().Key(root).Build()
	}
	served := map[uint16]bool{}
	for i, reply := range p.node.DoMulti(ctx, commands...) {
		err := reply.Error()
		if refused, ok := rueidis.IsRedisErr(err); ok {
			if _, moved := refused.IsMoved(); moved {
				continue
			}
			if _, asked := refused.IsAsk(); asked {
				continue
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Address, CallError("exists", err))
		}
		served[uint16(i)] = true
	}
	return served, nil
}

// Scan lists keys of partitions from a cursor, 0 at the beginning and in the answer at the end. A key that is there
// all the time is listed at least once, maybe twice; others perhaps. With one partition given only its keys are sent.
func (p Primary) Scan(ctx context.Context, cursor uint64, of ...uint16) (list []Key, next uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.e.cfg.CallTimeout)
	defer cancel()
	match := rootPrefix + "*"
	if len(of) == 1 {
		match = keys.Root(of[0]) + "*"
	}
	return p.scan(ctx, cursor, match, "", len(p.e.roots))
}

// ScanGates lists keys of partitions of gates, like Scan.
func (p Primary) ScanGates(ctx context.Context, cursor uint64) (list []Key, next uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.e.cfg.CallTimeout)
	defer cancel()
	return p.scan(ctx, cursor, "ff:{g:*", "g", len(p.e.gates))
}

func (p Primary) scan(ctx context.Context, cursor uint64, match, kind string,
	partitions int) (list []Key, next uint64, err error) {
	page, err := p.node.Do(ctx, p.node.B().Scan().Cursor(cursor).Match(match).Count(scanPage).Build()).AsScanEntry()
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", p.Address, CallError("scan", err))
	}
	for _, text := range page.Elements {
		if k, ok := parseKey(text); ok && k.Kind == kind && int(k.Partition) < partitions {
			list = append(list, k)
		}
	}
	return list, page.Cursor, nil
}

const (
	rootPrefix = "ff:{fp:"
	scanPage   = 500
)

// parseKey reads ff:{fp:3}, ff:{fp:3}:delayed, ff:{fp:3}:x:… or ff:{g:3}:ga:….
func parseKey(text string) (k Key, ok bool) {
	kind, rest, _ := strings.Cut(strings.TrimPrefix(text, "ff:{"), ":")
	root := map[string]func(uint16) string{"fp": keys.Root, "g": keys.GateRoot}[kind]
	number, rest, closed := strings.Cut(rest, "}")
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || !closed || root == nil || root(uint16(n))+rest != text || rest != "" && rest[0] != ':' {
		return Key{}, false
	}
	k.Kind, k.Partition = strings.TrimPrefix(kind, "fp"), uint16(n)
	k.Area, k.Of, _ = strings.Cut(strings.TrimPrefix(rest, ":"), ":")
	return k, true
}
