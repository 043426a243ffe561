// Package outbox submits executions inside the application's own SQL transaction. [Submit] writes a row to a table of
// the application's database. [Outbox.Relay] makes an execution of every row that was committed, and deletes it.
//
//	application                    database                      relay                        store
//	BEGIN
//	… own statements …
//	outbox.Submit ── INSERT ──▶  row (not visible)
//	COMMIT ───────────────────▶  row ── SELECT ──▶  a batch ── create, by their ids ──▶  executions
//	                             row ◀── DELETE ──  done
//	ROLLBACK: there is no row, and there will be no execution
//
// # What a failure does
//
// The id of the execution is made by [Submit] and stored in the row. The store knows an id that comes again, so a relay
// that is killed between create and delete repeats the create and changes nothing. Nothing else is needed for a single
// execution of each row: relays may run in any number, be killed or paused at any point, and see the same row at the
// same time. A lease in the database only keeps them from doing the same work twice. The store knows an id as long as
// it retains the execution, and an hour longer: a row must not stay undeleted for longer than that after its
// execution was made, which takes a database that accepts no DELETE for a day.
//
// What cannot work later (an input that does not fit its schema, a gate that does not exist, a key in conflict) makes
// the row dead: it stays in the table with its error, due_ms is the greatest BIGINT, and [Config].Registerer counts it.
// Anything else puts a row off for 1 s, growing to 15 s, without a limit of tries. A store that does not answer at all
// leaves the rows as they are, and the relay asks it again at growing pauses.
//
// # Order
//
// Rows are relayed in no order, unless they have one: rows of the same [Ordered] key become executions in the order of
// their commits, one after the other. A row that is put off or dead holds back the rows of its key behind it, and no
// others. Serial numbers are given before a commit, so order by number alone would let a late commit slip behind. That
// is why Submit takes a lock of the key in the database until the transaction ends: the transactions of one key
// commit in the order of their numbers.
package outbox
