package link

import flowfabric "github.com/flowfabric/flowfabric-go"

// Act is who asks for a change, and why.
type Act struct{ By, Reason string }

// ActOf puts options together; of two of a kind the later one counts.
func ActOf(opts []flowfabric.ActOption) (a Act) {
	for _, o := range opts {
		switch o := o.(type) {
		case interface{ Who() string }:
			a.By = o.Who()
		case interface{ Why() string }:
			a.Reason = o.Why()
		}
	}
	return a
}

// ChangeOf takes options apart: who and why, and the revision that is expected. 0 expects that there is none; nil
// expects nothing.
func ChangeOf(opts []flowfabric.ChangeOption) (acts []flowfabric.ActOption, expected *uint64) {
	for _, o := range opts {
		if act, ok := o.(flowfabric.ActOption); ok {
			acts = append(acts, act)
		} else if n, ok := Expected(o); ok {
			expected = &n
		}
	}
	return acts, expected
}

// Expected is the revision that [flowfabric.IfRevision] or [flowfabric.IfNew] says.
func Expected(option any) (revision uint64, ok bool) {
	r, ok := option.(interface{ Expected() uint64 })
	if !ok {
		return 0, false
	}
	return r.Expected(), true
}

// Who is the name that [flowfabric.By] says.
func Who(option any) (name string, ok bool) {
	by, ok := option.(interface{ Who() string })
	if !ok {
		return "", false
	}
	return by.Who(), true
}
