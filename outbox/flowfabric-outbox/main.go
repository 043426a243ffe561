// Command flowfabric-outbox relays an outbox without a worker: for deployments whose workers are not in Go, or do not
// reach the database. It has the drivers that the library itself does not link.
//
//	FLOWFABRIC_URL=redis://store:6379 flowfabric-outbox -database postgres://app@db/shop [-table NAME] [-migrate]
//
// -database is a URL: postgres://…, mysql://user:password@host:3306/name, or sqlite:///var/lib/app.db. Take it from
// the environment variable FLOWFABRIC_OUTBOX_DATABASE if it has a password. -listen serves /metrics.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/sourcegraph/conc"
	_ "modernc.org/sqlite"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/outbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "flowfabric-outbox:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("flowfabric-outbox", flag.ContinueOnError)
	database := flags.String("database", os.Getenv("FLOWFABRIC_OUTBOX_DATABASE"), "URL of the database")
	store := flags.String("url", os.Getenv("FLOWFABRIC_URL"), "URL of the store")
	table := flags.String("table", "", "table of the outbox (default flowfabric_outbox)")
	listen := flags.String("listen", "", "address that serves /metrics, such as :9090")
	migrate := flags.Bool("migrate", false, "make the tables if they are not there")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dialect, db, err := open(*database)
	if err != nil {
		return err
	}
	defer db.Close()
	c, err := client.Connect(ctx, client.Config{URL: *store, ClientName: "flowfabric-outbox"})
	if err != nil {
		return err
	}
	defer c.Close()
	registry := prometheus.NewRegistry()
	box, err := outbox.New(outbox.Config{Dialect: dialect, Table: *table, Registerer: registry,
		Partitions: c.Link().Engine.Partitions()})
	if err != nil {
		return err
	}
	if *migrate {
		for _, statement := range box.Schema() {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("make the tables: %w", err)
			}
		}
	}
	if *listen != "" {
		stop, err := serve(*listen, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
		if err != nil {
			return err
		}
		defer stop()
	}
	return box.Relay(ctx, db, c)
}

// serve answers /metrics until it is stopped.
func serve(address string, metrics http.Handler) (stop func(), err error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("-listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", metrics)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	var serving conc.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	return func() {
		_ = server.Close()
		serving.Wait()
	}, nil
}

// open opens the database of a URL, which need not be there yet.
func open(address string) (outbox.Dialect, *sql.DB, error) {
	scheme, rest, _ := strings.Cut(address, "://")
	var dialect outbox.Dialect
	driver, source := "", address
	switch scheme {
	case "postgres", "postgresql":
		dialect, driver = outbox.PostgreSQL, "pgx"
	case "mysql":
		dialect, driver = outbox.MySQL, "mysql"
		u, err := url.Parse(address)
		if err != nil {
			return "", nil, errors.New("-database: it cannot be read as a URL") // it may have a password
		}
		cfg := mysql.NewConfig()
		cfg.User, cfg.Net, cfg.Addr, cfg.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
		cfg.Passwd, _ = u.User.Password()
		if socket := u.Query().Get("socket"); socket != "" {
			cfg.Net, cfg.Addr = "unix", socket
		}
		source = cfg.FormatDSN()
	case "sqlite":
		dialect, driver = outbox.SQLite, "sqlite"
		source = "file:" + rest + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"
	default:
		return "", nil, errors.New("-database: want a URL of scheme postgres, mysql or sqlite")
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return "", nil, fmt.Errorf("-database: %w", err)
	}
	return dialect, db, nil
}
