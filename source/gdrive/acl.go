package gdrive

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source/internal/rest"
)

// A permission allows a user, a group, a domain or anyone to use a file.
type permission struct {
	ID, Type, Role       string
	EmailAddress, Domain string
	AllowFileDiscovery   bool
	Deleted              bool
	ExpirationTime       string
	View                 string
}

// reading are the roles that allow reading: all that Drive has.
var reading = []string{"owner", "organizer", "fileOrganizer", "writer", "commenter", "reader"}

// acl returns the readers of a file. Files of shared drives do not state their permissions.
func (s *gdrive) acl(ctx context.Context, f file) (assay.ACL, error) {
	permissions := f.Permissions
	if permissions == nil {
		listed, err := s.permissions(ctx, f.ID)
		if err != nil {
			return assay.ACL{}, err
		}
		permissions = &listed
	}
	var names []string
	for _, p := range *permissions {
		if p.valid(s.client.Now()) {
			names = append(names, s.reader(p))
		}
	}
	return assay.RestrictTo(slices.DeleteFunc(names, func(n string) bool { return n == "" })...)
}

// permissions lists the permissions of a file.
func (s *gdrive) permissions(ctx context.Context, id string) ([]permission, error) {
	var all []permission
	query := url.Values{"supportsAllDrives": {"true"}, "pageSize": {"100"}, "fields": {"nextPageToken,permissions(" + permissionFields + ")"}}
	pager := s.client.Pager()
	for {
		var page struct {
			NextPageToken string
			Permissions   *[]permission
		}
		if err := s.client.Get(ctx, "/drive/v3/files/"+url.PathEscape(id)+"/permissions", query, &page); err != nil {
			return nil, err
		}
		if page.Permissions == nil {
			return nil, s.client.Malformed("a list without permissions")
		}
		all = append(all, *page.Permissions...)
		if page.NextPageToken == "" {
			return all, nil
		}
		if err := pager.Next(page.NextPageToken, len(*page.Permissions)); err != nil {
			return nil, err
		}
		query.Set("pageToken", page.NextPageToken)
	}
}

// valid reports whether a permission allows reading at the time. One with a view is for a published
// form of the file or for its metadata.
func (p permission) valid(now time.Time) bool {
	if p.Deleted || p.View != "" || !slices.Contains(reading, p.Role) {
		return false
	}
	return p.ExpirationTime == "" || now.Before(rest.ParseTime(p.ExpirationTime))
}

// reader returns the principal of a permission, or "" if there is none.
//
// Source: "Permissions" of the Drive API: without allowFileDiscovery, a permission for a domain or
// for anyone needs the link of the file.
func (s *gdrive) reader(p permission) string {
	switch p.Type {
	case "user":
		return rest.User(p.EmailAddress, p.ID)
	case "group":
		return rest.Group(p.EmailAddress, p.ID)
	case "domain":
		domain := strings.ToLower(p.Domain)
		switch {
		case !p.AllowFileDiscovery || domain == "":
			return ""
		case domain == s.domain:
			return "*"
		}
		return rest.Group(domain, "")
	case "anyone":
		if p.AllowFileDiscovery {
			return "*"
		}
	}
	return ""
}
