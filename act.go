package flowfabric

// Act says who asks for a change and why. It is kept with what is changed: in an execution's history, a lane's record, a budget's
// audit log.
type Act struct {
	By     string // at most 64 bytes unless the command says otherwise
	Reason string
}

// NewAct puts options together; of two of a kind the later one counts.
func NewAct(opts ...ActOption) (a Act) {
	for _, o := range opts {
		o.Act(&a)
	}
	return a
}

// ActOption is an option of a command of an operator: [By] or [Reason]. A command that keeps no reason takes only [By].
type ActOption interface {
	Act(a *Act)
	option()
}

// By names who asks: flowfabric.By("anna"). Without it, client.Config.Creator asks.
type By string

// Act sets a.By.
func (b By) Act(a *Act) { a.By = string(b) }
func (By) option()      {}

// Reason says why: flowfabric.Reason("the tenant asked for it").
type Reason string

// Act sets a.Reason.
func (r Reason) Act(a *Act) { a.Reason = string(r) }
func (Reason) option()      {}
