package server

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// LimitListener returns a listener that accepts no more connections at once than the limits of a
// server allow, which Reload changes. A connection beyond them is told to try again later, if plain
// is set, and closed.
func (s *Server) LimitListener(l net.Listener, plain bool) net.Listener {
	return &limitedListener{Listener: l, limits: s.limits, plain: plain, open: map[netip.Addr]int{}, refusing: make(chan struct{}, maxRefusing)}
}

func (s *Server) limits() Limits { return s.state.Load().Limits }

// maxRefusing is how many connections are told at once to try again later. Others are only closed.
const maxRefusing = 64

// refuseTime is how long a connection has that is told to try again later.
const refuseTime = time.Second

type limitedListener struct {
	net.Listener
	limits   func() Limits
	plain    bool
	refusing chan struct{}
	refused  sync.WaitGroup

	mu    sync.Mutex
	total int
	open  map[netip.Addr]int // by address
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := addressOf(c)
		if l.enter(address) {
			return &limitedConn{Conn: c, leave: sync.OnceFunc(func() { l.leave(address) })}, nil
		}
		l.refuse(c)
	}
}

// Close implements net.Listener. It waits for the connections that are being refused.
func (l *limitedListener) Close() error {
	err := l.Listener.Close()
	l.refused.Wait()
	return err
}

// addressOf returns the address of a client; zero: it is on this machine.
func addressOf(c net.Conn) netip.Addr {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	address := tcp.AddrPort().Addr().Unmap().WithZone("")
	if address.IsLoopback() {
		return netip.Addr{}
	}
	if address.Is6() { // a client has a network of its own
		if network, err := address.Prefix(64); err == nil {
			return network.Addr()
		}
	}
	return address
}

func (l *limitedListener) enter(address netip.Addr) bool {
	limits := l.limits()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= limits.Connections || address.IsValid() && l.open[address] >= limits.PerAddress {
		return false
	}
	l.total++
	l.open[address]++
	return true
}

func (l *limitedListener) leave(address netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.open[address]--; l.open[address] == 0 {
		delete(l.open, address)
	}
}

const busyResponse = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

// refuse answers and closes a connection. The request is read first: a connection that is closed with
// unread data is reset, and the client may not see the response.
func (l *limitedListener) refuse(c net.Conn) {
	if !l.plain {
		_ = c.Close()
		return
	}
	select {
	case l.refusing <- struct{}{}:
	default:
		_ = c.Close()
		return
	}
	l.refused.Go(func() {
		defer func() { <-l.refusing }()
		defer c.Close()
		if c.SetDeadline(time.Now().Add(refuseTime)) != nil {
			return
		}
		var request [4 << 10]byte
		if _, err := c.Read(request[:]); err == nil {
			_, _ = c.Write([]byte(busyResponse))
		}
	})
}

// A limitedConn gives its place back when it is closed.
type limitedConn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite closes the half of the connection that writes, as net/http does before it drops a
// request.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
