package main

// ready runs tests of the middleware that is ready to use.
func ready(tests string) Test { return in("handler/middleware", tests) }

// middlewareMutants are bugs of the rate limit and the circuit breaker.
var middlewareMutants = []Mutant{
	{"middleware: all that finds no room comes again at once", "handler/middleware.limits.start",
		`	k.next = at`, ``, ready("^TestRateLimitSpreads$")},
	{"middleware: what is turned away uses up a start", "handler/middleware.limits.start",
		`	taken.CancelAt(now)`, ``, ready("^TestRateLimitSpreads$")},
	{"middleware: work is put aside for ever longer", "handler/middleware.limits.start",
		`at.Sub(now) > l.rate.Longest`, `at.Sub(now) < 0`, ready("^TestRateLimitLongest$")},
	{"middleware: a limit that is used up is forgotten", "handler/middleware.RateLimit",
		`l.start(key, time.Now())`, `(&limits{rate: l.rate, every: l.every}).start(key, time.Now())`, ready("^TestRateLimitSpreads$")},
	{"middleware: busy keys are dropped", "handler/middleware.keyed.get",
		`			if idle(v) {`, `			if idle(v) || true {`, ready("^TestIdleKeysAreDropped$")},
	{"middleware: idle keys are kept", "handler/middleware.keyed.get",
		`			if idle(v) {`, `			if idle(v) && false {`, ready("^TestIdleKeysAreDropped$")},
	{"middleware: kinds count for themselves", "handler/middleware.Kinds",
		`return "kinds"`, `return t.Kind()`, ready("^TestKeys$")},
	{"middleware: all come at the same time", "handler/middleware.aside",
		`	d += rand.N(`, `	_ = rand.N(`, ready("^TestJitter$")},
	{"middleware: drains open the breaker", "handler/middleware.breakers.judge",
		`	return errSilent`, `	return errUnwell`, ready("^TestWhatCountsAsAFailure$")},
	{"middleware: a drain closes the breaker", "handler/middleware.breakers.make",
		`return errors.Is(err, errSilent)`, `return false`, ready("^TestARowOfFailures$")},
	{"middleware: permanent failures open the breaker", "handler/middleware.Unwell",
		` || out.Failure.Permanent`, ``, ready("^TestWhatCountsAsAFailure$")},
	{"middleware: bad input opens the breaker", "handler/middleware.Unwell",
		`codes.CategoryDecode, `, ``, ready("^TestWhatCountsAsAFailure$")},
	{"middleware: nobody knows until when the breaker is open", "handler/middleware.breaker.changed",
		`		b.until.Store(time.Now().Add(b.all.Open).UnixNano())`, ``, ready("^TestCircuitBreaker$")},
	{"middleware: everything runs beside a probe", "handler/middleware.breaker.run",
		`	case errors.Is(err, gobreaker.ErrTooManyRequests):`, `	case errors.Is(err, gobreaker.ErrTooManyRequests) && next == nil:`, ready("^TestProbes$")},
}
