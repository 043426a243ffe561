package webhook

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// maxPrefixes bounds allow_addresses.
const maxPrefixes = 100

// refused are ranges that no request goes to unless an endpoint allows it: this machine, private networks, links,
// groups, what is reserved, and what carries an address of version 4 inside one of version 6.
var refused = ranges("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/3", // groups, and all above them
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")

// global is what public addresses of version 6 begin with.
var global = netip.MustParsePrefix("2000::/3")

func ranges(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

// policy says which addresses an endpoint may have.
type policy struct {
	allowed []netip.Prefix
	only    bool // no other addresses than these
}

// addressError is an address that an endpoint may not have.
type addressError struct{ addr netip.Addr }

func (e *addressError) Error() string {
	return fmt.Sprintf("the address %s is not public, and allow_addresses does not have it", e.addr)
}

// check refuses an address. One of version 4 in the form of version 6 counts as what it is.
func (p policy) check(addr netip.Addr) error {
	plain := addr.Unmap().WithZone("")
	if within(p.allowed, plain) {
		return nil
	}
	if p.only || within(refused, plain) || plain.Is6() && !global.Contains(plain) {
		return &addressError{addr}
	}
	return nil
}

func within(list []netip.Prefix, addr netip.Addr) bool {
	for _, p := range list {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// prefixes reads addresses, and ranges of them.
func prefixes(texts []string) (list []netip.Prefix, err error) {
	if len(texts) > maxPrefixes {
		return nil, fmt.Errorf("allow_addresses has %d entries, want at most %d", len(texts), maxPrefixes)
	}
	for i, text := range texts {
		p, err := netip.ParsePrefix(text)
		if one, failed := netip.ParseAddr(text); failed == nil {
			p, err = netip.PrefixFrom(one, one.BitLen()), nil
		}
		if err != nil || p.Addr().Is4In6() || p.Addr().Zone() != "" {
			return nil, fmt.Errorf("allow_addresses[%d] is %.50q, want an address or a range such as 10.0.0.0/8", i,
				text)
		}
		list = append(list, p.Masked())
	}
	return list, nil
}

// newHTTP makes the client of an endpoint. The address is checked where a connection is made, after its name was
// resolved. No redirect is followed, and no proxy is asked, since it would connect unchecked.
func newHTTP(timeout time.Duration, p policy) *http.Client {
	dialer := &net.Dialer{Timeout: timeout, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return p.check(at.Addr())
	}}
	return &http.Client{Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: true, DisableCompression: true,
			TLSHandshakeTimeout: timeout, MaxResponseHeaderBytes: 64 << 10, MaxIdleConns: atOnce,
			MaxIdleConnsPerHost: atOnce, IdleConnTimeout: 30 * time.Second}}
}
