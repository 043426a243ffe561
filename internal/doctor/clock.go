package doctor

import (
	"context"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keys"
)

// Ahead is something in the store that bears a time which the server's clock has not reached, because the clock
// stepped back.
type Ahead struct {
	Partition uint16        // of executions, or of gates when Gate is set
	Session   string        // a session that ends later than its lease time from now
	Gate      string        // a gate whose window has starts of the future
	By        time.Duration // how far ahead
}

// clockSlack is how small a step back is waited for (lua/lib/root.lua).
const clockSlack = time.Second

// mostGates are looked at in each partition of gates.
const mostGates = "999"

// readAhead finds sessions and windows that lie ahead of the server's clock, one for each partition or gate.
func (s *StoreReport) readAhead(ctx context.Context, p *engine.Probe, gates uint16) {
	var commands []engine.Command
	for i := range s.Partitions {
		commands = append(commands, engine.On("ZREVRANGE", keys.Of(i).Sessions(), "0", "0", "WITHSCORES"))
	}
	for i := range gates {
		commands = append(commands, engine.On("ZRANGE", keys.Partition(keys.GateRoot(i)).Gates(), "0", mostGates))
	}
	var found []Ahead
	commands, answers := nil, p.Do(ctx, commands...)
	for i, resp := range answers[:s.Partitions] {
		last, at := s.last(resp)
		if at.After(s.At.Add(clockSlack)) {
			found = append(found, Ahead{Partition: uint16(i), Session: last})
			commands = append(commands, engine.On("HMGET", keys.Of(uint16(i)).Session(last), "exp", "ttl"))
		}
	}
	for i, resp := range answers[s.Partitions:] {
		names, err := resp.AsStrSlice()
		s.unsure(err)
		for _, name := range names {
			found = append(found, Ahead{Partition: uint16(i), Gate: name})
			commands = append(commands, engine.On("ZREVRANGE",
				keys.Partition(keys.GateRoot(uint16(i))).Window(name), "0", "0", "WITHSCORES"))
		}
	}
	for i, resp := range p.Do(ctx, commands...) {
		a := found[i]
		var due time.Time
		if a.Gate != "" {
			_, due = s.last(resp)
		} else if fields, err := resp.AsStrSlice(); err != nil {
			s.unsure(err)
		} else if len(fields) == 2 {
			exp, _ := strconv.ParseInt(fields[0], 10, 64)
			ttl, _ := strconv.ParseInt(fields[1], 10, 64)
			due = time.UnixMilli(exp - ttl).UTC() // of its last renewal
		}
		if a.By = due.Sub(s.At); a.By > clockSlack {
			s.Ahead = append(s.Ahead, a)
		}
	}
}

// last reads the only member of a page and its time; none is the zero time.
func (s *StoreReport) last(resp engine.Response) (string, time.Time) {
	page, err := resp.AsZScores()
	if s.unsure(err); err != nil || len(page) == 0 {
		return "", time.Time{}
	}
	return page[0].Member, time.UnixMilli(int64(page[0].Score)).UTC()
}

// unsure keeps the first reason why something could not be read.
func (s *StoreReport) unsure(err error) {
	if err != nil && !engine.IsNil(err) && s.AheadErr == nil {
		s.AheadErr = engine.CallError("read sessions and gates", err)
	}
}
