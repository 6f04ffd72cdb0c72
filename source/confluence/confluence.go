// Package confluence reads the pages, blog posts, comments and attachments of Confluence Cloud and
// Confluence Data Center.
//
// The content is listed with CQL, which states the restrictions and ancestors of each page; version
// 2 of the cloud's interface has neither. The readers of spaces come from version 2 in the cloud,
// and from "Space Permissions" in Data Center (9.1 or later).
//
// A page can be read by those who may read its space and meet the restrictions of the page and of
// all its ancestors. Attachments and comments have the readers of their page. Confluence reports no
// deletions, and changes of restrictions leave pages unchanged, so that both need a sweep.
//
// Sources: "The Confluence Cloud REST API" v1 and v2, "Advanced searching using CQL" and "Confluence
// Storage Format" of Atlassian (2025); "Confluence Data Center REST API" 9.1 to 10.0.
package confluence

import (
	"cmp"
	"context"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/internal/atlassian"
	"github.com/assay-rag/assay/source/internal/rest"
)

const name = "confluence"

// Values of the option "deployment".
const (
	deploymentAuto       = "auto"
	deploymentCloud      = "cloud"
	deploymentDataCenter = "datacenter"
)

// Kind returns the kind of source.
func Kind() source.Kind {
	return source.Kind{
		Name:   name,
		Short:  "pages, comments and attachments of Confluence Cloud or Data Center",
		Target: "https://(SITE.atlassian.net/wiki|HOST[/CONTEXT])",
		Help: `Reads pages, blog posts, comments and attachments of the spaces that the account may view. A
comment is a document of its own.

Cloud: an API token and the e-mail address of its account. Data Center 9.1 or later: a personal
access token. The account must be allowed to view the spaces, their permissions and the members of
groups.

Readers are those who may view the space and meet the view restrictions of the page and of all its
ancestors. Users are "user:EMAIL", or "user:ACCOUNT-ID" if the e-mail address is not visible to the
account ("user:USERNAME" in Data Center); groups are "group:GROUP-ID" ("group:NAME" in Data Center).
A space that anonymous users may view is open to all principals.`,
		Options: []source.Option{
			{Name: "spaces", Help: "keys of the spaces, separated by commas; empty: all"},
			{Name: "deployment", Default: deploymentAuto, Help: "cloud, datacenter, or auto: cloud for hosts below atlassian.net"},
			source.AllowPrivateOption,
		},
		Hosts:       []string{"api.media.atlassian.com:443"},
		Credentials: atlassian.Credentials,
		Open:        open,
	}
}

type confluence struct {
	client *rest.Client
	base   string // address without a slash at the end
	path   string // of base
	cloud  bool
	spaces []string
	names  sync.Map // display names by user
}

func open(_ context.Context, c source.Config) (source.Source, error) {
	c = c.WithDefaults()
	base := strings.TrimRight(c.Target, "/")
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, rest.Invalid(name, "%q is no address of a Confluence", c.Target)
	}
	s := &confluence{base: base, path: u.Path, spaces: rest.List(c.Options["spaces"])}
	switch c.Options["deployment"] {
	case deploymentAuto:
		s.cloud = strings.HasSuffix(u.Hostname(), ".atlassian.net")
	case deploymentCloud:
		s.cloud = true
	case deploymentDataCenter:
	default:
		return nil, rest.Invalid(name, "the option deployment is %q, not auto, cloud or datacenter", c.Options["deployment"])
	}
	if s.cloud && u.Path == "" {
		s.base, s.path = base+"/wiki", "/wiki"
	}
	for _, key := range s.spaces {
		if strings.ContainsAny(key, "\"\\") {
			return nil, rest.Invalid(name, "%q is no key of a space", key)
		}
	}
	set, secrets, err := atlassian.Authorize(name, c)
	if err != nil {
		return nil, err
	}
	s.client, err = rest.New(rest.Config{Name: name + " " + u.Host, Base: s.base, Settings: c, Authorize: set, Secrets: secrets})
	return s, err
}

// Close implements source.Source.
func (s *confluence) Close() error { return s.client.Close() }

// A content is a page, a blog post, a comment or an attachment.
type content struct {
	ID        string
	Type      string
	Title     string
	Space     struct{ Key string }
	Version   version
	History   struct{ CreatedDate string }
	Ancestors []struct{ ID string }
	Container *struct {
		ID    string
		Title string
	}
	Restrictions *struct {
		Read struct{ Restrictions *restrictions }
	}
	Metadata struct {
		Labels struct{ Results []struct{ Name string } }
	}
	Extensions struct {
		MediaType string
		FileSize  int64
	}
	Links struct{ Download string } `json:"_links"`
	Body  struct{ Storage struct{ Value *string } }
}

type version struct {
	Number int64
	When   string
	By     struct{ DisplayName string }
}

// A list is a page of a list.
type list[T any] struct {
	Results []T
	Links   struct{ Next string } `json:"_links"`
}

// each yields the members of a list. Links to the next page are relative to the host in version 2
// and to the context in version 1.
func each[T any](ctx context.Context, s *confluence, ref string, query url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		pager := s.client.Pager()
		for ref != "" {
			var page list[T]
			if err := s.client.Get(ctx, ref, query, &page); err != nil {
				yield(none, err)
				return
			}
			for _, member := range page.Results {
				if !yield(member, nil) {
					return
				}
			}
			ref, query = s.link(page.Links.Next), nil
			if ref == "" {
				return
			}
			if err := pager.Next(ref, len(page.Results)); err != nil {
				yield(none, err)
				return
			}
		}
	}
}

// link returns the address of a link in a reply.
func (s *confluence) link(ref string) string {
	if strings.HasPrefix(ref, "/") && !strings.HasPrefix(ref, "//") && !strings.HasPrefix(ref, s.path+"/") {
		return s.path + ref
	}
	return ref
}

// api returns the path of a resource of version 1.
func (s *confluence) api(parts ...string) string {
	p := s.path + "/rest/api"
	for _, part := range parts {
		p += "/" + url.PathEscape(part)
	}
	return p
}

const expansions = "version,space,ancestors,container,history,metadata.labels,restrictions.read.restrictions.user,restrictions.read.restrictions.group"

// contents lists the content that was modified since a time, the oldest first.
func (s *confluence) contents(ctx context.Context, since time.Time) iter.Seq2[content, error] {
	cql := "type in (page, blogpost, comment, attachment)"
	if len(s.spaces) > 0 {
		cql += ` and space in ("` + strings.Join(s.spaces, `", "`) + `")`
	}
	if !since.IsZero() {
		cql += ` and lastmodified >= "` + since.UTC().Format("2006-01-02 15:04") + `"`
	}
	cql += " order by lastmodified asc"
	return each[content](ctx, s, s.api("content", "search"), url.Values{"cql": {cql}, "limit": {"100"}, "expand": {expansions}})
}

// Changes implements source.Source. It yields no deletions.
func (s *confluence) Changes(ctx context.Context, cursor string) iter.Seq2[source.Change, error] {
	return func(yield func(source.Change, error) bool) {
		feed, err := rest.NewFeed(name, cursor)
		if err != nil {
			yield(source.Change{}, err)
			return
		}
		access := s.newAccess()
		for found, err := range s.contents(ctx, feed.Since()) {
			if err != nil {
				yield(source.Change{}, err)
				return
			}
			modified := rest.ParseTime(found.Version.When)
			if feed.Old(modified) {
				continue
			}
			change := source.Change{Cursor: feed.Cursor(modified)}
			change.Item, err = s.item(ctx, access, found)
			if !yield(change, err) || fatal(err) {
				return
			}
		}
		yield(source.Change{Cursor: feed.End()}, nil)
	}
}

// Sweep implements source.Source. Content that is modified meanwhile is listed twice and yielded
// once.
func (s *confluence) Sweep(ctx context.Context) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		access := s.newAccess()
		seen := map[string]bool{}
		for found, err := range s.contents(ctx, time.Time{}) {
			if err != nil {
				yield(source.Item{}, err)
				return
			}
			if seen[found.ID] {
				continue
			}
			seen[found.ID] = true
			item, err := s.item(ctx, access, found)
			if !yield(item, err) || fatal(err) {
				return
			}
		}
	}
}

func fatal(err error) bool {
	_, skipped := source.AsSkip(err)
	return err != nil && !skipped
}

// A ref is what Fetch needs.
type ref struct {
	ID       string `json:"id"`
	Page     string `json:"page,omitempty"`     // of an attachment
	Download string `json:"download,omitempty"` // of an attachment
}

// item returns a content as an item. The error is a *source.Skip, or ends the list.
func (s *confluence) item(ctx context.Context, access *access, c content) (source.Item, error) {
	page := c.ID
	if c.Container != nil && (c.Type == "attachment" || c.Type == "comment") {
		page = c.Container.ID
	}
	item := source.Item{
		URI:      s.uri(c, page),
		Version:  strconv.FormatInt(c.Version.Number, 10) + "@" + c.Version.When,
		Metadata: metadata(c),
	}
	if c.ID == "" {
		return source.Item{}, s.client.Malformed("a content without an id")
	}
	switch c.Type {
	case "page", "blogpost":
		item.Name, item.Type = rest.FileName(c.Title, ".html"), "text/html"
		item.Ref = rest.Ref(ref{ID: c.ID})
	case "comment":
		item.Name, item.Type = rest.FileName(c.Title, ".html"), "text/html"
		item.Ref = rest.Ref(ref{ID: c.ID})
	case "attachment":
		item.Name, item.Type, item.Size = rest.FileName(c.Title, ""), c.Extensions.MediaType, max(c.Extensions.FileSize, 0)
		item.Ref = rest.Ref(ref{ID: c.ID, Page: page, Download: c.Links.Download})
		if err := s.client.TooLarge(item.URI, item.Size); err != nil {
			return source.Item{}, err
		}
	default:
		return source.Item{}, &source.Skip{URI: item.URI, Reason: source.Unsupported, Detail: "content of the type " + strconv.Quote(c.Type)}
	}
	if page == c.ID && (c.Type == "attachment" || c.Type == "comment") {
		return source.Item{}, rest.NoACL(item.URI, "its page is not stated", nil)
	}
	acl, err := access.acl(ctx, c, page)
	if err != nil {
		return source.Item{}, unreadable(item.URI, err)
	}
	item.ACL = acl
	return item, nil
}

// unreadable returns the skip of an item whose permissions may not be read, and other errors
// unchanged.
func unreadable(uri string, err error) error {
	if atlassian.Denied(err) {
		return rest.NoACL(uri, err.Error(), err)
	}
	return err
}

// uri returns the address of a content, which stays the same if it is renamed or moved.
func (s *confluence) uri(c content, page string) string {
	address := s.base + "/pages/viewpage.action?pageId=" + url.QueryEscape(page)
	switch c.Type {
	case "attachment":
		return address + "&preview=" + url.QueryEscape("/"+page+"/"+c.ID)
	case "comment":
		return address + "&focusedCommentId=" + url.QueryEscape(c.ID)
	}
	return address
}

func metadata(c content) assay.Metadata {
	m := rest.Metadata{}.Text(assay.MetaTitle, c.Title).Text(assay.MetaAuthor, c.Version.By.DisplayName).Text("space", c.Space.Key)
	m.Time(assay.MetaCreated, rest.ParseTime(c.History.CreatedDate)).Time(assay.MetaModified, rest.ParseTime(c.Version.When))
	labels := []string{}
	for _, l := range c.Metadata.Labels.Results {
		labels = append(labels, l.Name)
	}
	return assay.Metadata(m.Strings("labels", labels))
}

// Fetch implements source.Source. A page or comment is HTML.
func (s *confluence) Fetch(ctx context.Context, item source.Item) (source.Content, error) {
	var r ref
	if err := rest.Unref(item, &r); err != nil {
		return source.Content{}, err
	}
	began := s.client.Now()
	if r.Page != "" {
		address := s.link(r.Download)
		if s.cloud {
			address = s.api("content", r.Page, "child", "attachment", r.ID, "download")
		}
		got, err := s.client.Download(ctx, address, nil)
		if err != nil {
			return source.Content{}, rest.Skipped(item.URI, err)
		}
		return source.Content{Data: got.Data, Read: began}, nil
	}
	var c content
	if err := s.client.Get(ctx, s.api("content", r.ID), url.Values{"expand": {"body.storage,version"}}, &c); err != nil {
		return source.Content{}, rest.Skipped(item.URI, err)
	}
	if c.Body.Storage.Value == nil {
		return source.Content{}, rest.Skipped(item.URI, s.client.Malformed("a page without a body"))
	}
	users := func(id string) (string, error) { return s.userName(ctx, id) }
	data, err := storageHTML(c.Title, *c.Body.Storage.Value, users)
	if err != nil {
		return source.Content{}, rest.Skipped(item.URI, err)
	}
	if int64(len(data)) > s.client.MaxBytes() {
		return source.Content{}, s.client.TooLarge(item.URI, int64(len(data)))
	}
	return source.Content{Data: data, Modified: rest.ParseTime(c.Version.When), Read: began}, nil
}

// userName returns the name of a user who is mentioned, or the id if the name cannot be read.
func (s *confluence) userName(ctx context.Context, id string) (string, error) {
	if name, ok := s.names.Load(id); ok {
		return name.(string), nil
	}
	parameter := "key"
	if s.cloud {
		parameter = "accountId"
	}
	var user struct{ DisplayName string }
	err := s.client.Get(ctx, s.api("user"), url.Values{parameter: {id}}, &user)
	if err != nil && !atlassian.Denied(err) {
		return "", err
	}
	shown := cmp.Or(user.DisplayName, id)
	s.names.Store(id, shown)
	return shown, nil
}
