package link

import flowfabric "github.com/flowfabric/flowfabric-go"

// Act is who asks for a change, and why.
type Act struct{ By, Reason string }

// Words are the reason and who asks, for what keeps one text of both; "" if neither is known.
func (a Act) Words() string {
	switch {
	case a.By == "":
		return a.Reason
	case a.Reason == "":
		return "by " + a.By
	}
	return a.Reason + " (by " + a.By + ")"
}

// ActOf puts options together; of two of a kind the later one counts.
func ActOf(opts []flowfabric.ActOption) (a Act) {
	for _, o := range opts {
		switch o := o.(type) {
		case flowfabric.By:
			a.By = string(o)
		case flowfabric.Reason:
			a.Reason = string(o)
		}
	}
	return a
}
