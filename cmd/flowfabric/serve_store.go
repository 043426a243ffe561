package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// minPassword is how long the password of a store is at least: a port lets strangers try many.
const minPassword = 16

// ownStore says how serve keeps the store itself, in place of a server.
type ownStore struct {
	data               dataFlags
	addr, passwordFile string
	flags              *pflag.FlagSet
}

func (o *ownStore) add(flags *pflag.FlagSet) {
	o.flags = flags
	o.data.add(flags, "`folder` in which to keep everything, instead of using a server; made if it does not exist")
	flags.StringVar(&o.addr, "store-addr", defaultAddr,
		"`host:port` at which other processes reach the store of --data")
	flags.StringVar(&o.passwordFile, "store-password-file", os.Getenv("FLOWFABRIC_STORE_PASSWORD_FILE"),
		"`file` with the password of the store of --data, at least 16 bytes (default $FLOWFABRIC_STORE_PASSWORD_FILE)")
}

// reached is a store, and how this process reaches it.
type reached struct {
	url, password, tokenKeys string
	close                    func()
}

// store is where serve finds its store: a server, or one of its own.
func (a *app) store(ctx context.Context, o *ownStore, logger *slog.Logger) (reached, error) {
	always, err := o.data.read()
	if err != nil {
		return reached{}, err
	}
	if o.data.dir == "" {
		for _, flag := range []string{"store-addr", "store-password-file"} {
			if o.flags.Changed(flag) {
				return reached{}, usage("--%s needs --data: it is for the store that serve keeps itself", flag)
			}
		}
		url, err := a.address()
		return reached{url: url, close: func() {}}, err
	}
	if a.url != "" {
		return reached{}, usage("--data and --url are both set; want one of them")
	}
	password, err := o.password()
	if err != nil {
		return reached{}, err
	}
	server, err := startStore(ctx, "--store-addr", embedded.Config{Addr: o.addr, Dir: o.data.dir, FsyncAlways: always,
		Password: password, Logger: logger})
	if err != nil {
		return reached{}, err
	}
	keys, from := os.Getenv(suspend.EnvTokenKeys), suspend.EnvTokenKeys
	if keys == "" {
		from = filepath.Join(o.data.dir, tokenkeys.File)
		if keys, err = o.data.tokenKeys(); err != nil {
			server.Close()
			return reached{}, err
		}
	}
	url := server.URL()
	logger.Info("flowfabric: other processes reach the store", "at", url, "password", password != "",
		"token_keys", from)
	return reached{url, password, keys, server.Close}, nil
}

// password is that of the store, "" for none.
func (o *ownStore) password() (string, error) {
	if o.passwordFile == "" {
		if !loopback(o.addr) {
			return "", usage(
				"--store-addr %s is no loopback address: everybody who reaches it may do everything; name a file with a password by --store-password-file (openssl rand -hex 32 makes one)",
				o.addr)
		}
		return "", nil
	}
	text, err := os.ReadFile(o.passwordFile)
	if err != nil {
		return "", usage("--store-password-file: %v", err)
	}
	password := strings.TrimSpace(string(text))
	if len(password) < minPassword {
		return "", usage("--store-password-file: the password has %d bytes, want %d or more (openssl rand -hex 32)",
			len(password), minPassword)
	}
	return password, nil
}
