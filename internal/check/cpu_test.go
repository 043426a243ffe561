package main

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestCPUTime(t *testing.T) {
	shares, err := cpuRows([]byte("# comment\nclient race 40\nadmin race 40\nhandler race 10\nlua race 10\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		taken map[string]float64
		want  []string
	}{
		"as the table says": {map[string]float64{"client race": 40, "admin race": 40, "handler race": 10,
			"lua race": 10}, nil},
		"twice as slow a machine": {map[string]float64{"client race": 80, "admin race": 80, "handler race": 20,
			"lua race": 20}, nil},
		"one grew": {map[string]float64{"client race": 40, "admin race": 40, "handler race": 30,
			"lua race": 10}, []string{"handler race"}},
		"one grew, one was not run": {map[string]float64{"admin race": 40, "handler race": 50, "lua race": 10},
			[]string{"handler race"}},
		"most were not run": {map[string]float64{"handler race": 50, "lua race": 10}, nil},
		"little time":       {map[string]float64{"handler race": 4.9, "lua race": 0.1}, nil},
		"one that is not there yet": {map[string]float64{"client race": 40, "admin race": 40, "new race": 6},
			[]string{"new race"}},
		"nothing was run": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := cpuBreaches(c.taken, shares)
			if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	tree := fstest.MapFS{
		cpuRecords + "/client.race":  {Data: []byte("client race 12.50\n")},
		cpuRecords + "/client.plain": {Data: []byte("client plain 37.5\n")},
	}
	taken, err := cpuTaken(tree)
	if err != nil {
		t.Fatal(err)
	}
	again, err := cpuRows(cpuShares(taken))
	if err != nil || again["client race"] != 25 || again["client plain"] != 75 {
		t.Errorf("written and read: %v, %v", again, err)
	}
	if _, err := cpuRows([]byte("client race much\n")); err == nil {
		t.Error("a line without a number is read")
	}
}
