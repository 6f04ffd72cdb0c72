package egress

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"github.com/assay-rag/assay"
)

// Public is the rule that admits any address of the public internet, for connections whose host is
// chosen by text, such as the pages that a web search finds.
const Public = "public"

// A Rule names hosts that may be reached. Its text has one of these forms, each but the last with an
// optional port:
//
//	api.example.com      one host
//	*.example.com        every host below example.com
//	10.1.2.3, [fd00::1]  one address
//	10.0.0.0/8           a network
//	public               see Public
//
// A rule without a port admits every port.
type Rule struct {
	text     string
	name     string // normalised; empty: network is valid, or the rule is Public
	wildcard bool   // hosts below name
	network  netip.Prefix
	port     string // empty: any
}

// String returns the rule's text.
func (r Rule) String() string { return r.text }

// ParseRule parses a rule. The error is assay.ErrInvalid.
func ParseRule(text string) (Rule, error) {
	r := Rule{text: text}
	wrong := func(format string, args ...any) (Rule, error) {
		return Rule{}, fmt.Errorf("egress rule %.80q: "+format+": %w", append(append([]any{text}, args...), assay.ErrInvalid)...)
	}
	if text == Public {
		return r, nil
	}
	if strings.Contains(text, "://") || strings.Contains(text, "@") {
		// The text is not quoted, since it may hold a password.
		return Rule{}, fmt.Errorf("an egress rule is an address with a scheme or a user; want a host, such as api.example.com or localhost:11434: %w", assay.ErrInvalid)
	}
	if p, err := parseNetwork(strings.Trim(text, "[]")); err == nil {
		r.network = p
		return r, nil
	}
	host := text
	if at := strings.LastIndexByte(text, ':'); at >= 0 {
		host, r.port = text[:at], text[at+1:]
		if n, err := strconv.ParseUint(r.port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != r.port {
			return wrong("the port must be between 1 and 65535")
		}
		if p, err := parseNetwork(strings.Trim(host, "[]")); err == nil {
			r.network = p
			return r, nil
		}
	}
	if rest, ok := strings.CutPrefix(host, "*."); ok {
		host, r.wildcard = rest, true
	}
	name, err := normalName(host)
	if err != nil || strings.Contains(name, "*") || r.wildcard && !strings.Contains(name, ".") {
		return wrong("want a host, *.DOMAIN, an address, a network or %s", Public)
	}
	r.name = name
	return r, nil
}

// MustRules parses rules that are known to be valid.
func MustRules(texts ...string) List {
	l, err := ParseRules(texts)
	if err != nil {
		panic(err)
	}
	return l
}

// ParseRules parses a list of rules. The error is assay.ErrInvalid.
func ParseRules(texts []string) (List, error) {
	l := List{}
	for _, text := range texts {
		r, err := ParseRule(text)
		if err != nil {
			return nil, err
		}
		l = append(l, r)
	}
	return l, nil
}

// HostOf returns the rule for the host and port of a URL, and false if it has no host. Ports 80 and
// 443 are added for URLs of HTTP without one.
func HostOf(address string) (Rule, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return Rule{}, false
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	text := u.Hostname()
	if port != "" {
		text = net.JoinHostPort(u.Hostname(), port)
	}
	r, err := ParseRule(text)
	return r, err == nil
}

func parseNetwork(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		if a.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("zone")
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("not a network")
	}
	return p.Masked(), nil
}

// normalName returns the form in which names are compared: ASCII in lower case without a trailing
// dot.
//
// Source: UTS #46, as golang.org/x/net/idna implements it.
func normalName(host string) (string, error) {
	host = strings.TrimSuffix(host, ".")
	if isASCII(host) { // idna's lookup profile refuses underscores, which names of services have
		host = strings.ToLower(host)
		for _, c := range host {
			if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.ContainsRune("-_.", c)) {
				return "", fmt.Errorf("%q is no name of a host", host)
			}
		}
		if host == "" || len(host) > 253 || host[0] == '.' || strings.Contains(host, "..") {
			return "", fmt.Errorf("%q is no name of a host", host)
		}
		return host, nil
	}
	name, err := idna.Lookup.ToASCII(host)
	if err != nil {
		return "", err
	}
	return normalName(name)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// covers reports whether the rule names the host at the port. Networks do not name hosts.
func (r Rule) covers(host, port string) bool {
	if r.name == "" || r.port != "" && r.port != port {
		return false
	}
	if r.wildcard {
		return strings.HasSuffix(host, "."+r.name)
	}
	return host == r.name
}

// contains reports whether the rule's network contains the address.
func (r Rule) contains(a netip.Addr, port string) bool {
	return r.network.IsValid() && (r.port == "" || r.port == port) && r.network.Contains(a)
}

// A List is a list of rules. A nil List is no list, and an empty one admits nothing.
type List []Rule

// Strings returns the texts of the rules.
func (l List) Strings() []string {
	out := []string{}
	for _, r := range l {
		out = append(out, r.text)
	}
	return out
}

// name returns the first rule that names a host; exact reports that it is not a wildcard.
func (l List) name(host, port string) (by Rule, exact, ok bool) {
	for _, r := range l {
		if r.covers(host, port) && (!ok || !r.wildcard) {
			by, exact, ok = r, !r.wildcard, true
		}
	}
	return by, exact, ok
}

// networkOf returns the first rule whose network contains an address.
func (l List) networkOf(a netip.Addr, port string) (Rule, bool) {
	for _, r := range l {
		if r.contains(a, port) {
			return r, true
		}
	}
	return Rule{}, false
}

func (l List) public() bool {
	for _, r := range l {
		if r.text == Public {
			return true
		}
	}
	return false
}

func (l List) networks() bool {
	for _, r := range l {
		if r.network.IsValid() {
			return true
		}
	}
	return false
}
