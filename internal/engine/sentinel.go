package engine

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// sentinelExample is how the URL of a primary under Sentinel looks.
const sentinelExample = "redis+sentinel://user:password@host:26379,host:26379/primary-name/0"

const (
	sentinelPort = "26379"
	// sentinelRefresh is how often the Sentinels are asked for the primary, besides their announcements. A connection
	// to a primary that was demoted stays up, so an announcement that got lost would otherwise be missed for good.
	sentinelRefresh = 5 * time.Second
)

// watched tells whether Sentinels name the server.
func watched(o rueidis.ClientOption) bool { return o.Sentinel.MasterSet != "" }

// sentinels reads [user:pass@]host:port[,host:port…]/primary-name[/db][?sentinel_username=…&sentinel_password=…].
func sentinels(o *rueidis.ClientOption, rest string) error {
	before, query, _ := strings.Cut(rest, "?")
	if strings.Contains(query, "@") {
		return badURL(
			"an @ stands after a ?: write ? as %%3F in the password of the primary, and @ as %%40 in that of the Sentinels")
	}
	hosts, path, _ := strings.Cut(before, "/")
	if strings.Contains(path, "@") {
		return badURL("a / stands before the @: write it as %%2F in the password")
	}
	if err := authority(o, hosts, sentinelPort, sentinelExample); err != nil {
		return err
	}
	name, db, _ := strings.Cut(path, "/")
	if name == "" {
		return badURL("the name of the primary is missing after the hosts; want something like %s", sentinelExample)
	}
	if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
		return badURL("the name of the primary has characters other than letters, digits and ._-")
	}
	o.Sentinel = rueidis.SentinelOption{MasterSet: name, TopologyRefreshInterval: sentinelRefresh}
	if err := sentinelCredentials(&o.Sentinel, query); err != nil {
		return err
	}
	return database(o, db)
}

// sentinelCredentials reads the parameters. As before the host, only percent-encoding counts: a + is a +.
func sentinelCredentials(o *rueidis.SentinelOption, query string) error {
	if query == "" {
		return nil
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, text, _ := strings.Cut(pair, "=")
		value, err := url.PathUnescape(text)
		to := &o.Password
		switch name {
		case "sentinel_username":
			to = &o.Username
		case "sentinel_password":
		default:
			return badURL("a parameter (after ?) is not known, want sentinel_username and sentinel_password")
		}
		if err != nil {
			return badURL("%s is not valid percent-encoding", name)
		}
		if value == "" || *to != "" {
			return badURL("%s is empty or given twice", name)
		}
		*to = value
	}
	if o.Password == "" {
		return badURL("sentinel_username needs sentinel_password")
	}
	return nil
}

// watchable refuses what Sentinels should not name.
func (s serverInfo) watchable() error {
	if s.cluster {
		return fmt.Errorf("%w: the Sentinels name a node of a cluster; write redis:// and the nodes of the cluster",
			flowfabric.ErrConfig)
	}
	return nil
}

// connectError names what could not be reached, and the usual remedy.
func connectError(o rueidis.ClientOption, err error) error {
	if !watched(o) {
		return dialError(o.InitAddress[0], err)
	}
	at := "connect through Sentinel " + strings.Join(o.InitAddress, ", ")
	if refused, ok := rueidis.IsRedisErr(err); ok {
		text := refused.Error()
		word, _, _ := strings.Cut(text, " ")
		command, unknown := unknownCommand(text)
		switch {
		case strings.Contains(text, "No such master"):
			return fmt.Errorf("%s: %w: the Sentinels watch no primary of the name in the URL", at, flowfabric.ErrConfig)
		case unknown && strings.Contains(command, "SENTINEL"):
			return fmt.Errorf("%s: %w: a server answers there that is no Sentinel; write redis:// for it", at,
				flowfabric.ErrConfig)
		case word == "NOAUTH" || word == "WRONGPASS" || word == "NOPERM" ||
			strings.Contains(text, "without any password configured"):
			return fmt.Errorf(
				"%s: %w: user and password before the hosts are for the primary, sentinel_username and sentinel_password for the Sentinels (%s)",
				at, flowfabric.ErrAuth, text)
		}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Addr != nil { // a Sentinel, or the primary that it names
		return fmt.Errorf("%s: %w: no answer at %s: %w", at, flowfabric.ErrTransport, op.Addr, err)
	}
	if rueidis.IsRedisNil(err) {
		return fmt.Errorf("%s: %w: they name no primary at present", at, flowfabric.ErrTransport)
	}
	return dialError("Sentinel "+strings.Join(o.InitAddress, ", "), err)
}
