package mcpserver

import (
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessions binds the protocol's sessions to their owners and bounds their number.
type sessions struct {
	config Config
	server *mcp.Server
	calls  *calls
	now    func() time.Time

	mu       sync.Mutex
	bound    map[string]*boundSession // by ID
	busy     map[string]int           // requests in progress, by owner
	creating int                      // requests in progress that may begin a session
}

// A boundSession is a session of the protocol.
type boundSession struct {
	owner string
	used  time.Time // by its last request
	busy  int       // requests in progress
}

func newSessions(c Config, server *mcp.Server, calls *calls) *sessions {
	return &sessions{config: c, server: server, calls: calls, now: time.Now, bound: map[string]*boundSession{}, busy: map[string]int{}}
}

// begin counts a request of an owner. It returns false if too many are in progress; otherwise end
// must be called.
func (s *sessions) begin(owner string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[owner] >= s.config.Concurrent {
		return false
	}
	s.busy[owner]++
	return true
}

func (s *sessions) end(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[owner]--; s.busy[owner] == 0 {
		delete(s.busy, owner)
	}
}

// serve serves a request of a revision with sessions. The session of another owner does not exist for
// the caller.
func (s *sessions) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	owner := r.Context().Value(callerKey{}).(caller).owner
	id := r.Header.Get(sessionHeader)
	if id == "" {
		if r.Method == http.MethodPost && !s.makeRoom(owner) {
			w.Header().Set("Retry-After", "5")
			http.Error(w, "too many sessions", http.StatusServiceUnavailable)
			return
		}
		s.create(1)
		defer s.create(-1)
		next.ServeHTTP(&sessionWriter{ResponseWriter: w, created: func(id string) { s.bind(id, owner) }}, r)
		return
	}
	if !s.use(id, owner) {
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	defer s.leave(id)
	if r.Method == http.MethodDelete { // the SDK lets calls in progress run on
		for m := range s.server.Sessions() {
			if m.ID() == id {
				s.calls.cancel(m)
			}
		}
	}
	next.ServeHTTP(w, r)
}

func (s *sessions) create(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.creating += n
}

func (s *sessions) bind(id, owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bound[id] = &boundSession{owner: owner, used: s.now()}
}

func (s *sessions) use(id, owner string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bound[id]
	if b == nil || b.owner != owner {
		return false
	}
	b.busy++
	b.used = s.now()
	return true
}

func (s *sessions) leave(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.bound[id]; b != nil {
		b.busy--
		b.used = s.now()
	}
}

// makeRoom makes room for one more session of an owner. If there is none, it ends the owner's least
// recently used session. It returns false if all of the owner's sessions have requests in progress.
func (s *sessions) makeRoom(owner string) bool {
	live := map[string]*mcp.ServerSession{}
	for m := range s.server.Sessions() {
		live[m.ID()] = m
	}
	ended, ok := s.pick(owner, live)
	for _, m := range ended {
		_ = m.Close() // its client may be gone
	}
	return ok
}

// pick removes the sessions that are not live any more and returns those to end: the ones whose
// client disconnected before it received the ID and, if there is no room, the owner's least recently
// used.
func (s *sessions) pick(owner string, live map[string]*mcp.ServerSession) (ended []*mcp.ServerSession, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, oldest := 0, ""
	for id, b := range s.bound {
		switch {
		case live[id] == nil:
			delete(s.bound, id)
		case b.owner == owner:
			own++
			if b.busy == 0 && (oldest == "" || b.used.Before(s.bound[oldest].used)) {
				oldest = id
			}
		}
	}
	if s.creating == 0 {
		for id, m := range live {
			if s.bound[id] == nil {
				ended = append(ended, m)
			}
		}
	}
	if own < s.config.Concurrent && len(live)-len(ended) < s.config.Sessions {
		return ended, true
	}
	if oldest == "" {
		return ended, false
	}
	delete(s.bound, oldest)
	return append(ended, live[oldest]), true
}

// A sessionWriter reports the ID of the session that a response gives to the client, before it is
// sent.
type sessionWriter struct {
	http.ResponseWriter
	created func(id string)
	sent    bool
}

// Unwrap returns the writer for http.ResponseController.
func (w *sessionWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *sessionWriter) header() {
	if id := w.Header().Get(sessionHeader); id != "" && !w.sent {
		w.created(id)
	}
	w.sent = true
}

func (w *sessionWriter) WriteHeader(status int) {
	w.header()
	w.ResponseWriter.WriteHeader(status)
}

func (w *sessionWriter) Write(data []byte) (int, error) {
	w.header()
	return w.ResponseWriter.Write(data)
}
