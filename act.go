package flowfabric

// ActOption says who asks for a change, or why: [By] or [Reason]. The audit trail keeps both, see
// admin.Admin.TrailPage; what is changed may keep them too: an execution's history, a lane's record, a budget's audit
// log. Of two of a kind the later one counts.
type ActOption interface{ act() }

// By names the person or program that makes the change: flowfabric.By("anna"). At most 64 bytes unless the command says
// otherwise. Without it, client.Config.Creator is named, and nobody if that is empty.
type By string

func (By) act() {}

// SendOption makes By an option of client.Execution.Send.
func (By) SendOption() {}

// ApproveOption makes By an option of client.Execution.Approve.
func (By) ApproveOption() {}

// Reason says why: flowfabric.Reason("the tenant asked for it"). The audit trail keeps its first 512 bytes, a history
// its first 1 KiB, unless the command says otherwise.
type Reason string

func (Reason) act() {}
