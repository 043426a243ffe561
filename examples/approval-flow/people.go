package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/approval"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// glance is how often the demo looks whether the pipeline has suspended.
const glance = 25 * time.Millisecond

// site is the page behind the links, served by this program; it could be any process that reaches the store.
type site struct {
	server  *http.Server
	running conc.WaitGroup
}

// openPage serves the page on a free port of this machine.
func (s *show) openPage() (*site, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve the approval page: %w", err)
	}
	s.page = "http://" + listener.Addr().String() + "/release"
	mux := http.NewServeMux()
	mux.Handle("/release", approval.New(approval.Config{Deliver: &desk{show: s}, Question: s.text}))
	w := &site{server: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second}}
	w.running.Go(func() { _ = w.server.Serve(listener) }) // ends with close
	return w, nil
}

// close lets the last person who clicked see the answer.
func (w *site) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if w.server.Shutdown(ctx) != nil {
		_ = w.server.Close()
	}
	w.running.Wait()
}

// text is the question of the page, the same for everybody.
func (s *show) text(*http.Request, suspend.Token) suspend.Question {
	return suspend.Question{
		Title:   "Release " + s.version,
		Text:    "May it be deployed? The release needs the approval of " + strings.Join(approvers, " and ") + ".",
		Choices: []suspend.Choice{{Name: approve, Label: "Approve"}, {Name: refuse, Label: "Refuse"}},
	}
}

// desk brings the answers of the page to the store and tells what they did there.
type desk struct {
	*show
	mu       sync.Mutex
	approved int
}

// DeliverSignal implements [approval.Deliverer].
func (d *desk) DeliverSignal(ctx context.Context, id flowfabric.ExecutionID, waitpoint flowfabric.UUID, digest string,
	g suspend.SentSignal) (suspend.Delivered, error) {
	done, err := d.client.DeliverSignal(ctx, id, waitpoint, digest, g)
	if err != nil {
		return done, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch who := d.ledger.owner(waitpoint); {
	case done.Duplicate:
		d.view.line("answer", "%s answers again. A link answers once: still %d of %d.", who, d.approved, len(approvers))
	case g.Name == refuse:
		d.view.line("answer", "%s refuses, which is the end of it.", who)
	default:
		d.approved++
		d.view.line("answer", "%s approves: %d of %d.", who, d.approved, len(approvers))
	}
	return done, nil
}

// ReadQuestion lets an answered link show its answer.
func (d *desk) ReadQuestion(ctx context.Context, id flowfabric.ExecutionID, waitpoint flowfabric.UUID,
	digest string) (suspend.Asked, error) {
	return d.client.ReadQuestion(ctx, id, waitpoint, digest)
}

// people waits until the pipeline is suspended, says so, and, if the demo is to run by itself, answers in their stead.
func (s *show) people(ctx context.Context) error {
	var links []string
	for _, who := range approvers {
		token, err := s.ledger.token(ctx, who)
		if err != nil {
			return err
		}
		links = append(links, approval.Link(s.page, token))
	}
	waiting, err := s.suspended(ctx)
	if err != nil || waiting.ID.IsZero() {
		return err
	}
	s.view.line("suspended", "The release waits, and holds nothing: no slot, no lease, no goroutine.")
	s.view.line("suspended", "The store knows: %s, until %s.", waiting.Reason,
		waiting.TimeoutAt.Format("2 Jan 15:04:05"))
	if !s.auto {
		s.view.line("suspended", "Now you: open the links and approve in both, or refuse in one. Ctrl-C ends the demo.")
		return nil
	}
	return s.click(ctx, links)
}

// suspended looks until the execution waits in the attempt that has been shown; the zero record if it ends before.
func (s *show) suspended(ctx context.Context) (suspend.Record, error) {
	for ticker := time.NewTicker(glance); ; {
		snapshot, err := s.exec.Get(ctx)
		switch {
		case err != nil:
			return suspend.Record{}, err
		case snapshot.State.Terminal():
			return suspend.Record{}, nil
		case snapshot.State.Public == flowfabric.Suspended && snapshot.Attempts == s.attempt.Load():
			return s.client.Execution(s.exec.ID()).Suspension(ctx)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			ticker.Stop()
			return suspend.Record{}, context.Cause(ctx)
		}
	}
}

// click is what two people do: ivy approves, and once more because the page was slow, and raj makes up his mind.
func (s *show) click(ctx context.Context, links []string) error {
	last := url.Values{"choice": {approve}, "by": {approvers[1]}}
	if s.refuse {
		last = url.Values{"choice": {refuse}, "by": {approvers[1]}, "comment": {"not on a Friday"}}
	}
	first := url.Values{"choice": {approve}, "by": {approvers[0]}}
	for _, c := range []struct {
		link string
		form url.Values
	}{{links[0], first}, {links[0], first}, {links[1], last}} {
		if err := pause(ctx, 3*s.pace); err != nil {
			return err
		}
		if err := post(ctx, c.link, c.form); err != nil {
			return err
		}
	}
	return nil
}

// post sends the form of the page behind a link. Errors do not show the link.
func post(ctx context.Context, link string, form url.Values) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, link, strings.NewReader(form.Encode()))
	if err != nil {
		return errors.New("the link is not valid")
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		var detail *url.Error
		if errors.As(err, &detail) {
			err = detail.Err
		}
		return fmt.Errorf("post the form: %w", err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("the approval page answers %s", response.Status)
	}
	return nil
}
