package engine

import (
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/fault"
)

func TestURLs(t *testing.T) {
	for url, want := range map[string]struct {
		addresses  []string
		user, pass string
		db         int
		tls, unix  bool
	}{
		"redis://127.0.0.1:6380": {addresses: []string{"127.0.0.1:6380"}},
		"redis://localhost":      {addresses: []string{"localhost:6379"}},
		"redis://localhost/":     {addresses: []string{"localhost:6379"}},
		"redis://localhost/5":    {addresses: []string{"localhost:6379"}, db: 5},
		"valkey://h:1/1023":      {addresses: []string{"h:1"}, db: 1023},
		"rediss://h":             {addresses: []string{"h:6379"}, tls: true},
		"valkeys://h:7":          {addresses: []string{"h:7"}, tls: true},
		"redis://h1:1,h2,h3:3":   {addresses: []string{"h1:1", "h2:6379", "h3:3"}},
		"redis://[::1]:6380":     {addresses: []string{"[::1]:6380"}},
		"redis://[::1]":          {addresses: []string{"[::1]:6379"}},
		"redis://:pass@h":        {addresses: []string{"h:6379"}, pass: "pass"},
		"redis://user:p%40ss%2Fw%3Ard@h:1/2": {addresses: []string{"h:1"}, user: "user", pass: "p@ss/w:rd",
			db: 2},
		"redis://user:p@ss@h":          {addresses: []string{"h:6379"}, user: "user", pass: "p@ss"},
		"unix:///run/valkey.sock":      {addresses: []string{"/run/valkey.sock"}, unix: true},
		"unix:///run/valkey.sock?db=3": {addresses: []string{"/run/valkey.sock"}, unix: true, db: 3},
		"unix://user:p%40ss@/run/valkey.sock?db=3": {addresses: []string{"/run/valkey.sock"}, unix: true, db: 3,
			user: "user", pass: "p@ss"},
		"redis://localhost/?":        {addresses: []string{"localhost:6379"}},
		"redis://[fe80::1%25eth0]:1": {addresses: []string{"[fe80::1%25eth0]:1"}},
		"rediss://user:secret@one:1,two:2,three:3": {addresses: []string{"one:1", "two:2", "three:3"}, user: "user",
			pass: "secret", tls: true},
	} {
		o, err := Config{URL: url}.withDefaults().options()
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if !slices.Equal(o.InitAddress, want.addresses) || o.Username != want.user || o.Password != want.pass ||
			o.SelectDB != want.db {
			t.Errorf("%s: addresses %v, user %q, password %q, database %d", url, o.InitAddress, o.Username, o.Password,
				o.SelectDB)
		}
		if (o.TLSConfig != nil) != want.tls || o.ForceSingleClient != want.unix {
			t.Errorf("%s: tls %v, unix %v", url, o.TLSConfig != nil, o.DialCtxFn != nil)
		}
		if o.TLSConfig != nil && o.TLSConfig.MinVersion < tls.VersionTLS12 {
			t.Errorf("%s: TLS from %#x", url, o.TLSConfig.MinVersion)
		}
	}
}

func TestSentinelURLs(t *testing.T) {
	type want struct {
		sentinels     []string
		name          string
		user, pass    string // of the primary
		guard, secret string // of the Sentinels
		db            int
		tls           bool
	}
	for url, want := range map[string]want{
		"redis+sentinel://h/main": {sentinels: []string{"h:26379"}, name: "main"},
		"valkey+sentinel://h1:1,h2,[::1]:3/my-set/5": {sentinels: []string{"h1:1", "h2:26379", "[::1]:3"},
			name: "my-set", db: 5},
		"rediss+sentinel://user:p%40ss@h/main?sentinel_username=guard&sentinel_password=a%26b+c": {
			sentinels: []string{"h:26379"}, name: "main", user: "user", pass: "p@ss", guard: "guard", secret: "a&b+c",
			tls: true},
		"valkeys+sentinel://h/main?sentinel_password=x": {sentinels: []string{"h:26379"}, name: "main", secret: "x",
			tls: true},
	} {
		// timed: nothing is dialled
		o, err := Config{URL: url, ClientName: "me", DialTimeout: time.Minute}.withDefaults().options()
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if s := o.Sentinel; !slices.Equal(o.InitAddress, want.sentinels) || s.MasterSet != want.name ||
			o.Username != want.user || o.Password != want.pass || s.Username != want.guard ||
			s.Password != want.secret || o.SelectDB != want.db || (o.TLSConfig != nil) != want.tls ||
			s.TLSConfig != o.TLSConfig {
			t.Errorf("%s: %v, %q:%q, database %d, %+v", url, o.InitAddress, o.Username, o.Password, o.SelectDB, s)
		}
		if o.Sentinel.Dialer.Timeout != time.Minute || o.Sentinel.ClientName != "me" ||
			o.Sentinel.TopologyRefreshInterval == 0 {
			t.Errorf("%s: Sentinels are dialled in another way: %+v", url, o.Sentinel)
		}
	}
	o, err := Config{URL: "redis+sentinel://a:b@h/main?sentinel_username=c&sentinel_password=d", Username: "user",
		Password: "pass"}.withDefaults().options()
	if err != nil || o.Username != "user" || o.Password != "pass" || o.Sentinel.Username != "c" ||
		o.Sentinel.Password != "d" {
		t.Errorf("credentials of the configuration: %+v, %v", o, err)
	}
}

func TestConfigWins(t *testing.T) {
	own := &tls.Config{MinVersion: tls.VersionTLS13}
	o, err := Config{URL: "redis://a:b@h", Username: "user", Password: "pass", TLS: own,
		ClientName: "me"}.withDefaults().options()
	if err != nil || o.Username != "user" || o.Password != "pass" || o.TLSConfig != own || o.ClientName != "me" {
		t.Errorf("%+v, %v", o, err)
	}
	c := Config{}.withDefaults()
	if c.ClientName != "flowfabric" || c.DialTimeout != 10*time.Second || c.CallTimeout != 5*time.Second ||
		c.Logger == nil {
		t.Errorf("defaults: %+v", c)
	}
}

// What a newcomer gets wrong is answered by one line that says what to do, and never repeats a password.
func TestConfigErrors(t *testing.T) {
	const secret = "s3cret"
	for _, c := range []struct {
		config Config
		hint   string
	}{
		{Config{}, "FLOWFABRIC_URL"},
		{Config{}, "embedded:./data"},
		{Config{URL: "localhost:6379"}, "redis://host:6379"},
		{Config{URL: "user:" + secret + "@localhost:6379"}, "has no scheme"},
		{Config{URL: "redis:/localhost"}, "has no scheme"},
		{Config{URL: "http://localhost:6379"},
			"want redis, rediss, valkey, valkeys, any of them with +sentinel, unix or embedded"},
		{Config{URL: "REDIS://localhost"}, "in lower case"},
		{Config{URL: "postgres://user:" + secret + "@h/db"}, "scheme is not known"},
		{Config{URL: "redis-sentinel://h"}, "any of them with +sentinel"},
		{Config{URL: "redis+sentinel://h"}, "the name of the primary is missing"},
		{Config{URL: "redis+sentinel://h/"}, "the name of the primary is missing"},
		{Config{URL: "redis+sentinel://h//0"}, "the name of the primary is missing"},
		{Config{URL: "redis+sentinel://h/my name"}, "the name of the primary has characters"},
		{Config{URL: "redis+sentinel://h1,h2:0/m"}, "host 2 is not host:port"},
		{Config{URL: "redis+sentinel:///m"}, "host 1 is not host:port"},
		{Config{URL: "redis+sentinel://h/m/x"}, "database is not a number"},
		{Config{URL: "redis+sentinel://h/m/0/1"}, "database is not a number"},
		{Config{URL: "redis+sentinel://h/m?password=" + secret}, "want sentinel_username and sentinel_password"},
		{Config{URL: "redis+sentinel://h/m?sentinel_password=%zz" + secret},
			"sentinel_password is not valid percent-encoding"},
		{Config{URL: "redis+sentinel://h/m?sentinel_password=" + secret + "&sentinel_password=" + secret},
			"sentinel_password is empty or given twice"},
		{Config{URL: "redis+sentinel://h/m?sentinel_password="}, "sentinel_password is empty or given twice"},
		{Config{URL: "redis+sentinel://h/m?sentinel_username=" + secret}, "sentinel_username needs sentinel_password"},
		{Config{URL: "redis+sentinel://h/m?sentinel_password=a@" + secret}, "@ as %40 in that of the Sentinels"},
		{Config{URL: "redis+sentinel://u:x?" + secret + "@h/m"}, "? as %3F in the password of the primary"},
		{Config{URL: "redis+sentinel://u:x/" + secret + "@h/m"}, "a / stands before the @"},
		{Config{URL: "embedded://"}, "runtime and client"},
		{Config{URL: "redis://"}, "is not host:port with a port of 1..65535"},
		{Config{URL: "redis://h:0"}, "is not host:port with a port of 1..65535"},
		{Config{URL: "redis://h:65536"}, "is not host:port with a port of 1..65535"},
		{Config{URL: "redis://h:port"}, "is not host:port with a port of 1..65535"},
		{Config{URL: "redis://h1:1,,h2:2"}, "is not host:port with a port of 1..65535"},
		{Config{URL: "redis://h/abc"}, "database is not a number"},
		{Config{URL: "redis://h/-1"}, "database is not a number"},
		{Config{URL: "redis://h/1024"}, "0..1023"},
		{Config{URL: "redis://h/0?tls=true"}, "takes no parameters"},
		{Config{URL: "redis://u:%zz" + secret + "@h"}, "percent-encoding"},
		{Config{URL: "redis://u:" + secret + "/x@h"}, "URL"},
		{Config{URL: "redis://u:x/" + secret + "@h"}, "URL"},
		{Config{URL: "redis://u:" + secret + "@h:port"}, "is not host:port with a port of 1..65535"},
		{Config{URL: "unix://"}, "unix:///path/to.sock"},
		{Config{URL: "unix://s.sock"}, "absolute path"},
		{Config{URL: "unix:///s?database=1"}, "no parameter but db"},
		{Config{URL: "redis://h1,h 2"}, "host 2 is not host:port"},
		{Config{URL: "inproc://x"}, "number of a server of this process"},
		{Config{URL: "unix:///s?db=x"}, "database is not a number"},
		{Config{URL: "redis://h", DialTimeout: -1}, "DialTimeout"},
		{Config{URL: "redis://h", CallTimeout: -1}, "CallTimeout"},
		{Config{URL: "redis://h", Partitions: 1025}, "Partitions is 1025, want 1..1024"},
		{Config{URL: "redis://h", ClientName: "two words"}, "ClientName"},
		{Config{URL: "redis://h", ClientName: strings.Repeat("x", 65)}, "ClientName"},
	} {
		e, err := Open(t.Context(), c.config)
		if e != nil || !errors.Is(err, flowfabric.ErrConfig) || denied.ClassOf(err) != fault.Caller {
			t.Errorf("%q: %v, %v", c.config.URL, e, err)
			continue
		}
		text := err.Error()
		if !strings.Contains(text, c.hint) {
			t.Errorf("%q: %q does not say %q", c.config.URL, text, c.hint)
		}
		if strings.ContainsAny(text, "\n\r") || len(text) > 300 {
			t.Errorf("%q: %q is not one line", c.config.URL, text)
		}
		if strings.Contains(text, secret) {
			t.Errorf("%q: the error shows the password: %q", c.config.URL, text)
		}
	}
}
