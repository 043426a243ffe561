package webhook

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/signature"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// The types of messages. Those of ends are "execution." and the state.
const (
	typeWaiting   = "execution.waiting"
	typeExhausted = "budget.exhausted"
)

// types are all types of messages, in the order of messages of errors.
var types = []string{"execution.completed", "execution.failed", "execution.cancelled", "execution.expired",
	"execution.skipped", typeWaiting, typeExhausted}

// Bounds of a configuration.
const (
	maxEndpoints = 64
	maxFilter    = 100 // entries of a filter
	maxURL       = 2048
	minTimeout   = time.Second
	maxTimeout   = 30 * time.Second
)

// Endpoint is a receiver of webhooks, as a configuration says it. A filter that is empty lets everything pass.
type Endpoint struct {
	URL     string   `json:"url"`
	Secrets []string `json:"secrets"` // see signature.Scheme.Secrets; a message is signed with each
	Events  []string `json:"events"`  // types of messages, at least one

	// Which executions; the tags must all be there.
	Namespaces []string          `json:"namespaces"`
	Kinds      []string          `json:"kinds"`
	Tags       map[string]string `json:"tags"`
	Gates      []string          `json:"gates"` // which budgets, by the names of their gates

	// Details adds what people wrote: messages of failures, reasons, questions.
	Details bool              `json:"details"`
	Timeout flowfabric.Millis `json:"timeout_ms"` // of one request, 1 s..30 s; default 15 s
	// AllowAddresses are addresses and ranges that are not public and may be called all the same. A URL with http://
	// reaches these only.
	AllowAddresses []string `json:"allow_addresses"`
}

// endpoint is one that was checked.
type endpoint struct {
	Endpoint
	name    string
	secrets [][]byte
	http    *http.Client
}

// Endpoints are what [Read] has checked, by name.
type Endpoints map[string]*endpoint

var endpointName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// Read checks a configuration and reads its secrets. Errors wrap flowfabric.ErrConfig and name the field.
func Read(all map[string]Endpoint) (Endpoints, error) {
	if len(all) > maxEndpoints {
		return nil, fmt.Errorf("%w: out has %d endpoints, want at most %d", flowfabric.ErrConfig, len(all),
			maxEndpoints)
	}
	read := Endpoints{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e := &endpoint{Endpoint: all[name], name: name}
		if err := e.check(); err != nil {
			return nil, fmt.Errorf("%w: out.%s: %w", flowfabric.ErrConfig, name, err)
		}
		read[name] = e
	}
	return read, nil
}

func (e *endpoint) check() (err error) {
	if !endpointName.MatchString(e.name) {
		return errors.New("the name of an endpoint is 1..32 of a-z, 0-9 and -, a letter first")
	}
	allowed, err := prefixes(e.AllowAddresses)
	if err != nil {
		return err
	}
	plain, err := checkURL(e.URL, allowed)
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	if e.secrets, err = signature.Schemes["standard"].Secrets(e.Secrets); err != nil {
		return err
	}
	if e.Timeout == 0 {
		e.Timeout = flowfabric.Millis(15 * time.Second)
	}
	if d := time.Duration(e.Timeout); d < minTimeout || d > maxTimeout {
		return fmt.Errorf("timeout_ms is %d, want %d..%d", d.Milliseconds(), minTimeout.Milliseconds(),
			maxTimeout.Milliseconds())
	}
	e.http = newHTTP(time.Duration(e.Timeout), policy{allowed: allowed, only: plain})
	return e.filters()
}

func (e *endpoint) filters() error {
	if len(e.Events) == 0 {
		return fmt.Errorf("events is empty, want some of %s", strings.Join(types, ", "))
	}
	for i, event := range e.Events {
		if !slices.Contains(types, event) {
			return fmt.Errorf("events[%d] is %.40q, want one of %s", i, event, strings.Join(types, ", "))
		}
	}
	for _, f := range []struct {
		field string
		names []string
		check func(field, name string) error
	}{{"namespaces", e.Namespaces, valid.Name}, {"kinds", e.Kinds, valid.Name}, {"gates", e.Gates, valid.GateName}} {
		if len(f.names) > maxFilter {
			return fmt.Errorf("%s has %d entries, want at most %d", f.field, len(f.names), maxFilter)
		}
		for i, name := range f.names {
			if err := f.check(fmt.Sprintf("%s[%d]", f.field, i), name); err != nil {
				return bare(err)
			}
		}
	}
	if len(e.Gates) == 0 && slices.Contains(e.Events, typeExhausted) && !e.everything() {
		return fmt.Errorf("gates is missing: budgets have no namespace, kind or tag, so name those of %s",
			typeExhausted)
	}
	if err := valid.Tags(e.Tags); err != nil {
		return fmt.Errorf("tags: %w", bare(err))
	}
	return nil
}

// bare is an error without the words of flowfabric.ErrInvalidInput: the file is wrong, not the input of a call.
func bare(err error) error {
	return errors.New(strings.TrimPrefix(err.Error(), flowfabric.ErrInvalidInput.Error()+": "))
}

// checkURL refuses what cannot be called; plain tells that it is not encrypted.
func checkURL(text string, allowed []netip.Prefix) (plain bool, err error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return false, errors.New("it is missing")
	case len(text) > maxURL:
		return false, fmt.Errorf("it has %d bytes, want at most %d", len(text), maxURL)
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return false, errors.New("want https://host/path") // the text may have a secret
	case u.User != nil || u.Fragment != "":
		return false, errors.New("it must have no user, no password and no fragment")
	case u.Scheme == "http" && len(allowed) == 0:
		return false, errors.New("http:// is for addresses of allow_addresses only, want https://")
	}
	plain = u.Scheme == "http"
	if ip, failed := netip.ParseAddr(u.Hostname()); failed == nil {
		err = policy{allowed: allowed, only: plain}.check(ip)
	}
	return plain, err
}

// everything tells that no filter of executions is set.
func (e *endpoint) everything() bool { return len(e.Namespaces)+len(e.Kinds)+len(e.Tags) == 0 }

// wants tells whether the endpoint is told of a type of messages about an execution.
func (e *endpoint) wants(event string, s *flowfabric.Snapshot) bool {
	for key, value := range e.Tags {
		if have, ok := s.Tags[key]; !ok || have != value {
			return false
		}
	}
	return slices.Contains(e.Events, event) && passes(e.Namespaces, s.Namespace) && passes(e.Kinds, s.Route.Kind)
}

func passes(filter []string, name string) bool {
	return len(filter) == 0 || slices.Contains(filter, name)
}

// wanted tells whether any endpoint wants a type of messages.
func (all Endpoints) wanted(event string) bool {
	for _, e := range all {
		if slices.Contains(e.Events, event) {
			return true
		}
	}
	return false
}

// capability is what a worker has that can send to an endpoint.
func capability(endpoint string) string { return "webhook:" + endpoint }

// Capabilities are those of a worker with these endpoints.
func (all Endpoints) Capabilities() (list []string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, capability(name))
	}
	return list
}

// Close closes connections that nothing is sent on.
func (all Endpoints) Close() {
	for _, e := range all {
		e.http.CloseIdleConnections()
	}
}
