package engine

import (
	"context"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

const (
	versionsKnown = 1024             // then all are forgotten
	versionUnseen = 15 * time.Second // a mark that nothing is known of is asked for again after it
)

// versionMark is what a session says of the version of its application, and the partition that registers its worker.
type versionMark struct {
	partition uint16
	mark      string
}

// versions are those that marks stand for.
type versions struct {
	mu    sync.Mutex
	known map[versionMark]string
	asked map[versionMark]time.Time // nothing was known
}

func (v *versions) of(at versionMark, now time.Time) (version string, ask bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	version, known := v.known[at]
	asked, unknown := v.asked[at]
	return version, !known && !(unknown && now.Sub(asked) < versionUnseen)
}

// keep notes what a partition knows, and of the mark that was asked for that it does not.
func (v *versions) keep(at versionMark, found map[versionMark]string, now time.Time) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil || len(v.known)+len(v.asked) >= versionsKnown {
		v.known, v.asked = map[versionMark]string{}, map[versionMark]time.Time{}
	}
	v.asked[at] = now
	for mark, version := range found {
		v.known[mark] = version
		delete(v.asked, mark)
	}
	return v.known[at]
}

// VersionOf is the version of the application of which the worker of a session was: "" if it had none, or if its
// partition does not know it any more. A session has a mark of the version only, so the first one of a mark costs a
// call (lua/operate/ff_list_versions.lua). Without an answer it is "".
func (e *Engine) VersionOf(ctx context.Context, session string) string {
	at := versionMark{e.registryOf(ids.Worker(session)), ids.SessionMark(session)}
	if at.mark == "" {
		return ""
	}
	version, missing := e.versions.of(at, time.Now())
	if !missing {
		return version
	}
	r, _, err := ask[wire.ListVersionsReply](ctx, e, at.partition, wire.ListVersions{})
	if err != nil {
		return ""
	}
	found := map[versionMark]string{}
	for _, v := range r.Versions {
		found[versionMark{at.partition, ids.VersionMark(v.Version)}] = v.Version
	}
	return e.versions.keep(at, found, time.Now())
}
