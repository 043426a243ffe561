package scale

import "time"

// Call is the server time of a call: Fixed, and Item for each item, both in µs.
type Call struct {
	Fixed float64
	Item  float64
}

// Of is the time of a call with n items.
func (c Call) Of(n int) time.Duration { return micros(c.Fixed + c.Item*float64(n)) }

func micros(us float64) time.Duration { return time.Duration(us * float64(time.Microsecond)) }

// Costs are the constants of the model. All but Bytes are µs.
type Costs struct {
	Create   Call
	Claim    Call
	Complete Call
	Append   Call
	Poll     Call // its items are partitions

	Empty   float64 // finds nothing and registers
	Suspend float64
	Signal  float64
	Renew   float64
	Tick    float64
	Ring    float64 // a doorbell inside a call
	Ping    float64
	Fanout  float64 // a message to one more connection

	// Outside is what a call costs the server outside its function: reading, parsing, answering; items are those of
	// the call.
	Outside Call
	// Hop is the way of a message from one process until another acts on it.
	Hop float64
	// Client is the processor time of a worker for each job, of which a worker process has one processor.
	Client float64

	Bytes Bytes
}

// Bytes are what the server's memory holds for one of each; executions without their payload.
type Bytes struct {
	Waiting      float64
	Suspended    float64
	Active       float64
	Done         float64
	Payload      float64
	Result       float64
	Connection   float64
	Subscription float64 // a channel with one subscriber
	Shared       float64 // one more subscriber of a channel
	Waiter       float64
	Session      float64
	Registration float64
}

// Published are the constants that docs/explanation/scale.md explains: run 3 of the report of 2026-11-23 (46ebb07b),
// on two quiet cores with Redis 7.0.15, and what [Constants] measured. A connection has 2 kB after a rest and 30 kB
// when it was just used.
func Published() Costs {
	return Costs{
		Create: through(24.1, 5.84), Claim: through(39.7, 8.45), Complete: through(24.1, 10.0),
		Append: through(25.1, 2.75), Poll: Call{5, 1.1}, Empty: 37, Suspend: 45.1, Signal: 60.2, Renew: 9.0, Tick: 18.0,
		Ring: 2, Ping: 1, Fanout: 0.6, Outside: Call{8, 1}, Hop: 75, Client: 8.4,
		Bytes: Bytes{Waiting: 371, Suspended: 1566, Active: 436, Done: 501, Payload: 256, Result: 45,
			Connection: 10_000, Subscription: 250, Shared: 120, Waiter: 130, Session: 470, Registration: 1260},
	}
}

// through is the call that takes so many µs for each item when it has one, and when it has 32.
func through(one, each float64) Call {
	item := max(0, (32*each-one)/31)
	return Call{Fixed: one - item, Item: item}
}

// Slowed are the same costs on a server that is that much slower.
func (c Costs) Slowed(by float64) Costs {
	for _, call := range []*Call{&c.Create, &c.Claim, &c.Complete, &c.Append, &c.Poll, &c.Outside} {
		call.Fixed, call.Item = call.Fixed*by, call.Item*by
	}
	for _, us := range []*float64{&c.Empty, &c.Suspend, &c.Signal, &c.Renew, &c.Tick, &c.Ring, &c.Ping, &c.Fanout} {
		*us *= by
	}
	return c
}

// Lifecycle is the server time of one execution, in µs, when calls have so many items.
func (c Costs) Lifecycle(batch int) float64 {
	n := float64(batch)
	inside := c.Create.Fixed + c.Claim.Fixed + c.Complete.Fixed + 3*c.Outside.Fixed
	return inside/n + c.Create.Item + c.Claim.Item + c.Complete.Item + 3*c.Outside.Item
}
