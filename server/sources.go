package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/source"
)

// sourceRoutes are about the sources that documents are synced from.
func sourceRoutes() []Route {
	return []Route{
		route("GET", "/api/v1/source-kinds", "sources.kinds", "SourceKinds", "List the kinds of sources", sourceKinds),
		route("GET", "/api/v1/sources", "sources.list", "Sources", "List sources with the state of their last sync", sources),
		route("GET", "/api/v1/sources/{name}", "sources.show", "Sources", "Show a source with the state of its last sync", oneSource),
		route("POST", "/api/v1/sources", "sources.add", "AddSource", "Add a source", addSource),
		route("DELETE", "/api/v1/sources/{name}", "sources.remove", "RemoveSource", "Remove a source and its documents", removeSource),
		raw("POST", "/api/v1/sources/{name}/sync", "sources.sync", "Sync", "Sync a source", syncSource).with(func(r *Route) {
			r.Out, r.Stream = reflect.TypeFor[engine.SyncReport](), true
			r.Events = eventsOf[syncEvent]()
		}),
	}
}

type sourceKindList struct {
	Kinds []sourceKind `json:"kinds"`
}

// A sourceKind is a kind of source.
type sourceKind struct {
	Name        string             `json:"name"`
	Short       string             `json:"short"`  // one line of help
	Target      string             `json:"target"` // the form of the target, such as "s3://BUCKET[/PREFIX]"
	Help        string             `json:"help"`
	Options     []sourceOption     `json:"options"`
	Credentials []sourceCredential `json:"credentials"`
}

// A sourceOption is a setting of a source that is not secret.
type sourceOption struct {
	Name    string `json:"name"`
	Help    string `json:"help"`
	Default string `json:"default,omitempty"`
}

// A sourceCredential is a secret that a source needs.
type sourceCredential struct {
	Name     string `json:"name"`
	Help     string `json:"help"`
	Optional bool   `json:"optional,omitempty"`
}

func sourceKinds(ctx context.Context, s *engine.Session, _ none) (list sourceKindList, err error) {
	kinds, err := s.SourceKinds(ctx)
	for _, k := range kinds {
		list.Kinds = append(list.Kinds, showKind(k))
	}
	return list, err
}

func showKind(k source.Kind) sourceKind {
	shown := sourceKind{Name: k.Name, Short: k.Short, Target: k.Target, Help: k.Help}
	for _, o := range k.Options {
		shown.Options = append(shown.Options, sourceOption{o.Name, o.Help, o.Default})
	}
	for _, c := range k.Credentials {
		shown.Credentials = append(shown.Credentials, sourceCredential{c.Name, c.Help, c.Optional})
	}
	return shown
}

type sourceList struct {
	Sources []sourceView `json:"sources"`
}

// A sourceView is a source with the state of its last sync.
type sourceView struct {
	Name        string            `json:"name"`
	Kind        string            `json:"kind"`
	Target      string            `json:"target"`
	Collection  string            `json:"collection"`
	Options     map[string]string `json:"options"`
	Credentials []string          `json:"credentials"` // the names of those that are not read from where the kind says

	LastSync  time.Time       `json:"last_sync,omitzero"`   // end of the last complete sync
	LastTry   time.Time       `json:"last_try,omitzero"`    // end of the last sync, complete or not
	LastError string          `json:"last_error,omitempty"` // of the last sync
	Report    json.RawMessage `json:"last_report,omitempty"`
}

func sources(ctx context.Context, s *engine.Session, _ none) (list sourceList, err error) {
	all, err := s.Sources(ctx)
	for _, state := range all {
		list.Sources = append(list.Sources, showSource(state))
	}
	return list, err
}

func showSource(state engine.SourceState) sourceView {
	return sourceView{
		Name: state.Name, Kind: state.Kind, Target: state.Target, Collection: state.Collection, Options: state.Options,
		Credentials: slices.Sorted(maps.Keys(state.Credentials)),
		LastSync:    state.LastSync, LastTry: state.LastTry, LastError: state.LastError, Report: state.Report,
	}
}

func oneSource(ctx context.Context, s *engine.Session, in namedIn) (sourceView, error) {
	all, err := s.Sources(ctx)
	if err != nil {
		return sourceView{}, err
	}
	i := slices.IndexFunc(all, func(state engine.SourceState) bool { return state.Name == in.Name })
	if i < 0 {
		return sourceView{}, fmt.Errorf("source %q: %w", in.Name, assay.ErrNotFound)
	}
	return showSource(all[i]), nil
}

type addSourceIn struct {
	Body newSource `body:"application/json"`
}

// A newSource describes a source to add.
type newSource struct {
	Name       string            `json:"name"` // 1 to 64 characters of a-z, 0-9, '-', '_' and '.'
	Kind       string            `json:"kind"` // one of the kinds of sources
	Target     string            `json:"target,omitempty"`
	Collection string            `json:"collection,omitempty"` // empty: "default"
	Options    map[string]string `json:"options,omitempty"`

	// Credentials says where each credential is read from at every sync: "env:VARIABLE" or "file:PATH".
	Credentials map[string]string `json:"credentials,omitempty"`
}

func addSource(ctx context.Context, s *engine.Session, in addSourceIn) (none, error) {
	return none{}, s.AddSource(ctx, engine.NewSource(in.Body))
}

type removeSourceIn struct {
	Name          string `path:"name"`
	KeepDocuments bool   `query:"keep_documents"`
}

type removed struct {
	Removed int `json:"removed"` // documents
}

func removeSource(ctx context.Context, s *engine.Session, in removeSourceIn) (removed, error) {
	n, err := s.RemoveSource(ctx, in.Name, in.KeepDocuments)
	return removed{n}, err
}

type syncIn struct {
	Name   string `path:"name"`
	Full   bool   `query:"full"`    // list and fetch everything again
	Yes    bool   `query:"yes"`     // delete the documents that the source no longer lists, however many
	DryRun bool   `query:"dry_run"` // change nothing and fetch nothing
}

// A syncEvent is the data of an event of a sync: "progress" or, at the end, "report".
type syncEvent struct {
	Progress *syncProgress      `json:"progress,omitempty"`
	Report   *engine.SyncReport `json:"report,omitempty"`
}

// A syncProgress is how far a sync is.
type syncProgress struct {
	Found   int    `json:"found"`   // items so far
	Done    int    `json:"done"`    // items stored, unchanged or skipped
	Skipped int    `json:"skipped"` // of those done
	Bytes   int64  `json:"bytes"`
	Current string `json:"current,omitempty"` // URI of the item that was started last
}

// syncSource syncs a source. If the client leaves, the sync ends at its next safe point.
func syncSource(x *exchange, in syncIn) error {
	req := engine.SyncRequest{Name: in.Name, Full: in.Full, Yes: in.Yes, DryRun: in.DryRun}
	if x.media != typeEvents {
		report, err := x.session.Sync(x.r.Context(), req)
		if err != nil {
			return err
		}
		return x.reply(report)
	}
	return x.stream(func(yield func(message, error) bool) {
		progress(x.r.Context(), yield, func(ctx context.Context, send func(message)) error {
			req.Progress = func(p engine.IngestProgress) {
				send(message{event: "progress", data: syncEvent{Progress: showProgress(p)}})
			}
			report, err := x.session.Sync(ctx, req)
			if err == nil {
				send(message{event: "report", data: syncEvent{Report: &report}})
			}
			return err
		})
	})
}

func showProgress(p engine.IngestProgress) *syncProgress {
	return &syncProgress{p.Found, p.Done, p.Skipped, p.Bytes, p.Current}
}
