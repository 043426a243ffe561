package valid_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	ff "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

func TestPolicyPack(t *testing.T) {
	for _, c := range []struct {
		policy ff.Policy
		want   string
	}{
		{ff.Policy{}, ""},
		{ff.Policy{AttemptTimeout: ff.Millis(time.Minute)}, ""}, // travels beside it
		{ff.Policy{Retry: ff.RetryPolicy{Jitter: true, Fixed: true}}, ""},
		{ff.Policy{Retry: valid.DefaultRetry()}, "3,0,1000,60000,2000,1,10,10,0"},
		{ff.Policy{Retry: valid.DefaultRetry(), Retention: valid.RetainAll(time.Hour)},
			"3,0,1000,60000,2000,1,10,10,0,3600"},
		{ff.Policy{Retry: valid.DefaultRetry(), Retention: ff.Retentions{Failed: time.Minute}},
			"3,0,1000,60000,2000,1,10,10,0,0/60/0/0"},
		{ff.Policy{Retry: ff.RetryPolicy{MaxRetries: 5}}, "5,0,1000,60000,2000,0,10,10,0"},
		{ff.Policy{Retry: ff.RetryPolicy{MaxRetries: 1, Multiplier: 1.5}}, "1,0,0,60000,1500,0,10,10,0"},
		{ff.Policy{Retry: ff.RetryPolicy{MaxRetries: 1, Initial: 2 * time.Minute}}, "1,0,120000,120000,2000,0,10,10,0"},
		{ff.Policy{Retry: ff.RetryPolicy{MaxRetries: 1, Fixed: true, Initial: 1500 * time.Microsecond, Max: time.Second,
			Multiplier: 1}}, "1,1,1,1000,1000,0,10,10,0"},
		{ff.Policy{MaxReclaims: 7, MaxReplays: -1, StreamFrames: 500}, "0,0,1000,60000,2000,0,7,0,500"},
		{ff.Policy{Retry: ff.RetryPolicy{MaxRetries: 2, Categories: []ff.Category{"timeout", "io"}}},
			"2,0,1000,60000,2000,0,10,10,0;io,timeout"},
		{ff.Policy{Retry: ff.RetryPolicy{MaxRetries: 1000, Initial: limits.MaxBackoff, Max: limits.MaxBackoff,
			Multiplier: 100}, MaxReclaims: 10000, MaxReplays: 1000, StreamFrames: 1e6},
			"1000,0,604800000,604800000,100000,0,10000,1000,1000000"},
	} {
		if err := valid.Policy(c.policy); err != nil {
			t.Errorf("%+v: %v", c.policy, err)
		}
		got := valid.PackPolicy(c.policy)
		if got != c.want {
			t.Errorf("%+v packs to %q, want %q", c.policy, got, c.want)
		}
		back, err := valid.UnpackPolicy(got)
		if err != nil || valid.PackPolicy(back) != got {
			t.Errorf("%q comes back as %+v, %v", got, back, err)
		}
	}
	// A policy that says everything comes back as it was.
	full := ff.Policy{
		Retry: ff.RetryPolicy{MaxRetries: 4, Initial: time.Second, Max: time.Hour,
			Multiplier: 1.001, Jitter: true, Categories: []ff.Category{"a", "b.c"}},
		MaxReclaims: 3, MaxReplays: 2, StreamFrames: 100,
	}
	if back, err := valid.UnpackPolicy(valid.PackPolicy(full)); err != nil || !reflect.DeepEqual(back, full) {
		t.Errorf("%+v\ncomes back as\n%+v, %v", full, back, err)
	}
}

func TestUnpackPolicyRefuses(t *testing.T) {
	good := "3,0,1000,60000,2000,1,10,10,0"
	for _, text := range []string{
		"3", "3,0,1000", good + ",0", good + ",1,1", good + ",315360001", strings.Replace(good, "3", "", 1),
		strings.Replace(good, "3", "-3", 1), strings.Replace(good, "3", "+3", 1), strings.Replace(good, "3", "03", 1),
		strings.Replace(good, "3", "3.0", 1), strings.Replace(good, "3", "1001", 1), "3,2,1000,60000,2000,1,10,10,0",
		"3,0,1000,60000,2000,2,10,10,0", "3,0,604800001,60000,2000,1,10,10,0", "3,0,1000,604800001,2000,1,10,10,0",
		"3,0,1000,60000,999,1,10,10,0", "3,0,1000,60000,100001,1,10,10,0", "3,0,1000,60000,2000,1,10001,10,0",
		"3,0,1000,60000,2000,1,100,1001,0", "3,0,1000,60000,2000,1,100,10,1000001",
		"3,0,9223372036854775807,60000,2000,1,10,10,0", "99999999999999999999" + good[1:], good + ";a b",
		good + ";a,,b", good + ";" + strings.Repeat("a", 65),
		good + ";" + strings.Repeat("a,", 16) + "a",
	} {
		if p, err := valid.UnpackPolicy(text); !errors.Is(err, denied.Policy) {
			t.Errorf("%q: %+v, %v", text, p, err)
		}
	}
}

func FuzzUnpackPolicy(f *testing.F) {
	f.Add("")
	f.Add("3,0,1000,60000,2000,1,10,10,0")
	f.Add("3,1,0,0,1000,0,0,0,0;timeout,io")
	f.Add("0,0,1000,60000,2000,0,10,10,0;")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := valid.UnpackPolicy(text)
		if err != nil {
			if !errors.Is(err, denied.Policy) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if err := valid.Policy(p); err != nil {
			t.Fatalf("%q was accepted but is not valid: %v", text, err)
		}
		packed := valid.PackPolicy(p)
		again, err := valid.UnpackPolicy(packed)
		if err != nil || valid.PackPolicy(again) != packed {
			t.Fatalf("%q packs to %q and back to %q, %v", text, packed, valid.PackPolicy(again), err)
		}
	})
}

func TestPolicyValidate(t *testing.T) {
	for field, p := range map[string]ff.Policy{
		"Retry.MaxRetries is -1":           {Retry: ff.RetryPolicy{MaxRetries: -1}},
		"Retry.MaxRetries is 1001":         {Retry: ff.RetryPolicy{MaxRetries: 1001}},
		"Retry.Initial is -1ns":            {Retry: ff.RetryPolicy{Initial: -1}},
		"Retry.Initial is 168h0m0.000001s": {Retry: ff.RetryPolicy{Initial: limits.MaxBackoff + time.Microsecond}},
		"Retry.Max is 168h0m1s":            {Retry: ff.RetryPolicy{Max: limits.MaxBackoff + time.Second}},
		"Retry.Multiplier is 0.99":         {Retry: ff.RetryPolicy{Multiplier: 0.99}},
		"Retry.Multiplier is 100.5":        {Retry: ff.RetryPolicy{Multiplier: 100.5}},
		"Retry.Multiplier is NaN":          {Retry: ff.RetryPolicy{Multiplier: math.NaN()}},
		"Retry.Multiplier is +Inf":         {Retry: ff.RetryPolicy{Multiplier: math.Inf(1)}},
		"Retry.Multiplier is -1":           {Retry: ff.RetryPolicy{Multiplier: -1}},
		"Retry.Categories is 17":           {Retry: ff.RetryPolicy{Categories: make([]ff.Category, 17)}},
		"category \"\" has 0 bytes":        {Retry: ff.RetryPolicy{Categories: []ff.Category{""}}},
		"Timeout is -1s":                   {AttemptTimeout: ff.Millis(-time.Second)},
		"Timeout is 87600h0m1s":            {AttemptTimeout: ff.Millis(limits.MaxDelay + time.Second)},
		"MaxReclaims is 10001":             {MaxReclaims: 10001},
		"MaxReclaims is -1":                {MaxReclaims: -1},
		"MaxReplays is 1001":               {MaxReplays: 1001},
		"MaxReplays is -2":                 {MaxReplays: -2},
		"StreamFrames is 1000001":          {StreamFrames: 1_000_001},
	} {
		if err := valid.Policy(p); !errors.Is(err, denied.Policy) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, p := range []ff.Policy{{}, {Retry: valid.DefaultRetry()}, {Retry: ff.RetryPolicy{Multiplier: 1}},
		{AttemptTimeout: ff.Millis(limits.MaxDelay)}} {
		if err := valid.Policy(p); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func FuzzUnpackRetentions(f *testing.F) {
	for _, seed := range []string{"", "60", "1/2/3/4", "1/2", "-1", "01"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := valid.UnpackRetentions(text)
		if err != nil {
			if !errors.Is(err, denied.Policy) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if again, err := valid.UnpackRetentions(valid.PackRetentions(r)); err != nil || again != r {
			t.Fatalf("%q: %+v packs to %q and back to %+v, %v", text, r, valid.PackRetentions(r), again, err)
		}
	})
}
