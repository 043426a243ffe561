package browser

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/tools/browser/scene"
)

// forLong says for how long processor time is measured with open dashboards, such as 60s, and as long without:
//
//	FLOWFABRIC_OPEN_PAGES=60s go test -count=1 -run TestTenDashboards -v .
//
// Without it only requests are counted.
const forLong = "FLOWFABRIC_OPEN_PAGES"

// processorTime is what a process has used so far.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must.No(t, err)
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks int
	for _, field := range fields[11:13] { // user and system, in hundredths of a second
		n, err := strconv.Atoi(field)
		must.No(t, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// child is the process of this one that runs a program.
func child(t *testing.T, program string) (pid int) {
	t.Helper()
	all, err := os.ReadDir("/proc")
	must.No(t, err)
	for _, entry := range all {
		n, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if strings.Contains(string(stat), "("+program+") ") &&
			strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))[1] == strconv.Itoa(os.Getpid()) {
			pid = n
		}
	}
	if pid == 0 {
		t.Fatalf("no %s runs", program)
	}
	return pid
}

// busyALittle submits two images a second until the test ends.
func busyALittle(t *testing.T, d *deployment) {
	t.Helper()
	var working conc.WaitGroup
	end := make(chan struct{})
	working.Go(func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_, _ = client.Submit(t.Context(), d.client, scene.Resize, "x.png", flowfabric.Lane("images"))
			case <-end:
				return
			}
		}
	})
	t.Cleanup(func() { close(end); working.Wait() })
}

// countAsked makes a page count what it asks of the API, what of it no other page's answer may serve, and the samples
// of the store that come to it.
const countAsked = `(() => { window.asked = {}; window.samples = 0; window.alone = []
	const real = window.fetch
	window.fetch = (url, init) => {
		const path = new URL(url, location.href).pathname.replace(/[0-9]+-[0-9a-f-]{36}/, "ID")
		asked[path] = (asked[path] ?? 0) + 1
		if (!(init.headers["Cache-Control"] ?? "").startsWith("max-age=")) alone.push(path)
		return real(url, init)
	}
	import("/assets/live.js").then(m => m.pulse.listen(() => samples++)) })()`

// Ten dashboards are open while a worker works a little. What they ask of the API by themselves is bounded. With
// FLOWFABRIC_OPEN_PAGES the test also says what they cost in processor time.
func TestTenDashboards(t *testing.T) {
	d := deploy(t, true)
	images := make([]string, 1000)
	for range 4 {
		_, err := client.SubmitMany(t.Context(), d.client, scene.Resize, images, flowfabric.Lane("images"))
		must.No(t, err)
	}
	testwait.Progress(t, "all is resized", func() (bool, any) {
		n := counted(t.Context(), t, d, admin.Filter{Kind: scene.Resize.Kind(), States: []flowfabric.PublicState{
			flowfabric.Waiting, flowfabric.Active}})
		return n == 0, n
	})
	busyALittle(t, d)
	long, _ := time.ParseDuration(os.Getenv(forLong))
	redis := child(t, "redis-server")
	measure := func(what string) (serve, store float64) {
		if long == 0 {
			return 0, 0
		}
		before := [2]time.Duration{processorTime(t, d.serving.Process.Pid), processorTime(t, redis)}
		began := time.Now()
		<-time.After(long)
		took := time.Since(began).Seconds()
		serve = 100 * (processorTime(t, d.serving.Process.Pid) - before[0]).Seconds() / took
		store = 100 * (processorTime(t, redis) - before[1]).Seconds() / took
		t.Logf("%-18s serve %5.2f %%, redis-server %5.2f %% of a core", what, serve, store)
		return serve, store
	}
	serve0, store0 := measure("no dashboard")

	one := "executions/" + d.scene.Suspended.String()
	b := openBrowser(t)
	var tabs []*tab
	for i, place := range []string{"", "", "", "", "executions", "executions", one, one, "flows", "workers"} {
		at := b
		if i > 0 {
			at = b.apart()
		}
		tabs = append(tabs, at)
		at.enter(d, "operator")
		at.visit(place)
		at.text(countAsked)
		at.want("document.hidden", "false")
	}
	serve1, store1 := measure("ten dashboards")
	const samples = 5
	asked, seen := 0, 0
	for _, x := range tabs {
		x.wait(fmt.Sprintf("samples >= %d", samples))
		n, err := strconv.Atoi(x.text(`Object.values(asked).reduce((a, b) => a + b, 0)`))
		must.No(t, err)
		s, err := strconv.Atoi(x.text("samples"))
		must.No(t, err)
		asked, seen = asked+n, seen+s
		t.Logf("%3d requests in %d samples: %s", n, s, x.text("location.hash + ' ' + JSON.stringify(asked)"))
		// Once may be of the first load, which was under way.
		if again := x.text("String(alone.filter((path, i) => alone.indexOf(path) < i))"); again != "" {
			t.Errorf("%s asks for itself alone: %s", x.text("location.hash"), again)
		}
	}
	t.Logf("%d requests of %d tabs in %d samples: %.2f a sample", asked, len(tabs), seen, float64(asked)/float64(seen))
	if asked > 4*seen {
		t.Errorf("ten dashboards made %d requests while they got %d samples", asked, seen)
	}
	if long > 0 {
		t.Logf("ten dashboards cost serve %.2f %% and redis-server %.2f %% of a core", serve1-serve0, store1-store0)
	}
}
