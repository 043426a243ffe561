package outbox

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the collectors of the relay of one table; docs/reference/metrics.md says what each means.
type metrics struct {
	age, dead *prometheus.GaugeVec
	rows      *prometheus.CounterVec // result: relayed, dead, put_off
	table     string
}

func newMetrics(table string) *metrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"table"})
	}
	return &metrics{
		table: table,
		age: gauge("flowfabric_sql_outbox_oldest_age_seconds",
			"Age of the oldest row of the outbox that is not dead, 0 without one, read every five seconds."),
		dead: gauge("flowfabric_sql_outbox_dead_rows",
			"Rows of the outbox that need a correction before they can be relayed, read every five seconds."),
		rows: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "flowfabric_sql_outbox_rows_total",
			Help: "Rows that this relay has worked on, by result: relayed, dead, put_off."},
			[]string{"table", "result"}),
	}
}

// register adds the collectors. A second outbox of one process shares those of the first.
func (m *metrics) register(reg prometheus.Registerer) error {
	err := errors.Join(share(reg, &m.age), share(reg, &m.dead), share(reg, &m.rows))
	for _, result := range []string{"relayed", "dead", "put_off"} { // so that a rate begins at zero
		m.rows.WithLabelValues(m.table, result)
	}
	return err
}

func share[C prometheus.Collector](reg prometheus.Registerer, c *C) error {
	err := reg.Register(*c)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if existing, same := already.ExistingCollector.(C); same {
			*c = existing
			return nil
		}
	}
	return err
}

func (m *metrics) counted(result string, n int) {
	m.rows.WithLabelValues(m.table, result).Add(float64(n))
}
