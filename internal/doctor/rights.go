package doctor

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/library"
)

// RightsReport says what the user of the connection may do.
type RightsReport struct {
	User    string // ACL WHOAMI; "" when it may not ask
	Checked bool   // the server could be asked what is allowed (ACL DRYRUN, Redis 7.0 and Valkey)
	// Denied are commands that FlowFabric needs and the user may not run on keys or channels of a partition, by name.
	Denied []string
	// Unknown are commands that FlowFabric needs and the server does not have: renamed or switched off.
	Unknown []string
	Err     error // why nothing was checked
}

// samples are arguments for every command that the library or the engine runs, on keys and channels of a partition;
// the word K is such a key, C such a channel. A test compares them with the sources.
var samples = func() map[string]string {
	table := `
		COPY K K|DEL K|EXISTS K|EXPIRE K 1|GET K|HDEL K f|HEXISTS K f|HGET K f|HGETALL K|HINCRBY K f 1|HKEYS K|HLEN K|HMGET K f|HSET K f v
		HSETNX K f v|HSTRLEN K f|HVALS K|LLEN K|LRANGE K 0 1|LSET K 0 v|LTRIM K 0 1|PEXPIRE K 1|PUBSUB NUMSUB C|RPUSH K v|SADD K v|SCARD K|SET K v
		SINTER K|SISMEMBER K v|SMEMBERS K|SREM K v|TIME|UNLINK K|XADD K * f v|XLEN K|XRANGE K - +|XREVRANGE K + -|XTRIM K MAXLEN 1|ZADD K 1 v
		ZCARD K|ZCOUNT K 0 1|ZRANGE K 0 1|ZRANGEBYSCORE K 0 1|ZREVRANGE K 0 1|ZREVRANGEBYSCORE K 1 0|ZRANK K v|ZREM K v|ZREMRANGEBYSCORE K 0 1
		ZSCORE K v|PUBLISH C m|SPUBLISH C m|LINDEX K 0|LPUSH K v|LREM K 0 v|LPOP K|RPOP K|PTTL K|TTL K|TYPE K|PERSIST K|SCAN 0|HSCAN K 0
		SSCAN K 0|ZSCAN K 0|SRANDMEMBER K|STRLEN K|INCR K|INCRBY K 1|ZINCRBY K 1 v|ZREMRANGEBYRANK K 0 1|ZRANGEBYLEX K - +|ZLEXCOUNT K - +
		ZMSCORE K v|ZUNIONSTORE K 1 K|SMISMEMBER K v|MGET K|MSET K v|RENAME K K|XDEL K 0-1|XINFO STREAM K|HRANDFIELD K|ZPOPMIN K|PEXPIREAT K 1|EXPIREAT K 1|HINCRBYFLOAT K f 1|APPEND K v
		PING|ROLE|INFO server|SUBSCRIBE C|SSUBSCRIBE C|FCALL ff_version 1 K|FUNCTION LOAD x`
	out := map[string]string{}
	for entry := range strings.FieldsFuncSeq(table, func(r rune) bool { return r == '|' || r == '\n' }) {
		name, args, _ := strings.Cut(strings.TrimSpace(entry), " ")
		if name != "" {
			out[name] = args
		}
	}
	return out
}()

// engineCommands are what the engine itself sends; the others are run by the library, under the same user.
var engineCommands = []string{"PING", "ROLE", "INFO", "SUBSCRIBE", "SSUBSCRIBE", "SPUBLISH", "FCALL", "FUNCTION", "GET",
	"MGET", "HGETALL", "HMGET", "XRANGE", "XREVRANGE", "EXISTS"}

var calls = regexp.MustCompile(`redis\.call\('([A-Z]+)'`)

// needed lists the commands that FlowFabric runs, in order.
func needed() []string {
	names := slices.Clone(engineCommands)
	for _, found := range calls.FindAllStringSubmatch(library.Library(library.Variant{Sharded: true}), -1) {
		names = append(names, found[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// readRights asks what the user may do, with ACL DRYRUN: nothing is run.
func readRights(ctx context.Context, p *engine.Probe) RightsReport {
	var out RightsReport
	if out.User, out.Err = p.Ask(ctx, "ACL", "WHOAMI").ToString(); out.Err != nil {
		out.Err = engine.CallError("acl whoami", out.Err)
		return out
	}
	names := needed()
	commands := make([]engine.Command, len(names))
	stands := map[string]string{"K": keys.Root(0) + ":doctor", "C": keys.Of(0).Doorbell("doctor")}
	for i, name := range names {
		args := []string{"DRYRUN", out.User, name}
		for word := range strings.FieldsSeq(samples[name]) {
			args = append(args, cmp.Or(stands[word], word))
		}
		commands[i] = engine.Command{Name: "ACL", Args: args}
	}
	for i, resp := range p.Do(ctx, commands...) {
		verdict, err := resp.ToString()
		if err != nil {
			if strings.HasSuffix(err.Error(), " not found") {
				out.Unknown = append(out.Unknown, names[i])
				continue
			}
			return RightsReport{User: out.User, Err: fmt.Errorf("%s: %w", names[i],
				engine.CallError("acl dryrun", err))}
		}
		if verdict != "OK" {
			out.Denied = append(out.Denied, names[i])
		}
	}
	out.Checked = true
	return out
}
