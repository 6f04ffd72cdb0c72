package egress

import (
	"net"
	"net/url"
	"strings"

	"github.com/assay-rag/assay/internal/visible"
)

// shown returns a host in a form fit for an error or a log, since text may have chosen it.
func shown(host, port string) string {
	const most = 200
	if host = visible.Line(host); len(host) > most {
		host = strings.ToValidUTF8(host[:most], "") + "…"
	}
	if port == "" {
		return host
	}
	return net.JoinHostPort(host, port)
}

// HostPort returns HOST:PORT of an address in a form fit for output, or HOST if it has no port that
// is known.
func HostPort(u *url.URL) string {
	if host, port, ok := hostOf(u); ok {
		return shown(host, port)
	}
	return shown(u.Host, "")
}
