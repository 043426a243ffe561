//go:build unix

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/outbox"
)

// role is the environment variable by which this program is an application or a relay instead of a test.
const role = "FLOWFABRIC_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "app":
		fmt.Fprintln(os.Stderr, application(os.Args[1], os.Args[2]))
		os.Exit(1)
	case "relay":
		slog.SetDefault(quiet)
		main()
		os.Exit(0)
	}
	code := m.Run()
	_ = os.RemoveAll(template.dir)
	os.Exit(code)
}

// ledger is what the application knows: what it has committed, in the order of the commits of a key.
var ledger = map[outbox.Dialect]string{
	outbox.PostgreSQL: ledgerWith("BIGSERIAL PRIMARY KEY"),
	outbox.MySQL:      ledgerWith("BIGINT AUTO_INCREMENT PRIMARY KEY"),
	outbox.SQLite:     ledgerWith("INTEGER PRIMARY KEY AUTOINCREMENT"),
}

func ledgerWith(id string) string {
	return "CREATE TABLE ledger (id " + id + ", execution VARCHAR(48), k VARCHAR(9))"
}

// entry is one transaction of the application.
type entry struct {
	n      int
	key    string                // of its order; "" for none
	cancel func(id string) error // rolls it back, after it was told the id
}

var errRolledBack = errors.New("rolled back")

// write makes a transaction of two rows: one of the outbox and one of the ledger.
func write(ctx context.Context, db *sql.DB, box *outbox.Outbox, e entry) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var opts []client.SubmitOption
	if e.key != "" {
		opts = append(opts, outbox.Ordered(e.key))
	}
	id, err := outbox.Submit(ctx, box, tx, work, e.n, opts...)
	if err != nil {
		return err
	}
	// The values are ours; placeholders differ between databases.
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO ledger (execution, k) VALUES ('%s', '%s')", id,
		e.key)); err != nil {
		return err
	}
	if e.cancel != nil {
		return errors.Join(errRolledBack, e.cancel(id.String()))
	}
	return tx.Commit()
}

// application writes until it is killed. What fails because the database is away is given up; it may be in the ledger
// all the same, and then in the outbox, too.
func application(address, undone string) error {
	dialect, db, err := open(address)
	if err != nil {
		return err
	}
	box, err := outbox.New(outbox.Config{Dialect: dialect, Partitions: partitions})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(undone, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	var running conc.WaitGroup
	for range 3 {
		running.Go(func() {
			again := time.NewTicker(5 * time.Millisecond)
			for n := 0; ; n++ {
				e := entry{n: n}
				if n%3 > 0 {
					e.key = fmt.Sprint(n % 5)
				}
				if n%7 == 0 {
					e.cancel = func(id string) error { _, err := file.WriteString(id + "\n"); return err }
				}
				_ = write(context.Background(), db, box, e)
				<-again.C
			}
		})
	}
	running.Wait()
	return nil
}

// process is this program in a role.
type process struct {
	cmd *exec.Cmd
}

func startRole(t *testing.T, as string, args ...string) *process {
	t.Helper()
	p := &process{exec.Command(os.Args[0], args...)}
	p.cmd.Env = append(os.Environ(), role+"="+as)
	p.cmd.Stderr = os.Stderr
	must.No(t, p.cmd.Start())
	t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// compare holds what the store has against the ledger: the same executions, each once, those of a key in its order.
func compare(t *testing.T, db *sql.DB, c *client.Client, most int) {
	t.Helper()
	all := map[string]time.Time{}
	for id, x := range existing(t, c) {
		all[id.String()] = x.CreatedAt
	}
	rows, err := db.Query("SELECT execution, k FROM ledger ORDER BY id")
	must.No(t, err)
	defer rows.Close()
	last, count := map[string]time.Time{}, 0
	for rows.Next() {
		var id, key string
		must.No(t, rows.Scan(&id, &key))
		count++
		at, ok := all[id]
		if !ok {
			t.Errorf("%s was committed and does not exist", id)
		}
		if key != "" && at.Before(last[key]) {
			t.Errorf("%s of key %s was made at %s, before the one before it, at %s", id, key, at, last[key])
		}
		last[key] = at
		delete(all, id)
	}
	must.No(t, rows.Err())
	for id := range all {
		t.Errorf("%s exists and was not committed", id)
	}
	if most > 0 && count != most {
		t.Errorf("the ledger has %d rows, want %d", count, most)
	}
	t.Logf("%d rows", count)
}

// The application, two relays, the database and the store are killed at any point, again and again. In the end each
// row that was committed is one execution, and nothing else is.
func TestCrashes(t *testing.T) {
	databases(t, func(t *testing.T, d *database) {
		e := newEnv(t, d)
		_, err := e.db.Exec(ledger[d.dialect])
		must.No(t, err)
		undone := filepath.Join(t.TempDir(), "undone")
		app := func() *process { return startRole(t, "app", d.url, undone) }
		relay := func() *process { return startRole(t, "relay", "-database", d.url, "-url", e.store.URL()) }
		victims := map[string]*process{"app": app(), "relay 1": relay(), "relay 2": relay()}
		kills := map[string]func(){
			"app":     func() { victims["app"].kill(); victims["app"] = app() },
			"relay 1": func() { victims["relay 1"].kill(); victims["relay 1"] = relay() },
			"relay 2": func() { victims["relay 2"].kill(); victims["relay 2"] = relay() },
			"store":   func() { e.store.Kill(); e.store.Restart() },
			"relays":  func() { victims["relay 1"].kill(); victims["relay 2"].kill() },
		}
		if d.command != nil {
			kills["database"] = func() { d.kill(); d.start() }
		}
		count := func() (n int) {
			if e.db.QueryRow("SELECT COUNT(*) FROM ledger").Scan(&n) != nil {
				return 0
			}
			return n
		}
		rounds := 24
		names := []string{"app", "relay 1", "relay 2", "store", "database", "relays"}
		for i := range rounds {
			enough := count() + 1 + rand.IntN(60)
			testwait.Until(t, "the application goes on", func() bool { return count() >= enough })
			name := names[i%len(names)]
			if kill := kills[name]; kill != nil {
				kill()
			}
			if name == "relays" {
				victims["relay 1"], victims["relay 2"] = relay(), relay()
			}
		}
		victims["app"].kill()
		testwait.Progress(t, "the outbox is empty", func() (bool, any) {
			n := e.number("SELECT COUNT(*) FROM flowfabric_outbox")
			return n == 0, n
		})
		compare(t, e.db, e.c, 0)
		text, err := os.ReadFile(undone)
		must.No(t, err)
		all := existing(t, e.c)
		ids := strings.Fields(string(text))
		for id := range all {
			for _, other := range ids {
				if id.String() == other {
					t.Errorf("%s was rolled back and exists", id)
				}
			}
		}
		t.Logf("%d kills, %d executions, %d rolled back", rounds, len(all), len(ids))
	})
}
