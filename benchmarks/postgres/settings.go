package postgres

// lazy are the settings that decide what is on disk when a transaction is confirmed: PostgreSQL writes as lazily as it
// can, because the other systems write nothing; it still writes, but waits for nothing.
var lazy = []string{"fsync=off", "synchronous_commit=off", "full_page_writes=off"}

// Settings are the others that differ from PostgreSQL's, as a careful administrator of a machine with a few GB would
// choose them for many short transactions: enough buffers for all data, no checkpoint in the middle of a run, no log
// for replicas that are not there, no compilation of queries. Vacuuming is as PostgreSQL does it by itself.
var Settings = []string{
	"max_connections=1000", // 64 idle workers have two or three each
	"shared_buffers=1GB",
	"effective_cache_size=3GB",
	"work_mem=16MB",
	"maintenance_work_mem=256MB",
	"wal_level=minimal",
	"max_wal_senders=0",
	"wal_buffers=64MB",
	"min_wal_size=1GB",
	"max_wal_size=8GB",
	"checkpoint_timeout=30min",
	"random_page_cost=1.1",
	"jit=off",
}
