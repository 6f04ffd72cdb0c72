package sharepoint

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source/internal/rest"
)

// A permission is a sharing permission of an item, its own or an inherited one.
type permission struct {
	Roles                 []string
	ExpirationDateTime    string
	GrantedToV2           *identities
	GrantedToIdentitiesV2 []identities
	Link                  *struct{ Scope string }
}

// identities name one user or group in several ways.
type identities struct {
	User, Group, SiteUser, SiteGroup *identity
}

type identity struct{ ID, Email, LoginName string }

// reading are the roles that allow reading.
//
// Source: "Permission resource", the roles of Graph and of OneDrive for Business.
var reading = []string{"read", "write", "owner", "sp.owner", "sp.member"}

// Claims in login names for everyone, and for users.
//
// Sources: "Special SharePoint groups" and "Default SharePoint groups" of Microsoft: "Everyone
// except external users" are all members of the organisation, and "Everyone" also its guests.
const (
	claimMembers  = "|rolemanager|spo-grid-all-users/"
	claimEveryone = "c:0(.s|true"
	claimUser     = "|membership|"
)

// acl returns the readers of an item.
func (l *lister) acl(ctx context.Context, id string) (assay.ACL, error) {
	permissions, err := l.permissions(ctx, id)
	if err != nil {
		return assay.ACL{}, err
	}
	var names []string
	for _, p := range permissions {
		if p.valid(l.s.client.Now()) {
			names = append(names, p.readers(l.drive)...)
		}
	}
	return assay.RestrictTo(names...)
}

// valid reports whether a permission allows reading at the time.
func (p permission) valid(now time.Time) bool {
	reads := slices.ContainsFunc(p.Roles, func(role string) bool { return slices.Contains(reading, strings.ToLower(role)) })
	if !reads {
		return false
	}
	if p.ExpirationDateTime == "" {
		return true
	}
	expires := rest.ParseTime(p.ExpirationDateTime)
	never := expires.Year() == 1 && strings.HasPrefix(p.ExpirationDateTime, "0001-") // .NET's DateTime.MinValue
	return never || now.Before(expires)
}

// readers returns the principals of a permission. A link allows the users that it names. One for
// the organisation or for anyone names none.
//
// Source: "Sharing link resource", the scopes "anonymous", "organization" and "users".
func (p permission) readers(drive string) []string {
	var names []string
	if p.Link != nil {
		for _, to := range p.GrantedToIdentitiesV2 {
			names = append(names, to.principal(drive))
		}
	}
	if p.GrantedToV2 != nil {
		names = append(names, p.GrantedToV2.principal(drive))
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "" })
}

// principal returns the principal of identities, or "" if there is none.
func (i identities) principal(drive string) string {
	login := ""
	if i.SiteUser != nil {
		login = strings.ToLower(i.SiteUser.LoginName)
	}
	if login == claimEveryone || strings.Contains(login, claimMembers) {
		return "*"
	}
	if i.Group != nil && i.Group.ID != "" {
		return rest.Group("", i.Group.ID)
	}
	if i.SiteGroup != nil && i.SiteGroup.ID != "" {
		return rest.Group("", "sharepoint:"+drive+":"+i.SiteGroup.ID)
	}
	email, id := "", ""
	if i.User != nil {
		email, id = i.User.Email, i.User.ID
	}
	if _, user, ok := strings.Cut(login, claimUser); ok && email == "" {
		email = user
	}
	return rest.User(email, id)
}
