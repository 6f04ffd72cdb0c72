package egress

import (
	"net/http"
	"sync"
	"time"
)

// EachClient returns a client for requests to hosts that an administrator names one at a time, as
// those of webhooks are. It reaches the host and port of each request as if they were the scope's
// Hosts. Redirects are not followed, since the server chooses their targets.
func (s *Scope) EachClient(timeout time.Duration) *http.Client {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: &eachTransport{scope: s}, Timeout: timeout, CheckRedirect: stay}
}

// An eachTransport has a transport for each host.
type eachTransport struct {
	scope      *Scope
	transports sync.Map // *http.Transport by the text of the host's rule
}

// RoundTrip implements http.RoundTripper.
func (e *eachTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	host, ok := HostOf(r.URL.String())
	if !ok {
		return nil, e.scope.refuse(r.Context(), r.URL.Host, "", "it names no host and port")
	}
	t, ok := e.transports.Load(host.text)
	if !ok {
		own := *e.scope
		own.Hosts = List{host}
		t, _ = e.transports.LoadOrStore(host.text, own.Guard.Scope(own).Transport())
	}
	return t.(*http.Transport).RoundTrip(r)
}

// CloseIdleConnections closes the connections that are kept open.
func (e *eachTransport) CloseIdleConnections() {
	e.transports.Range(func(_, t any) bool {
		t.(*http.Transport).CloseIdleConnections()
		return true
	})
}
