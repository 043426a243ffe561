package flowfabric

// ActOption says who asks for a change, or why: [By] or [Reason]. The audit trail keeps both, see
// admin.Admin.TrailPage; what is changed may keep them too: an execution's history, a lane's record, a gate's audit
// log. Of two of a kind the later one counts.
type ActOption interface {
	ChangeOption
	act()
}

// ChangeOption is an option of a call that changes something with a revision: [By], [Reason], [IfRevision] or [IfNew].
type ChangeOption interface{ change() }

// By names the person or program that makes the change: flowfabric.By("anna"). At most 64 bytes unless the command says
// otherwise. Without it, client.Config.Creator is named, and nobody if that is empty.
func By(who string) interface { // also accepted by client.Execution.Approve and Send
	ActOption
	ApproveOption()
	SendOption()
} {
	return by(who)
}

type by string

func (by) act()           {}
func (by) change()        {}
func (by) ApproveOption() {}
func (by) SendOption()    {}

// Who is the name.
func (b by) Who() string { return string(b) }

// Reason says why: flowfabric.Reason("the tenant asked for it"). The audit trail and a history keep its first
// 1 KiB, unless the command says otherwise.
func Reason(why string) ActOption { return reason(why) }

type reason string

func (reason) act()    {}
func (reason) change() {}

// Why is the reason.
func (r reason) Why() string { return string(r) }

// IfRevision lets a call change what it names only if that has revision n; else the call fails with [ErrConflict].
// Reading it tells its revision. Without this option and [IfNew], a call changes what is there, whatever it is.
func IfRevision(n uint64) interface { // also accepted by client.Schedule and client.ScheduleFlow
	ChangeOption
	ScheduleOption()
	ScheduleFlowOption()
} {
	return revision(n)
}

// IfNew lets a call make what it names only if there is none of that name. It fails with [ErrConflict] unless the one
// there is the same.
func IfNew() interface { // accepted where IfRevision is
	ChangeOption
	ScheduleOption()
	ScheduleFlowOption()
} {
	return revision(0)
}

type revision uint64

func (revision) change()             {}
func (revision) ScheduleOption()     {}
func (revision) ScheduleFlowOption() {}

// Expected is the revision, 0 for none.
func (r revision) Expected() uint64 { return uint64(r) }
