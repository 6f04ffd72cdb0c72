package egress

import (
	"net/netip"

	"code.dny.dev/ssrf"
)

// A class is what kind of network an address belongs to.
type class int

const (
	publicClass  class = iota // the public internet
	privateClass              // this machine, or a private network
	specialClass              // link-local, metadata services, multicast, unspecified, reserved
)

// metadata lists the addresses of cloud metadata services outside the link-local ranges.
//
// Source: Microsoft, "What is IP address 168.63.129.16?"; AWS, "Use the Instance Metadata Service";
// AWS, "EKS Pod Identity"; Alibaba Cloud, "Instance metadata".
var metadata = []netip.Prefix{
	netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("100.100.100.200/32"),
	netip.MustParsePrefix("fd00:ec2::/32"),
}

// sharedSpace is the address space of carrier-grade NAT.
//
// Source: RFC 6598.
var sharedSpace = netip.MustParsePrefix("100.64.0.0/10")

// guardian knows the special-purpose address registries of IANA.
var guardian = ssrf.New(ssrf.WithAnyPort())

// classOf returns the class of an address. It is that of the IPv4 address for one that is mapped
// into IPv6; addresses that embed an IPv4 address in another way (6to4, Teredo, NAT64) are special.
func classOf(a netip.Addr) class {
	if a.Zone() != "" {
		return specialClass
	}
	a = a.Unmap()
	for _, p := range metadata {
		if p.Contains(a) {
			return specialClass
		}
	}
	switch {
	case a.IsLoopback(), a.IsPrivate(), sharedSpace.Contains(a):
		return privateClass
	case guardian.SafeAddr(a) != nil:
		return specialClass
	}
	return publicClass
}

// words describes the class in an error.
func (c class) words() string {
	return map[class]string{publicClass: "public", privateClass: "in a private network or on this machine", specialClass: "link-local, multicast, reserved or that of a metadata service"}[c]
}
