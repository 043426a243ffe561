// Package fault holds the table of errors: package flowfabric fills it, and internal/denied names what it does not
// export.
package fault

// Class says what a caller should do about an error.
type Class uint8

const (
	// Stop: the answer is final for this caller; a holder that gets it must cease work.
	Stop Class = iota + 1
	// Retry: nothing was decided; the same call may be made again after a pause.
	Retry
	// Info: the wanted change does not apply (any more); nothing was written.
	Info
	// Caller: the request itself is wrong; fix the caller or its configuration.
	Caller
	// Bug: an invariant of the library is broken; alarm.
	Bug
)

func (c Class) String() string {
	switch c {
	case Stop:
		return "stop"
	case Retry:
		return "retry"
	case Info:
		return "info"
	case Caller:
		return "caller"
	case Bug:
		return "bug"
	}
	return "unknown"
}

// Sentinel is one row of the table: a code as it travels on the wire, its class and what it means. Errors are
// compared with it.
type Sentinel struct {
	Code    string
	Class   Class
	Meaning string
	Kind    error // the exported error that stands for several codes, this one among them; nil: none does
}

func (s *Sentinel) Error() string { return s.Code + ": " + s.Meaning }

// Is matches the kind of the error as well.
func (s *Sentinel) Is(target error) bool {
	one, ok := target.(only)
	return ok && string(one) == s.Code || s.Kind != nil && target == s.Kind
}

// only is matched by one code, while the exported error of that code stands for others, too.
type only string

func (o only) Error() string { return Named(string(o)).Error() }

// Only is an error to compare with: it matches this code alone.
func Only(code string) error { return only(Named(code).(*Sentinel).Code) }

var table = map[string]*Sentinel{}

// Define adds a row. It is called while packages are initialised, and for each code once.
func Define(s *Sentinel) {
	if table[s.Code] != nil {
		panic("flowfabric: error " + s.Code + " is defined twice")
	}
	table[s.Code] = s
}

// Of is the row of a code; nil: there is none.
func Of(code string) *Sentinel { return table[code] }

// Named is the error of a code that the table has.
func Named(code string) error {
	s := table[code]
	if s == nil {
		panic("flowfabric: no error has the code " + code)
	}
	return s
}
