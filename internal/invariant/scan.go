package invariant

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/flowfabric/flowfabric-go/internal/keys"
)

// prefix is what every partition root starts with.
const prefix = "ff:{fp:"

// ReadAll reads the partitions 0 … partitions−1 and lists all keys once (SCAN on every primary) instead of once a
// partition. The server must be quiet meanwhile. A key of a partition beyond the count is an error. All dumps stand
// in memory at once, a few KiB an execution and what its blobs hold; Each needs one at a time.
func ReadAll(ctx context.Context, client rueidis.Client, partitions uint16) ([]*Dump, error) {
	all := make([]*Dump, 0, partitions)
	err := Each(ctx, client, partitions, func(d *Dump) error {
		all = append(all, d)
		return nil
	})
	return all, err
}

// Each is ReadAll with one dump at a time, in the order of the partitions. It stops at the first error.
func Each(ctx context.Context, client rueidis.Client, partitions uint16, see func(*Dump) error) error {
	found := make([]map[string]bool, partitions) // SCAN may name a key twice
	nodes, err := primaries(ctx, client)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		if err := scan(ctx, node, found); err != nil {
			return err
		}
	}
	for n, set := range found {
		rest := make([]string, 0, len(set))
		for key := range set {
			rest = append(rest, key)
		}
		found[n] = nil
		d := empty(uint16(n))
		if err := d.ttls(ctx, client, rest); err != nil {
			return err
		}
		if err := d.fill(ctx, client, rest); err != nil {
			return err
		}
		if err := see(d); err != nil {
			return err
		}
	}
	return nil
}

// primaries are the nodes to scan: a replica may still show what its primary has deleted.
func primaries(ctx context.Context, client rueidis.Client) (list []rueidis.Client, err error) {
	nodes := client.Nodes()
	for address, node := range nodes {
		if len(nodes) > 1 {
			role, err := node.Do(ctx, node.B().Role().Build()).ToArray()
			if err != nil {
				return nil, fmt.Errorf("ask %s for its role: %w", address, err)
			}
			if name, _ := role[0].ToString(); name != "master" {
				continue
			}
		}
		list = append(list, node)
	}
	return list, nil
}

// scan adds the keys of one node, without their roots.
func scan(ctx context.Context, node rueidis.Client, found []map[string]bool) error {
	for cursor := uint64(0); ; {
		page, err := node.Do(ctx,
			node.B().Scan().Cursor(cursor).Match(prefix+"*").Count(pipeline).Build()).AsScanEntry()
		if err != nil {
			return fmt.Errorf("scan: %w", err)
		}
		for _, key := range page.Elements {
			number, rest, closed := strings.Cut(key[len(prefix):], "}")
			n, err := strconv.ParseUint(number, 10, 16)
			if err != nil || !closed || int(n) >= len(found) {
				return fmt.Errorf("key %q belongs to none of %d partitions", key, len(found))
			}
			if found[n] == nil {
				found[n] = map[string]bool{}
			}
			found[n][rest] = true
		}
		if cursor = page.Cursor; cursor == 0 {
			return nil
		}
	}
}

// ttls finds out which keys expire by themselves.
func (d *Dump) ttls(ctx context.Context, client rueidis.Client, rest []string) error {
	root := keys.Root(d.Partition)
	for batch := range slices.Chunk(rest, pipeline) {
		commands := make(rueidis.Commands, len(batch))
		for i, key := range batch {
			commands[i] = client.B().Pttl().Key(root + key).Build()
		}
		for i, r := range client.DoMulti(ctx, commands...) {
			left, err := r.AsInt64()
			if err != nil {
				return fmt.Errorf("read the TTL of %s%s: %w", root, batch[i], err)
			}
			if left >= 0 {
				d.Expires[batch[i]] = true
			}
		}
	}
	return nil
}
