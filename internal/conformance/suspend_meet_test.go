package conformance

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// The meetings of those who suspend with those who signal, resume and let time pass. What an actor waits on follows
// from its name and how often it has claimed, so that others can name it.

// waitOf is the waitpoint of an actor in its n-th claim.
func waitOf(actor string, n string) engine.Minted {
	m := engine.Minted{ID: flowfabric.UUID(uuid.NewSHA1(uuid.NameSpaceOID, []byte(actor+n))),
		Key: "wait of " + actor + n, Kid: kid,
		Nonce: strings.Repeat("0", 32)}
	m.Digest = digestOf(tokenOf(m))
	return m
}

// suspends gives up what the actor holds until the signal go comes, for at most ten seconds.
func suspends(behaviour string, pending bool) move {
	return move{name: "suspend, " + behaviour, call: func(a *actor) call {
		m := waitOf(a.name, a.held()[2])
		q := suspension(waitFor(conditionOf(names(1, 1, "go")), m), within(10*time.Second, behaviour), awaiting("it"))
		if pending {
			onPending(m)(&q)
		}
		q.ID = flowfabric.UUID(uuid.NewSHA1(uuid.NameSpaceURL, []byte(a.name+a.held()[2])))
		return call{"ff_suspend_execution", slices.Concat([]string{proto}, a.held(), wireSuspend(q))}
	}}
}

// pends hands out the waitpoint before the actor waits on it.
var pends = move{name: "open a waitpoint", call: func(a *actor) call {
	args := wirePend("", waitOf(a.name, a.held()[2]))
	args[6] = "15000"
	return call{"ff_create_pending_waitpoint", slices.Concat([]string{proto}, a.held(), args)}
}}

// delivers brings go to what an actor waits on in its first claim; a number tells signals apart.
func delivers(to, number string) move {
	return move{name: "signal " + number + " to " + to, call: func(a *actor) call {
		m := waitOf(to, "1")
		return call{"ff_deliver_signal", slices.Concat([]string{proto, a.ids[0], m.ID.String(), m.Digest},
			wireSignal(flowfabric.UUID(uuid.NewSHA1(uuid.NameSpaceOID, []byte(number))), "go", ""))}
	}}
}

var resumes = operating("ff_resume_execution", "", "55555555-5555-5555-5555-555555555555", "operator", "1000")

var suspensionMeetings = []meeting{
	{"signals, operators and timeouts meet", []option{retries(1), timeout(40 * time.Second)}, 1, [3][4]move{
		{claims, suspends("auto_resume_with_timeout_signal", false), claims, completes},
		{delivers("a", "1"), resumes, delivers("a", "2"), delivers("a", "1")},
		{passes(10 * time.Second), ticks, passes(10 * time.Second), ticks}}},
	{"waitpoints are created, signalled and cancelled", []option{retries(1), deadline(25 * time.Second)}, 1, [3][4]move{
		{claims, pends, suspends("fail", true), completes},
		{delivers("a", "1"), claims, cancels, replays},
		{passes(10 * time.Second), ticks, passes(15 * time.Second), ticks}}},
}
