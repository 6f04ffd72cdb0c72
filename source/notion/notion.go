// Package notion reads the pages and database rows of Notion that are shared with an integration,
// and the files in them.
//
// Pages are found by searching, by the time of their last edit. The interface states neither
// permissions nor deletions: the readers are an option, and deletions need a sweep. Notion rounds
// the time of the last edit to the minute, so that the version of a page that was edited in the last
// minutes is not known.
//
// Sources: "Notion API" with Notion-Version 2022-06-28 (2025): Search, Page, Page properties, Block,
// Rich text, File, Request limits and Status codes.
package notion

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/internal/rest"
)

const name = "notion"

// recent is the age up to which an edit may be followed by another with the same time.
const recent = 10 * time.Minute

// Kind returns the kind of source.
func Kind() source.Kind {
	return source.Kind{
		Name:   name,
		Short:  "pages, rows of databases and files of Notion",
		Target: "notion:WORKSPACE",
		Help: `Reads the pages that are shared with an integration, with their properties. A row of a database is a
page. The files in pages and properties are documents of their own; finding them reads every page in
each sync, unless --set files=false.

The name of the workspace is only a label. Needs the secret of an internal integration with the
capability to read content. Share the pages and databases with it.

Notion does not state who may read a page. The option readers is therefore needed: all documents of
the source are for these principals, such as user:ann@example.com,group:staff or * for all.`,
		Options: []source.Option{
			{Name: "readers", Help: "principals who may read all documents, separated by commas"},
			{Name: "files", Default: "true", Help: "false: without files"},
			{Name: "endpoint", Default: "https://api.notion.com", Help: "address of the interface"},
		},
		Hosts:       []string{"prod-files-secure.s3.us-west-2.amazonaws.com:443", "s3.us-west-2.amazonaws.com:443", "file.notion.so:443"},
		Credentials: []source.Credential{{Name: "token", Env: "NOTION_TOKEN", Help: "secret of the integration"}},
		Open:        open,
	}
}

type notion struct {
	client *rest.Client
	acl    assay.ACL
	files  bool
}

func open(_ context.Context, c source.Config) (source.Source, error) {
	c = c.WithDefaults()
	if workspace, ok := strings.CutPrefix(c.Target, "notion:"); !ok || workspace == "" {
		return nil, rest.Invalid(name, "the target %q is not notion:WORKSPACE", c.Target)
	}
	readers := rest.List(c.Options["readers"])
	if len(readers) == 0 {
		return nil, rest.Invalid(name, "the option readers is needed, because Notion does not state who may read a page")
	}
	acl, err := assay.RestrictTo(readers...)
	if err != nil {
		return nil, fmt.Errorf("%s: the option readers: %w", name, err)
	}
	s := &notion{acl: acl}
	if s.files, err = rest.Bool(name, c, "files"); err != nil {
		return nil, err
	}
	token, err := rest.Required(name, c, "token")
	if err != nil {
		return nil, err
	}
	s.client, err = rest.New(rest.Config{
		Name: c.Target, Base: c.Options["endpoint"], Settings: c, Secrets: []string{token},
		Headers: map[string]string{"Notion-Version": "2022-06-28"},
		Authorize: func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+token)
			return nil
		},
		// "conflict_error": try again.
		Throttled: func(status int, _ []byte) bool { return status == http.StatusConflict },
	})
	return s, err
}

// Close implements source.Source.
func (s *notion) Close() error { return s.client.Close() }

// A page is a page or a row of a database.
type page struct {
	Object         string
	ID             string
	CreatedTime    string                `json:"created_time"`
	LastEditedTime string                `json:"last_edited_time"`
	CreatedBy      struct{ Name string } `json:"created_by"`
	Archived       bool
	InTrash        bool `json:"in_trash"`
	Parent         struct {
		DatabaseID string `json:"database_id"`
	}
	Properties map[string]any
}

// A list is a page of a list.
type list[T any] struct {
	Results    *[]T
	NextCursor string `json:"next_cursor"`
	HasMore    bool   `json:"has_more"`
}

// pages lists all pages, the last edited first.
func (s *notion) pages(ctx context.Context) iter.Seq2[page, error] {
	return func(yield func(page, error) bool) {
		query := map[string]any{
			"filter": map[string]string{"property": "object", "value": "page"}, "page_size": 100,
			"sort": map[string]string{"timestamp": "last_edited_time", "direction": "descending"},
		}
		pager := s.client.Pager()
		for {
			var found list[page]
			if err := s.client.Post(ctx, "/v1/search", query, &found); err != nil {
				yield(page{}, err)
				return
			}
			if found.Results == nil {
				yield(page{}, s.client.Malformed("a search without results"))
				return
			}
			for _, p := range *found.Results {
				if p.Object == "page" && !yield(p, nil) {
					return
				}
			}
			if !found.HasMore || found.NextCursor == "" {
				return
			}
			if err := pager.Next(found.NextCursor, len(*found.Results)); err != nil {
				yield(page{}, err)
				return
			}
			query["start_cursor"] = found.NextCursor
		}
	}
}

// Changes implements source.Source. It yields pages in the bin as deleted, as far as the search
// finds them. Its cursor is at least some minutes old, because further edits may get the same time.
func (s *notion) Changes(ctx context.Context, cursor string) iter.Seq2[source.Change, error] {
	return func(yield func(source.Change, error) bool) {
		feed, err := rest.NewFeed(name, cursor)
		if err != nil {
			yield(source.Change{}, err)
			return
		}
		seen := map[string]bool{}
		for p, err := range s.pages(ctx) {
			if err != nil {
				yield(source.Change{}, err)
				return
			}
			edited := rest.ParseTime(p.LastEditedTime)
			if feed.Old(edited) {
				break
			}
			if seen[p.ID] {
				continue
			}
			seen[p.ID] = true
			feed.Cursor(edited)
			if p.Archived || p.InTrash {
				if !yield(source.Change{Item: source.Item{URI: uri(p.ID)}, Deleted: true}, nil) {
					return
				}
				continue
			}
			for item, err := range s.items(ctx, p) {
				if !yield(source.Change{Item: item}, err) || fatal(err) {
					return
				}
			}
		}
		yield(source.Change{Cursor: feed.EndBefore(s.client.Now().Add(-recent))}, nil)
	}
}

// Sweep implements source.Source.
func (s *notion) Sweep(ctx context.Context) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		seen := map[string]bool{}
		for p, err := range s.pages(ctx) {
			if err != nil {
				yield(source.Item{}, err)
				return
			}
			if seen[p.ID] || p.Archived || p.InTrash {
				continue
			}
			seen[p.ID] = true
			for item, err := range s.items(ctx, p) {
				if !yield(item, err) || fatal(err) {
					return
				}
			}
		}
	}
}

func fatal(err error) bool {
	_, skipped := source.AsSkip(err)
	return err != nil && !skipped
}

// uri returns the address of a page, which stays the same if it is renamed or moved.
func uri(id string) string {
	return "https://www.notion.so/" + url.PathEscape(strings.ReplaceAll(id, "-", ""))
}

// A ref is what Fetch needs: a page, the block of a file, or a property of a page with files.
type ref struct {
	Page     string `json:"page,omitempty"`
	Block    string `json:"block,omitempty"`
	Property string `json:"property,omitempty"` // id
	Index    int    `json:"index,omitempty"`    // of the file in the property
}

// items yields a page and its files.
func (s *notion) items(ctx context.Context, p page) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		if p.ID == "" {
			yield(source.Item{}, s.client.Malformed("a page without an id"))
			return
		}
		title := titleOf(p.Properties)
		m := rest.Metadata{}.Text(assay.MetaTitle, title).Text(assay.MetaAuthor, p.CreatedBy.Name).Text("database", p.Parent.DatabaseID)
		m.Time(assay.MetaCreated, rest.ParseTime(p.CreatedTime)).Time(assay.MetaModified, rest.ParseTime(p.LastEditedTime))
		item := source.Item{
			URI: uri(p.ID), Name: rest.FileName(title, ".html"), Type: "text/html", Version: s.version(p.LastEditedTime),
			Metadata: assay.Metadata(m), ACL: s.acl, Ref: rest.Ref(ref{Page: p.ID}),
		}
		if !yield(item, nil) || !s.files {
			return
		}
		for _, f := range propertyFiles(p.Properties) {
			r := ref{Page: p.ID, Property: f.property, Index: f.index}
			if !yield(s.file(p, fmt.Sprintf("#%s-%d", url.PathEscape(f.property), f.index), f.name, p.LastEditedTime, r), nil) {
				return
			}
		}
		blocks, err := s.blocks(ctx, p.ID)
		switch {
		case rest.Gone(err):
			return // deleted since the list was made
		case err != nil:
			if skip, ok := source.AsSkip(rest.Skipped(item.URI+"#files", err)); ok {
				skip.Folder = true // its files are not known
				err = skip
			}
			yield(source.Item{}, err)
			return
		}
		s.blockFiles(p, blocks, yield)
	}
}

// version returns the time of the last edit, or "" if another edit may get the same time.
func (s *notion) version(edited string) string {
	if t := rest.ParseTime(edited); t.IsZero() || t.After(s.client.Now().Add(-recent)) {
		return ""
	}
	return edited
}

// blockFiles yields the files in blocks. It reports whether the iteration continues.
func (s *notion) blockFiles(p page, blocks []block, yield func(source.Item, error) bool) bool {
	for _, b := range blocks {
		if address, _ := b.file(); address != "" {
			r := ref{Block: b.ID}
			item := s.file(p, "#"+url.PathEscape(strings.ReplaceAll(b.ID, "-", "")), b.fileName(), b.LastEditedTime, r)
			if !yield(item, nil) {
				return false
			}
		}
		if !s.blockFiles(p, b.children, yield) {
			return false
		}
	}
	return true
}

// file returns a file of a page.
func (s *notion) file(p page, fragment, fileName, edited string, r ref) source.Item {
	m := rest.Metadata{}.Text("page", titleOf(p.Properties)).Time(assay.MetaModified, rest.ParseTime(edited))
	return source.Item{
		URI: uri(p.ID) + fragment, Name: rest.FileName(fileName, ""), Version: s.version(edited),
		Metadata: assay.Metadata(m), ACL: s.acl, Ref: rest.Ref(r),
	}
}

// Fetch implements source.Source. A page is HTML.
func (s *notion) Fetch(ctx context.Context, item source.Item) (source.Content, error) {
	var r ref
	if err := rest.Unref(item, &r); err != nil {
		return source.Content{}, err
	}
	began := s.client.Now()
	data, err := s.fetch(ctx, r)
	if err != nil {
		return source.Content{}, rest.Skipped(item.URI, err)
	}
	if err := s.client.TooLarge(item.URI, int64(len(data))); err != nil {
		return source.Content{}, err
	}
	return source.Content{Data: data, Read: began}, nil
}

func (s *notion) fetch(ctx context.Context, r ref) ([]byte, error) {
	if r.Block != "" {
		var b block
		if err := s.client.Get(ctx, "/v1/blocks/"+url.PathEscape(r.Block), nil, &b); err != nil {
			return nil, err
		}
		address, _ := b.file()
		return s.download(ctx, address)
	}
	var p page
	if err := s.client.Get(ctx, "/v1/pages/"+url.PathEscape(r.Page), nil, &p); err != nil {
		return nil, err
	}
	if p.Archived || p.InTrash {
		return nil, s.client.Failed(http.StatusGone, "the page is in the bin")
	}
	if r.Property != "" {
		for _, f := range propertyFiles(p.Properties) {
			if f.property == r.Property && f.index == r.Index {
				return s.download(ctx, f.address)
			}
		}
		return nil, s.client.Failed(http.StatusNotFound, "the file is not in the page any more")
	}
	blocks, err := s.blocks(ctx, r.Page)
	if err != nil {
		return nil, err
	}
	return []byte(pageHTML(p.Properties, blocks)), nil
}

// download returns the content of a file, which is at a signed address on another host.
func (s *notion) download(ctx context.Context, address string) ([]byte, error) {
	if address == "" {
		return nil, s.client.Failed(http.StatusNotFound, "the file is not in the page any more")
	}
	got, err := s.client.Download(ctx, address, nil)
	return got.Data, err
}

// fileNameOf returns the last part of an address.
func fileNameOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	if base := path.Base(u.Path); base != "." && base != "/" {
		return base
	}
	return ""
}
