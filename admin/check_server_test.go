package admin_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// A check finds a lost index, says so to whoever listens, repairs it if asked, and then finds the store sound.
func TestCheckAndRepairOnAServer(t *testing.T) {
	url := testserver.Redis(t, testserver.TCP())
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	c, err := client.Connect(ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: url,
		Partitions: 2, Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	defer c.Close()
	a := admin.New(c)
	x := submit(ctx, t, c, "tides")
	if r, err := a.Check(ctx, admin.CheckOptions{}); err != nil || !r.Sound || len(r.Findings) != 0 ||
		r.Executions[flowfabric.Waiting] != 1 || len(r.Partitions) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	send(t, url, "DEL", keys.Of(x.ID().Partition()).Ready())
	for _, repair := range []bool{false, true} {
		var heard []flowfabric.Finding
		run := a.Check
		if repair {
			run = a.Repair
		}
		r, err := run(ctx,
			admin.CheckOptions{OnFinding: func(f flowfabric.Finding) { heard = append(heard, f) }})
		if err != nil || r.Sound != repair || (r.Repairable > 0) == repair || (r.Repaired > 0) != repair ||
			len(r.Findings) == 0 || len(heard) != len(r.Findings) || heard[0] != r.Findings[0] {
			t.Fatalf("repair %t: %+v, %v, heard %v", repair, r, err, heard)
		}
		if f := r.Findings[0]; f.Partition != x.ID().Partition() || !f.Repairable || f.Repaired != repair ||
			f.Kind == "" {
			t.Errorf("repair %t: %+v", repair, f)
		}
	}
	if r, err := a.Check(ctx, admin.CheckOptions{Partitions: []uint16{x.ID().Partition()}}); err != nil || !r.Sound ||
		len(r.Partitions) != 1 || len(r.Findings) != 0 {
		t.Errorf("after the repair: %+v, %v", r, err)
	}
	if _, err := a.Check(ctx, admin.CheckOptions{Partitions: []uint16{7}}); !errors.Is(err,
		flowfabric.ErrInvalidInput) {
		t.Errorf("a partition that is not there: %v", err)
	}
	c.Close()
	if _, err := a.Check(ctx, admin.CheckOptions{}); !errors.Is(err, client.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
