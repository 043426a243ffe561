package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/outbox"
)

// database is a private server of one test, or a file of SQLite.
type database struct {
	t       *testing.T
	dialect outbox.Dialect
	url     string
	command []string // of the server; empty for SQLite
	dir     string
	as      *syscall.SysProcAttr
	process *os.Process
	output  *bytes.Buffer
	owner   conc.WaitGroup
}

// databases are those that are installed; every test of this package runs on each.
func databases(t *testing.T, test func(t *testing.T, d *database)) {
	for name, start := range map[string]func(*testing.T) *database{"postgresql": startPostgres, "mysql": startMySQL,
		"sqlite": openSQLite} {
		t.Run(name, func(t *testing.T) { test(t, start(t)) })
	}
}

// open is a pool of connections to the database.
func (d *database) open() *sql.DB {
	d.t.Helper()
	_, db, err := open(d.url)
	must.No(d.t, err)
	d.t.Cleanup(func() { _ = db.Close() })
	return db
}

func openSQLite(t *testing.T) *database {
	return &database{t: t, dialect: outbox.SQLite, url: "sqlite://" + filepath.Join(t.TempDir(), "app.db")}
}

func startPostgres(t *testing.T) *database {
	const install = "apt-get install postgresql (on Debian or Ubuntu), brew install postgresql (on macOS)"
	initdb := program(t, "initdb", "/usr/lib/postgresql/*/bin", install)
	d := newDatabase(t, outbox.PostgreSQL, "postgres")
	data := filepath.Join(d.dir, "data")
	d.initialized(data, func() {
		d.run(initdb, "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
	})
	d.url = "postgres://postgres@/postgres?sslmode=disable&host=" + url.QueryEscape(d.dir)
	// The machine does not fail, only processes do: what was written is there although nothing waits for the disk.
	d.command = []string{filepath.Join(filepath.Dir(initdb), "postgres"), "-D", data, "-k", d.dir, "-c",
		"listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=32MB", "-c", "dynamic_shared_memory_type=mmap"}
	d.start()
	return d
}

// startMySQL starts MariaDB, or the MySQL that FLOWFABRIC_MYSQLD names, which distributions seldom have.
func startMySQL(t *testing.T) *database {
	const install = "apt-get install mariadb-server-core (on Debian or Ubuntu), brew install mariadb (on macOS)"
	own := os.Getenv("FLOWFABRIC_MYSQLD")
	server := own
	if own == "" {
		server = program(t, "mariadbd", "/usr/sbin", install)
	}
	d := newDatabase(t, outbox.MySQL, "mysql")
	data, socket := filepath.Join(d.dir, "data"), filepath.Join(d.dir, "s.sock")
	d.command = []string{server, "--no-defaults", "--datadir=" + data, "--socket=" + socket, "--skip-networking",
		"--skip-grant-tables", "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=2",
		"--max-allowed-packet=64M"}
	if own == "" { // without tables of privileges there is nothing to install first
		d.run("mkdir", data)
		d.command = append(d.command, "--innodb-log-file-size=8M")
	} else {
		d.run(server, "--no-defaults", "--initialize-insecure", "--datadir="+data)
		d.command = append(d.command, "--innodb-redo-log-capacity=8M", "--mysqlx=OFF", "--secure-file-priv=NULL")
	}
	d.url = "mysql://root@/?socket=" + url.QueryEscape(socket)
	d.start()
	_, err := d.open().Exec("CREATE DATABASE shop")
	must.No(t, err)
	must.No(t, d.process.Signal(syscall.SIGTERM)) // it survives no kill before its files were written once
	d.owner.Wait()
	d.start()
	d.url = "mysql://root@/shop?socket=" + url.QueryEscape(socket)
	return d
}

// program is the path of a program that is in PATH or in one of some folders. Where it is not installed the test is
// skipped loudly; where CI is set that is a failure.
func program(t *testing.T, name, folders, install string) string {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(folders, name))
	if path, err := exec.LookPath(name); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			found = append(found, path)
		}
	}
	if len(found) > 0 {
		return found[len(found)-1]
	}
	text := fmt.Sprintf("%s is not installed: %s", name, install)
	if os.Getenv("CI") != "" {
		t.Fatal(text)
	}
	fmt.Fprintf(os.Stderr, "\n!!! SKIPPED %s: %s\n\n", t.Name(), text)
	t.Skip(text)
	return ""
}

// template is a folder of data that PostgreSQL was initialized in once; every server gets a copy.
var template struct {
	sync.Mutex
	dir string
}

// initialized makes the folder of data of a new server.
func (d *database) initialized(data string, initialize func()) {
	d.t.Helper()
	template.Lock()
	defer template.Unlock()
	if template.dir != "" {
		d.run("cp", "-a", filepath.Join(template.dir, "data"), data)
		return
	}
	initialize()
	dir, err := os.MkdirTemp("", "ff")
	must.No(d.t, err)
	d.own(dir)
	d.run("cp", "-a", data, filepath.Join(dir, "data"))
	template.dir = dir
}

// newDatabase makes the folder of a server. Servers refuse to work for root, so that then it belongs to an account.
func newDatabase(t *testing.T, dialect outbox.Dialect, account string) *database {
	t.Helper()
	dir, err := os.MkdirTemp("", "ff") // the path of a socket is short
	must.No(t, err)
	d := &database{t: t, dialect: dialect, dir: dir, as: dieWithParent()}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Cleanup(d.kill)
	if os.Geteuid() != 0 {
		return d
	}
	u, err := user.Lookup(account)
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	must.No(t, err)
	uid, err := strconv.Atoi(u.Uid)
	must.No(t, err)
	gid, err := strconv.Atoi(u.Gid)
	must.No(t, err)
	d.as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	d.own(dir)
	return d
}

// own gives a folder to the account of the server.
func (d *database) own(dir string) {
	d.t.Helper()
	if c := d.as.Credential; c != nil {
		must.No(d.t, os.Chown(dir, int(c.Uid), int(c.Gid)))
	}
}

func (d *database) run(program string, args ...string) {
	d.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.SysProcAttr = d.dir, &syscall.SysProcAttr{Credential: d.as.Credential}
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// start starts the server and waits until it answers.
func (d *database) start() {
	d.t.Helper()
	if d.command == nil {
		return
	}
	cmd := exec.Command(d.command[0], d.command[1:]...)
	cmd.Dir, cmd.SysProcAttr = d.dir, d.as
	d.output = &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = d.output, d.output
	started := make(chan error)
	exited := make(chan struct{})
	d.owner.Go(func() {
		// The child is told to die with the thread that made it.
		lockThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(exited)
	})
	must.No(d.t, <-started)
	d.process = cmd.Process
	db := d.open()
	defer db.Close()
	testwait.Until(d.t, "the database answers", func() bool {
		select {
		case <-exited:
			d.t.Fatalf("%s ended at its start:\n%s", d.command[0], d.output)
		default:
		}
		return db.Ping() == nil
	})
}

// kill ends the server and its processes at once.
func (d *database) kill() {
	if d.process == nil {
		return
	}
	for _, pid := range append(children(d.process.Pid), d.process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	d.owner.Wait()
	d.process = nil
}

// children are the processes that a process has started.
func children(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for field := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(field); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}
