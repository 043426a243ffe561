package outbox

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
)

// Dialect is the language of a database.
type Dialect string

// The dialects. They need PostgreSQL 12, MySQL 8.0.13 or MariaDB 10.3, and SQLite 3.25 or later.
const (
	PostgreSQL Dialect = "postgresql"
	MySQL      Dialect = "mysql"
	SQLite     Dialect = "sqlite"
)

func (d Dialect) known() bool { return d == PostgreSQL || d == MySQL || d == SQLite }

const (
	maxRows  = 500     // of a batch
	maxBytes = 8 << 20 // of the inputs of a batch, but for its last one
	leaseMS  = 5000
	// deadMS in due_ms marks a dead row; a row that was never put off has 0.
	deadMS = 1<<63 - 1
	// orderLocks is how many rows of the lease table MySQL locks for the order of keys.
	orderLocks = 64
)

// statements are what is sent to a database. %IDS% of done, dead and putOff stands for numbers: drivers do not agree on
// how a list is an argument.
type statements struct {
	schema        []string
	insert        string // execution, details, input
	insertOrdered string // execution, details, input, order key; with PostgreSQL the lock too
	lock          string // of the order of a key; "" if the insert takes it, or the database has one writer
	lockOf        func(key string) int64
	lease         string // owner, owner
	release       string // owner
	pick          string
	done          string
	dead          string // error
	putOff        string // error
	gauge         string
}

// statements are those of a dialect for a table.
func (d Dialect) statements(table string) statements {
	now, serial, text, keyText, bytes := `CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)`,
		"INTEGER PRIMARY KEY AUTOINCREMENT", "TEXT", "TEXT", "BLOB"
	switch d {
	case PostgreSQL:
		now, serial, bytes = `(EXTRACT(EPOCH FROM statement_timestamp()) * 1000)::bigint`,
			"BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "BYTEA"
	case MySQL:
		now, serial, text, keyText, bytes = `CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)`,
			"BIGINT AUTO_INCREMENT PRIMARY KEY", "MEDIUMTEXT", "VARBINARY(256)", "MEDIUMBLOB"
	}
	fill := strings.NewReplacer("%T%", table, "%NOW%", now, "%SERIAL%", serial, "%TEXT%", text, "%KEY%", keyText,
		"%BYTES%", bytes, "%DEAD%", fmt.Sprint(deadMS), "%INDEX%", table[strings.LastIndexByte(table, '.')+1:],
		"%ROWS%", fmt.Sprint(maxRows), "%LIMIT%", fmt.Sprint(maxBytes), "%LEASE%", fmt.Sprint(leaseMS)).Replace
	s := statements{
		insert:        fill(`INSERT INTO %T% (execution, details, input) VALUES (?, ?, ?)`),
		insertOrdered: fill(`INSERT INTO %T% (execution, details, input, order_key) VALUES (?, ?, ?, ?)`),
		lease: fill(`UPDATE %T%_lease SET owner = ?, until_ms = %NOW% + %LEASE% ` +
			`WHERE id = 0 AND (owner = ? OR until_ms < %NOW%)`),
		release: fill(`UPDATE %T%_lease SET until_ms = 0 WHERE id = 0 AND owner = ?`),
		// Rows behind one of their key that waits are left alone. The sum keeps a batch of large inputs small.
		pick: fill(`SELECT o.id, o.execution, COALESCE(o.order_key, ''), o.details, o.input, %NOW% - o.created_ms
FROM %T% o JOIN (
	SELECT id FROM (
		SELECT id, SUM(size) OVER (ORDER BY id) - size AS before_it FROM (
			SELECT r.id, LENGTH(r.input) AS size FROM %T% r
			WHERE r.due_ms <= %NOW% AND (r.order_key IS NULL OR NOT EXISTS (
				SELECT 1 FROM %T% w
				WHERE w.order_key = r.order_key AND w.due_ms > 0 AND w.due_ms > %NOW% AND w.id < r.id))
			ORDER BY r.id LIMIT %ROWS%) AS due) AS sized
	WHERE before_it < %LIMIT%) AS picked ON picked.id = o.id
ORDER BY o.id`),
		done: fill(`DELETE FROM %T% WHERE id IN (%IDS%)`),
		dead: fill(`UPDATE %T% SET due_ms = %DEAD%, attempts = attempts + 1, error = ? WHERE id IN (%IDS%)`),
		putOff: fill(`UPDATE %T% SET due_ms = %NOW% + CASE attempts WHEN 0 THEN 1000 WHEN 1 THEN 2000 ` +
			`WHEN 2 THEN 4000 WHEN 3 THEN 8000 ELSE 15000 END, attempts = attempts + 1, error = ? ` +
			`WHERE due_ms < %DEAD% AND id IN (%IDS%)`),
		gauge: fill(`SELECT COALESCE((SELECT %NOW% - created_ms FROM %T% WHERE due_ms < %DEAD% ` +
			`ORDER BY id LIMIT 1), 0), (SELECT COUNT(*) FROM %T% WHERE due_ms > 0 AND due_ms = %DEAD%)`),
		schema: []string{fill(`CREATE TABLE IF NOT EXISTS %T% (
	id %SERIAL%,
	execution VARCHAR(48) NOT NULL,
	order_key %KEY%,
	details %TEXT% NOT NULL,
	input %BYTES% NOT NULL,
	created_ms BIGINT NOT NULL DEFAULT (%NOW%),
	due_ms BIGINT NOT NULL DEFAULT 0,
	attempts INTEGER NOT NULL DEFAULT 0,
	error TEXT
)`), fill(`CREATE TABLE IF NOT EXISTS %T%_lease (
	id INTEGER PRIMARY KEY,
	owner VARCHAR(36) NOT NULL,
	until_ms BIGINT NOT NULL
)`)},
	}
	partial := fill(`CREATE INDEX IF NOT EXISTS %INDEX%_waiting ON %T% (order_key, due_ms) WHERE due_ms > 0`)
	switch d {
	case PostgreSQL:
		s.schema = append(s.schema, partial,
			fill(`INSERT INTO %T%_lease (id, owner, until_ms) VALUES (0, '', 0) ON CONFLICT DO NOTHING`))
		s.lockOf = func(key string) int64 { return hash(table, key) }
		// The lock comes before the number, which the row gets as it is inserted.
		s.insertOrdered = fill(`WITH held AS MATERIALIZED (SELECT pg_advisory_xact_lock($5::bigint))
INSERT INTO %T% (execution, details, input, order_key) SELECT $1::text, $2::text, $3::bytea, $4::text FROM held`)
		for _, text := range []*string{&s.insert, &s.lease, &s.release, &s.dead, &s.putOff} {
			*text = numbered(*text)
		}
	case MySQL:
		rows := make([]string, orderLocks+1)
		for i := range rows {
			rows[i] = fmt.Sprintf("(%d, '', 0)", i)
		}
		s.schema[0] = strings.TrimSuffix(s.schema[0], "\n)") + fmt.Sprintf(
			",\n\tKEY %s_waiting (due_ms, order_key)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4",
			table[strings.LastIndexByte(table, '.')+1:])
		s.schema[1] += " ENGINE=InnoDB"
		s.schema = append(s.schema,
			fill(`INSERT IGNORE INTO %T%_lease (id, owner, until_ms) VALUES `)+strings.Join(rows, ", "))
		s.lock = fill(`UPDATE %T%_lease SET until_ms = until_ms WHERE id = ?`)
		s.lockOf = func(key string) int64 { return 1 + int64(uint64(hash(table, key))%orderLocks) }
	case SQLite:
		s.schema = append(s.schema, partial,
			fill(`INSERT OR IGNORE INTO %T%_lease (id, owner, until_ms) VALUES (0, '', 0)`))
	}
	return s
}

// hash is the same number for the same key of a table in every process.
func hash(table, key string) int64 {
	sum := sha256.Sum256([]byte("flowfabric outbox " + table + "\x00" + key))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// numbered writes the placeholders of a statement as PostgreSQL wants them.
func numbered(statement string) string {
	var b strings.Builder
	n := 0
	for _, c := range statement {
		if c == '?' {
			n++
			fmt.Fprintf(&b, "$%d", n)
			continue
		}
		b.WriteRune(c)
	}
	return b.String()
}

// forIDs puts numbers into a statement.
func forIDs(statement string, rows []*row) string {
	list := make([]string, len(rows))
	for i, r := range rows {
		list[i] = fmt.Sprint(r.id)
	}
	return strings.Replace(statement, "%IDS%", strings.Join(list, ","), 1)
}
