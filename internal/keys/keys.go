// Package keys derives the key names of a partition. It is the twin of lua/lib/keys.lua; a test holds the two
// against each other over the whole key space, because Go addresses a few keys directly (plain reads of blobs and
// frames, channels) while every write goes through a function.
package keys

import (
	"regexp"
	"strconv"

	"github.com/google/uuid"
)

// Config is the deployment record with the partition counts.
const Config = "ff:config:partitions"

// Root is the partition's root key; the braces make it the hash tag of everything below.
func Root(partition uint16) string { return "ff:{fp:" + strconv.Itoa(int(partition)) + "}" }

// GateRoot is the root of a partition of gates.
func GateRoot(partition uint16) string { return "ff:{g:" + strconv.Itoa(int(partition)) + "}" }

// Partition derives the keys of one partition.
type Partition string

// Of returns the keys of a partition.
func Of(partition uint16) Partition { return Partition(Root(partition)) }

func (p Partition) Routes() string   { return string(p) + ":routes" }   // hash: route → row
func (p Partition) RouteIDs() string { return string(p) + ":routeids" } // hash: row → route
func (p Partition) RouteLog() string { return string(p) + ":routelog" } // zset: class by table version
func (p Partition) Makers() string   { return string(p) + ":makers" }   // hash: class → namespace that made it
func (p Partition) Ready() string    { return string(p) + ":ready" }    // set of non-empty open routes
func (p Partition) Delayed() string  { return string(p) + ":delayed" }  // zset: execution by delay_until
func (p Partition) Alarms() string   { return string(p) + ":alarms" }   // zset: execution by earliest timer
func (p Partition) Sessions() string { return string(p) + ":sessions" } // zset: session by expiry
func (p Partition) Done() string     { return string(p) + ":done" }     // zset: ended execution by purge time
// zset: execution that ended other than completed by when
func (p Partition) Unsuccessful() string { return string(p) + ":unsuccessful" }
func (p Partition) Pending() string      { return string(p) + ":pending" }  // zset: pending waitpoint by expiry
func (p Partition) Kids() string         { return string(p) + ":kids" }     // hash: token keys and their states
func (p Partition) Digests() string      { return string(p) + ":digests" }  // set: subscriptions with waiters
func (p Partition) Parked() string       { return string(p) + ":parked" }   // zset: suspended execution by when
func (p Partition) RouteUse() string     { return string(p) + ":routeuse" } // hash: route → retained executions
// hash: namespace and lane → operator's word
func (p Partition) Lanes() string         { return string(p) + ":lanes" }
func (p Partition) Workers() string       { return string(p) + ":workers" }   // zset: worker instance by expiry
func (p Partition) Versions() string      { return string(p) + ":versions" }  // zset: version by when a worker had it
func (p Partition) Schedules() string     { return string(p) + ":schedules" } // zset: schedule by next due time
func (p Partition) ScheduleNames() string { return string(p) + ":scnames" }   // zset: every schedule
func (p Partition) Feed() string          { return string(p) + ":feed" }      // stream: what happened
func (p Partition) Trail() string         { return string(p) + ":trail" }     // stream: who changed what
// zset: member that waits for others by creation
func (p Partition) Blocked() string { return string(p) + ":blocked" }
func (p Partition) Flows() string   { return string(p) + ":flows" } // zset: flow by creation
// zset: flow to be given up or forgotten
func (p Partition) FlowDue() string { return string(p) + ":flowdue" }
func (p Partition) Backlog() string { return string(p) + ":backlog" } // zset: unfinished work of flows
func (p Partition) Work() string    { return string(p) + ":work" }    // hash: what that work is
// set of non-empty open routes with gates
func (p Partition) Gready() string { return string(p) + ":gready" }

// zset: route that a gate closed by when it opens
func (p Partition) Closed() string   { return string(p) + ":closed" }
func (p Partition) Closings() string { return string(p) + ":closings" } // hash: that route → why
func (p Partition) Attached() string { return string(p) + ":attached" } // hash: scope → gates
// stream: what gates are to be told
func (p Partition) Outbox() string { return string(p) + ":outbox" }

// zset: written stream that expires by when, or earlier
func (p Partition) StreamsDue() string { return string(p) + ":dsdue" }

// zset: execution that an operator paused by when
func (p Partition) Paused() string { return string(p) + ":paused" }

// zset: execution:waitpoint that a refused token named by when
func (p Partition) Refused() string  { return string(p) + ":refused" }
func (p Partition) Refusals() string { return string(p) + ":refusals" } // hash: how many tokens were refused
// hash: namespace and lane → what it had, its weight
func (p Partition) Shares() string { return string(p) + ":shares" }

// hash: namespace and lane → its weight
func (p Partition) Weights() string  { return string(p) + ":weights" }
func (p Partition) Reserved() string { return string(p) + ":reserved" } // zset: open reservation by when it is suspect
func (p Partition) Gates() string    { return string(p) + ":gates" }    // zset: every gate
func (p Partition) News() string     { return string(p) + ":news" }     // channel: the feed has grown
func (p Partition) Urgent() string   { return string(p) + ":urgent" }   // channel: work that should come next

func (p Partition) Queue(route string) string         { return string(p) + ":q:" + route }
func (p Partition) Subscription(digest string) string { return string(p) + ":sub:" + digest }

// string: namespaces and weights of lanes of a subscription
func (p Partition) Spaces(digest string) string { return string(p) + ":ins:" + digest }

// zset: namespaces with work by turn
func (p Partition) Ring(class string) string { return string(p) + ":ring:" + class }

// zset: likewise, work with gates
func (p Partition) Gring(class string) string { return string(p) + ":gring:" + class }
func (p Partition) Turns(class, namespace string) string {
	return string(p) + ":turns:" + class + ":" + namespace
}

// any: what an audit could not read
func (p Partition) Aside(name string) string      { return string(p) + ":bad:" + name }
func (p Partition) Waiters(digest string) string  { return string(p) + ":w:" + digest }
func (p Partition) Session(id string) string      { return string(p) + ":s:" + id }
func (p Partition) Held(session string) string    { return string(p) + ":h:" + session }
func (p Partition) Lost(session string) string    { return string(p) + ":l:" + session }
func (p Partition) Open(kid string) string        { return string(p) + ":open:" + kid }
func (p Partition) Worker(instance string) string { return string(p) + ":wk:" + instance }
func (p Partition) Schedule(name string) string   { return string(p) + ":sc:" + name }

// hash: kind → schemas of its inputs and results; "" → their version
func (p Partition) Schemas(namespace string) string { return string(p) + ":sm:" + namespace }

// zset: execution of a route by creation
func (p Partition) Made(route string) string { return string(p) + ":cr:" + route }

// zset: execution with a tag and value, as key=value, by creation
func (p Partition) Labelled(label string) string { return string(p) + ":ct:" + label }
func (p Partition) Values(key string) string     { return string(p) + ":cv:" + key } // set: values of a tag
// hash: minute of the day → minute and tally of a kind, "*" for all and "" for those above the bound
func (p Partition) Minutes(namespace, kind string) string {
	return string(p) + ":tm:" + namespace + "\x1f" + kind
}

// hash: kind → newest minute that something is known of
func (p Partition) TimedKinds(namespace string) string { return string(p) + ":tk:" + namespace }

// string: number of the last call that told times
func (p Partition) TimesSender(sender string) string { return string(p) + ":tn:" + sender }

// zset: every trigger; of a subject of published events, hash: trigger → terms; hash: what else is known of them;
// string: an event that was published
func (p Partition) Triggers() string                   { return string(p) + ":triggers" }
func (p Partition) TriggerTerms(subject string) string { return string(p) + ":tr:" + subject }
func (p Partition) TriggerFacts(subject string) string { return string(p) + ":td:" + subject }
func (p Partition) Published(event string) string      { return string(p) + ":pb:" + event }

// zset: every waitpoint that takes an event of a subject of the partition; of a subject, hash: what is known of them;
// set: those that are filed under a term
func (p Partition) Expected() string                   { return string(p) + ":expected" }
func (p Partition) Expectations(subject string) string { return string(p) + ":ew:" + subject }
func (p Partition) Filed(subject, term string) string {
	return string(p) + ":et:" + subject + ":" + term
}

func (p Partition) Doorbell(instance string) string { return string(p) + ":bell:" + instance }

func (p Partition) Gate(name string) string     { return string(p) + ":ga:" + name }
func (p Partition) GateLog(name string) string  { return string(p) + ":gh:" + name }
func (p Partition) Usage(name string) string    { return string(p) + ":gu:" + name }
func (p Partition) Spenders(name string) string { return string(p) + ":gx:" + name }
func (p Partition) Ledger(name, spender string) string {
	return string(p) + ":gl:" + name + ":" + spender
}
func (p Partition) Line(name string) string  { return string(p) + ":gq:" + name }
func (p Partition) Hours(name string) string { return string(p) + ":go:" + name }
func (p Partition) Samples(name, label string) string {
	return string(p) + ":gp:" + name + ":" + label
}
func (p Partition) Report(name, key string) string   { return string(p) + ":gr:" + name + ":" + key }
func (p Partition) AmountWaiters(name string) string { return string(p) + ":gw:" + name }
func (p Partition) Window(name string) string        { return string(p) + ":gt:" + timed(name) }
func (p Partition) Slots(name string) string         { return string(p) + ":gs:" + counted(name) }
func (p Partition) SlotWaiters(name string) string   { return string(p) + ":gc:" + counted(name) }
func (p Partition) RateWaiters(name string) string   { return string(p) + ":ge:" + timed(name) }
func (p Partition) Pace(name string) string          { return string(p) + ":gv:" + name }
func (p Partition) Calls(name string) string         { return string(p) + ":gk:" + name }
func (p Partition) Takers(name string) string        { return string(p) + ":gy:" + name }
func (p Partition) Turn(name string) string          { return string(p) + ":gf:" + name }
func (p Partition) Asking(name string) string        { return string(p) + ":gi:" + name }
func (p Partition) Queued(name, namespace string) string {
	return string(p) + ":gz:" + name + ":" + namespace
}

func (p Partition) Core(id uuid.UUID) string     { return string(p) + ":x:" + id.String() }
func (p Partition) Input(id uuid.UUID) string    { return string(p) + ":i:" + id.String() }
func (p Partition) Tags(id uuid.UUID) string     { return string(p) + ":t:" + id.String() }
func (p Partition) Steps(id uuid.UUID) string    { return string(p) + ":k:" + id.String() }
func (p Partition) StepLog(id uuid.UUID) string  { return string(p) + ":kl:" + id.String() }
func (p Partition) Attempts(id uuid.UUID) string { return string(p) + ":a:" + id.String() }
func (p Partition) History(id uuid.UUID) string  { return string(p) + ":e:" + id.String() }
func (p Partition) Tombstone(id uuid.UUID) string {
	return string(p) + ":z:" + id.String()
}

// string: who has a key of callers
func (p Partition) Keyed(id uuid.UUID) string     { return string(p) + ":y:" + id.String() }
func (p Partition) Waits(id uuid.UUID) string     { return string(p) + ":u:" + id.String() }
func (p Partition) Satisfied(id uuid.UUID) string { return string(p) + ":us:" + id.String() }
func (p Partition) Messages(id uuid.UUID) string  { return string(p) + ":mb:" + id.String() }
func (p Partition) Marks(id uuid.UUID) string     { return string(p) + ":mk:" + id.String() }
func (p Partition) Matched(id uuid.UUID) string   { return string(p) + ":um:" + id.String() }
func (p Partition) Events(id uuid.UUID) string    { return string(p) + ":ev:" + id.String() }
func (p Partition) Frames(id uuid.UUID) string    { return string(p) + ":fr:" + id.String() }
func (p Partition) LogNews(id uuid.UUID) string   { return string(p) + ":ln:" + id.String() }

// References: hash, how many forks have frames of an attempt, and which forks those are.

func (p Partition) Written(id uuid.UUID) string    { return string(p) + ":ds:" + id.String() } // hash
func (p Partition) WrittenLog(id uuid.UUID) string { return string(p) + ":dl:" + id.String() } // stream
func (p Partition) Producers(id uuid.UUID) string  { return string(p) + ":dp:" + id.String() } // hash
func (p Partition) Forks(id uuid.UUID) string      { return string(p) + ":df:" + id.String() } // set

// channel: a written stream has changed
func (p Partition) WrittenNews(id uuid.UUID) string { return string(p) + ":dn:" + id.String() }

func (p Partition) References(id uuid.UUID) string { return string(p) + ":fk:" + id.String() }

// Awaiting: hash, who waits for it.
func (p Partition) Awaiting(id uuid.UUID) string { return string(p) + ":aw:" + id.String() }

func (p Partition) Flow(id uuid.UUID) string      { return string(p) + ":fw:" + id.String() }
func (p Partition) Members(id uuid.UUID) string   { return string(p) + ":fx:" + id.String() }
func (p Partition) Roots(id uuid.UUID) string     { return string(p) + ":fu:" + id.String() }
func (p Partition) FlowTags(id uuid.UUID) string  { return string(p) + ":ft:" + id.String() }
func (p Partition) FlowStone(id uuid.UUID) string { return string(p) + ":fz:" + id.String() }
func (p Partition) Links(id uuid.UUID) string     { return string(p) + ":m:" + id.String() }
func (p Partition) Outgoing(id uuid.UUID) string  { return string(p) + ":fo:" + id.String() }
func (p Partition) Incoming(id uuid.UUID) string  { return string(p) + ":fi:" + id.String() }
func (p Partition) Children(id uuid.UUID) string  { return string(p) + ":fc:" + id.String() }

func (p Partition) Result(id uuid.UUID, attempt uint32) string {
	return p.perAttempt(":o:", id, attempt)
}
func (p Partition) Stream(id uuid.UUID, attempt uint32) string {
	return p.perAttempt(":f:", id, attempt)
}
func (p Partition) Meta(id uuid.UUID, attempt uint32) string {
	return p.perAttempt(":fm:", id, attempt)
}
func (p Partition) Deltas(id uuid.UUID, attempt uint32) string {
	return p.perAttempt(":fd:", id, attempt)
}
func (p Partition) Live(id uuid.UUID, attempt uint32) string {
	return p.perAttempt(":fl:", id, attempt)
}
func (p Partition) Summary(id uuid.UUID, attempt uint32) string {
	return p.perAttempt(":fs:", id, attempt)
}
func (p Partition) Runs(id uuid.UUID, attempt uint32) string {
	return p.perAttempt(":fe:", id, attempt)
}
func (p Partition) Log(id uuid.UUID, attempt uint32) string {
	return p.perAttempt(":lg:", id, attempt)
}

func (p Partition) Signals(id, waitpoint uuid.UUID) string {
	return string(p) + ":g:" + id.String() + ":" + waitpoint.String()
}
func (p Partition) Delivered(id, waitpoint uuid.UUID) string {
	return string(p) + ":gd:" + id.String() + ":" + waitpoint.String()
}

func (p Partition) perAttempt(area string, id uuid.UUID, attempt uint32) string {
	return string(p) + area + id.String() + ":" + strconv.FormatUint(uint64(attempt), 10)
}

// limitName is "@<at once>.<starts>.<window>@<key>".
var limitName = regexp.MustCompile(`^@\d+\.\d+\.(\d+)(@(?s:.+))$`)

// counted and timed name what a limit of a key counts: all limits of a key share its slots, and those with the same
// window its starts.
func counted(name string) string {
	if m := limitName.FindStringSubmatch(name); m != nil {
		return m[2]
	}
	return name
}

func timed(name string) string {
	if m := limitName.FindStringSubmatch(name); m != nil {
		return "@" + m[1] + m[2]
	}
	return name
}
