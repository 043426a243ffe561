package gatetext

import "testing"

func TestParseClosing(t *testing.T) {
	for why, want := range map[string]ClosedBy{
		"gate acme amount tokens 100 90": {Kind: ClosedByAmount, Gate: "acme", Dimension: "tokens", Used: 100,
			Limit: 90},
		"gate acme amount tokens 30 90 70": {Kind: ClosedByAmount, Gate: "acme", Dimension: "tokens", Used: 30,
			Limit:   90,
			Refused: 70},
		"gate acme amount tokens 30 90 x": {},
		"gate api rate":                   {Kind: ClosedByRate, Gate: "api"},
		"gate api cap":                    {Kind: ClosedByCap, Gate: "api"},
		"gate @2.0.0@a cap":               {Kind: ClosedByCap, Gate: "@2.0.0@a"},
		"gate_not_found acme":             {Kind: ClosedNoGate, Gate: "acme"},
		"unavailable gate api":            {Kind: ClosedUnavailable, Gate: "api"},
		"unavailable gate @2.0.0@a":       {Kind: ClosedUnavailable, Gate: "@2.0.0@a"},
		"unavailable route":               {Kind: ClosedUnavailable},
		"unavailable gate api cap":        {},
		"unavailable api":                 {},
		"":                                {},
		"gate api":                        {},
		"gate api luck":                   {},
		"gate api rate cap":               {},
		"gate acme amount tokens many 90": {},
		"gate acme amount Tokens 100 90":  {},
		"gate ../acme amount tokens 1 1":  {},
		"gate acme amount tokens 1":       {},
		"gate acme amount tokens 1 1 1 1": {},
		"gate_not_found acme extra":       {},
	} {
		if got := ParseClosing(why); got != want {
			t.Errorf("%q: %+v, want %+v", why, got, want)
		}
	}
}
