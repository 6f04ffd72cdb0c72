// Package gdrive reads the files of Google Drive: of a shared drive, or all that a user sees.
//
// After the first listing, changes come from Drive's log of changes. A cursor is a page token of
// that log. Changes of the members of a shared drive are not reported for its files, so that they
// need a sweep.
//
// Sources: "Google Drive API" v3, the references of files, changes and permissions, "Retrieve
// changes", "Export MIME types", "Resolve errors" and "Using OAuth 2.0 for Server to Server
// Applications" of Google (2025).
package gdrive

import (
	"cmp"
	"context"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/internal/rest"
)

const name = "gdrive"

// Kind returns the kind of source.
func Kind() source.Kind {
	return source.Kind{
		Name:   name,
		Short:  "files of Google Drive",
		Target: "(drive:SHARED-DRIVE-ID|user:EMAIL)",
		Help: `Reads the files of a shared drive, or all files that a user sees. Documents, sheets and slides
of Google are exported as docx, xlsx and pptx, or as text with --set export=text. Google limits an
export to 10 MB. Files whose download is disabled, forms, sites and shortcuts are skipped.

Needs the JSON key of a service account. For a shared drive the service account must be a manager,
since others may not list permissions. For user:EMAIL it needs domain-wide delegation for the scope
https://www.googleapis.com/auth/drive.readonly, or EMAIL is its own address.

Readers are the users and groups with a permission: "user:EMAIL" and "group:EMAIL". If a file can
be found by search, a permission for a domain is for "group:DOMAIN", or for all principals if the
option domain names it, and a permission for anyone is for all principals. If it can be opened with
its link only, such a permission allows nobody.`,
		Options: []source.Option{
			{Name: "domain", Help: "domain whose users are all principals; empty: none"},
			{Name: "export", Default: "office", Help: "form of Google's documents: office or text"},
			{Name: "endpoint", Default: "https://www.googleapis.com", Help: "address of Google's interfaces"},
		},
		Hosts:       []string{"*.googleapis.com:443", "*.googleusercontent.com:443"},
		Credentials: []source.Credential{{Name: "service-account", Env: "GDRIVE_SERVICE_ACCOUNT", Help: "JSON key of a service account"}},
		Open:        open,
	}
}

type gdrive struct {
	client  *rest.Client
	drive   string // id of a shared drive; empty: what the user sees
	domain  string
	exports map[string]export
}

// An account is the key of a service account.
type account struct {
	Type         string
	PrivateKeyID string `json:"private_key_id"`
	PrivateKey   string `json:"private_key"`
	ClientEmail  string `json:"client_email"`
	TokenURI     string `json:"token_uri"`
}

func open(_ context.Context, c source.Config) (source.Source, error) {
	c = c.WithDefaults()
	s := &gdrive{domain: strings.ToLower(c.Options["domain"])}
	id, isDrive := strings.CutPrefix(c.Target, "drive:")
	user, isUser := strings.CutPrefix(c.Target, "user:")
	switch {
	case isDrive && id != "":
		s.drive, user = id, ""
	case !isUser || !strings.Contains(user, "@"):
		return nil, rest.Invalid(name, "%q is neither drive:SHARED-DRIVE-ID nor user:EMAIL", c.Target)
	}
	var ok bool
	if s.exports, ok = exports[c.Options["export"]]; !ok {
		return nil, rest.Invalid(name, "the option export is %q, not office or text", c.Options["export"])
	}
	text, err := rest.Required(name, c, "service-account")
	if err != nil {
		return nil, err
	}
	var key account
	if json.Unmarshal([]byte(text), &key) != nil || key.Type != "service_account" || key.ClientEmail == "" || key.TokenURI == "" {
		return nil, rest.Invalid(name, "the credential service-account is not the JSON key of a service account")
	}
	private, err := rest.ParseRSAKey(key.PrivateKey)
	if err != nil {
		return nil, rest.Invalid(name, "the credential service-account: %v", err)
	}
	issuer, err := rest.New(rest.Config{Name: name, Base: key.TokenURI, Settings: c})
	if err != nil {
		return nil, err
	}
	tokens := &rest.Tokens{Client: issuer, URL: key.TokenURI, Form: func(now time.Time) (url.Values, error) { return grant(key, private, user, now) }}
	s.client, err = rest.New(rest.Config{
		Name: name + " " + c.Target, Base: c.Options["endpoint"], Settings: c, Authorize: tokens.Authorize, Renew: tokens.Forget, Throttled: throttled,
	})
	return s, err
}

// grant returns the form that asks for an access token.
//
// Source: "Using OAuth 2.0 for Server to Server Applications", and RFC 7523.
func grant(key account, private *rsa.PrivateKey, user string, now time.Time) (url.Values, error) {
	claims := map[string]any{
		"iss": key.ClientEmail, "scope": "https://www.googleapis.com/auth/drive.readonly", "aud": key.TokenURI,
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	if user != "" && !strings.EqualFold(user, key.ClientEmail) {
		claims["sub"] = user
	}
	token, err := rest.SignJWT(private, key.PrivateKeyID, claims)
	return url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {token}}, err
}

// A failure is the body of an error.
type failure struct {
	Error struct {
		Errors []struct{ Reason string }
	}
}

// hasReason reports whether the body of an error has one of the reasons.
func hasReason(body []byte, reasons ...string) bool {
	var f failure
	if json.Unmarshal(body, &f) != nil {
		return false
	}
	for _, e := range f.Error.Errors {
		for _, r := range reasons {
			if e.Reason == r {
				return true
			}
		}
	}
	return false
}

// throttled reports whether a response asks to try again: Drive limits rates with the status 403.
//
// Source: "Resolve errors".
func throttled(status int, body []byte) bool {
	return status == http.StatusForbidden && hasReason(body, "rateLimitExceeded", "userRateLimitExceeded")
}

// Close implements source.Source.
func (s *gdrive) Close() error { return s.client.Close() }

const (
	permissionFields = "id,type,role,emailAddress,domain,allowFileDiscovery,deleted,expirationTime,view"
	fileFields       = "id,name,mimeType,sha256Checksum,md5Checksum,size,createdTime,modifiedTime,trashed,webViewLink,owners(displayName),lastModifyingUser(displayName)," +
		"capabilities(canDownload),permissions(" + permissionFields + ")"
)

// A file is a file or folder of Drive.
type file struct {
	ID, Name, MimeType          string
	Sha256Checksum, Md5Checksum string
	Size                        int64 `json:",string"`
	CreatedTime, ModifiedTime   string
	Trashed                     bool
	WebViewLink                 string
	Owners                      []struct{ DisplayName string }
	LastModifyingUser           struct{ DisplayName string }
	Capabilities                *struct{ CanDownload *bool }
	Permissions                 *[]permission
}

// scope returns a query with the parameters of shared drives.
func (s *gdrive) scope(more url.Values) url.Values {
	more.Set("supportsAllDrives", "true")
	more.Set("includeItemsFromAllDrives", "true")
	if s.drive != "" {
		more.Set("driveId", s.drive)
	}
	return more
}

// files lists all files.
func (s *gdrive) files(ctx context.Context) iter.Seq2[file, error] {
	return func(yield func(file, error) bool) {
		query := s.scope(url.Values{"q": {"trashed = false"}, "pageSize": {"1000"}, "orderBy": {"modifiedTime"}, "fields": {"nextPageToken,incompleteSearch,files(" + fileFields + ")"}})
		query.Set("corpora", "user")
		if s.drive != "" {
			query.Set("corpora", "drive")
		}
		pager := s.client.Pager()
		for {
			var page struct {
				NextPageToken    string
				IncompleteSearch bool
				Files            *[]file
			}
			err := s.client.Get(ctx, "/drive/v3/files", query, &page)
			switch {
			case err == nil && page.Files == nil:
				err = s.client.Malformed("a list without files")
			case err == nil && page.IncompleteSearch:
				err = s.client.Fail("the list of files is incomplete")
			}
			if err != nil {
				yield(file{}, err)
				return
			}
			for _, f := range *page.Files {
				if !yield(f, nil) {
					return
				}
			}
			if page.NextPageToken == "" {
				return
			}
			if err := pager.Next(page.NextPageToken, len(*page.Files)); err != nil {
				yield(file{}, err)
				return
			}
			query.Set("pageToken", page.NextPageToken)
		}
	}
}

// Changes implements source.Source.
func (s *gdrive) Changes(ctx context.Context, cursor string) iter.Seq2[source.Change, error] {
	return func(yield func(source.Change, error) bool) {
		if cursor != "" {
			s.since(ctx, cursor, yield)
			return
		}
		var start struct{ StartPageToken string }
		err := s.client.Get(ctx, "/drive/v3/changes/startPageToken", s.scope(url.Values{}), &start)
		if err == nil && start.StartPageToken == "" {
			err = s.client.Malformed("no token for changes")
		}
		if err != nil {
			yield(source.Change{}, err)
			return
		}
		for f, err := range s.files(ctx) {
			if err != nil {
				yield(source.Change{}, err)
				return
			}
			if item, ok, err := s.item(ctx, f); ok && (!yield(source.Change{Item: item}, err) || fatal(err)) {
				return
			}
		}
		yield(source.Change{Cursor: start.StartPageToken}, nil)
	}
}

// A change is an entry of the log of changes.
type change struct {
	ChangeType string
	Removed    bool
	FileID     string
	File       *file
}

// since yields the changes from a page token on.
func (s *gdrive) since(ctx context.Context, token string, yield func(source.Change, error) bool) {
	query := s.scope(url.Values{"pageSize": {"1000"}, "includeRemoved": {"true"},
		"fields": {"nextPageToken,newStartPageToken,changes(changeType,removed,fileId,file(" + fileFields + "))"}})
	pager := s.client.Pager()
	for {
		query.Set("pageToken", token)
		var page struct {
			NextPageToken, NewStartPageToken string
			Changes                          *[]change
		}
		err := s.client.Get(ctx, "/drive/v3/changes", query, &page)
		switch status := rest.Status(err); {
		case status == http.StatusBadRequest || rest.Gone(err):
			err = fmt.Errorf("%w: %w", err, source.ErrCursor)
		case err == nil && (page.Changes == nil || page.NextPageToken == "" && page.NewStartPageToken == ""):
			err = s.client.Malformed("a page of changes without changes or without a token")
		case err == nil && page.NextPageToken != "":
			err = pager.Next(page.NextPageToken, len(*page.Changes))
		}
		if err != nil {
			yield(source.Change{}, err)
			return
		}
		for _, c := range *page.Changes {
			if out, ok, err := s.change(ctx, c); ok && (!yield(out, err) || fatal(err)) {
				return
			}
		}
		token = cmp.Or(page.NextPageToken, page.NewStartPageToken)
		if !yield(source.Change{Cursor: token}, nil) || page.NextPageToken == "" {
			return
		}
	}
}

func fatal(err error) bool {
	_, skipped := source.AsSkip(err)
	return err != nil && !skipped
}

// change returns a change of a file. ok is false for folders and for drives.
func (s *gdrive) change(ctx context.Context, c change) (out source.Change, ok bool, err error) {
	if c.FileID == "" {
		return out, false, nil
	}
	if c.Removed || c.File == nil || c.File.Trashed {
		return source.Change{Item: source.Item{URI: uri(c.FileID)}, Deleted: true}, true, nil
	}
	out.Item, ok, err = s.item(ctx, *c.File)
	return out, ok, err
}

// Sweep implements source.Source.
func (s *gdrive) Sweep(ctx context.Context) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		seen := map[string]bool{}
		for f, err := range s.files(ctx) {
			if err != nil {
				yield(source.Item{}, err)
				return
			}
			if seen[f.ID] {
				continue
			}
			seen[f.ID] = true
			if item, ok, err := s.item(ctx, f); ok && (!yield(item, err) || fatal(err)) {
				return
			}
		}
	}
}

// uri returns the address of a file, which stays the same if it is renamed or moved.
func uri(id string) string { return "https://drive.google.com/open?id=" + url.QueryEscape(id) }

// A ref is what Fetch needs.
type ref struct {
	ID     string `json:"id"`
	Export string `json:"export,omitempty"` // media type
}

const native = "application/vnd.google-apps."

// item returns a file. ok is false for folders and shortcuts.
func (s *gdrive) item(ctx context.Context, f file) (item source.Item, ok bool, err error) {
	if f.ID == "" {
		return item, true, s.client.Malformed("a file without an id")
	}
	if f.MimeType == native+"folder" || f.MimeType == native+"shortcut" {
		return item, false, nil
	}
	item = source.Item{URI: uri(f.ID), Name: rest.FileName(f.Name, ""), Type: f.MimeType, Size: max(f.Size, 0), Metadata: metadata(f)}
	item.Version = cmp.Or(f.Sha256Checksum, f.Md5Checksum)
	r := ref{ID: f.ID}
	if strings.HasPrefix(f.MimeType, native) {
		e, known := s.exports[strings.TrimPrefix(f.MimeType, native)]
		if !known {
			return item, true, &source.Skip{URI: item.URI, Reason: source.Unsupported, Detail: "Google exports no text of " + f.MimeType}
		}
		r.Export = e.media
		item.Name, item.Type, item.Size, item.Version = rest.FileName(f.Name, e.extension), e.media, 0, cmp.Or(f.ModifiedTime, item.Version)
	}
	item.Ref = rest.Ref(r)
	if f.Capabilities != nil && f.Capabilities.CanDownload != nil && !*f.Capabilities.CanDownload {
		return source.Item{}, true, &source.Skip{URI: item.URI, Reason: source.Excluded, Detail: "its download is disabled"}
	}
	if err := s.client.TooLarge(item.URI, item.Size); err != nil {
		return source.Item{}, true, err
	}
	item.ACL, err = s.acl(ctx, f)
	switch status := rest.Status(err); {
	case status == http.StatusNotFound:
		return source.Item{}, false, nil // deleted since the list was made
	case status == http.StatusForbidden:
		return source.Item{}, true, rest.NoACL(item.URI, err.Error(), err)
	case err != nil:
		return source.Item{}, true, err
	}
	return item, true, nil
}

func metadata(f file) assay.Metadata {
	author := f.LastModifyingUser.DisplayName
	if len(f.Owners) > 0 {
		author = cmp.Or(f.Owners[0].DisplayName, author)
	}
	m := rest.Metadata{}.Text(assay.MetaAuthor, author).Text("url", f.WebViewLink)
	m.Time(assay.MetaCreated, rest.ParseTime(f.CreatedTime)).Time(assay.MetaModified, rest.ParseTime(f.ModifiedTime))
	return assay.Metadata(m)
}

// An export is a form in which Google returns a document of its own.
type export struct{ media, extension string }

const (
	officeMedia = "application/vnd.openxmlformats-officedocument."
	drawing     = "application/pdf"
)

// exports are the forms by the option "export" and the type of document.
//
// Source: "Export MIME types for Google Workspace documents". A sheet is exported as xlsx as text
// too, since CSV has only the first sheet.
var exports = map[string]map[string]export{
	"office": {
		"document":     {officeMedia + "wordprocessingml.document", ".docx"},
		"spreadsheet":  {officeMedia + "spreadsheetml.sheet", ".xlsx"},
		"presentation": {officeMedia + "presentationml.presentation", ".pptx"},
		"drawing":      {drawing, ".pdf"},
	},
	"text": {
		"document":     {"text/markdown", ".md"},
		"spreadsheet":  {officeMedia + "spreadsheetml.sheet", ".xlsx"},
		"presentation": {"text/plain", ".txt"},
		"drawing":      {drawing, ".pdf"},
	},
}

// Fetch implements source.Source.
func (s *gdrive) Fetch(ctx context.Context, item source.Item) (source.Content, error) {
	var r ref
	if err := rest.Unref(item, &r); err != nil {
		return source.Content{}, err
	}
	began := s.client.Now()
	path, query := "/drive/v3/files/"+url.PathEscape(r.ID), url.Values{"alt": {"media"}, "supportsAllDrives": {"true"}}
	if r.Export != "" {
		path, query = path+"/export", url.Values{"mimeType": {r.Export}}
	}
	got, err := s.client.Download(ctx, path, query)
	if err != nil {
		return source.Content{}, skipped(item.URI, err)
	}
	return source.Content{Data: got.Data, Read: began}, nil
}

// skipped returns the skip for an error of a download.
func skipped(uri string, err error) error {
	err = rest.Skipped(uri, err)
	skip, ok := source.AsSkip(err)
	if !ok {
		return err
	}
	if body := rest.Body(err); hasReason(body, "exportSizeLimitExceeded") {
		skip.Reason, skip.Detail = source.TooLarge, "its export is larger than Google allows"
	}
	return skip
}
