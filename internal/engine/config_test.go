package engine

import (
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

func TestURLs(t *testing.T) {
	for url, want := range map[string]struct {
		addresses  []string
		user, pass string
		db         int
		tls, unix  bool
	}{
		"redis://127.0.0.1:6380":                   {addresses: []string{"127.0.0.1:6380"}},
		"redis://localhost":                        {addresses: []string{"localhost:6379"}},
		"redis://localhost/":                       {addresses: []string{"localhost:6379"}},
		"redis://localhost/5":                      {addresses: []string{"localhost:6379"}, db: 5},
		"valkey://h:1/1023":                        {addresses: []string{"h:1"}, db: 1023},
		"rediss://h":                               {addresses: []string{"h:6379"}, tls: true},
		"valkeys://h:7":                            {addresses: []string{"h:7"}, tls: true},
		"redis://h1:1,h2,h3:3":                     {addresses: []string{"h1:1", "h2:6379", "h3:3"}},
		"redis://[::1]:6380":                       {addresses: []string{"[::1]:6380"}},
		"redis://[::1]":                            {addresses: []string{"[::1]:6379"}},
		"redis://:pass@h":                          {addresses: []string{"h:6379"}, pass: "pass"},
		"redis://user:p%40ss%2Fw%3Ard@h:1/2":       {addresses: []string{"h:1"}, user: "user", pass: "p@ss/w:rd", db: 2},
		"redis://user:p@ss@h":                      {addresses: []string{"h:6379"}, user: "user", pass: "p@ss"},
		"unix:///run/valkey.sock":                  {addresses: []string{"/run/valkey.sock"}, unix: true},
		"unix:///run/valkey.sock?db=3":             {addresses: []string{"/run/valkey.sock"}, unix: true, db: 3},
		"unix://user:p%40ss@/run/valkey.sock?db=3": {addresses: []string{"/run/valkey.sock"}, unix: true, db: 3, user: "user", pass: "p@ss"},
		"redis://localhost/?":                      {addresses: []string{"localhost:6379"}},
		"redis://[fe80::1%25eth0]:1":               {addresses: []string{"[fe80::1%25eth0]:1"}},
		"rediss://user:secret@one:1,two:2,three:3": {addresses: []string{"one:1", "two:2", "three:3"}, user: "user", pass: "secret", tls: true},
	} {
		o, err := Config{URL: url}.withDefaults().options()
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if !slices.Equal(o.InitAddress, want.addresses) || o.Username != want.user || o.Password != want.pass || o.SelectDB != want.db {
			t.Errorf("%s: addresses %v, user %q, password %q, database %d", url, o.InitAddress, o.Username, o.Password, o.SelectDB)
		}
		if (o.TLSConfig != nil) != want.tls || o.ForceSingleClient != want.unix {
			t.Errorf("%s: tls %v, unix %v", url, o.TLSConfig != nil, o.DialCtxFn != nil)
		}
		if o.TLSConfig != nil && o.TLSConfig.MinVersion < tls.VersionTLS12 {
			t.Errorf("%s: TLS from %#x", url, o.TLSConfig.MinVersion)
		}
	}
}

func TestConfigWins(t *testing.T) {
	own := &tls.Config{MinVersion: tls.VersionTLS13}
	o, err := Config{URL: "redis://a:b@h", Username: "user", Password: "pass", TLS: own, ClientName: "me"}.withDefaults().options()
	if err != nil || o.Username != "user" || o.Password != "pass" || o.TLSConfig != own || o.ClientName != "me" {
		t.Errorf("%+v, %v", o, err)
	}
	c := Config{}.withDefaults()
	if c.ClientName != "flowfabric" || c.DialTimeout != 10*time.Second || c.CallTimeout != 5*time.Second || c.Partitions != 64 || c.Logger == nil {
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
		{Config{}, "embedded://"},
		{Config{URL: "localhost:6379"}, "redis://host:6379"},
		{Config{URL: "user:" + secret + "@localhost:6379"}, "has no scheme"},
		{Config{URL: "redis:/localhost"}, "has no scheme"},
		{Config{URL: "http://localhost:6379"}, "want redis, rediss, valkey, valkeys, unix or embedded"},
		{Config{URL: "REDIS://localhost"}, "in lower case"},
		{Config{URL: "postgres://user:" + secret + "@h/db"}, "scheme is not known"},
		{Config{URL: "redis-sentinel://h"}, "want redis, rediss, valkey, valkeys, unix or embedded"},
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
		if e != nil || !errors.Is(err, flowfabric.ErrConfig) || flowfabric.ClassOf(err) != flowfabric.ClassCaller {
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
