package schedule_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/schedule"
)

// Every zone of the list is there, in order.
func TestZones(t *testing.T) {
	text, err := os.ReadFile("zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	zones := strings.Fields(string(text))
	if len(zones) < 500 || !slices.IsSorted(zones) {
		t.Errorf("%d zones", len(zones))
	}
	for _, zone := range zones {
		if err := schedule.Cron("0 9 * * *", zone).Err(); err != nil {
			t.Error(err)
		}
	}
}

// What only this machine calls a zone is none: a file of another case, as where the case of names of files does not
// count, or one of its own. The test runs itself on a machine with such files.
func TestZonesOfAMachine(t *testing.T) {
	own := []string{"Europe/BERLIN", "europe/berlin", "utc", "Ours", "Mars/Olympus"}
	if os.Getenv("ZONEINFO") != "" {
		for _, zone := range own {
			if err := schedule.Cron("0 9 * * *", zone).Err(); err == nil {
				t.Errorf("the zone %s of this machine is taken", zone)
			}
		}
		return
	}
	dir := t.TempDir()
	// A file of one zone: header, one type at offset 0, its name.
	file := "TZif" + strings.Repeat("\x00", 16) + strings.Repeat("\x00\x00\x00\x00", 4) + "\x00\x00\x00\x01" +
		"\x00\x00\x00\x04" + "\x00\x00\x00\x00\x00\x00" + "OWN\x00"
	for _, zone := range own {
		at := filepath.Join(dir, zone)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestZonesOfAMachine$")
	again.Env = append(os.Environ(), "ZONEINFO="+dir)
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
