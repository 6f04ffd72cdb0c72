// Package jira reads the issues of Jira Cloud with their comments and attachments.
//
// An issue can be read by those who have the permission Browse Projects in its project and, if it
// has a security level, are also members of that level. Jira reports no deletions, and changes of
// permissions leave issues unchanged, so that both need a sweep.
//
// Sources: "The Jira Cloud platform REST API" v3 (2025), the groups Issue search, Issues, Issue
// comments, Issue attachments, Project permission schemes, Project roles, Issue security schemes and
// Groups; "Atlassian Document Format" of Atlassian.
package jira

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/internal/atlassian"
	"github.com/assay-rag/assay/source/internal/rest"
)

const name = "jira"

// Kind returns the kind of source.
func Kind() source.Kind {
	return source.Kind{
		Name:   name,
		Short:  "issues, comments and attachments of Jira Cloud",
		Target: "https://SITE.atlassian.net",
		Help: `Reads issues with their fields and comments, and their attachments. Comments that are
restricted to a role or a group, work logs, and the summaries of linked issues are left out.

Needs an API token and the e-mail address of its account. The account must have the global
permission Administer Jira, since others may not read permission schemes and security levels.

Readers are those with the permission Browse Projects who are also members of the issue's security
level, if it has one. Users are "user:EMAIL", or "user:ACCOUNT-ID" if the e-mail address is not
visible to the account; groups are "group:GROUP-ID". Browse Projects for anyone, or for any user who
is logged in, is for all principals.`,
		Options: []source.Option{
			{Name: "projects", Help: "keys of the projects, separated by commas; empty: all"},
			{Name: "attachments", Default: "true", Help: "false: without attachments"},
		},
		Hosts:       []string{"api.media.atlassian.com:443"},
		Credentials: atlassian.Credentials,
		Open:        open,
	}
}

type jira struct {
	client      *rest.Client
	base        string
	projects    []string
	attachments bool
}

func open(_ context.Context, c source.Config) (source.Source, error) {
	c = c.WithDefaults()
	s := &jira{base: strings.TrimRight(c.Target, "/"), projects: rest.List(c.Options["projects"])}
	u, err := url.Parse(s.base)
	if err != nil || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, rest.Invalid(name, "%q is no address of a site of Jira", c.Target)
	}
	for _, key := range s.projects {
		if strings.ContainsAny(key, "\"\\") {
			return nil, rest.Invalid(name, "%q is no key of a project", key)
		}
	}
	if s.attachments, err = rest.Bool(name, c, "attachments"); err != nil {
		return nil, err
	}
	set, secrets, err := atlassian.Authorize(name, c)
	if err != nil {
		return nil, err
	}
	s.client, err = rest.New(rest.Config{Name: name + " " + u.Host, Base: s.base, Settings: c, Authorize: set, Secrets: secrets})
	return s, err
}

// Close implements source.Source.
func (s *jira) Close() error { return s.client.Close() }

// A user is an account. The address may be hidden.
type user struct{ AccountID, EmailAddress, DisplayName string }

// An issue is an issue of a search.
type issue struct {
	ID, Key string
	Fields  struct {
		Summary                     string
		Created, Updated            string
		Creator, Reporter, Assignee *user
		Project                     struct{ ID, Key string }
		Security                    *struct{ ID string }
		Status, IssueType           struct{ Name string }
		Labels                      []string
		Attachment                  []attachment
	}
}

type attachment struct {
	ID, Filename, MimeType, Created string
	Author                          user
	Size                            int64
}

var searched = []string{"summary", "created", "updated", "creator", "reporter", "assignee", "project", "security", "status", "issuetype", "labels", "attachment"}

// issues lists the issues that were updated since a time, the oldest update first.
func (s *jira) issues(ctx context.Context, since time.Time) iter.Seq2[issue, error] {
	if since.IsZero() {
		since = time.Unix(0, 0) // a search must be bounded
	}
	jql := `updated >= "` + since.UTC().Format("2006-01-02 15:04") + `"`
	if len(s.projects) > 0 {
		jql += ` and project in ("` + strings.Join(s.projects, `", "`) + `")`
	}
	jql += " order by updated asc, id asc"
	return func(yield func(issue, error) bool) {
		token := ""
		pager := s.client.Pager()
		for {
			query := map[string]any{"jql": jql, "fields": searched, "maxResults": 100}
			if token != "" {
				query["nextPageToken"] = token
			}
			var page struct {
				Issues        *[]issue
				NextPageToken string
			}
			err := s.client.Post(ctx, "/rest/api/3/search/jql", query, &page)
			if err == nil && page.Issues == nil {
				err = s.client.Malformed("a search without issues")
			}
			if err != nil {
				yield(issue{}, err)
				return
			}
			for _, i := range *page.Issues {
				if !yield(i, nil) {
					return
				}
			}
			if token = page.NextPageToken; token == "" {
				return
			}
			if err := pager.Next(token, len(*page.Issues)); err != nil {
				yield(issue{}, err)
				return
			}
		}
	}
}

// Changes implements source.Source. It yields no deletions.
func (s *jira) Changes(ctx context.Context, cursor string) iter.Seq2[source.Change, error] {
	return func(yield func(source.Change, error) bool) {
		feed, err := rest.NewFeed(name, cursor)
		if err != nil {
			yield(source.Change{}, err)
			return
		}
		access := s.newAccess()
		for found, err := range s.issues(ctx, feed.Since()) {
			if err != nil {
				yield(source.Change{}, err)
				return
			}
			updated := rest.ParseTime(found.Fields.Updated)
			if feed.Old(updated) {
				continue
			}
			at := feed.Cursor(updated)
			for item, err := range s.items(ctx, access, found) {
				if !yield(source.Change{Item: item, Cursor: at}, err) || fatal(err) {
					return
				}
			}
		}
		yield(source.Change{Cursor: feed.End()}, nil)
	}
}

// Sweep implements source.Source. An issue that is updated meanwhile is listed twice and yielded
// once.
func (s *jira) Sweep(ctx context.Context) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		access := s.newAccess()
		seen := map[string]bool{}
		for found, err := range s.issues(ctx, time.Time{}) {
			if err != nil {
				yield(source.Item{}, err)
				return
			}
			if seen[found.ID] {
				continue
			}
			seen[found.ID] = true
			for item, err := range s.items(ctx, access, found) {
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

// A ref is what Fetch needs.
type ref struct {
	Issue      string `json:"issue,omitempty"`
	Attachment string `json:"attachment,omitempty"`
}

// items yields an issue and its attachments.
func (s *jira) items(ctx context.Context, access *access, i issue) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		if i.ID == "" || i.Key == "" {
			yield(source.Item{}, s.client.Malformed("an issue without an id or key"))
			return
		}
		uri := s.base + "/browse/" + url.PathEscape(i.Key)
		acl, err := access.acl(ctx, i)
		if atlassian.Denied(err) {
			err = rest.NoACL(uri, err.Error(), err)
		}
		if err != nil {
			yield(source.Item{}, err)
			return
		}
		item := source.Item{
			URI: uri, Name: rest.FileName(i.Key+" "+i.Fields.Summary, ".html"), Type: "text/html",
			Version: i.Fields.Updated, Metadata: metadata(i), ACL: acl, Ref: rest.Ref(ref{Issue: i.ID}),
		}
		if !yield(item, nil) || !s.attachments {
			return
		}
		for _, a := range i.Fields.Attachment {
			if !yield(s.attachment(i, a, acl)) {
				return
			}
		}
	}
}

// attachment returns an attachment. Its content never changes.
func (s *jira) attachment(i issue, a attachment, acl assay.ACL) (source.Item, error) {
	if a.ID == "" {
		return source.Item{}, s.client.Malformed("an attachment without an id")
	}
	m := rest.Metadata{}.Text(assay.MetaAuthor, a.Author.DisplayName).Text("issue", i.Key).Text("project", i.Fields.Project.Key)
	m.Time(assay.MetaCreated, rest.ParseTime(a.Created))
	item := source.Item{
		URI: s.base + "/rest/api/3/attachment/content/" + url.PathEscape(a.ID), Name: rest.FileName(a.Filename, ""), Type: a.MimeType,
		Version: a.Created + "/" + a.ID, Metadata: assay.Metadata(m), ACL: acl, Ref: rest.Ref(ref{Attachment: a.ID}), Size: max(a.Size, 0),
	}
	if err := s.client.TooLarge(item.URI, item.Size); err != nil {
		return source.Item{}, err
	}
	return item, nil
}

func metadata(i issue) assay.Metadata {
	m := rest.Metadata{}.Text(assay.MetaTitle, i.Key+" "+i.Fields.Summary).Text("project", i.Fields.Project.Key)
	m.Text("status", i.Fields.Status.Name).Text("issue_type", i.Fields.IssueType.Name).Strings("labels", i.Fields.Labels)
	m.Time(assay.MetaCreated, rest.ParseTime(i.Fields.Created)).Time(assay.MetaModified, rest.ParseTime(i.Fields.Updated))
	if i.Fields.Creator != nil {
		m.Text(assay.MetaAuthor, i.Fields.Creator.DisplayName)
	}
	return assay.Metadata(m)
}

// Fetch implements source.Source. An issue is HTML.
func (s *jira) Fetch(ctx context.Context, item source.Item) (source.Content, error) {
	var r ref
	if err := rest.Unref(item, &r); err != nil {
		return source.Content{}, err
	}
	began := s.client.Now()
	if r.Attachment != "" {
		got, err := s.client.Download(ctx, "/rest/api/3/attachment/content/"+url.PathEscape(r.Attachment), nil)
		if err != nil {
			return source.Content{}, rest.Skipped(item.URI, err)
		}
		return source.Content{Data: got.Data, Read: began}, nil
	}
	var whole wholeIssue
	path := "/rest/api/3/issue/" + url.PathEscape(r.Issue)
	if err := s.client.Get(ctx, path, url.Values{"fields": {"*all"}, "expand": {"names"}}, &whole); err != nil {
		return source.Content{}, rest.Skipped(item.URI, err)
	}
	comments, err := s.comments(ctx, path+"/comment")
	if err != nil {
		return source.Content{}, rest.Skipped(item.URI, err)
	}
	data := []byte(issueHTML(whole, comments))
	if err := s.client.TooLarge(item.URI, int64(len(data))); err != nil {
		return source.Content{}, err
	}
	return source.Content{Data: data, Read: began}, nil
}

// A comment is a comment of an issue.
type comment struct {
	ID         string
	Author     user
	Body       any // in the Atlassian Document Format
	Created    string
	Visibility *struct{ Type, Value string } // set if it is restricted to a role or group
}

// comments reads the comments that all readers of an issue may see.
func (s *jira) comments(ctx context.Context, path string) ([]comment, error) {
	const limit = 100
	var out []comment
	pager := s.client.Pager()
	for start := 0; ; {
		var page struct {
			Comments *[]comment
			Total    int
		}
		query := url.Values{"startAt": {strconv.Itoa(start)}, "maxResults": {strconv.Itoa(limit)}, "orderBy": {"created"}}
		if err := s.client.Get(ctx, path, query, &page); err != nil {
			return nil, err
		}
		if page.Comments == nil {
			return nil, s.client.Malformed("a list without comments")
		}
		for _, c := range *page.Comments {
			if c.Visibility == nil {
				out = append(out, c)
			}
		}
		start += len(*page.Comments)
		if start >= page.Total || len(*page.Comments) == 0 {
			return out, nil
		}
		if err := pager.Next(fmt.Sprint(start), len(*page.Comments)); err != nil {
			return nil, err
		}
	}
}
