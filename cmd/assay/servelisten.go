package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/cmd/assay/internal/config"
)

// metricsSocket is the name (FileDescriptorName=) of the socket of systemd that serves metrics. All
// others serve requests.
const metricsSocket = "metrics"

// listen opens the listeners. Sockets that systemd passes replace the configured addresses.
func (s *service) listen(ctx context.Context) error {
	passed, err := activation.ListenersWithNames()
	if err != nil {
		return fmt.Errorf("use the sockets of systemd: %w", err)
	}
	for name, list := range passed {
		if name == metricsSocket {
			s.metrics = append(s.metrics, list...)
		} else {
			s.listeners = append(s.listeners, list...)
		}
	}
	c := s.settings.server
	if len(s.listeners) == 0 {
		l, err := listenOn(ctx, c.Listen, s.settings.identified)
		if err != nil {
			return err
		}
		s.listeners = append(s.listeners, l)
	}
	if len(s.metrics) == 0 && c.Metrics != "" {
		l, err := listenOn(ctx, c.Metrics, true)
		if err != nil {
			return err
		}
		s.metrics = append(s.metrics, l)
	}
	if s.settings.identified {
		return nil
	}
	for _, l := range s.listeners {
		if err := checkExposure(l.Addr()); err != nil {
			return err
		}
	}
	return nil
}

// listenOn opens one listener. A socket of a path is for its owner alone, and with identity for its
// group.
func listenOn(ctx context.Context, where string, identified bool) (net.Listener, error) {
	network, address, wrong := config.SplitListen(where)
	if wrong != "" {
		return nil, usagef("%s: %s", where, wrong)
	}
	if network == "tcp" && !identified {
		if err := checkHost(address); err != nil {
			return nil, err
		}
	}
	if network == "unix" {
		if err := removeStale(address); err != nil {
			return nil, err
		}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, network, address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, hinted{err, "another program uses it; " + alternative(network, address)}
	}
	if err != nil || network != "unix" {
		return l, err
	}
	mode := fs.FileMode(0o600)
	if identified {
		mode = 0o660
	}
	if err := os.Chmod(address, mode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// alternative names an address that is free.
func alternative(network, address string) string {
	host, text, err := net.SplitHostPort(address)
	port, portErr := strconv.Atoi(text)
	if network != "tcp" || err != nil || portErr != nil {
		return "name another one: --listen unix:PATH"
	}
	for next := port + 1; next <= min(port+20, 65535); next++ {
		free := net.JoinHostPort(host, strconv.Itoa(next))
		if l, err := net.Listen("tcp", free); err == nil {
			_ = l.Close()
			return "use: assay serve --listen " + free
		}
	}
	return "name another one with --listen HOST:PORT"
}

// removeStale removes the socket of a process that does not exist any more.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("%s exists and is no socket: %w", path, assay.ErrInvalid)
	}
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		return nil // it is used
	}
	return os.Remove(path)
}

// errExposed is the hint for an address that others reach.
const exposedHint = "accept API keys with --keys (assay key create --user NAME --role reader makes one), " +
	"or add the section identity to the configuration (docs/identity.md), or listen on 127.0.0.1"

func exposed(address string) error {
	return hinted{usagef("%s: others could reach this address, and use all documents, because no identity is configured", address), exposedHint}
}

// checkHost refuses an address in the configuration that others reach.
func checkHost(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	ip, err := netip.ParseAddr(host)
	if host == "localhost" || err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return exposed(address)
}

// checkExposure refuses an address of a listener that others reach.
func checkExposure(address net.Addr) error {
	if !isExposed(address) {
		return nil
	}
	return exposed(address.String())
}

// isExposed reports whether other machines could reach an address.
func isExposed(address net.Addr) bool {
	switch a := address.(type) {
	case *net.UnixAddr:
		return false
	case *net.TCPAddr:
		return !a.IP.IsLoopback()
	}
	return true
}

func (s *service) exposed() bool {
	for _, l := range s.listeners {
		if isExposed(l.Addr()) {
			return true
		}
	}
	return false
}

// url returns the address at which a listener is reached.
func (s *service) url(l net.Listener) string {
	switch {
	case s.settings.server.URL != "":
		return s.settings.server.URL
	case l.Addr().Network() == "unix":
		return "unix:" + l.Addr().String()
	case s.certificates != nil:
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}

// certificates hold the certificate of the server as it was last read.
type certificates struct {
	files   config.TLS
	mu      sync.Mutex // of reload
	read    [2][]byte
	current atomic.Pointer[tls.Certificate]
}

// openCertificates reads the certificate; nil: none is configured.
func openCertificates(files config.TLS) (*certificates, error) {
	if files.Certificate == "" {
		return nil, nil
	}
	c := &certificates{files: files}
	if _, err := c.reload(); err != nil {
		return nil, err
	}
	return c, nil
}

// reload reads the certificate again if its files have changed. An error leaves the old one.
func (c *certificates) reload() (changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var read [2][]byte
	for i, name := range []string{c.files.Certificate, c.files.Key} {
		if read[i], err = os.ReadFile(name); err != nil {
			return false, fmt.Errorf("read the certificate: %w", err)
		}
	}
	if bytes.Equal(read[0], c.read[0]) && bytes.Equal(read[1], c.read[1]) {
		return false, nil
	}
	certificate, err := tls.X509KeyPair(read[0], read[1])
	if err != nil {
		return false, fmt.Errorf("certificate %s with key %s: %w: %w", c.files.Certificate, c.files.Key, err, assay.ErrInvalid)
	}
	c.read = read
	c.current.Store(&certificate)
	return true, nil
}

// config returns the configuration of TLS.
func (c *certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil },
	}
}
