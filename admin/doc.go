// Package admin is for operators' programs: it lists what there is, says why it does not move, and changes it.
// Package client submits and waits.
//
//	a := admin.New(c) // shares the connection of c, a client of package client
//	for x, err := range a.List(ctx, admin.Filter{States: []flowfabric.PublicState{flowfabric.Failed}}) {
//		why, err := a.Why(ctx, x.ID) // one or two true sentences, and what happens next
//		err = a.Replay(ctx, x.ID, admin.Replay{}, flowfabric.By("anna"), flowfabric.Reason("the model is back"))
//	}
//
// # Executions
//
// [Admin.List], [Admin.Why] and [Admin.History] look; [Admin.Replay], [Admin.Resume], [Admin.Revoke], [Admin.Hold],
// [Admin.SetPriority], [Admin.SetTags] and [Admin.Purge] change. To read, cancel or answer one, use [Admin.Client].
// What is held is let go with [Admin.Unhold], what is suspended is resumed. Flows: [Admin.Flows], [Admin.ReplayFlow],
// [Admin.SetFlowTags].
//
// # The whole store
//
// [Admin.Overview], [Admin.Queues], [Admin.Lanes], [Admin.Workers], [Admin.Schedules] and [Admin.Partitions] put
// together what all partitions know. When some do not answer, the rest is returned beside a [*PartitionsError].
// [Admin.SetLane] pauses, drains and disables a lane, and says what it keeps and who comes next; [Admin.MarkWorkerDead]
// declares a worker dead; [Admin.Check] compares the indexes with the records, [Admin.Repair] repairs
// them. [Admin.Subscribe] follows what happens.
// Schedules are made with client.Schedule; here [Admin.Schedules] lists them, [Admin.PauseSchedule] and
// [Admin.ResumeSchedule] pause them and let them go on, [Admin.RemoveSchedule] removes them.
//
// # Gates, token keys
//
// [Admin.PutGate] and [Admin.PutGate] make and change what executions must have room in before they run,
// [Admin.AttachGates] says which ones, [Admin.Gates] what they keep from running. [Admin.RotateTokenKeys] changes the
// key that tokens of waitpoints are signed with.
//
// # Who and why
//
// Every change takes flowfabric.By and flowfabric.Reason. The audit trail keeps both, see [Admin.TrailPage]. Without
// By the Creator of the client's configuration asks, and without either nobody is named. What is decided in somebody's
// name ([Admin.Resume], [Admin.ReissueToken]) is refused then.
//
// Calls are safe to repeat unless their comment says otherwise. After client.Client.Close all of them answer
// client.ErrClosed. All methods may be called concurrently.
package admin
