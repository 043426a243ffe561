package conformance

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/contract"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/waithook"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// moment is where a call is disturbed.
type moment string

const (
	undisturbed moment = "undisturbed"
	lostBefore  moment = "the request is lost"
	lostReply   moment = "the reply is lost"
	lostTwice   moment = "two replies are lost"
	afterReply  moment = "made again after the reply"
)

var lostScenarios = []scenario{
	{name: "every write has the same effect, at whatever moment its reply is lost", needs: []string{"Native"},
		run: func(w *env) {
			line := newLine(w)
			quiet := slog.New(slog.DiscardHandler)
			e, err := engine.Open(w.ctx, engine.Config{URL: line.url(), TestClock: true, Partitions: partitions,
				Logger: quiet, CallTimeout: time.Hour})
			w.no(err)
			defer e.Close()
			covered := map[string]bool{"ff_configure": true, "ff_boot": true} // opening the engine made them
			for _, x := range slices.Concat(writings, flowWritings, gateWritings, adjusting) {
				covered[x.function] = true
				wantDigest, wantResult := "", ""
				moments := []moment{undisturbed, lostBefore, lostReply, lostTwice, afterReply}
				if slices.ContainsFunc(adjusting, func(a writing) bool { return a.function == x.function }) {
					moments = moments[:4]
				}
				for _, m := range moments {
					s := w.stageFixed()
					x.prepare(w, s)
					before := w.digest()
					line.arm(x.function, m)
					got, err := x.call(w, e, s)
					if err != nil {
						w.Fatalf("%s, %s: %v", x.name, m, err)
					}
					if m == afterReply {
						if got, err = x.call(w, e, s); err != nil {
							w.Fatalf("%s, %s: %v", x.name, m, err)
						}
					}
					if m != undisturbed && m != afterReply && !line.fired() {
						w.Fatalf("%s, %s: the call never went through the line", x.name, m)
					}
					w.check()
					digest := w.digest("root booted", ":f:", ":outbox", ":br:", ":closings \"w",
						":x:"+s.fence.Execution.UUID().String()+" \"rv\"",
						":fm:"+s.fence.Execution.UUID().String()+":0 \"i\"") + w.notices()
					if m == undisturbed {
						wantDigest, wantResult = digest, got
						if digest == before {
							w.Fatalf("%s did nothing", x.name)
						}
						continue
					}
					if digest != wantDigest {
						w.Fatalf("%s, %s: another state than undisturbed:\n%s", x.name, m,
							difference(wantDigest, digest))
					}
					same(w, fmt.Sprintf("%s, %s: result", x.name, m), got, wantResult)
				}
			}
			for _, h := range contract.Functions() {
				if !covered[h.Name] && !slices.Contains(h.Flags, "no-writes") {
					w.Errorf("%s writes and is not disturbed here", h.Name)
				}
			}
		}},
}

// fixed is a partition whose every name is the same in every run.
type fixed struct {
	fence                   flowfabric.Fence
	waiting, ended, further flowfabric.ExecutionID
	worker                  *worker
	asleep                  flowfabric.ExecutionID
	handed, awaited         engine.Minted // pending of the holder; active of the one asleep
	running, staging, over  flowfabric.FlowID
	gates                   stagedGates
}

// fixedFlow is a flow whose id is the same in every run. Its members are of a kind of their own.
func (w *env) fixedFlow(name string) *graph {
	return &graph{env: w,
		id: flowfabric.FlowID(flowfabric.MakeExecutionID(w.p, uuid.NewSHA1(uuid.NameSpaceOID, []byte(name))))}
}

// fixedWait is a wait for one child.
func (w *env) fixedWait(s fixed, park bool) engine.ChildWait {
	return engine.ChildWait{Name: "wait", Mode: engine.WaitAll, Park: park,
		Children: []engine.FlowMember{w.child(s.fence.Execution, "wait", "c", kind("member"))}}
}

// fixedOthers is a wait for one execution that the holder did not make.
func (w *env) fixedOthers(s fixed) engine.ChildWait {
	return engine.ChildWait{Name: "others", Mode: engine.WaitAll,
		Others: []engine.ChildOutcome{{ID: s.waiting, Node: "a"}}}
}

// waited is what a wait for children answers, but for whether it is a repetition.
func waited(r engine.ChildrenReply) string { return fmt.Sprint(r.Parked, r.Satisfied, r.Outcomes) }

// fixedMint is the identity of a waitpoint that is the same in every run.
func fixedMint(key string) engine.Minted {
	m := engine.Minted{ID: uuid.NewSHA1(uuid.NameSpaceOID, []byte(key)), Key: key, Kid: kid,
		Nonce: strings.Repeat("0", 32)}
	m.Digest = digestOf(tokenOf(m))
	return m
}

func (w *env) stageFixed() fixed {
	w.Helper()
	w.reset()
	w.set("HSET", string(w.k), "clock_pin", "1800000000000")
	w.quiet = true
	defer func() { w.quiet = false }()
	id := func(i byte) option {
		return func(x *engine.NewExecution) {
			x.ID = flowfabric.MakeExecutionID(w.p, uuid.NewSHA1(uuid.NameSpaceOID, []byte{i}))
		}
	}
	s := fixed{worker: w.worker("w1")}
	s.worker.session = "w1~fixed"
	s.ended = w.create(id(1), priority(9), retries(1), tags(map[string]string{"a.b": "c"}))
	held := w.create(id(2), priority(8), retries(1), deadline(time.Hour), timeout(time.Minute))
	w.no(w.complete(s.worker.one(s.ended).Fence, "r").Err)
	s.fence = s.worker.one(held).Fence
	w.seed()
	s.handed, s.awaited = fixedMint("handed"), fixedMint("awaited")
	_, err := w.e.CreatePendingWaitpoint(w.ctx, s.fence, "handed", s.handed, time.Hour)
	w.no(err)
	s.asleep = w.create(id(5), priority(7))
	w.suspend(s.worker.one(s.asleep).Fence, waitFor(conditionOf(names(1, 1, "go")), s.awaited),
		within(time.Minute, "escalate"),
		func(q *engine.Suspension) { q.ID = uuid.NewSHA1(uuid.NameSpaceOID, []byte("asleep")) })
	s.waiting = w.create(id(3))
	s.further = w.create(id(4), delay(time.Second))
	member := as(kind("member"))
	s.running = w.fixedFlow("running").node("a", nil, member).node("b", []string{"a"},
		member).submit(engine.SealGrowing).id
	s.staging = w.fixedFlow("staging").node("a", nil, member).stage().id
	s.over = w.fixedFlow("over").node("a", nil, member).submit(engine.SealClosed).id
	w.cancel(s.over.Member("a"))
	s.gates = w.stageGates(fixedNames(w))
	w.tick()
	return s
}

// notices are what the outbox holds, without the ids that the server gives.
func (w *env) notices() string {
	w.Helper()
	var b strings.Builder
	for _, x := range w.dump().Outbox {
		for _, n := range x.FieldValues {
			fmt.Fprintln(&b, "outbox", n.Field, n.Value)
		}
		fmt.Fprintln(&b, "outbox", x.FieldValues)
	}
	return b.String()
}

// writing is one write through the engine; what it answers is text without what may tell a repeat apart.
type writing struct {
	function, name string
	prepare        func(*env, fixed)
	call           func(*env, *engine.Engine, fixed) (string, error)
}

// lostFlow is a flow of this partition that has the same id every time.
func lostFlow(w *env) flowfabric.FlowID {
	return flowfabric.FlowID(flowfabric.MakeExecutionID(w.p, uuid.NewSHA1(uuid.NameSpaceOID, []byte("flow"))))
}

func nothingFirst(*env, fixed) {}

// request is one that the caller made up once, whatever happens to its calls.
var request = uuid.MustParse("11111111-1111-1111-1111-111111111111")

// persist repeats a call of which the engine makes one try, because its callers repeat it.
func persist[T any](w *env, call func() (T, error)) (T, error) {
	return link.Persist(w.ctx, time.Minute, call)
}

var writings = []writing{
	{"ff_create_execution", "create", nothingFirst, func(w *env, e *engine.Engine, _ fixed) (string, error) {
		x := w.item(tags(map[string]string{"a.b": "c"}), retries(2), deadline(time.Hour))
		x.ID = flowfabric.MakeExecutionID(w.p, uuid.NewSHA1(uuid.NameSpaceOID, []byte("new")))
		c, err := persist(w, func() ([]engine.Created, error) {
			return e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{x})
		})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(c[0].ID, c[0].State, c[0].Err), nil
	}},
	{"ff_create_execution", "debounce", func(w *env, _ fixed) {
		x := w.item(bouncing("k", time.Hour, 0), lane("other"))
		x.ID = flowfabric.MakeExecutionID(w.p, uuid.NewSHA1(uuid.NameSpaceOID, []byte("first")))
		c, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{x})
		w.no(err)
		w.no(c[0].Err)
	}, func(w *env, e *engine.Engine, _ fixed) (string, error) {
		x := w.item(bouncing("k", 2*time.Hour, 0), tags(map[string]string{"a.b": "c"}))
		x.ID = flowfabric.MakeExecutionID(w.p, uuid.NewSHA1(uuid.NameSpaceOID, []byte("second")))
		c, err := persist(w, func() ([]engine.Created, error) {
			return e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{x})
		})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(c[0].ID, c[0].Replaced, c[0].State, c[0].Err), nil
	}},
	{"ff_complete_execution", "complete", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		c, _, err := e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: s.fence, Result: []byte("r")}}, nil)
		return fmt.Sprint(c[0].Err), err
	}},
	{"ff_complete_execution", "complete and claim", nothingFirst,
		func(w *env, e *engine.Engine, s fixed) (string, error) {
			q := s.worker.request(2)
			c, next, err := e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: s.fence, Result: []byte("r")}},
				&q)
			return fmt.Sprint(c[0].Err, claimed(next.Claims)), err
		}},
	{"ff_fail_execution", "fail, retried", nothingFirst, failing(false)},
	{"ff_fail_execution", "fail, for good", nothingFirst, failing(true)},
	{"ff_delay_execution", "delay", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		_, err := e.DelayExecution(w.ctx, s.fence, time.Minute)
		return "", err
	}},
	{"ff_continue_execution", "continue", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		_, err := e.ContinueExecution(w.ctx, s.fence, []byte("next"))
		return "", err
	}},
	{"ff_release_execution", "release", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		_, err := e.ReleaseExecution(w.ctx, s.fence)
		return "", err
	}},
	{"ff_cancel_execution", "cancel by the owner", nothingFirst,
		func(w *env, e *engine.Engine, s fixed) (string, error) {
			_, err := e.CancelExecution(w.ctx, s.fence.Execution,
				engine.Cancellation{Source: engine.CancelOwner, Fence: &s.fence, Reason: "r"})
			return "", err
		}},
	{"ff_cancel_execution", "cancel by an operator", nothingFirst,
		func(w *env, e *engine.Engine, s fixed) (string, error) {
			_, err := e.CancelExecution(w.ctx, s.fence.Execution,
				engine.Cancellation{Source: engine.CancelOperator, Reason: "r"})
			return "", err
		}},
	{"ff_record_step", "step", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		_, err := e.RecordStep(w.ctx, s.fence, "s", []byte("v"), 0)
		return "", err
	}},
	{"ff_update_progress", "progress", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		return "", e.UpdateProgress(w.ctx, s.fence, 50, "half")
	}},
	{"ff_append_frames", "append", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		a, err := e.AppendFrames(w.ctx, s.fence, 1,
			[]stream.Frame{{Type: "t", Payload: []byte("1")}, {Type: "t", Payload: []byte("2")}})
		return fmt.Sprint(a.Count, a.LastSequence), err
	}},
	{"ff_append_frames", "append, all modes", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		a, err := e.AppendFrames(w.ctx, s.fence, 1,
			[]stream.Frame{bestEffort(0), summaryDelta(1), durableFrame(0), summaryDelta(2)})
		return fmt.Sprint(a.LastID, a.Count, a.LastSequence, a.Summary), err
	}},
	{"ff_change_priority", "priority", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		_, now, err := e.ChangePriority(w.ctx, s.waiting, 5, "op")
		return fmt.Sprint(now), err
	}},
	{"ff_set_delay", "run now", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		_, err := e.SetDelay(w.ctx, s.further, engine.DelayChange{Request: request})
		return "", err
	}},
	{"ff_set_tags", "tags", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		return "", e.SetTags(w.ctx, s.waiting, map[string]string{"a.b": "c"}, nil)
	}},
	{"ff_flow_tags", "tags of a flow", func(w *env, _ fixed) {
		_, err := w.e.CreateFlow(w.ctx, engine.NewFlow{ID: lostFlow(w), Namespace: "default", Kind: "lost"})
		w.no(err)
	}, func(w *env, e *engine.Engine, _ fixed) (string, error) {
		return "", e.SetFlowTags(w.ctx, lostFlow(w), map[string]string{"a.b": "c"}, nil)
	}},
	{"ff_replay_execution", "replay", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		_, err := e.ReplayExecution(w.ctx, s.ended, engine.Replay{Request: request, Force: true})
		return "", err
	}},
	{"ff_purge_execution", "purge", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		_, err := e.PurgeExecution(w.ctx, s.ended, 0)
		return "", err
	}},
	{"ff_revoke_lease", "revoke", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		_, err := e.RevokeLease(w.ctx, s.fence.Execution, "", "op", "r") // with a request id of its own each time
		return "", err
	}},
	{"ff_mark_session_dead", "mark dead", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		_, err := e.MarkSessionDead(w.ctx, w.p, s.worker.session, "r")
		return "", err
	}},
	{"ff_claim_next", "claim", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		r, err := e.ClaimNext(w.ctx, s.worker.request(3))
		return claimed(r.Claims), err
	}},
	{"ff_claim_next", "idle claim", func(w *env, s fixed) { w.cancel(s.waiting) },
		func(w *env, e *engine.Engine, s fixed) (string, error) {
			r, err := e.ClaimNext(w.ctx, s.worker.request(3))
			return fmt.Sprint(len(r.Claims), r.Registered), err
		}},
	{"ff_set_interest", "interest", nothingFirst, func(w *env, e *engine.Engine, _ fixed) (string, error) {
		return e.SetSubscription(w.ctx, w.p, engine.Subscription{Classes: []uint64{1, 7}})
	}},
	{"ff_session_renew", "renew", func(w *env, s fixed) { w.pass(time.Second) },
		func(w *env, e *engine.Engine, s fixed) (string, error) {
			r, err := e.RenewSession(w.ctx, w.p, s.worker.session, ttl, 0)
			return fmt.Sprint(len(r.Lost), r.Generation, r.MoreLost), err
		}},
	{"ff_session_renew", "renew with notices",
		func(w *env, s fixed) { w.cancel(s.fence.Execution); w.pass(time.Second) },
		func(w *env, e *engine.Engine, s fixed) (string, error) {
			r, err := e.RenewSession(w.ctx, w.p, s.worker.session, ttl, 0)
			return fmt.Sprint(r.Lost, r.Generation, r.MoreLost), err
		}},
	{"ff_session_close", "close", func(w *env, s fixed) { w.cancel(s.fence.Execution) },
		func(w *env, e *engine.Engine, s fixed) (string, error) {
			return "", e.CloseSession(w.ctx, w.p, s.worker.session)
		}},
	{"ff_tick", "tick", func(w *env, _ fixed) { w.pass(2 * ttl) },
		func(w *env, e *engine.Engine, _ fixed) (string, error) {
			r, err := e.Tick(w.ctx, w.p, ticker, false)
			return fmt.Sprint(r.Owner, r.More), err
		}},
	{"ff_tick", "giving the tick up", nothingFirst, func(w *env, e *engine.Engine, _ fixed) (string, error) {
		_, err := e.Tick(w.ctx, w.p, ticker, true)
		return "", err
	}},
	{"ff_pass_ring", "forward a ring", func(w *env, s fixed) {
		w.set("ZADD", w.k.Waiters(s.worker.subscription), "1800000180000", "unreachable")
		w.set("SADD", w.k.Digests(), s.worker.subscription)
	}, func(w *env, e *engine.Engine, s fixed) (string, error) {
		_, err := e.ForwardRing(w.ctx, w.p, s.worker.subscription)
		return "", err
	}},
	{"ff_create_pending_waitpoint", "open a waitpoint", nothingFirst,
		func(w *env, e *engine.Engine, s fixed) (string, error) {
			o, err := e.CreatePendingWaitpoint(w.ctx, s.fence, "draft", fixedMint("draft"), time.Hour)
			return fmt.Sprint(o), err
		}},
	{"ff_close_waitpoint", "close a waitpoint", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		_, err := e.CloseWaitpoint(w.ctx, s.fence, s.handed.ID)
		return "", err
	}},
	{"ff_suspend_execution", "suspend", nothingFirst, waitingOn("")},
	{"ff_suspend_execution", "suspend on what came before", func(w *env, s fixed) {
		w.send(s.fence.Execution, s.handed, suspend.SentSignal{ID: request, Name: "go"}, waithook.EffectBuffered)
	}, waitingOn("p")},
	{"ff_resume_execution", "resume", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		_, err := e.ResumeExecution(w.ctx, s.asleep, engine.ResumeRequest{Request: request, By: "op"})
		return "", err
	}},
	{"ff_deliver_signal", "deliver", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		d, err := e.DeliverSignal(w.ctx, s.asleep, s.awaited.ID, s.awaited.Digest,
			suspend.SentSignal{ID: request, Name: "go", Payload: []byte("1")})
		return fmt.Sprint(d), err
	}},
	{"ff_deliver_signal", "deliver early", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		d, err := e.DeliverSignal(w.ctx, s.fence.Execution, s.handed.ID, s.handed.Digest,
			suspend.SentSignal{ID: request, Name: "go", IdempotencyKey: "k"})
		return fmt.Sprint(d), err
	}},
	{"ff_approve_waitpoint", "approve", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		d, err := e.ApproveWaitpoint(w.ctx, s.asleep, "awaited",
			suspend.SentSignal{ID: request, Name: "go", Source: "op"})
		return fmt.Sprint(d), err
	}},
	{"ff_send_message", "send", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		m, err := e.SendMessage(w.ctx, s.asleep,
			engine.Message{ID: request, Mailbox: "user", Encoding: "json", Payload: []byte("1")})
		return fmt.Sprint(m.Number, m.Waiting), err
	}},
	{"ff_receive_messages", "receive", func(w *env, s fixed) {
		_, err := w.e.SendMessage(w.ctx, s.fence.Execution,
			engine.Message{ID: request, Mailbox: "user", Encoding: "json", Payload: []byte("1")})
		w.no(err)
	}, func(w *env, e *engine.Engine, s fixed) (string, error) {
		r, recorded, err := e.ReceiveMessages(w.ctx, s.fence,
			engine.Receiving{Name: "user·1", Mailbox: "user", Limit: 1})
		return fmt.Sprint(mailed(r.Messages), r.Why, recorded), err
	}},
	{"ff_receive_messages", "receive nothing", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		r, recorded, err := e.ReceiveMessages(w.ctx, s.fence,
			engine.Receiving{Name: "user·1", Mailbox: "user", Limit: 1, Why: "looked"})
		return fmt.Sprint(mailed(r.Messages), r.Why, recorded), err
	}},
	{"ff_reissue_token", "reissue", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		new := s.handed
		new.Nonce, new.Digest = strings.Repeat("1", 32), digestOf("another")
		return e.ReissueToken(w.ctx, s.fence.Execution, new, "op")
	}},
	{"ff_set_lane", "", nothingFirst, func(w *env, e *engine.Engine, _ fixed) (string, error) {
		r := e.SetLane(w.ctx, "default", "default", engine.LaneChange{State: engine.LanePaused})[w.p]
		return fmt.Sprint(r.State, r.Routes, w.hash(w.k.Lanes()) != nil), r.Err
	}},
	{"ff_set_feed", "", nothingFirst, func(w *env, e *engine.Engine, _ fixed) (string, error) {
		r := e.SetFeed(w.ctx, engine.FeedWish{Ends: true, Keep: time.Hour})[w.p]
		return fmt.Sprint(r.Ends, r.Leases, r.Number), r.Err
	}},
	{"ff_register_worker", "register", nothingFirst, func(w *env, e *engine.Engine, _ fixed) (string, error) {
		r, err := e.RegisterWorker(w.ctx, engine.Registration{Instance: w.homed("w"), Token: "t", TTL: ttl})
		return fmt.Sprint(r.ExpiresAt.UnixMilli()), err
	}},
	{"ff_leave_worker", "leave", registeredFirst, func(w *env, e *engine.Engine, _ fixed) (string, error) {
		_, err := e.LeaveWorker(w.ctx, w.homed("w"), "t")
		return "", err
	}},
	{"ff_mark_worker_dead", "mark a worker dead", registeredFirst,
		func(w *env, e *engine.Engine, _ fixed) (string, error) {
			_, err := e.MarkWorkerDead(w.ctx, w.homed("w"), "r")
			return "", err
		}},
	{"ff_put_schedule", "put a schedule", nothingFirst, func(w *env, e *engine.Engine, _ fixed) (string, error) {
		set, err := e.PutSchedule(w.ctx,
			engine.SchedulePut{Name: w.named("s"), Definition: []byte("d"), Next: time.UnixMilli(1800000001000).UTC()})
		return fmt.Sprint(set.Revision, set.Next.UnixMilli()), err
	}},
	{"ff_fire_schedule", "fire a schedule", staging, func(w *env, e *engine.Engine, _ fixed) (string, error) {
		s := w.schedule(w.named("s"))
		s.Next = time.UnixMilli(1800000000000).UTC() // as it was seen the first time
		_, err := e.FireSchedule(w.ctx, w.firing(s, time.Second))
		return fmt.Sprint(w.schedule(w.named("s")).Fired), err
	}},
	{"ff_fire_schedule", "release the flow of a schedule", func(w *env, s fixed) {
		staging(w, s)
		recurringFlow(w).stage()
	}, func(w *env, e *engine.Engine, _ fixed) (string, error) {
		g := recurringFlow(w)
		s := w.schedule(w.named("s"))
		s.Next = time.UnixMilli(1800000000000).UTC()
		_, err := e.FireSchedule(w.ctx, g.firing(s))
		record, _ := e.DescribeFlow(w.ctx, g.id)
		return fmt.Sprint(w.schedule(w.named("s")).Fired, record.State), err
	}},
	{"ff_pause_schedule", "pause a schedule", staging, func(w *env, e *engine.Engine, _ fixed) (string, error) {
		since, _, err := e.PauseSchedule(w.ctx, w.named("s"), true, "op", nil)
		return fmt.Sprint(since.UnixMilli()), err
	}},
	{"ff_remove_schedule", "remove a schedule", staging, func(w *env, e *engine.Engine, _ fixed) (string, error) {
		_, err := e.RemoveSchedule(w.ctx, w.named("s"), nil)
		return "", err
	}},
	{"ff_audit_executions", "audit executions",
		func(w *env, s fixed) { w.set("ZREM", w.k.Parked(), s.asleep.UUID().String()) },
		func(w *env, e *engine.Engine, s fixed) (string, error) {
			list, _, err := e.AuditExecutions(w.ctx, w.p, true, []uuid.UUID{s.asleep.UUID()})
			return fmt.Sprint(list), err
		}},
	{"ff_audit_index", "audit an index", func(w *env, _ fixed) { w.set("ZADD", w.k.Delayed(), "1", "nobody") },
		func(w *env, e *engine.Engine, _ fixed) (string, error) {
			next, _, _, err := e.AuditIndex(w.ctx, w.p, true, engine.IndexPage{Index: "delayed", Limit: 100})
			return next, err
		}},
	{"ff_audit_keys", "audit keys",
		func(w *env, s fixed) { w.editRecord(s.ended.UUID(), func(f fields) { delete(f, "tg") }) },
		func(w *env, e *engine.Engine, s fixed) (string, error) {
			_, err := e.AuditKeys(w.ctx, w.p, true, []engine.AuditedKey{{Area: "t", ID: s.ended.UUID().String()}})
			return "", err
		}},
	{"ff_audit_flows", "audit flows", func(w *env, s fixed) {
		id := s.asleep.Child("audit", "flow").UUID().String()
		w.fcall("ff_flow_create", proto, id, "n", "k", "", "", "", "0")
		w.set("HINCRBY", w.k.Flow(uuid.MustParse(id)), "mw", "7")
	},
		func(w *env, e *engine.Engine, s fixed) (string, error) {
			list, _, err := e.AuditFlows(w.ctx, w.p, true,
				[]engine.AuditedFlow{{ID: s.asleep.Child("audit", "flow").UUID()}})
			return fmt.Sprint(len(list), list[0].Done), err
		}},
	{"ff_audit_routes", "audit routes", func(w *env, _ fixed) { w.set("HINCRBY", w.k.RouteUse(), "1", "7") },
		func(w *env, e *engine.Engine, _ fixed) (string, error) {
			_, _, err := e.AuditRoutes(w.ctx, w.p, true, engine.RouteCount{},
				[]engine.RouteUse{{Route: 1, Stored: 12, Low: 5, High: 5}})
			return "", err
		}},
	{"ff_set_token_keys", "seed", func(w *env, _ fixed) { w.set("DEL", w.k.Kids()) },
		func(w *env, e *engine.Engine, _ fixed) (string, error) {
			out, err := e.SeedTokenKey(w.ctx, engine.TokenKey{Kid: "k2", Fingerprint: printOf("2")})
			return fmt.Sprint(out[w.p].Current, out[w.p].Good), err
		}},
	{"ff_set_token_keys", "rotate", nothingFirst, func(w *env, e *engine.Engine, _ fixed) (string, error) {
		return "", e.RotateTokenKey(w.ctx, engine.TokenKey{Kid: "k2", Fingerprint: printOf("2")}, time.Hour,
			true)[w.p].Err
	}},
	{"ff_freeze_partition", "freeze", nothingFirst, func(w *env, e *engine.Engine, _ fixed) (string, error) {
		return "", e.FreezePartition(w.ctx, w.p, "r")
	}},
	{"ff_freeze_partition", "thaw", func(w *env, _ fixed) { w.set("HSET", string(w.k), "frozen", "r") },
		func(w *env, e *engine.Engine, _ fixed) (string, error) {
			return "", e.ThawPartition(w.ctx, w.p)
		}},
}

// flowWritings are those about flows.
var flowWritings = []writing{
	{"ff_flow_create", "make a flow", nothingFirst, func(w *env, e *engine.Engine, _ fixed) (string, error) {
		r, err := persist(w, func() (engine.FlowCreated, error) {
			return e.CreateFlow(w.ctx, engine.NewFlow{ID: w.fixedFlow("new").id, Namespace: "default", Kind: "k",
				Digest: "d", Tags: map[string]string{"a.b": "c"}})
		})
		return fmt.Sprint(r.State, r.Revision, r.Members), err
	}},
	{"ff_flow_create", "make a flow and release it", nothingFirst,
		func(w *env, e *engine.Engine, _ fixed) (string, error) {
			g := w.fixedFlow("new").node("a", nil, as(kind("member"))).node("b", []string{"a"}, as(kind("member")),
				quorum(1), cancelRest)
			r, err := persist(w, func() (engine.FlowCreated, error) {
				return e.CreateFlow(w.ctx, g.whole(engine.SealClosed))
			})
			return fmt.Sprint(r.State, r.Revision, r.Members, r.Edges, r.More), err
		}},
	{"ff_flow_stage", "stage", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		g := w.fixedFlow("staging").node("b", []string{"a"}, quorum(1), cancelRest).node("c", nil)
		r, err := persist(w, func() (engine.FlowCreated, error) { return e.StageFlow(w.ctx, g.id, nil, g.nodes) })
		return fmt.Sprint(r.Revision, r.Members, r.Edges), err
	}},
	{"ff_flow_stage", "stage at a revision", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		g, revision := w.fixedFlow("staging").node("b", []string{"a"}), uint64(1)
		r, err := persist(w, func() (engine.FlowCreated, error) { return e.StageFlow(w.ctx, g.id, &revision, g.nodes) })
		return fmt.Sprint(r.Revision, r.Members, r.Edges), err
	}},
	{"ff_flow_seal", "seal", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		return persist(w, func() (string, error) {
			state, more, err := e.SealFlow(w.ctx, s.staging, engine.SealClosed, 1, 0)
			return fmt.Sprint(state, more), err
		})
	}},
	{"ff_flow_cancel", "cancel a flow", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		r, err := e.CancelFlow(w.ctx, s.running, flowfabric.CancelAll, "me", "r")
		return fmt.Sprint(r.Policy, r.Reason, r.Unended, r.More), err
	}},
	{"ff_flow_replay", "replay members", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		r, err := e.ReplayFlow(w.ctx, s.over, engine.Replay{Request: request},
			[]flowfabric.ExecutionID{s.over.Member("a"), s.running.Member("a")})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(r[0].State, r[0].Err, r[1].Err), err
	}},
	{"ff_flow_tags", "tag a flow", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		return "", e.SetFlowTags(w.ctx, s.running, map[string]string{"a.b": "c"}, nil)
	}},
	{"ff_audit_flows", "audit flows", func(w *env, s fixed) { w.set("HINCRBY", w.k.Flow(s.running.UUID()), "mw", "3") },
		func(w *env, e *engine.Engine, s fixed) (string, error) {
			_, _, err := e.AuditFlows(w.ctx, w.p, true, []engine.AuditedFlow{{ID: s.running.UUID()}})
			return "", err
		}},
	{"ff_flow_drain", "drain", func(w *env, _ fixed) {
		g := w.fixedFlow("large")
		for _, node := range nodesOf("n", 80) {
			g.node(node, nil, as(kind("member")))
		}
		g.submit(engine.SealClosed)
		_, err := w.e.CancelFlow(w.ctx, g.id, flowfabric.CancelAll, "me", "r")
		w.no(err)
	}, func(w *env, e *engine.Engine, _ fixed) (string, error) {
		more, err := e.DrainFlows(w.ctx, w.p)
		return fmt.Sprint(more), err
	}},
	{"ff_wait_children", "wait for children", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		r, err := e.WaitChildren(w.ctx, s.fence, w.fixedWait(s, true))
		return waited(r), err
	}},
	{"ff_wait_children", "make children", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		r, err := e.WaitChildren(w.ctx, s.fence, w.fixedWait(s, false))
		return waited(r), err
	}},
	{"ff_wait_others", "wait for others", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		return "", e.WaitOthers(w.ctx, s.fence, w.fixedOthers(s))
	}},
	{"ff_await", "somebody waits", nothingFirst, func(w *env, e *engine.Engine, s fixed) (string, error) {
		r, err := e.Await(w.ctx, w.p, []engine.Awaiting{{Awaited: s.waiting, Waiter: s.fence.Execution, Token: "1.0"},
			{Awaited: s.ended, Waiter: s.fence.Execution, Token: "1.0"}}, false)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(r[0].Ended, r[1].Ended, r[1].End.Mark), nil
	}},
	{"ff_tell_waiters", "tell a waiter", func(w *env, s fixed) {
		w.no(w.e.WaitOthers(w.ctx, s.fence, w.fixedOthers(s)))
		w.suspend(s.fence, waitFor("K"), awaiting("others"),
			func(q *engine.Suspension) { q.ID = uuid.NewSHA1(uuid.NameSpaceOID, []byte("others")) })
	}, func(w *env, e *engine.Engine, s fixed) (string, error) {
		token := w.hash(w.k.Children(s.fence.Execution.UUID()))["others"]
		_, err := e.TellWaiters(w.ctx, w.p,
			[]engine.AwaitedEnd{{Awaiting: engine.Awaiting{Awaited: s.waiting, Waiter: s.fence.Execution, Token: token},
				Mark: "s", Attempt: 1}})
		return "", err
	}},
	{"ff_wait_children", "wait for children that have ended", func(w *env, s fixed) {
		_, err := w.e.WaitChildren(w.ctx, s.fence, w.fixedWait(s, false))
		w.no(err)
		w.cancel(s.fence.Execution.Child("wait", "c"))
	}, func(w *env, e *engine.Engine, s fixed) (string, error) {
		r, err := e.WaitChildren(w.ctx, s.fence, w.fixedWait(s, true))
		return waited(r), err
	}},
}

// waitingOn suspends on one waitpoint, a fresh one or the pending one.
func waitingOn(mode string) func(*env, *engine.Engine, fixed) (string, error) {
	return func(w *env, e *engine.Engine, s fixed) (string, error) {
		q := suspension(waitFor(conditionOf(names(1, 1, "go")), fixedMint("fresh")), awaiting("it"),
			within(time.Minute, "fail"))
		if mode == "p" {
			onPending(s.handed)(&q)
		}
		q.ID = uuid.NewSHA1(uuid.NameSpaceOID, []byte("suspension"))
		a, err := e.SuspendExecution(w.ctx, s.fence, q)
		return fmt.Sprint(a.Satisfied, a.Suspension, a.TimeoutAt, a.Waitpoints, told(&a.Resume)), err
	}
}

func failing(permanent bool) func(*env, *engine.Engine, fixed) (string, error) {
	return func(w *env, e *engine.Engine, s fixed) (string, error) {
		o, err := e.FailExecution(w.ctx, s.fence, engine.Failure{Category: "io", Reason: "r", Permanent: permanent})
		return fmt.Sprint(o.Retry, o.RetryIn), err
	}
}

// claimed is what claims say, without the times.
func claimed(claims []engine.Claim) string {
	var out []string
	for _, c := range claims {
		out = append(out, fmt.Sprint(c.Fence, c.Type, string(c.Input)))
	}
	return strings.Join(out, "; ")
}

// pass lets time pass on a stopped clock.
func (w *env) pass(d time.Duration) {
	w.Helper()
	w.set("HINCRBY", string(w.k), "clock_pin", fmt.Sprint(d.Milliseconds()))
}

// line is a proxy between one engine and the server that loses what it is told to.
type line struct {
	w        *env
	listener net.Listener
	network  string
	backend  string
	owner    sync.WaitGroup

	mu       sync.Mutex
	function []byte
	moment   moment
	left     int
	open     []net.Conn
}

func newLine(w *env) *line {
	w.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.no(err)
	n := &line{w: w, listener: l, network: "tcp", backend: strings.TrimPrefix(w.srv.URL, "redis://")}
	if path, ok := strings.CutPrefix(w.srv.URL, "unix://"); ok {
		n.network, n.backend = "unix", path
	}
	n.owner.Go(n.accept)
	w.Cleanup(func() {
		_ = l.Close()
		n.mu.Lock()
		for _, c := range n.open {
			_ = c.Close()
		}
		n.mu.Unlock()
		n.owner.Wait()
	})
	return n
}

func (n *line) url() string { return "redis://" + n.listener.Addr().String() }

// arm disturbs the next calls of a function.
func (n *line) arm(function string, m moment) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.function, n.moment = []byte(function), m
	n.left = map[moment]int{lostBefore: 1, lostReply: 1, lostTwice: 2}[m]
}

func (n *line) fired() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.left == 0
}

// disturbs tells what to do with a request.
func (n *line) disturbs(request []byte) moment {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.left == 0 || !bytes.Contains(request, n.function) {
		return undisturbed
	}
	n.left--
	return n.moment
}

func (n *line) accept() {
	for {
		near, err := n.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial(n.network, n.backend)
		if err != nil {
			_ = near.Close()
			continue
		}
		n.mu.Lock()
		n.open = append(n.open, near, far)
		n.mu.Unlock()
		mute := &sync.Once{}
		silent := make(chan struct{})
		n.owner.Go(func() { n.requests(near, far, func() { mute.Do(func() { close(silent) }) }) })
		n.owner.Go(func() { n.replies(near, far, silent) })
	}
}

// requests forwards what the engine sends. A request whose reply is to be lost is forwarded, and the connection dies
// with the reply.
func (n *line) requests(near, far net.Conn, mute func()) {
	defer func() { _ = near.Close(); _ = far.Close() }()
	buffer := make([]byte, 1<<20)
	for {
		size, err := near.Read(buffer)
		if err != nil {
			return
		}
		switch n.disturbs(buffer[:size]) {
		case lostBefore:
			return
		case lostReply, lostTwice:
			mute()
		}
		if _, err := far.Write(buffer[:size]); err != nil {
			return
		}
	}
}

func (n *line) replies(near, far net.Conn, silent chan struct{}) {
	defer func() { _ = near.Close(); _ = far.Close() }()
	buffer := make([]byte, 1<<20)
	for {
		size, err := far.Read(buffer)
		if err != nil {
			return
		}
		select {
		case <-silent:
			return
		default:
		}
		if _, err := near.Write(buffer[:size]); err != nil {
			return
		}
	}
}
