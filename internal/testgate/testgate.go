// Package testgate is for tests that have gates in the form in which the server asks them.
package testgate

import flowfabric "github.com/flowfabric/flowfabric-go"

// Asks is s with gates instead of those that it has. What is no limit of a key is a gate of its name.
func Asks(s flowfabric.Start, gates ...flowfabric.Gate) flowfabric.Start {
	s.Names, s.Limits = nil, nil
	for _, g := range gates {
		if key, l, ok := g.Limit(); ok {
			limit := []flowfabric.KeyLimit{{Key: key, Concurrency: l.Concurrency, Rate: l.Rate,
				Per: flowfabric.Millis(l.Per)}}
			if (flowfabric.Start{Limits: limit}).Gates()[0] == g {
				s.Limits = append(s.Limits, limit...)
				continue
			}
		}
		s.Names = append(s.Names, g.Name())
	}
	return s
}
