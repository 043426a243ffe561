// Package admit asks gates before work runs: an [Admitter] claims for a worker and asks, [Deliver] tells gates what
// ended. Package admission says what they are.
//
// Gates have partitions of their own, so no single call can ask them and hand out work. The steps, each of which may be
// repeated, and after each of which the process may die:
//
//	worker                execution's partition         gates
//	claim ──────────────▶ grant: held 5 s
//	Admitter: may it run? ──────────────────────────▶ room? admit: a hold, in the slot until released
//	all do ─────────────▶ claimed: runs
//	some do not ────────▶ back in its queue; the
//	                      route closes until a time, or a wake
//	it stops running ───▶ outbox: said in the same call
//	Deliver (who ticks) ─────────────────────────────▶ release, refund: who waits is woken
//	                      routes open ◀────────────────┘
//
// What fails, and then:
//
//   - The worker dies, or the call to claim what was granted is lost: the grant ends after 5 s, or with the session.
//     The execution is back in its queue, and the gates hear of it through the outbox. No reclaim is counted.
//   - The outbox is not delivered: it stays. Telling a gate twice changes nothing.
//   - A hold that nobody releases, because a failover lost the word of it: after 10 s it is suspect. When the gate
//     is full, whoever is refused asks the execution's partition, which ends a grant that is over and says what is
//     still held. No time alone frees a slot.
//   - A wake is lost: a closed route opens by itself, for want of a slot after at most 10 s, of room in a window when
//     there is some, after an hour at most, and of an amount after 30 s.
//   - A gate does not answer, or is not there: nothing runs. The route is closed for 1 s, or 30 s.
//
// Several gates are asked in the order of names. An amount is only looked at, not used up: work that passed a gate with
// little left may find it exhausted when it reports.
package admit
