// Package sharepoint reads the files of SharePoint libraries and of OneDrive with Microsoft Graph.
//
// Each drive is read with its delta query, which reports additions, changes and deletions. A cursor
// holds the link with which each drive continues. Changes of permissions that a file inherits are
// not reported for the file, so that they need a sweep.
//
// Sources: "driveItem: delta", "List permissions", "Permission resource", "Sharing link resource"
// and "Throttling" of Microsoft Graph v1.0 (2025); "Client credentials flow" of the Microsoft
// identity platform.
package sharepoint

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/internal/rest"
)

const name = "sharepoint"

// Kind returns the kind of source.
func Kind() source.Kind {
	return source.Kind{
		Name:   name,
		Short:  "files of SharePoint libraries and OneDrive",
		Target: "(https://TENANT.sharepoint.com/sites/SITE|onedrive:USER|drive:ID)",
		Help: `Reads the files in all libraries of a site, in the OneDrive of a user or in one drive. OneNote
notebooks are skipped.

Needs an application of Microsoft Entra with a client secret and the application permission
Sites.Read.All (or Sites.Selected with access to the site) or Files.Read.All.

Readers are users and groups with a permission for the file or above it: "user:EMAIL" ("user:ID"
without an e-mail address), "group:OBJECT-ID" for groups of Entra, "group:sharepoint:DRIVE-ID:ID"
for groups of the site, whose members Graph does not list. "Everyone" and "Everyone except external
users" are all principals. A sharing link allows the users it was sent to; links for the
organisation or for anyone allow nobody, since only those who have the link can use it.`,
		Options: []source.Option{
			{Name: "tenant", Help: "id or domain of the tenant"},
			{Name: "client-id", Help: "id of the application"},
			{Name: "endpoint", Default: "https://graph.microsoft.com", Help: "address of Microsoft Graph, for national clouds"},
			{Name: "login", Default: "https://login.microsoftonline.com", Help: "address that issues access tokens"},
		},
		Hosts:       []string{"*.sharepoint.com:443", "*.sharepoint.us:443", "*.sharepoint-mil.us:443", "*.sharepoint.cn:443", "*.svc.ms:443"},
		Credentials: []source.Credential{{Name: "client-secret", Env: "SHAREPOINT_CLIENT_SECRET", Help: "secret of the application"}},
		Open:        open,
	}
}

type sharepoint struct {
	client   *rest.Client
	endpoint string
	find     string // path of the drive or of the list of drives
	several  bool   // find is a list
}

func open(_ context.Context, c source.Config) (source.Source, error) {
	c = c.WithDefaults()
	s := &sharepoint{endpoint: strings.TrimRight(c.Options["endpoint"], "/")}
	if err := s.locate(c.Target); err != nil {
		return nil, err
	}
	tenant, client := c.Options["tenant"], c.Options["client-id"]
	if tenant == "" || client == "" {
		return nil, rest.Invalid(name, "the options tenant and client-id are needed")
	}
	secret, err := rest.Required(name, c, "client-secret")
	if err != nil {
		return nil, err
	}
	login, err := rest.New(rest.Config{Name: name, Base: c.Options["login"], Settings: c, Secrets: []string{secret}})
	if err != nil {
		return nil, err
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {client}, "client_secret": {secret}, "scope": {s.endpoint + "/.default"}}
	tokens := &rest.Tokens{
		Client: login, URL: "/" + url.PathEscape(tenant) + "/oauth2/v2.0/token",
		Form: func(time.Time) (url.Values, error) { return form, nil },
	}
	const bandwidthExceeded = 509 // "Microsoft Graph error responses"
	s.client, err = rest.New(rest.Config{
		Name: name + " " + c.Target, Base: s.endpoint, Settings: c, Secrets: []string{secret},
		Authorize: tokens.Authorize, Renew: tokens.Forget,
		Throttled: func(status int, _ []byte) bool { return status == bandwidthExceeded },
	})
	return s, err
}

// locate reads the target.
func (s *sharepoint) locate(target string) error {
	if id, ok := strings.CutPrefix(target, "drive:"); ok && id != "" {
		s.find = "/v1.0/drives/" + url.PathEscape(id)
		return nil
	}
	if user, ok := strings.CutPrefix(target, "onedrive:"); ok && user != "" {
		s.find = "/v1.0/users/" + url.PathEscape(user) + "/drive"
		return nil
	}
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
		return rest.Invalid(name, "%q is neither the address of a site, onedrive:USER nor drive:DRIVE-ID", target)
	}
	s.several = true
	s.find = "/v1.0/sites/" + u.Host + ":" + strings.TrimRight(u.EscapedPath(), "/") + ":/drives"
	if strings.Trim(u.Path, "/") == "" {
		s.find = "/v1.0/sites/" + u.Host + "/drives"
	}
	return nil
}

// Close implements source.Source.
func (s *sharepoint) Close() error { return s.client.Close() }

// A page is a page of a list of Graph.
type page[T any] struct {
	Value     *[]T
	NextLink  string `json:"@odata.nextLink"`
	DeltaLink string `json:"@odata.deltaLink"`
}

// drives returns the ids of the drives, sorted.
func (s *sharepoint) drives(ctx context.Context) ([]string, error) {
	type drive struct{ ID string }
	var ids []string
	if !s.several {
		var d drive
		if err := s.client.Get(ctx, s.find, nil, &d); err != nil {
			return nil, err
		}
		if d.ID == "" {
			return nil, s.client.Malformed("a drive without an id")
		}
		return []string{d.ID}, nil
	}
	found, err := all[drive](ctx, s, s.find)
	if err != nil {
		return nil, err
	}
	for _, d := range found {
		if d.ID == "" {
			return nil, s.client.Malformed("a drive without an id")
		}
		ids = append(ids, d.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// all reads a whole list.
func all[T any](ctx context.Context, s *sharepoint, link string) ([]T, error) {
	var members []T
	pager := s.client.Pager()
	for {
		var p page[T]
		if err := s.client.Get(ctx, link, nil, &p); err != nil {
			return nil, err
		}
		if p.Value == nil {
			return nil, s.client.Malformed("a list without members")
		}
		members = append(members, *p.Value...)
		if p.NextLink == "" {
			return members, nil
		}
		if err := pager.Next(p.NextLink, len(*p.Value)); err != nil {
			return nil, err
		}
		link = p.NextLink
	}
}

// A driveItem is a file or folder.
type driveItem struct {
	ID      string
	Name    string
	Size    int64
	CTag    string
	ETag    string
	WebURL  string
	Deleted *struct{}
	File    *struct {
		MimeType string
		Hashes   struct{ QuickXorHash, Sha256Hash, Sha1Hash string }
	}
	Package              *struct{ Type string }
	Malware              *struct{}
	CreatedBy            struct{ User struct{ DisplayName string } }
	CreatedDateTime      string
	LastModifiedDateTime string
	ParentReference      struct{ Path string }
}

// position is where the listing of each drive continues: its next or delta link.
type position map[string]string

func (s *sharepoint) position(cursor string) (position, error) {
	p := position{}
	if cursor == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(cursor), &p); err != nil {
		return nil, fmt.Errorf("%s: %w", name, source.ErrCursor)
	}
	for _, link := range p {
		if _, err := s.client.Address(link, nil); err != nil {
			return nil, fmt.Errorf("%s: %w", name, source.ErrCursor)
		}
	}
	return p, nil
}

func (p position) cursor() string { return rest.Ref(p) }

// delta yields the pages of a drive's delta query from a link, or from the beginning. The last page
// has a DeltaLink.
func (s *sharepoint) delta(ctx context.Context, drive, link string) iter.Seq2[page[driveItem], error] {
	return func(yield func(page[driveItem], error) bool) {
		if link == "" {
			link = "/v1.0/drives/" + url.PathEscape(drive) + "/root/delta?$top=200"
		}
		pager := s.client.Pager()
		for {
			var p page[driveItem]
			err := s.client.Get(ctx, link, nil, &p)
			switch {
			case rest.Status(err) == http.StatusGone:
				err = fmt.Errorf("%w: %w", err, source.ErrCursor)
			case err == nil && (p.Value == nil || p.NextLink == "" && p.DeltaLink == ""):
				err = s.client.Malformed("a page of changes without items or without a link")
			case err == nil && p.NextLink != "":
				link = p.NextLink
				err = pager.Next(link, len(*p.Value))
			}
			if !yield(p, err) || err != nil || p.NextLink == "" {
				return
			}
		}
	}
}

// Changes implements source.Source.
func (s *sharepoint) Changes(ctx context.Context, cursor string) iter.Seq2[source.Change, error] {
	return func(yield func(source.Change, error) bool) {
		at, err := s.position(cursor)
		if err != nil {
			yield(source.Change{}, err)
			return
		}
		drives, err := s.drives(ctx)
		if err != nil {
			yield(source.Change{}, err)
			return
		}
		next := position{}
		for _, drive := range drives {
			if link := at[drive]; link != "" {
				next[drive] = link
			}
		}
		for _, drive := range drives {
			if !s.driveChanges(ctx, drive, next, yield) {
				return
			}
		}
		yield(source.Change{Cursor: next.cursor()}, nil)
	}
}

// driveChanges yields the changes of one drive. It reports whether the iteration continues.
func (s *sharepoint) driveChanges(ctx context.Context, drive string, next position, yield func(source.Change, error) bool) bool {
	for p, err := range s.delta(ctx, drive, next[drive]) {
		if err != nil {
			yield(source.Change{}, err)
			return false
		}
		access, err := s.batched(ctx, drive, *p.Value)
		if err != nil {
			yield(source.Change{}, err)
			return false
		}
		for _, found := range *p.Value {
			change, ok, err := s.change(ctx, access, found)
			if !ok {
				continue
			}
			if !yield(change, err) || fatal(err) {
				return false
			}
		}
		next[drive] = p.NextLink + p.DeltaLink
		if !yield(source.Change{Cursor: next.cursor()}, nil) {
			return false
		}
	}
	return true
}

func fatal(err error) bool {
	_, skipped := source.AsSkip(err)
	return err != nil && !skipped
}

// change returns a changed item. ok is false for folders.
func (s *sharepoint) change(ctx context.Context, access *lister, d driveItem) (c source.Change, ok bool, err error) {
	if d.Deleted != nil {
		return source.Change{Item: source.Item{URI: s.uri(access.drive, d.ID)}, Deleted: true}, true, nil
	}
	c.Item, ok, err = s.item(ctx, access, d)
	return c, ok, err
}

// Sweep implements source.Source.
func (s *sharepoint) Sweep(ctx context.Context) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		drives, err := s.drives(ctx)
		if err != nil {
			yield(source.Item{}, err)
			return
		}
		for _, drive := range drives {
			if !s.sweepDrive(ctx, drive, yield) {
				return
			}
		}
	}
}

// sweepDrive yields the files of one drive. An item that the query repeats is yielded once.
func (s *sharepoint) sweepDrive(ctx context.Context, drive string, yield func(source.Item, error) bool) bool {
	seen := map[string]bool{}
	for p, err := range s.delta(ctx, drive, "") {
		if err != nil {
			yield(source.Item{}, err)
			return false
		}
		access, err := s.batched(ctx, drive, *p.Value)
		if err != nil {
			yield(source.Item{}, err)
			return false
		}
		for _, found := range *p.Value {
			if found.Deleted != nil || seen[found.ID] {
				continue
			}
			seen[found.ID] = true
			item, ok, err := s.item(ctx, access, found)
			if !ok {
				continue
			}
			if !yield(item, err) || fatal(err) {
				return false
			}
		}
	}
	return true
}

// A ref is what Fetch needs.
type ref struct {
	Drive string `json:"drive"`
	ID    string `json:"id"`
}

// uri returns the address of an item in Graph, which stays the same if the item is renamed or
// moved, and which a deleted item has too.
func (s *sharepoint) uri(drive, id string) string {
	return s.endpoint + itemPath(drive, id)
}

func itemPath(drive, id string) string {
	return "/v1.0/drives/" + url.PathEscape(drive) + "/items/" + url.PathEscape(id)
}

// item returns a file. ok is false for folders.
func (s *sharepoint) item(ctx context.Context, access *lister, d driveItem) (item source.Item, ok bool, err error) {
	uri := s.uri(access.drive, d.ID)
	switch {
	case d.ID == "":
		return source.Item{}, true, s.client.Malformed("an item without an id")
	case d.Package != nil:
		return source.Item{}, true, &source.Skip{URI: uri, Reason: source.Unsupported, Detail: "a package, such as a notebook"}
	case d.File == nil:
		return source.Item{}, false, nil
	case d.Malware != nil:
		return source.Item{}, true, &source.Skip{URI: uri, Reason: source.Excluded, Detail: "the service found malware in it"}
	}
	if err := s.client.TooLarge(uri, d.Size); err != nil {
		return source.Item{}, true, err
	}
	item = source.Item{
		URI: uri, Name: rest.FileName(d.Name, ""), Type: d.File.MimeType, Version: version(d), Size: max(d.Size, 0),
		Metadata: metadata(d), Ref: rest.Ref(ref{access.drive, d.ID}),
	}
	item.ACL, err = access.acl(ctx, d.ID)
	switch status := rest.Status(err); {
	case status == http.StatusNotFound:
		return source.Item{}, false, nil // deleted since the list was made
	case err != nil && status == http.StatusForbidden:
		return source.Item{}, true, rest.NoACL(uri, err.Error(), err)
	case err != nil:
		return source.Item{}, true, err
	}
	return item, true, nil
}

// version returns a name of the content: a hash, or the tag that changes with the content.
func version(d driveItem) string {
	h := d.File.Hashes
	for _, v := range []string{h.QuickXorHash, h.Sha256Hash, h.Sha1Hash, d.CTag, d.ETag} {
		if v != "" {
			return v
		}
	}
	return ""
}

func metadata(d driveItem) assay.Metadata {
	m := rest.Metadata{}.Text(assay.MetaAuthor, d.CreatedBy.User.DisplayName).Text("url", d.WebURL)
	m.Time(assay.MetaCreated, rest.ParseTime(d.CreatedDateTime)).Time(assay.MetaModified, rest.ParseTime(d.LastModifiedDateTime))
	if _, path, ok := strings.Cut(d.ParentReference.Path, "root:/"); ok {
		if plain, err := url.PathUnescape(path); err == nil {
			m.Strings(assay.MetaPath, strings.Split(plain, "/"))
		}
	}
	return assay.Metadata(m)
}

// Fetch implements source.Source. The content is at an address on another host, which gets no
// credentials.
func (s *sharepoint) Fetch(ctx context.Context, item source.Item) (source.Content, error) {
	var r ref
	if err := rest.Unref(item, &r); err != nil {
		return source.Content{}, err
	}
	began := s.client.Now()
	got, err := s.client.Download(ctx, itemPath(r.Drive, r.ID)+"/content", nil)
	if err != nil {
		return source.Content{}, rest.Skipped(item.URI, err)
	}
	return source.Content{Data: got.Data, Read: began}, nil
}
