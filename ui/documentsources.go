package ui

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/source"
)

// sourceRoutes are about sources of documents.
func sourceRoutes() []Route {
	sync := action("/sources/{name}/sync", "sources.sync", "Sync", syncSource)
	sync.Stream = true
	return []Route{
		page("/sources", "sources", "Sources", showSources),
		page("/sources/{name}", "sources.show", "Sources", showSource),
		sync,
		action("/sources/{name}/remove", "sources.remove", "RemoveSource", removeSource),
		page("/source-kinds", "sources.kinds", "AddSource", showKinds),
		page("/source-kinds/{kind}", "sources.add.form", "AddSource", showAddSource),
		action("/source-kinds/{kind}", "sources.add", "AddSource", addSource),
	}
}

// sourcePath is the path of the page of a source.
func sourcePath(name string) string { return "/sources/" + url.PathEscape(name) }

// A sourceRow is a source with the state of its last sync.
type sourceRow struct {
	engine.SourceState
	Path   string
	State  stateWords
	Report *engine.SyncReport // of the last sync; nil: none
}

// A stateWords is a state in words.
type stateWords struct{ Class, Icon, Word string }

// The states of a source.
var (
	sourceNew         = stateWords{"wait", "clock", "not synced yet"}
	sourceGood        = stateWords{"good", "check", "synced"}
	sourceFailed      = stateWords{"bad", "cross", "last sync failed"}
	sourceInterrupted = stateWords{"warn", "stop", "last sync was interrupted"}
	sourceHeld        = stateWords{"warn", "warning", "deletions held"}
)

// Held reports whether the last sync missed so many documents that it deleted none.
func (s sourceRow) Held() bool { return s.State == sourceHeld }

// Share is the share of the documents that the last sync missed.
func (s sourceRow) Share() float64 {
	if s.Report == nil || s.Report.Documents == 0 {
		return 0
	}
	return float64(s.Report.Missing) / float64(s.Report.Documents)
}

func rowOfSource(s engine.SourceState) (sourceRow, error) {
	row := sourceRow{SourceState: s, Path: sourcePath(s.Name)}
	if s.Report != nil {
		row.Report = &engine.SyncReport{}
		if err := json.Unmarshal(s.Report, row.Report); err != nil {
			return row, fmt.Errorf("report of the source %s: %w", s.Name, err)
		}
	}
	switch {
	case s.LastTry.IsZero():
		row.State = sourceNew
	case s.LastError == "":
		row.State = sourceGood
	case row.Report != nil && row.Report.Missing > 0:
		row.State = sourceHeld
	case row.Report != nil && row.Report.Interrupted:
		row.State = sourceInterrupted
	default:
		row.State = sourceFailed
	}
	return row, nil
}

// sources returns the sources by name.
func (q *request) sources() ([]sourceRow, error) {
	all, err := q.session.Sources(q.ctx())
	if err != nil {
		return nil, err
	}
	var rows []sourceRow
	for _, s := range all {
		row, err := rowOfSource(s)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func showSources(q *request) error {
	rows, err := q.sources()
	if err != nil {
		return err
	}
	return q.render("sources.html", q.view("Documents", "Sources", rows))
}

// A sourceView is the data of the page of a source.
type sourceView struct {
	sourceRow
	Error string // of what was just tried
}

func showSource(q *request) error { return q.sourcePage(http.StatusOK, "") }

// sourcePage shows the source of the path with an error of what was just tried; empty: none.
func (q *request) sourcePage(status int, problem string) error {
	rows, err := q.sources()
	if err != nil {
		return err
	}
	name := q.path("name")
	i := slices.IndexFunc(rows, func(s sourceRow) bool { return s.Name == name })
	if i < 0 {
		return fmt.Errorf("source %q: %w", name, assay.ErrNotFound)
	}
	return q.renderStatus(status, "source.html", q.view("Documents", name, sourceView{rows[i], problem}))
}

// syncSource syncs a source while the browser waits. A sync whose browser leaves ends at its next safe
// point.
func syncSource(q *request) error {
	if err := q.parseForm(); err != nil {
		return err
	}
	form := q.r.PostForm
	report, err := q.session.Sync(q.ctx(), engine.SyncRequest{Name: q.path("name"), Full: form.Get("full") != "", Yes: form.Get("yes") != ""})
	if errors.Is(err, assay.ErrNotFound) || errors.Is(err, assay.ErrForbidden) || errors.Is(err, assay.ErrUnauthenticated) {
		return err
	}
	if err != nil {
		p := q.pages.config.Server.Problem(q.r, err)
		return q.sourcePage(p.Status, cmp.Or(p.Detail, p.Title))
	}
	return q.redirect(sourcePath(q.path("name")), fmt.Sprintf("Synced: %d added, %d updated, %d removed, %d unchanged, %d skipped.",
		report.Added, report.Updated, report.Removed, report.Unchanged, len(report.Skipped)))
}

// removeSource removes a source after a confirmation.
func removeSource(q *request) error {
	confirmed, err := q.form("confirm")
	if err != nil {
		return err
	}
	documents := q.r.PostForm.Get("documents")
	if confirmed == "" || documents != "keep" && documents != "remove" {
		return q.sourcePage(http.StatusBadRequest, "The source was not removed: choose what becomes of its documents, and confirm it.")
	}
	removed, err := q.session.RemoveSource(q.ctx(), q.path("name"), documents == "keep")
	if err != nil {
		return err
	}
	notice := "The source " + q.path("name") + " is removed, and its documents are kept."
	if documents == "remove" {
		notice = "The source " + q.path("name") + " is removed with " + count(removed, "document") + "."
	}
	return q.redirect("/sources", notice)
}

// A kindsView is the data of the page that lists the kinds of sources.
type kindsView struct {
	Kinds   []source.Kind
	Allowed bool // sessions may add sources
}

func showKinds(q *request) error {
	kinds, err := q.session.SourceKinds(q.ctx())
	if err != nil {
		return err
	}
	return q.render("sourcekinds.html", q.view("Documents", "Connect a source", kindsView{kinds, engine.SessionAddsSources(q.session)}))
}

// A sourceForm is the form that adds a source, with the messages about its fields.
type sourceForm struct {
	Kind        source.Kind
	Collections []engine.CollectionSummary
	Name        string
	Target      string
	Collection  string
	Options     []optionField
	Credentials []credentialField
	Error       string
}

// An optionField is the field of an option.
type optionField struct {
	source.Option
	Value string
}

// Switch reports whether the option is true or false.
func (o optionField) Switch() bool { return o.Default == "true" || o.Default == "false" }

// A credentialField is the field that says where a credential is read from. Only a reference is ever
// shown again.
type credentialField struct {
	source.Credential
	Reference string
	Error     string
}

// sourceForm returns the empty form of the kind of the path.
func (q *request) sourceForm() (sourceForm, error) {
	var f sourceForm
	kinds, err := q.session.SourceKinds(q.ctx())
	if err != nil {
		return f, err
	}
	i := slices.IndexFunc(kinds, func(k source.Kind) bool { return k.Name == q.path("kind") })
	if i < 0 {
		return f, fmt.Errorf("kind of source %q: %w", q.path("kind"), assay.ErrNotFound)
	}
	f.Kind = kinds[i]
	for _, o := range f.Kind.Options {
		f.Options = append(f.Options, optionField{o, o.Default})
	}
	for _, c := range f.Kind.Credentials {
		f.Credentials = append(f.Credentials, credentialField{Credential: c})
	}
	f.Collections, err = q.session.Collections(q.ctx())
	return f, err
}

func (q *request) addSourcePage(status int, f sourceForm) error {
	return q.renderStatus(status, "sourceform.html", q.view("Documents", "Connect "+f.Kind.Name, f))
}

func showAddSource(q *request) error {
	f, err := q.sourceForm()
	if err != nil {
		return err
	}
	return q.addSourcePage(http.StatusOK, f)
}

func addSource(q *request) error {
	f, err := q.sourceForm()
	if err != nil {
		return err
	}
	if err := q.parseForm(); err != nil {
		return err
	}
	n, ok := f.read(q.r.PostForm)
	if !ok {
		return q.addSourcePage(http.StatusBadRequest, f)
	}
	err = q.session.AddSource(q.ctx(), n)
	if errors.Is(err, assay.ErrForbidden) || errors.Is(err, assay.ErrInvalid) {
		p := q.pages.config.Server.Problem(q.r, err)
		f.Error = q.detail(err)
		if errors.Is(err, assay.ErrForbidden) {
			f.Error += ". Who runs this server lists the kinds, folders and credentials that pages may use."
		}
		return q.addSourcePage(p.Status, f)
	}
	if err != nil {
		return err
	}
	return q.redirect(sourcePath(n.Name), "The source "+n.Name+" is added. Sync it to read its documents.")
}

// read reads the fields of the form. It reports whether the credentials are references.
func (f *sourceForm) read(values url.Values) (n engine.NewSource, ok bool) {
	f.Name, f.Target, f.Collection = strings.TrimSpace(values.Get("name")), strings.TrimSpace(values.Get("target")), strings.TrimSpace(values.Get("collection"))
	n = engine.NewSource{Name: f.Name, Kind: f.Kind.Name, Target: f.Target, Collection: f.Collection, Options: map[string]string{}, Credentials: map[string]string{}}
	for i, o := range f.Options {
		value := strings.TrimSpace(strings.ReplaceAll(values.Get("option."+o.Name), "\r\n", "\n"))
		f.Options[i].Value = value
		if value != o.Default && value != "" {
			n.Options[o.Name] = value
		}
	}
	ok = true
	for i, c := range f.Credentials {
		value := strings.TrimSpace(values.Get("credential." + c.Name))
		switch {
		case value == "":
		case !isReference(value):
			f.Credentials[i].Error, ok = "This is no reference, and was not kept. Write env:VARIABLE or file:PATH, never the secret itself.", false
		default:
			f.Credentials[i].Reference, n.Credentials[c.Name] = value, value
		}
	}
	return n, ok
}

// isReference reports whether a text says where a credential is read from.
func isReference(text string) bool {
	way, where, _ := strings.Cut(text, ":")
	return where != "" && slices.Contains([]string{"env", "file", "command"}, way)
}

// Settings are the options of the source, by name.
func (s sourceRow) Settings() []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		list = append(list, name+" = "+s.Options[name])
	}
	return list
}

// References are the names of the credentials of the source.
func (s sourceRow) References() []string { return slices.Sorted(maps.Keys(s.Credentials)) }
