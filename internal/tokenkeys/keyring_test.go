package tokenkeys

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

func TestParseKeyring(t *testing.T) {
	for what, x := range map[string]struct {
		text string
		want error // nil: kids
		kids string
	}{
		"empty":               {"", nil, ""},
		"spaces only":         {" \n", nil, ""},
		"one":                 {"k1:" + secretA, nil, "k1"},
		"two":                 {"k1:" + secretA + ", k.2_-Z:" + secretB, nil, "k1 k.2_-Z"},
		"upper case":          {"k1:" + strings.ToUpper(secretA), nil, "k1"},
		"32 bytes":            {"k1:" + strings.Repeat("00", 32), nil, "k1"},
		"64 bytes":            {"k1:" + strings.Repeat("00", 64), nil, "k1"},
		"same secret twice":   {"k1:" + secretA + ",k2:" + secretA, nil, "k1 k2"},
		"kid of 32":           {strings.Repeat("k", 32) + ":" + secretA, nil, strings.Repeat("k", 32)},
		"31 bytes":            {"k1:" + strings.Repeat("00", 31), denied.Secret, ""},
		"65 bytes":            {"k1:" + strings.Repeat("00", 65), denied.Secret, ""},
		"no secret":           {"k1:", denied.Secret, ""},
		"no colon":            {"k1", denied.Kid, ""},
		"odd hex":             {"k1:" + secretA + "0", denied.Secret, ""},
		"not hex":             {"k1:" + strings.Repeat("g", 64), denied.Secret, ""},
		"space in the secret": {"k1:" + secretA[:62] + " f", denied.Secret, ""},
		"sign in the secret":  {"k1:" + secretA[:62] + "+f", denied.Secret, ""},
		"0x":                  {"k1:0x" + secretA, denied.Secret, ""},
		"colon in the kid":    {"k:1:" + secretA, denied.Secret, ""},
		"no kid":              {":" + secretA, denied.Kid, ""},
		"kid of 33":           {strings.Repeat("k", 33) + ":" + secretA, denied.Kid, ""},
		"space in the kid":    {"k 1:" + secretA, denied.Kid, ""},
		"letter beyond ASCII": {"ké:" + secretA, denied.Kid, ""},
		"empty part":          {"k1:" + secretA + ",", denied.Kid, ""},
		"duplicate":           {"k1:" + secretA + ",k1:" + secretB, denied.KidConflict, ""},
		"same key twice":      {"k1:" + secretA + ",k1:" + secretA, denied.KidConflict, ""},
	} {
		k, err := Parse(x.text)
		if !errors.Is(err, x.want) || strings.Join(k.Kids(), " ") != x.kids {
			t.Errorf("%s: %v, %v; want %v", what, k, err, x.want)
		}
		if err != nil && (strings.Contains(err.Error(), secretA[:62]) || strings.Contains(err.Error(), secretB)) {
			t.Errorf("%s: the error shows a secret: %v", what, err)
		}
	}
}

// Case of the hex digits is no other secret; another secret has another fingerprint, which does not tell it.
func TestFingerprints(t *testing.T) {
	lower, _ := keyring(t, "k1:"+secretA).First()
	upper, _ := keyring(t, "k1:"+strings.ToUpper(secretA)).Key("k1")
	other, _ := keyring(t, "k1:"+secretB).First()
	if lower != upper || lower == other || len(lower.Fingerprint) != 16 ||
		strings.Contains(secretA, lower.Fingerprint) {
		t.Errorf("%+v, %+v, %+v", lower, upper, other)
	}
	if _, ok := keyring(t, "k1:"+secretA).Key("k2"); ok {
		t.Error("a key that is not there")
	}
}

func TestTheNilKeyringHasNoKeys(t *testing.T) {
	var k *Keyring
	if _, ok := k.First(); ok || k.Kids() != nil || k.signer(1) != nil {
		t.Error("it has")
	}
	k.Use(1, "k1")
	if err := k.Seed(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// A partition may be ahead of the configuration's order, or behind it.
func TestKeyringsSignWithWhatIsInUse(t *testing.T) {
	k := keyring(t, "k1:"+secretA+",k2:"+secretB)
	kid := func(partition uint16) string {
		m, _, err := k.Mint(mint.ID(partition), "x")
		must.No(t, err)
		return m.Kid
	}
	k.Use(1, "k2")
	k.Use(2, "unknown")
	if got := []string{kid(0), kid(1), kid(2)}; !slices.Equal(got, []string{"k1", "k2", "k1"}) {
		t.Errorf("signed with %v", got)
	}
	k.Use(1, "unknown") // news of a key that we cannot sign with change nothing
	if kid(1) != "k2" {
		t.Errorf("signed with %s", kid(1))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				k.Use(3, "k2")
				_, _, _ = k.Mint(mint.ID(3), "x")
			}
		})
	}
	wg.Wait()
}

func TestConfigured(t *testing.T) {
	for url, kids := range map[string]int{"embedded://": 1, "inproc://7": 1, "redis://localhost:6379": 0, "": 0} {
		if k, err := Configured(url, ""); err != nil || len(k.Kids()) != kids {
			t.Errorf("%q without keys: %v, %v", url, k, err)
		}
		if k, err := Configured(url, "k1:"+secretA); err != nil || !slices.Equal(k.Kids(), []string{"k1"}) {
			t.Errorf("%q with a key: %v, %v", url, k, err)
		}
		if k, err := Configured(url, "k1:00"); !errors.Is(err, denied.Secret) || k != nil {
			t.Errorf("%q with a bad key: %v, %v", url, k, err)
		}
	}
	if one, two := Development(), Development(); one != two || one.signer(0) == nil {
		t.Error("workers and clients of a process must share the key")
	}
	if kid := Development().Kids()[0]; !waitwords.ValidKid(kid) {
		t.Errorf("kid %q", kid)
	}
}
