package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
)

// A Memory is a service in memory with a feed of changes, deletes, ACLs and throttling. The zero
// Memory is empty. It is safe for concurrent use.
type Memory struct {
	mu       sync.Mutex
	items    map[string]memoryItem
	feed     []string // names, of changes and deletes
	valid    int      // cursors before this position have expired
	throttle int      // requests that are refused
	after    time.Duration
	vanished map[string]bool
	skipped  map[string]source.Skip
	partial  bool
	refused  bool
	fetched  []string

	// Deletes makes Changes report deletions.
	Deletes bool
	// NeedsToken makes Open read the credential "token" and listings fail with a text that contains it.
	NeedsToken bool
	// BeforeFetch, if set, is called before each fetch. Its error is returned by Fetch.
	BeforeFetch func(name string) error
}

type memoryItem struct {
	text    string
	version int
	acl     assay.ACL
}

// Put adds or changes an item.
func (m *Memory) Put(name, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.items == nil {
		m.items = map[string]memoryItem{}
	}
	item := m.items[name]
	item.text, item.version = text, len(m.feed)+1
	m.items[name] = item
	m.feed = append(m.feed, name)
}

// Delete removes an item.
func (m *Memory) Delete(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.items, name)
	m.feed = append(m.feed, name)
}

// SetACL allows an item to one user alone, without an entry in the feed.
func (m *Memory) SetACL(name, user string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	item := m.items[name]
	item.acl = assay.ACL{Restricted: true, Allow: []string{"user:" + user}}
	m.items[name] = item
}

// Throttle refuses the next requests.
func (m *Memory) Throttle(requests int, after time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.throttle, m.after = requests, after
}

// Vanish removes the content of an item that stays listed.
func (m *Memory) Vanish(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.vanished == nil {
		m.vanished = map[string]bool{}
	}
	m.vanished[name] = true
}

// Skip makes the listings yield a skip in place of the item; an empty reason ends that.
func (m *Memory) Skip(name string, reason source.Reason) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.skipped == nil {
		m.skipped = map[string]source.Skip{}
	}
	m.skipped[name] = source.Skip{URI: m.URI(name), Reason: reason, Detail: "test"}
	if reason == "" {
		delete(m.skipped, name)
	}
	m.feed = append(m.feed, name)
}

// BreakSweep makes each sweep end early with an error, or no longer.
func (m *Memory) BreakSweep(broken bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.partial = broken
}

// ExpireCursor makes all cursors given before invalid.
func (m *Memory) ExpireCursor() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.feed = append(m.feed, "")
	m.valid = len(m.feed)
}

// Refuse makes the service refuse all credentials.
func (m *Memory) Refuse() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused = true
}

// URI returns the address of an item.
func (m *Memory) URI(name string) string { return "memory://test/" + name }

// Fetched returns the names of the items fetched since the last call, sorted.
func (m *Memory) Fetched() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := m.fetched
	m.fetched = nil
	slices.Sort(names)
	return names
}

// Kind returns the kind of source that reads m.
func (m *Memory) Kind() source.Kind {
	return source.Kind{
		Name: "memory", Short: "a service in memory", Target: "memory://NAME", Help: "For tests.",
		DeletesInChanges: m.Deletes,
		Credentials:      []source.Credential{{Name: "token", Env: "MEMORY_TOKEN", Help: "any", Optional: true}},
		Options:          []source.Option{{Name: "color", Help: "any", Default: "red"}},
		Open: func(_ context.Context, c source.Config) (source.Source, error) {
			if !strings.HasPrefix(c.Target, "memory://") {
				return nil, fmt.Errorf("target %q is not memory://NAME: %w", c.Target, assay.ErrInvalid)
			}
			s := &memorySource{m: m, c: c.WithDefaults()}
			if m.NeedsToken {
				var err error
				if s.token, err = s.c.Credential("token"); err != nil {
					return nil, err
				}
			}
			return s, nil
		},
	}
}

// World returns the world of m.
func (m *Memory) World() World {
	return World{
		Kind: m.Kind(), Config: source.Config{Target: "memory://test"},
		Put: m.Put, Delete: m.Delete, URI: m.URI, SetACL: m.SetACL, Throttle: m.Throttle,
		Vanish: m.Vanish, ExpireCursor: m.ExpireCursor, Refuse: m.Refuse,
	}
}

type memorySource struct {
	m     *Memory
	c     source.Config
	token string
}

// request answers one request.
func (s *memorySource) request(ctx context.Context) error {
	return s.c.Retry(ctx, func(context.Context) error {
		s.m.mu.Lock()
		defer s.m.mu.Unlock()
		switch {
		case s.m.refused:
			return fmt.Errorf("memory: token %s: %w", s.token, source.ErrCredentials)
		case s.m.throttle > 0:
			s.m.throttle--
			return &source.TransientError{After: s.m.after, Err: errors.New("memory: too many requests")}
		}
		return nil
	})
}

func (s *memorySource) Changes(ctx context.Context, cursor string) iter.Seq2[source.Change, error] {
	return func(yield func(source.Change, error) bool) {
		at, err := s.position(ctx, cursor)
		if err != nil {
			yield(source.Change{}, err)
			return
		}
		s.m.mu.Lock()
		feed := slices.Clone(s.m.feed)
		s.m.mu.Unlock()
		yielded := false
		for i := at; i < len(feed); i++ {
			name := feed[i]
			if slices.Contains(feed[i+1:], name) {
				continue
			}
			change, err := s.change(name)
			if change.Item.URI == "" && err == nil {
				continue
			}
			change.Cursor = strconv.Itoa(i + 1)
			yielded = i+1 == len(feed)
			if !yield(change, err) {
				return
			}
		}
		if !yielded {
			yield(source.Change{Cursor: strconv.Itoa(len(feed))}, nil)
		}
	}
}

// position returns the place of a cursor in the feed.
func (s *memorySource) position(ctx context.Context, cursor string) (int, error) {
	if err := s.request(ctx); err != nil || cursor == "" {
		return 0, err
	}
	at, err := strconv.Atoi(cursor)
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if err != nil || at < s.m.valid {
		return 0, fmt.Errorf("memory: position %q: %w", cursor, source.ErrCursor)
	}
	return at, nil
}

// change returns the present state of an item. It is empty for an item that is gone, unless
// deletions are reported.
func (s *memorySource) change(name string) (source.Change, error) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if skip, ok := s.m.skipped[name]; ok {
		return source.Change{}, &skip
	}
	item, ok := s.m.items[name]
	switch {
	case ok:
		return source.Change{Item: s.item(name, item)}, nil
	case s.m.Deletes && name != "":
		return source.Change{Item: source.Item{URI: s.m.URI(name)}, Deleted: true}, nil
	}
	return source.Change{}, nil
}

func (s *memorySource) item(name string, item memoryItem) source.Item {
	return source.Item{
		URI: s.m.URI(name), Name: name + ".txt", Version: strconv.Itoa(item.version), ACL: item.acl, Ref: name,
		Size: int64(len(item.text)), Metadata: assay.Metadata{assay.MetaAuthor: assay.StringValue("memory")},
	}
}

func (s *memorySource) Sweep(ctx context.Context) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		if err := s.request(ctx); err != nil {
			yield(source.Item{}, err)
			return
		}
		s.m.mu.Lock()
		items, skipped, partial := maps.Clone(s.m.items), maps.Clone(s.m.skipped), s.m.partial
		s.m.mu.Unlock()
		for i, name := range slices.Sorted(maps.Keys(items)) {
			if partial && i > 0 {
				yield(source.Item{}, fmt.Errorf("memory: a part cannot be listed: %w", assay.ErrUnavailable))
				return
			}
			item, err := s.item(name, items[name]), error(nil)
			if skip, ok := skipped[name]; ok {
				item, err = source.Item{}, &skip
			}
			if !yield(item, err) {
				return
			}
		}
	}
}

func (s *memorySource) Fetch(ctx context.Context, item source.Item) (source.Content, error) {
	if s.m.BeforeFetch != nil {
		if err := s.m.BeforeFetch(item.Ref); err != nil {
			return source.Content{}, err
		}
	}
	if err := s.request(ctx); err != nil {
		return source.Content{}, err
	}
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.fetched = append(s.m.fetched, item.Ref)
	found, ok := s.m.items[item.Ref]
	if !ok || s.m.vanished[item.Ref] {
		return source.Content{}, &source.Skip{URI: item.URI, Reason: source.Vanished, Detail: "is gone"}
	}
	return source.Content{Data: []byte(found.text), Read: s.c.Now()}, nil
}

func (s *memorySource) Close() error { return nil }
