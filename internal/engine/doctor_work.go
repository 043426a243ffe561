package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/flowfabric/flowfabric-go/internal/keys"
)

// MaxRoutes is how many different combinations of namespace, lane, kind, capabilities and gates a partition holds.
const MaxRoutes = 1024

// UnservedRoute is work that waits in active or draining lanes and that no live worker has registered for.
type UnservedRoute struct {
	Namespace, Lane, Kind string
	Capabilities          []string
	Waiting               int // executions, over all partitions
}

// Takes tells whether the worker claims work of a route. A worker whose lists were cut, or are not known, may.
func (i WorkerInfo) Takes(r Route) bool {
	if i.Namespace == "" || i.Truncated {
		return true
	}
	for _, c := range r.Capabilities {
		if !slices.Contains(i.Capabilities, c) {
			return false
		}
	}
	return i.Serves(r.Namespace) && slices.Contains(i.Lanes, r.Lane) && slices.Contains(i.Kinds, r.Kind)
}

// readWork reads how full the route tables are, and what waits that nobody serves. Routes that a gate closed, or whose lane hands
// nothing out, are not looked at: they do not wait for a worker.
func (s *StoreReport) readWork(ctx context.Context, client rueidis.Client) {
	const each = 4
	var commands rueidis.Commands
	now := strconv.FormatInt(s.At.UnixMilli(), 10)
	for i := range s.Partitions {
		k := keys.Of(i)
		commands = append(commands, client.B().Hlen().Key(k.Routes()).Build(), client.B().Smembers().Key(k.Ready()).Build(),
			client.B().Smembers().Key(k.Gready()).Build(), client.B().Zrangebyscore().Key(k.Workers()).Min("("+now).Max("+inf").Build())
	}
	var rows, infos rueidis.Commands
	answers := client.DoMulti(ctx, commands...)
	for i := range s.Partitions {
		part := answers[int(i)*each : int(i+1)*each]
		routes, err := part[0].AsInt64()
		s.doubt(err)
		s.Roots[i].Routes = int(routes)
		for _, resp := range part[1:3] {
			ids, err := resp.AsStrSlice()
			s.doubt(err)
			for _, id := range ids {
				rows = append(rows, client.B().Hget().Key(keys.Of(i).Routes()).Field(id).Build(), client.B().Zcard().Key(keys.Of(i).Queue(id)).Build())
			}
		}
		names, err := part[3].AsStrSlice()
		s.doubt(err)
		for _, name := range names {
			infos = append(infos, client.B().Hmget().Key(keys.Of(i).Worker(name)).Field("info", "dead", "seen").Build())
		}
	}
	if len(rows) == 0 || s.WorkErr != nil {
		return
	}
	s.unserved(client.DoMulti(ctx, rows...), s.liveWorkers(client.DoMulti(ctx, infos...)))
}

// doubt keeps the first reason why something could not be read.
func (s *StoreReport) doubt(err error) {
	if err != nil && s.WorkErr == nil {
		s.WorkErr = callError("read routes and workers", err)
	}
}

// liveWorkers reads what the workers say of themselves.
func (s *StoreReport) liveWorkers(answers []rueidis.RedisResult) (live []WorkerInfo) {
	for _, resp := range answers {
		fields, err := resp.ToArray()
		s.doubt(err)
		if err != nil || len(fields) != 3 || fields[0].IsNil() || !fields[1].IsNil() {
			continue // it left meanwhile, or was given up
		}
		if seen, _ := fields[2].AsInt64(); time.UnixMilli(seen).After(s.At.Add(clockSlack)) {
			continue // it was heard of before the clock stepped back, and not since
		}
		text, _ := fields[0].ToString()
		var info WorkerInfo
		_ = json.Unmarshal([]byte(text), &info) // what cannot be read may take anything
		live = append(live, info)
	}
	return live
}

// unserved adds up what nobody takes, from pairs of a route's row and the length of its queue.
func (s *StoreReport) unserved(answers []rueidis.RedisResult, live []WorkerInfo) {
	found := map[string]*UnservedRoute{}
	for pair := range slices.Chunk(answers, 2) {
		row, err := pair[0].ToString()
		if rueidis.IsRedisNil(err) {
			continue // the route is gone since
		}
		s.doubt(err)
		depth, err := pair[1].AsInt64()
		s.doubt(err)
		own := &reader{}
		r := route(0, row, own)
		if s.WorkErr != nil || own.err != nil || depth == 0 || slices.ContainsFunc(live, func(i WorkerInfo) bool { return i.Takes(r) }) {
			continue
		}
		key := strings.Join([]string{r.Namespace, r.Lane, r.Kind, strings.Join(r.Capabilities, ",")}, "\x1f")
		if found[key] == nil {
			found[key] = &UnservedRoute{Namespace: r.Namespace, Lane: r.Lane, Kind: r.Kind, Capabilities: r.Capabilities}
		}
		found[key].Waiting += int(depth)
	}
	for _, u := range found {
		s.Unserved = append(s.Unserved, *u)
	}
	slices.SortFunc(s.Unserved, func(a, b UnservedRoute) int {
		return cmp.Or(b.Waiting-a.Waiting, strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Lane, b.Lane), strings.Compare(a.Kind, b.Kind),
			slices.Compare(a.Capabilities, b.Capabilities))
	})
}
