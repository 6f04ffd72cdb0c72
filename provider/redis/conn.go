package redis

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"syscall"

	goredis "github.com/redis/go-redis/v9"
)

// Bounds on the replies to one request. The client trusts the lengths that a server announces, and
// follows arrays inside each other.
const (
	maxReply = 8 << 20  // bytes
	maxBulk  = 64 << 10 // bytes of one string
	maxParts = 1024     // lines, lengths included
)

// dialer returns what connects to the server.
func dialer(o *goredis.Options, c Config) func(context.Context, string, string) (net.Conn, error) {
	dial := c.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	secure := o.TLSConfig
	if secure != nil && c.TLS != nil {
		name := secure.ServerName
		if secure = c.TLS.Clone(); secure.ServerName == "" {
			secure.ServerName = name
		}
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, c.wait)
		defer cancel()
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if secure == nil {
			return bound(conn), nil
		}
		encrypted := tls.Client(conn, secure)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return bound(encrypted), nil
	}
}

// bound returns a connection whose replies are bounded.
func bound(conn net.Conn) net.Conn {
	b := &boundedConn{Conn: conn}
	if raw, ok := conn.(syscall.Conn); ok { // with which the client sees that the server has closed it
		return struct {
			*boundedConn
			syscall.Conn
		}{b, raw}
	}
	return b
}

// A boundedConn follows the replies that are read and fails at the first length that is out of bounds,
// before the client sees it.
type boundedConn struct {
	net.Conn
	replyScan
}

// Write implements net.Conn. A request begins.
func (c *boundedConn) Write(p []byte) (int, error) {
	c.bytes, c.parts = 0, 0
	return c.Conn.Write(p)
}

// Read implements net.Conn.
func (c *boundedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if wrong := c.scan(p[:n]); wrong != nil {
		return 0, wrong
	}
	return n, err
}

// A replyScan is the state of reading replies in RESP, version 2: lines of a type, a value and CRLF, and
// after the length of a string the string itself.
type replyScan struct {
	bytes, parts int // since the request
	skip         int // bytes of a string, with its CRLF
	kind         byte
	length       []byte // of a string or an array, as far as it was read
}

// scan follows a piece of the replies.
func (s *replyScan) scan(p []byte) error {
	if s.bytes += len(p); s.bytes > maxReply {
		return fmt.Errorf("more than %d bytes: %w", maxReply, errReply)
	}
	for len(p) > 0 {
		if s.skip > 0 {
			n := min(s.skip, len(p))
			s.skip, p = s.skip-n, p[n:]
			continue
		}
		b := p[0]
		p = p[1:]
		switch {
		case s.kind == 0:
			s.kind, s.length = b, s.length[:0]
			if s.parts++; s.parts > maxParts {
				return fmt.Errorf("more than %d parts: %w", maxParts, errReply)
			}
		case b == '\n':
			if err := s.endLine(); err != nil {
				return err
			}
		case b != '\r' && s.kind != '+' && s.kind != '-' && s.kind != ':':
			if s.length = append(s.length, b); len(s.length) > 8 {
				return fmt.Errorf("a length of more than 8 digits: %w", errReply)
			}
		}
	}
	return nil
}

// endLine reads the line that has ended.
func (s *replyScan) endLine() error {
	kind := s.kind
	s.kind = 0
	switch kind {
	case '+', '-', ':':
		return nil
	case '$', '*':
	default:
		return errReply
	}
	n, err := strconv.Atoi(string(s.length))
	if err != nil || n < -1 {
		return errReply
	}
	if n > maxBulk || kind == '*' && n > maxParts {
		return fmt.Errorf("a length of %d: %w", n, errReply)
	}
	if kind == '$' && n >= 0 {
		s.skip = n + len("\r\n")
	}
	return nil
}
