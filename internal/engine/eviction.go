package engine

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/redis/rueidis"
	"github.com/sourcegraph/conc"
)

// NoEviction is the only maxmemory-policy under which a server keeps what it was given.
const NoEviction = "noeviction"

// EvictionPolicy is the maxmemory-policy of a node.
type EvictionPolicy struct {
	Address string // "" outside of a cluster
	Policy  string
}

// Evicting lists the nodes of the store, replicas too, that may delete keys of their own accord once they are full,
// by address: their maxmemory-policy is not [NoEviction]. The policies that begin with volatile- count: keys with a
// time to live are records as well. A node that does not answer within Config.CallTimeout, or does not tell, is not
// listed, and the embedded server has no policy.
func (e *Engine) Evicting(ctx context.Context) []EvictionPolicy {
	if e.server.embedded {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.CallTimeout)
	defer cancel()
	nodes := map[string]rueidis.Client{"": e.client}
	if e.server.cluster {
		nodes = e.client.Nodes()
	}
	var mu sync.Mutex
	var out []EvictionPolicy
	var asking conc.WaitGroup
	for address, node := range nodes {
		asking.Go(func() {
			text, err := node.Do(ctx, node.B().Info().Section("memory").Build()).ToString()
			if policy := ParseInfo(text)["maxmemory_policy"]; err == nil && policy != "" && policy != NoEviction {
				mu.Lock()
				defer mu.Unlock()
				out = append(out, EvictionPolicy{Address: address, Policy: policy})
			}
		})
	}
	asking.Wait()
	slices.SortFunc(out, func(a, b EvictionPolicy) int { return strings.Compare(a.Address, b.Address) })
	return out
}
