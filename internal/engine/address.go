package engine

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
)

// maxDatabase is the highest number of a database that a URL may name. Servers have 16 unless they are told otherwise.
const maxDatabase = 1023

// example is how a URL with everything looks.
const example = "redis://user:password@host:6379/0"

const defaultPort = "6379"

// badURL is the error for a URL. No part of a URL ever gets into an error: what is wrong with it may be the place of
// its password.
func badURL(format string, args ...any) error {
	return fmt.Errorf("%w: URL: %s", flowfabric.ErrConfig, fmt.Sprintf(format, args...))
}

// locate sets what a URL says: addresses, user, password, database, and how to dial.
func locate(o *rueidis.ClientOption, raw string) error {
	scheme, rest, ok := strings.Cut(raw, "://")
	switch {
	case inproc.IsEmbedded(raw):
		return badURL(
			"embedded: is resolved by runtime and client (or embedded.Start); package engine wants a server's address")
	case !ok:
		return badURL(
			"it has no scheme, want redis://host:6379, rediss://, valkey://, redis+sentinel://, unix:///path or embedded://")
	}
	o.DialCtxFn = dialing(dialNetwork)
	switch scheme {
	case "redis", "valkey":
		return network(o, rest)
	case "rediss", "valkeys":
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		return network(o, rest)
	case "redis+sentinel", "valkey+sentinel":
		return sentinels(o, rest)
	case "rediss+sentinel", "valkeys+sentinel":
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		return sentinels(o, rest)
	case "unix":
		o.DialCtxFn = dialing(dialUnix)
		return socket(o, rest)
	case inproc.Scheme: // a server of this process, see embedded.Config.InProcess
		if _, err := strconv.ParseUint(rest, 10, 64); err != nil {
			return badURL("%s:// wants the number of a server of this process", inproc.Scheme)
		}
		o.InitAddress, o.ForceSingleClient, o.DialCtxFn = []string{raw}, true, dialing(dialInProcess)
		o.Dialer.KeepAlive = -1 // nothing to probe: memory does not go silent
		return nil
	}
	return badURL(
		"its scheme is not known, want redis, rediss, valkey, valkeys, any of them with +sentinel, unix or embedded (in lower case)")
}

// network reads [user:pass@]host:port[,host:port…][/db].
func network(o *rueidis.ClientOption, rest string) error {
	before, after, query := strings.Cut(rest, "?")
	if query && strings.Contains(after, "@") {
		return badURL("a ? stands before the @: write it as %%3F in the password")
	}
	if query && after != "" {
		return badURL(
			"it takes no parameters (after ?); user and password stand before the host, as in %s, or in the configuration",
			example)
	}
	hosts, db, _ := strings.Cut(before, "/")
	if strings.Contains(db, "@") {
		return badURL("a / stands before the @: write it as %%2F in the password")
	}
	if err := authority(o, hosts, defaultPort, example); err != nil {
		return err
	}
	return database(o, db)
}

// authority reads [user:pass@]host:port[,host:port…]; like is how the URL should look.
func authority(o *rueidis.ClientOption, hosts, port, like string) error {
	if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
		if err := credentials(o, hosts[:at]); err != nil {
			return err
		}
		hosts = hosts[at+1:]
	}
	for i, host := range strings.Split(hosts, ",") {
		address, ok := hostPort(host, port)
		if !ok {
			return badURL("host %d is not host:port with a port of 1..65535; want something like %s", i+1, like)
		}
		o.InitAddress = append(o.InitAddress, address)
	}
	return nil
}

// socket reads [user:pass@]/path/to.sock[?db=N].
func socket(o *rueidis.ClientOption, rest string) error {
	path, query, _ := strings.Cut(rest, "?")
	if at := strings.LastIndex(path, "@/"); at >= 0 && !strings.HasPrefix(path, "/") {
		if err := credentials(o, path[:at]); err != nil {
			return err
		}
		path = path[at+1:]
	}
	if !strings.HasPrefix(path, "/") {
		return badURL("want unix:///path/to.sock[?db=N], with an absolute path")
	}
	v, err := url.ParseQuery(query)
	if err != nil || len(v) > 1 || len(v) == 1 && len(v["db"]) != 1 {
		return badURL(
			"a unix:// address takes no parameter but db; user and password stand before the path, as in unix://user:password@/path/to.sock, or in the configuration")
	}
	o.InitAddress, o.ForceSingleClient = []string{path}, true
	return database(o, v.Get("db"))
}

func credentials(o *rueidis.ClientOption, text string) error {
	user, pass, _ := strings.Cut(text, ":")
	var err1, err2 error
	o.Username, err1 = url.PathUnescape(user)
	o.Password, err2 = url.PathUnescape(pass)
	if err1 != nil || err2 != nil {
		return badURL("user or password is not valid percent-encoding")
	}
	return nil
}

// hostPort completes an address with the default port. A host with other characters than hosts have is refused: a
// part of a password that has got there must not be dialled, and then shown as what could not be reached.
func hostPort(text, usual string) (address string, ok bool) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), usual
	}
	n, err := strconv.Atoi(port)
	plain := strings.Trim(host, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == ""
	if !plain { // an IPv6 address, perhaps with a zone
		bare, _, _ := strings.Cut(host, "%")
		plain = net.ParseIP(bare) != nil
	}
	return net.JoinHostPort(host, port), err == nil && n >= 1 && n <= 65535 && host != "" && plain
}

func database(o *rueidis.ClientOption, text string) error {
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxDatabase {
		return badURL("the database is not a number of 0..%d", maxDatabase)
	}
	o.SelectDB = n
	return nil
}
