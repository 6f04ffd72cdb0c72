package config

import (
	"net/netip"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgconn"
)

// onThisMachine reports whether all hosts of a PostgreSQL database are at loopback addresses or are
// Unix sockets.
func onThisMachine(address string) bool {
	c, err := pgconn.ParseConfig(address)
	if err != nil {
		return false
	}
	hosts := []string{c.Host}
	for _, f := range c.Fallbacks {
		hosts = append(hosts, f.Host)
	}
	for _, host := range hosts {
		ip, err := netip.ParseAddr(host)
		if host != "localhost" && !filepath.IsAbs(host) && (err != nil || !ip.Unmap().IsLoopback()) {
			return false
		}
	}
	return true
}
