package ui

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/server"
	"github.com/assay-rag/assay/source"
)

// uploadRoutes add documents.
func uploadRoutes() []Route {
	files := action("/documents/upload", "documents.upload", "Upload", uploadFiles)
	files.MaxBody, files.Stream = server.MaxFormBytes, true
	names := action("/documents/upload/check", "documents.upload.check", "Upload", checkNames)
	names.MaxBody = 4 << 20
	return []Route{
		page("/documents/upload", "documents.upload.form", "Upload", showUpload), files, names,
		page("/uploads/{job}", "documents.upload.job", "UploadState", showUploadJob),
	}
}

// Who may see uploaded documents, in the field "access" of the form.
const (
	accessEveryone = "everyone"
	accessMe       = "me"
	accessNamed    = "named"
)

// maxUploadField is the most bytes of a field of the form.
const maxUploadField = source.MaxSidecarBytes

// An uploadForm is the form that adds documents, with the messages about its fields.
type uploadForm struct {
	Collection string
	Access     string
	Names      string // of the users and groups who may see the documents
	Metadata   string // lines of KEY = VALUE
	URL        string
	Replace    bool // replace the documents of the same names
	Errors     map[string]string

	password string
}

// An uploadView is the data of the page that adds documents.
type uploadView struct {
	uploadForm
	Collections []engine.CollectionSummary
	Groups      []string // of the user
	ReadsPages  bool
	MaxBytes    int64
	Outcomes    []uploadOutcome // nil: nothing was sent
}

// RequiresACL reports whether the collection of the form requires an access list.
func (v uploadView) RequiresACL() bool {
	return slices.ContainsFunc(v.Collections, func(c engine.CollectionSummary) bool { return c.Name == v.Collection && c.RequireACL })
}

// Refused is how many files were not stored.
func (v uploadView) Refused() int {
	n := 0
	for _, o := range v.Outcomes {
		if o.Problem != nil || o.Taken != nil {
			n++
		}
	}
	return n
}

func showUpload(q *request) error {
	return q.uploadPage(http.StatusOK, uploadForm{Collection: q.query("collection")}, nil)
}

func (q *request) uploadPage(status int, form uploadForm, outcomes []uploadOutcome) error {
	list, err := q.session.Collections(q.ctx())
	if err != nil {
		return err
	}
	v := uploadView{
		uploadForm: form, Collections: list, Groups: q.grant.Principal.Groups, MaxBytes: engine.MaxUploadBytes, Outcomes: outcomes,
		ReadsPages: q.may("UploadURL") && engine.SessionReadsPages(q.session),
	}
	if v.Access == "" && !v.RequiresACL() {
		v.Access = accessEveryone
	}
	return q.renderStatus(status, "upload.html", q.view("Documents", "Add documents", v))
}

// An uploadOutcome is the outcome of one file.
type uploadOutcome struct {
	Name      string
	Outcome   string // added, updated, unchanged, queued, refused or taken
	JobPath   string // of the page that tells what becomes of it, if it is queued
	Documents []documentRow
	More      int // documents beside those
	Hidden    int // documents that the user may not see
	Notes     []string
	Skipped   []failedRow
	Problem   *server.Problem
	Reason    reasonWords     // of Problem
	Taken     *assay.Document // the document that has the name, which was not to be replaced
}

// outcomeDocuments is how many of the documents inside a file its outcome lists.
const outcomeDocuments = 20

// uploadFiles stores the files of a form, and the page of its field "url". The fields precede the
// files. The parameter "rows" asks for the outcomes alone.
func uploadFiles(q *request) error {
	outcomes, form, err := q.readUpload()
	if err == nil && len(form.Errors) == 0 && len(outcomes) == 0 {
		form.Errors = map[string]string{"files": "Choose at least one file."}
	}
	rows := q.query("rows") != ""
	switch {
	case err != nil && rows && q.ctx().Err() == nil:
		problem := q.pages.config.Server.Problem(q.r, err)
		outcomes = append(outcomes, q.refusal("", problem))
		return q.execute(problem.Status, "upload.html", "outcomes", outcomes)
	case err != nil:
		return err
	case len(form.Errors) > 0 && rows:
		problem := server.Problem{Title: "The form is not complete", Status: http.StatusBadRequest, Detail: firstOf(form.Errors)}
		return q.execute(problem.Status, "upload.html", "outcomes", []uploadOutcome{q.refusal("", problem)})
	case len(form.Errors) > 0:
		return q.uploadPage(http.StatusBadRequest, form, nil)
	case rows:
		return q.execute(http.StatusOK, "upload.html", "outcomes", outcomes)
	}
	form.Replace = false
	return q.uploadPage(http.StatusOK, form, outcomes)
}

// firstOf returns the message about the first field, by name.
func firstOf(messages map[string]string) string {
	for _, field := range []string{"collection", "access", "names", "metadata", "url", "files"} {
		if m := messages[field]; m != "" {
			return m
		}
	}
	return ""
}

// readUpload reads the form. If a field is wrong it stores nothing, and the messages are in the form.
func (q *request) readUpload() ([]uploadOutcome, uploadForm, error) {
	var form uploadForm
	var outcomes []uploadOutcome
	parts, err := server.OpenForm(q.r.Header.Get("Content-Type"), q.r.Body)
	if err != nil {
		return nil, form, err
	}
	var sidecar []byte
	checked := false
	for {
		part, err := parts.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return outcomes, form, err
		}
		switch {
		case !part.IsFile:
			err = form.set(part)
		case part.Name == "": // no file was chosen
		case len(form.Errors) > 0: // the body is read to its end, so that the browser shows the page
			_, err = io.Copy(io.Discard, part)
		default:
			if !checked {
				sidecar, checked = form.check(q.grant.Principal), true
			}
			if len(form.Errors) > 0 {
				continue
			}
			outcomes, err = q.storePart(outcomes, form, sidecar, part)
		}
		if err != nil {
			return outcomes, form, err
		}
	}
	if !checked {
		sidecar = form.check(q.grant.Principal)
	}
	if form.URL == "" || len(form.Errors) > 0 {
		return outcomes, form, nil
	}
	uploaded, err := q.session.UploadURL(q.ctx(), engine.FetchedUpload{URL: form.URL, Collection: form.Collection, Sidecar: sidecar})
	o, err := q.outcome(form.URL, uploaded, err)
	return append(outcomes, o), form, err
}

// set sets a field.
func (f *uploadForm) set(part *server.FormPart) error {
	data, err := part.Text(maxUploadField)
	if err != nil {
		return err
	}
	if !utf8.Valid(data) {
		return fmt.Errorf("the field %q is not UTF-8: %w", part.Name, assay.ErrInvalid)
	}
	text := strings.TrimSpace(string(data))
	switch part.Name {
	case "collection":
		f.Collection = text
	case "access":
		f.Access = text
	case "names":
		f.Names = text
	case "metadata":
		f.Metadata = text
	case "url":
		f.URL = text
	case "replace":
		f.Replace = text != ""
	case "password":
		f.password = string(data)
	default:
		return fmt.Errorf("the form has a field %q, which is not known: %w", part.Name, assay.ErrInvalid)
	}
	return nil
}

// check returns the metadata and the access list as a sidecar, and sets the messages about fields that
// are wrong.
func (f *uploadForm) check(user assay.Principal) []byte {
	f.Errors = map[string]string{}
	if f.Collection == "" {
		f.Errors["collection"] = "Name a collection."
	}
	values, wrong := parseMetadata(f.Metadata)
	if wrong != "" {
		f.Errors["metadata"] = wrong
		values = map[string]any{}
	}
	switch f.Access {
	case "": // the engine refuses it where a list is required
	case accessEveryone:
		values["acl"] = []string{"*"}
	case accessMe:
		values["acl"] = []string{"user:" + user.User}
	case accessNamed:
		names := parseNames(f.Names)
		if _, err := assay.RestrictTo(names...); err != nil {
			f.Errors["names"] = "Write each as user:NAME or group:NAME, with commas between them."
		} else if len(names) == 0 {
			f.Errors["names"] = "Name at least one user or group."
		}
		values["acl"] = names
	default:
		f.Errors["access"] = "Choose who may see the documents."
	}
	sidecar, err := json.Marshal(values)
	if err == nil && len(f.Errors) == 0 {
		_, err = source.ParseSidecar(sidecar)
	}
	if err != nil && f.Errors["metadata"] == "" && len(f.Errors) == 0 {
		f.Errors["metadata"] = err.Error()
	}
	return sidecar
}

// parseNames returns the names of a field, which are divided by commas, semicolons or lines.
func parseNames(text string) []string {
	names := []string{}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' || r == '\n' || r == '\r' }) {
		if part = strings.TrimSpace(part); part != "" {
			names = append(names, part)
		}
	}
	return names
}

// parseMetadata reads lines of KEY = VALUE. A value is true, false, a number, a list of texts in
// brackets, a text in quotes or a text. wrong is shown beside the field; empty: nothing is wrong.
func parseMetadata(text string) (values map[string]any, wrong string) {
	values = map[string]any{}
	for i, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		_, twice := values[key]
		switch {
		case !ok || key == "" || value == "":
			return nil, fmt.Sprintf("Line %d is not KEY = VALUE.", i+1)
		case strings.EqualFold(key, "acl"):
			return nil, fmt.Sprintf("Line %d: who may see the documents is chosen above.", i+1)
		case twice:
			return nil, fmt.Sprintf("Line %d: the key %q is there twice.", i+1, key)
		}
		values[key] = metadataValue(value)
	}
	return values, ""
}

// metadataValue returns the value that a text means.
func metadataValue(text string) any {
	if list, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(list, "]") {
		items := []string{}
		for item := range strings.SplitSeq(strings.TrimSuffix(list, "]"), ",") {
			if item = strings.Trim(strings.TrimSpace(item), `"`); item != "" {
				items = append(items, item)
			}
		}
		return items
	}
	var value any
	if json.Unmarshal([]byte(text), &value) == nil {
		switch value.(type) {
		case bool, float64, string:
			return value
		}
	}
	return text
}

// A takenError means that a document has the name of an upload that is not to replace it.
type takenError struct{ document assay.Document }

func (e *takenError) Error() string { return "there is a document of this name" }

// Unwrap returns assay.ErrChanged.
func (e *takenError) Unwrap() error { return assay.ErrChanged }

// storePart stores one file. An error that concerns this file alone is part of its outcome.
func (q *request) storePart(outcomes []uploadOutcome, form uploadForm, sidecar []byte, part *server.FormPart) ([]uploadOutcome, error) {
	u := engine.Upload{Collection: form.Collection, Name: part.Name, Body: part, Type: part.Type, Sidecar: sidecar, Password: form.password}
	if !form.Replace {
		u.Check = func(stored *assay.Document) error {
			if stored != nil {
				return &takenError{*stored}
			}
			return nil
		}
	}
	uploaded, err := q.session.Upload(q.ctx(), u)
	o, err := q.outcome(part.Name, uploaded, err)
	return append(outcomes, o), err
}

// outcome returns the outcome of a file, and the error if it concerns the files that follow as well.
func (q *request) outcome(name string, uploaded engine.Uploaded, err error) (uploadOutcome, error) {
	if taken, ok := errors.AsType[*takenError](err); ok {
		return uploadOutcome{Name: name, Outcome: "taken", Taken: &taken.document}, nil
	}
	if err != nil {
		if q.ctx().Err() != nil || server.EndsForm(err) {
			return uploadOutcome{Name: name}, err
		}
		return q.refusal(name, q.pages.config.Server.Problem(q.r, err)), nil
	}
	o := uploadOutcome{Name: name, Outcome: uploaded.Outcome}
	if uploaded.Job != "" {
		o.JobPath = uploadJobPath(uploaded.Job)
	}
	access := q.grant.Principal.Access()
	for _, d := range uploaded.Documents {
		switch {
		case !access.Allows(d.Collection, d.ACL):
			o.Hidden++
		case len(o.Documents) == outcomeDocuments:
			o.More++
		default:
			o.Documents = append(o.Documents, q.row(d))
		}
	}
	for _, n := range uploaded.Report.Notes {
		o.Notes = append(o.Notes, n.Text)
	}
	for _, s := range uploaded.Report.Skipped {
		o.Skipped = append(o.Skipped, failedRow{Name: documentName(s.URI), Reason: wordsOfReason(s.Reason), Detail: s.Detail})
	}
	return o, nil
}

// refusal returns the outcome of a file that was not stored.
func (q *request) refusal(name string, p server.Problem) uploadOutcome {
	o := uploadOutcome{Name: name, Outcome: "refused", Problem: &p}
	switch {
	case p.Reason != "":
		o.Reason = wordsOfReason(source.Reason(p.Reason))
	case p.Status == http.StatusForbidden:
		o.Reason = reasonWords{p.Title, "You may not add this here. If a document that you may not see has the name, choose another name; otherwise ask an administrator."}
	case p.RetryAfter > 0:
		o.Reason = reasonWords{p.Title, fmt.Sprintf("Try again in %s.", count(p.RetryAfter, "second"))}
	default:
		o.Reason = reasonWords{cmp.Or(p.Title, "Refused"), ""}
	}
	return o
}

// A takenName is a document that has one of the names that a browser is about to upload.
type takenName struct {
	Version  string    `json:"version"`
	Modified time.Time `json:"modified,omitzero"`
	Path     string    `json:"path"`
}

// checkNames tells which of the names of a form the visible documents of its collection have.
func checkNames(q *request) error {
	collection, err := q.form("collection")
	if err != nil {
		return err
	}
	wanted := map[string]string{} // by URI
	for _, name := range q.r.PostForm["name"] {
		wanted[source.UploadURI(name)] = name
	}
	taken := map[string]takenName{}
	for d, err := range q.session.Documents(q.ctx(), collection) {
		if errors.Is(err, assay.ErrNotFound) {
			break // the user sees none of its documents
		}
		if err != nil {
			return err
		}
		if name, ok := wanted[d.SourceURI()]; ok && d.Container == "" {
			taken[name] = takenName{d.Version, d.Source.Modified, "/documents/" + d.ID}
		}
	}
	data, err := json.Marshal(taken)
	if err != nil {
		return err
	}
	q.w.Header().Set("Content-Type", "application/json")
	q.w.Header().Set("Cache-Control", "no-store")
	_, _ = q.w.Write(data) // the client may be gone
	return nil
}
