package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/ingest"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// A SyncReport is the result of a Sync of one source.
type SyncReport = ingest.SyncReport

// A NewSource describes a source to add.
type NewSource struct {
	Name       string // 1 to 64 characters of a-z, 0-9, '-', '_' and '.'
	Kind       string // of Config.Sources
	Target     string
	Collection string            // empty: "default"
	Options    map[string]string // those that are not the kind's defaults

	// Credentials names where each credential is read from at every sync: "env:VARIABLE",
	// "file:PATH", or "command:NAME" for Config.Command. The default is the variable of source.Credential. The values are never stored.
	Credentials map[string]string
}

// A SourceState is a source with the state of its last sync.
type SourceState = store.SyncSource

// A SyncRequest selects a source to sync. Only Name is required.
type SyncRequest struct {
	Name     string
	Full     bool // list and fetch everything again
	Yes      bool // delete the documents that the source no longer lists, however many
	DryRun   bool // change nothing and fetch nothing
	Progress func(IngestProgress)
}

// syncLock is the name of the lock that a process holds while it syncs, adds or removes sources.
const syncLock = "sync"

// SourceKinds returns the kinds of source that can be added, by name.
func (e *Engine) SourceKinds() []source.Kind { return slices.Clone(e.config.Sources) }

// Sources returns the sources by name.
func (e *Engine) Sources(ctx context.Context) ([]SourceState, error) {
	return e.content.SyncSources(ctx)
}

// AddSource adds a source, which Sync then reads. It checks the configuration and the presence of
// the credentials, and does not connect. The error is assay.ErrInvalid for a configuration that
// cannot be used or a name that is taken.
func (e *Engine) AddSource(ctx context.Context, n NewSource) error {
	state := SourceState{
		Name: n.Name, Kind: n.Kind, Target: n.Target, Collection: cmp.Or(n.Collection, ingest.DefaultCollection),
		Options: n.Options, Credentials: n.Credentials,
	}
	if state.Name == source.FromFile || state.Name == source.FromStdin {
		return fmt.Errorf("source name %q means files that were ingested: %w", n.Name, assay.ErrInvalid)
	}
	err := e.locked(ctx, func() error {
		if err := checkReferences(n.Credentials); err != nil {
			return err
		}
		if _, err := e.sourceState(ctx, n.Name); err == nil {
			return fmt.Errorf("there is a source of this name: %w", assay.ErrInvalid)
		} else if !errors.Is(err, assay.ErrNotFound) {
			return err
		}
		kind, err := e.kind(state.Kind)
		if err != nil {
			return err
		}
		if kind.Absolute != nil && state.Target != "" {
			if state.Target, err = kind.Absolute(state.Target); err != nil {
				return fmt.Errorf("target: %w: %w", err, assay.ErrInvalid)
			}
		}
		opened, err := e.openSource(ctx, state)
		if err != nil {
			return err
		}
		if err := opened.Close(); err != nil {
			return err
		}
		return e.write(ctx, writerPatience, func(w store.Writer) error { return w.SetSyncSource(ctx, state) })
	})
	if err != nil {
		return fmt.Errorf("source %s: %w", n.Name, err)
	}
	return nil
}

// RemoveSource removes a source and, unless keepDocuments, its documents. It returns the number of
// documents removed. The error is assay.ErrNotFound if there is no such source.
func (e *Engine) RemoveSource(ctx context.Context, name string, keepDocuments bool) (removed int, err error) {
	err = e.locked(ctx, func() error {
		state, err := e.sourceState(ctx, name)
		if err != nil {
			return err
		}
		return e.write(ctx, writerPatience, func(w store.Writer) error {
			if !keepDocuments {
				if removed, err = deleteDocuments(ctx, w, state); err != nil {
					return err
				}
			}
			if err := w.RemoveSyncSource(ctx, name); err != nil {
				return err
			}
			if dir := e.sourceDir(name); dir != "" {
				err = os.RemoveAll(dir)
			}
			return errors.Join(err, e.flush(ctx))
		})
	})
	if err != nil {
		return removed, fmt.Errorf("source %s: %w", name, err)
	}
	return removed, nil
}

// deleteDocuments deletes the documents of a source in several changes.
func deleteDocuments(ctx context.Context, w store.Writer, state SourceState) (int, error) {
	var ids []string
	for d, err := range w.Documents(ctx, state.Collection) {
		if err != nil {
			return 0, err
		}
		if d.Metadata[assay.MetaSource].String == state.Name {
			ids = append(ids, d.ID)
		}
	}
	const atOnce = 256
	removed := 0
	for part := range slices.Chunk(ids, atOnce) {
		if _, err := w.Delete(ctx, part...); err != nil {
			return removed, err
		}
		removed += len(part)
	}
	return removed, nil
}

// Sync brings the documents of a source up to date. It holds the writer lock only for each
// transaction, so that others can ingest meanwhile.
//
// Problems with single items are listed in the report and are not errors; the next Sync tries them
// again. Documents stored before an error stay, and the next Sync continues from there. The errors
// are:
//
//   - assay.ErrNotFound: there is no such source.
//   - assay.ErrLocked: another process syncs.
//   - assay.ErrSuspended: more than a tenth of the source's documents would be deleted, and Yes is
//     not set. Nothing was deleted.
//   - source.ErrCredentials or assay.ErrUnavailable: the source cannot be read now.
//   - assay.ErrStopped: an administrator has stopped the tenant or all runs.
func (e *Engine) Sync(ctx context.Context, req SyncRequest) (SyncReport, error) {
	ctx = e.outgoing(ctx)
	defer e.embedder.ingesting()()
	report := SyncReport{Source: req.Name, Report: IngestReport{Skipped: []Skipped{}}}
	err := e.unlessStopped(ctx, func(ctx context.Context) error {
		return e.locked(ctx, func() error {
			state, err := e.sourceState(ctx, req.Name)
			if err != nil {
				return fmt.Errorf("source %s: %w", req.Name, err)
			}
			report, err = e.sync(ctx, state, req)
			return err
		})
	})
	return report, err
}

func (e *Engine) sync(ctx context.Context, state SourceState, req SyncRequest) (SyncReport, error) {
	report := SyncReport{Source: req.Name, Collection: state.Collection, Report: IngestReport{Skipped: []Skipped{}}}
	kind, err := e.kind(state.Kind)
	if err != nil {
		return report, err
	}
	parsing, err := e.ingestOptions(ctx, IngestRequest{Collection: state.Collection})
	if err != nil {
		return report, err
	}
	secrets := &usedSecrets{}
	opened, err := e.openWith(ctx, state, secrets)
	if err != nil {
		return report, fmt.Errorf("source %s: %w", state.Name, secrets.hide(err))
	}
	writer := &shortLockWriter{Content: e.content, engine: e}
	report, err = ingest.Sync(ctx, writer, ingest.SyncOptions{
		Name: state.Name, Kind: kind, Source: opened, Full: req.Full, Yes: req.Yes, DryRun: req.DryRun,
		Parsing: parsing, Progress: req.Progress, Scrub: secrets.scrub, Now: e.config.Now,
	})
	err = errors.Join(err, opened.Close())
	if writer.changed {
		err = errors.Join(err, e.write(context.WithoutCancel(ctx), forever, func(w store.Writer) error {
			_, pruneErr := w.Prune(context.WithoutCancel(ctx))
			return errors.Join(pruneErr, e.flush(context.WithoutCancel(ctx)))
		}))
	}
	return report, secrets.hide(err)
}

// WatchSource calls changed after the content of a source may have changed, until ctx ends. The
// error is assay.ErrInvalid if the kind of source cannot be watched.
func (e *Engine) WatchSource(ctx context.Context, name string, changed func()) error {
	ctx = e.outgoing(ctx)
	state, err := e.sourceState(ctx, name)
	if err != nil {
		return fmt.Errorf("source %s: %w", name, err)
	}
	opened, err := e.openSource(ctx, state)
	if err != nil {
		return fmt.Errorf("source %s: %w", name, err)
	}
	w, ok := opened.(source.Watcher)
	if !ok {
		err = fmt.Errorf("source %s: a source of kind %s cannot be watched: %w", name, state.Kind, assay.ErrInvalid)
		return errors.Join(err, opened.Close())
	}
	return errors.Join(w.Watch(ctx, changed), opened.Close())
}

// locked runs fn while no other process syncs, adds or removes sources.
func (e *Engine) locked(ctx context.Context, fn func() error) error {
	lock, err := e.tenant.Lock(ctx, syncLock)
	if errors.Is(err, assay.ErrLocked) {
		return fmt.Errorf("another process syncs: %w", assay.ErrLocked)
	}
	if err != nil {
		return err
	}
	return errors.Join(fn(), lock.Close())
}

// sourceState returns the named source.
func (e *Engine) sourceState(ctx context.Context, name string) (SourceState, error) {
	all, err := e.content.SyncSources(ctx)
	if err != nil {
		return SourceState{}, err
	}
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
	}
	return SourceState{}, fmt.Errorf("no such source: %w", assay.ErrNotFound)
}

// kind returns the named kind of source.
func (e *Engine) kind(name string) (source.Kind, error) {
	names := []string{}
	for _, k := range e.config.Sources {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return source.Kind{}, fmt.Errorf("no kind of source is called %q, only %s: %w", name, strings.Join(names, ", "), assay.ErrInvalid)
}

func (e *Engine) openSource(ctx context.Context, state SourceState) (source.Source, error) {
	secrets := &usedSecrets{}
	s, err := e.openWith(ctx, state, secrets)
	return s, secrets.hide(err)
}

// openWith opens a source and adds its credentials to secrets.
func (e *Engine) openWith(ctx context.Context, state SourceState, secrets *usedSecrets) (source.Source, error) {
	kind, err := e.kind(state.Kind)
	if err != nil {
		return nil, err
	}
	options, err := kind.Complete(state.Options)
	if err != nil {
		return nil, err
	}
	for name := range state.Credentials {
		if !slices.ContainsFunc(kind.Credentials, func(c source.Credential) bool { return c.Name == name }) {
			return nil, fmt.Errorf("a source of kind %s has no credential %q: %w", kind.Name, name, assay.ErrInvalid)
		}
	}
	scope, err := e.sourceScope(kind, state.Target, options)
	if err != nil {
		return nil, err
	}
	return kind.Open(ctx, source.Config{
		Target: state.Target, Options: options, Dir: e.sourceDir(state.Name), Now: e.config.Now,
		HTTP: scope.Client(source.RequestTimeout), Dial: databaseScope(scope).DialContext,
		Credential: func(name string) (string, error) {
			value, err := e.credential(kind, state, name)
			secrets.add(value)
			return value, err
		},
	})
}

// sourceDir returns the folder for the cache of a source, or "" if the store has no folder.
func (e *Engine) sourceDir(name string) string {
	index := e.tenant.IndexDir()
	if index == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(index), "sources", name)
}

// maxCredentialBytes is the largest size of a file with a credential.
const maxCredentialBytes = 64 << 10

// credential reads the value of a credential from where the source names it.
func (e *Engine) credential(kind source.Kind, state SourceState, name string) (string, error) {
	i := slices.IndexFunc(kind.Credentials, func(c source.Credential) bool { return c.Name == name })
	if i < 0 {
		return "", fmt.Errorf("kind %s has no credential %q: %w", kind.Name, name, assay.ErrInvalid)
	}
	c := kind.Credentials[i]
	from := cmp.Or(state.Credentials[name], "env:"+c.Env)
	way, where, _ := strings.Cut(from, ":")
	var value string
	switch {
	case way == "env" && where != "":
		value = e.config.Getenv(where)
	case way == "file" && where != "":
		var err error
		if value, err = readCredential(where); err != nil {
			return "", fmt.Errorf("credential %s: %w: %w", name, err, assay.ErrInvalid)
		}
	case way == "command" && where != "" && e.config.Command != nil:
		var err error
		if value, err = e.config.Command(where); err != nil {
			return "", fmt.Errorf("credential %s: %w", name, err)
		}
	default:
		return "", badReference(name)
	}
	if value == "" && !c.Optional {
		return "", fmt.Errorf("credential %s: %s is empty: %w", name, from, assay.ErrInvalid)
	}
	return value, nil
}

// badReference does not repeat the reference, which may be the credential itself.
func badReference(name string) error {
	return fmt.Errorf("credential %s: want env:VARIABLE, file:PATH or command:NAME of the configuration, not the value itself: %w", name, assay.ErrInvalid)
}

var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// commandName matches the names of commands in a configuration.
var commandName = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,40}$`)

// checkReferences checks where credentials are read from, before that is stored.
func checkReferences(references map[string]string) error {
	for name, from := range references {
		way, where, _ := strings.Cut(from, ":")
		if !isReference(way, where) {
			return badReference(name)
		}
	}
	return nil
}

// isReference reports whether a credential can be read from where in this way.
func isReference(way, where string) bool {
	switch way {
	case "env":
		return variableName.MatchString(where)
	case "file":
		return where != ""
	case "command":
		return commandName.MatchString(where)
	}
	return false
}

func readCredential(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCredentialBytes+1))
	if err != nil {
		return "", err
	}
	if len(data) > maxCredentialBytes {
		return "", fmt.Errorf("%s is larger than %d bytes", path, maxCredentialBytes)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// usedSecrets are the credentials of a source in use. They are removed from its errors and reports.
type usedSecrets struct {
	mu  sync.Mutex
	all []secret.Secret
}

// minScrubbed is the length below which a credential could be part of ordinary text.
const minScrubbed = 6

func (u *usedSecrets) add(value string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(value) >= minScrubbed {
		u.all = append(u.all, secret.New(value))
	}
}

func (u *usedSecrets) scrub(text string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return secret.Scrub(text, u.all...)
}

// hide returns err with a text without credentials.
func (u *usedSecrets) hide(err error) error {
	if err == nil {
		return nil
	}
	return scrubbedError{u.scrub(err.Error()), err}
}

type scrubbedError struct {
	text string
	err  error
}

func (e scrubbedError) Error() string { return e.text }
func (e scrubbedError) Unwrap() error { return e.err }

// shortLockWriter is an ingest.SyncStore that holds the writer lock only for its own transactions.
type shortLockWriter struct {
	store.Content
	engine  *Engine
	changed bool
}

// ApplySync implements ingest.SyncStore.
func (w *shortLockWriter) ApplySync(ctx context.Context, b store.SyncBatch) (sequence int64, err error) {
	err = w.engine.write(ctx, forever, func(inner store.Writer) error {
		sequence, err = inner.ApplySync(ctx, b)
		return err
	})
	w.changed = w.changed || err == nil && len(b.Put)+len(b.Delete) > 0
	return sequence, err
}

// SetSyncSource implements ingest.SyncStore.
func (w *shortLockWriter) SetSyncSource(ctx context.Context, s store.SyncSource) error {
	return w.engine.write(ctx, forever, func(inner store.Writer) error { return inner.SetSyncSource(ctx, s) })
}

// MinSyncInterval is the shortest interval between two syncs of a source.
const MinSyncInterval = 10 * time.Second
