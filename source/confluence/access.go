package confluence

import (
	"cmp"
	"context"
	"net/url"
	"strconv"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source/internal/atlassian"
)

// access computes ACLs and caches what it reads. It lives as long as one listing.
type access struct {
	s        *confluence
	contents atlassian.Cache[*placed]
	spaces   atlassian.Cache[atlassian.Readers]
	groups   atlassian.Cache[map[string]string]
}

// placed is the place of a page and its own restrictions, which are empty if there are none.
type placed struct {
	space     string
	ancestors []string
	readers   atlassian.Readers
}

func (s *confluence) newAccess() *access {
	return &access{s, atlassian.Cache[*placed]{}, atlassian.Cache[atlassian.Readers]{}, atlassian.Cache[map[string]string]{}}
}

// acl returns the ACL of a content: that of its page.
func (a *access) acl(ctx context.Context, c content, page string) (assay.ACL, error) {
	var at *placed
	var err error
	if page == c.ID {
		at, err = a.placed(ctx, c)
		a.contents.Set(page, at, err)
	} else {
		at, err = a.page(ctx, page)
	}
	if err != nil {
		return assay.ACL{}, err
	}
	space, err := a.space(ctx, at.space)
	if err != nil {
		return assay.ACL{}, err
	}
	conditions := []atlassian.Readers{space}
	if at.readers.Stated() {
		conditions = append(conditions, at.readers)
	}
	for _, id := range at.ancestors {
		above, err := a.page(ctx, id)
		if err != nil {
			return assay.ACL{}, err
		}
		if above.readers.Stated() {
			conditions = append(conditions, above.readers)
		}
	}
	members := func(ctx context.Context, group string) (map[string]string, error) { return a.members(ctx, group) }
	return atlassian.ACL(ctx, members, conditions...)
}

// page returns the place of a page by its id.
func (a *access) page(ctx context.Context, id string) (*placed, error) {
	return a.contents.Get(id, func() (*placed, error) {
		var c content
		if err := a.s.client.Get(ctx, a.s.api("content", id), url.Values{"expand": {expansions}}, &c); err != nil {
			return nil, err
		}
		if c.ID != id {
			return nil, a.s.client.Malformed("content %s in the reply for content %s", c.ID, id)
		}
		return a.placed(ctx, c)
	})
}

// placed reads the place and the restrictions of a content.
func (a *access) placed(ctx context.Context, c content) (*placed, error) {
	if c.Space.Key == "" {
		return nil, a.s.client.Malformed("the space of content %s is not stated", c.ID)
	}
	p := &placed{space: c.Space.Key}
	for _, ancestor := range c.Ancestors {
		p.ancestors = append(p.ancestors, ancestor.ID)
	}
	var stated *restrictions
	if c.Restrictions != nil {
		stated = c.Restrictions.Read.Restrictions
	}
	if stated == nil || !stated.complete() {
		var err error
		if p.readers, err = a.restrictions(ctx, c.ID); err != nil {
			return nil, err
		}
		return p, nil
	}
	stated.addTo(&p.readers)
	return p, nil
}

// restrictions are the users and groups who may view a page. Both are empty if all may who may view
// the space.
type restrictions struct {
	User  *subjects
	Group *subjects
}

type subjects struct {
	Results     []subject
	Limit, Size int
}

// A subject is a user or a group.
type subject struct {
	AccountID string
	Username  string
	Email     string
	ID        string // of a group in the cloud
	Name      string // of a group
}

// complete reports whether all subjects are stated.
func (r *restrictions) complete() bool {
	whole := func(s *subjects) bool { return s != nil && (s.Limit == 0 || s.Size < s.Limit) }
	return whole(r.User) && whole(r.Group)
}

func (r *restrictions) addTo(to *atlassian.Readers) {
	for _, u := range r.User.Results {
		addUser(to, u)
	}
	for _, g := range r.Group.Results {
		addGroup(to, g)
	}
}

func addUser(to *atlassian.Readers, u subject) { to.AddUser(cmp.Or(u.AccountID, u.Username), u.Email) }

func addGroup(to *atlassian.Readers, g subject) { to.AddGroup(cmp.Or(g.ID, g.Name)) }

// restrictions reads all restrictions of a content.
func (a *access) restrictions(ctx context.Context, id string) (atlassian.Readers, error) {
	const limit = 100
	var all atlassian.Readers
	pager := a.s.client.Pager()
	for start := 0; ; start += limit {
		query := url.Values{"expand": {"restrictions.user,restrictions.group"}, "start": {strconv.Itoa(start)}, "limit": {strconv.Itoa(limit)}}
		var reply struct{ Restrictions *restrictions }
		if err := a.s.client.Get(ctx, a.s.api("content", id, "restriction", "byOperation", "read"), query, &reply); err != nil {
			return all, err
		}
		r := reply.Restrictions
		if r == nil || r.User == nil || r.Group == nil {
			return all, a.s.client.Malformed("the restrictions of content %s are not stated", id)
		}
		r.addTo(&all)
		n := max(len(r.User.Results), len(r.Group.Results))
		if n < limit {
			return all, nil
		}
		if err := pager.Next(strconv.Itoa(start), n); err != nil {
			return all, err
		}
	}
}

// space returns those who may view a space.
func (a *access) space(ctx context.Context, key string) (atlassian.Readers, error) {
	return a.spaces.Get(key, func() (atlassian.Readers, error) {
		if a.s.cloud {
			return a.cloudSpace(ctx, key)
		}
		return a.serverSpace(ctx, key)
	})
}

// cloudSpace reads the permissions of a space of the cloud. Principals that are neither users nor
// groups are left out.
func (a *access) cloudSpace(ctx context.Context, key string) (atlassian.Readers, error) {
	var readers atlassian.Readers
	var id string
	type space struct{ ID, Key string }
	for found, err := range each[space](ctx, a.s, a.s.path+"/api/v2/spaces", url.Values{"keys": {key}, "limit": {"250"}}) {
		if err != nil {
			return readers, err
		}
		if found.Key == key {
			id = found.ID
		}
	}
	if id == "" {
		return readers, a.s.client.Malformed("the space %s is not listed", key)
	}
	type permission struct {
		Principal struct{ Type, ID string }
		Operation struct{ Key, TargetType string }
	}
	for p, err := range each[permission](ctx, a.s, a.s.path+"/api/v2/spaces/"+url.PathEscape(id)+"/permissions", url.Values{"limit": {"250"}}) {
		if err != nil {
			return readers, err
		}
		if p.Operation.Key != "read" || p.Operation.TargetType != "space" {
			continue
		}
		switch p.Principal.Type {
		case "user":
			readers.AddUser(p.Principal.ID, "")
		case "group":
			readers.AddGroup(p.Principal.ID)
		}
	}
	return readers, nil
}

// serverSpace reads the permissions of a space of Data Center.
func (a *access) serverSpace(ctx context.Context, key string) (atlassian.Readers, error) {
	var readers atlassian.Readers
	var permissions []struct {
		Operation struct{ OperationKey, TargetType string }
		Subject   *struct{ Type, Name, Username, DisplayName string }
	}
	if err := a.s.client.Get(ctx, a.s.api("space", key, "permissions"), nil, &permissions); err != nil {
		return readers, err
	}
	for _, p := range permissions {
		if p.Operation.OperationKey != "read" || p.Operation.TargetType != "space" || p.Subject == nil {
			continue
		}
		switch p.Subject.Type {
		case "known", "user":
			readers.AddUser(p.Subject.Username, "")
		case "group":
			readers.AddGroup(p.Subject.Name)
		case "anonymous":
			readers.Everyone = true
		}
	}
	return readers, nil
}

// members returns the members of a group.
func (a *access) members(ctx context.Context, group string) (map[string]string, error) {
	return a.groups.Get(group, func() (map[string]string, error) {
		path := a.s.api("group", group, "member")
		if a.s.cloud {
			path = a.s.api("group", group, "membersByGroupId")
		}
		var in atlassian.Readers
		for u, err := range each[subject](ctx, a.s, path, url.Values{"limit": {"200"}}) {
			if err != nil {
				return nil, err
			}
			addUser(&in, u)
		}
		return in.Users, nil
	})
}
