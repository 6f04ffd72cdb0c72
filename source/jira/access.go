package jira

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"strconv"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source/internal/atlassian"
)

// access computes ACLs and caches what it reads. It lives as long as one listing.
type access struct {
	s        *jira
	browse   atlassian.Cache[holders] // by project
	levels   atlassian.Cache[holders] // by project and level
	roles    atlassian.Cache[atlassian.Readers]
	groups   atlassian.Cache[map[string]string]
	projects atlassian.Cache[project]
}

func (s *jira) newAccess() *access {
	return &access{s, atlassian.Cache[holders]{}, atlassian.Cache[holders]{}, atlassian.Cache[atlassian.Readers]{}, atlassian.Cache[map[string]string]{}, atlassian.Cache[project]{}}
}

// A holder is what has a permission or is a member of a security level.
type holder struct {
	Type      string
	Parameter string // the id or name of the holder
	Value     string // the id of a group
	User      *user
}

// holders are the holders of one permission, without those that an issue itself names.
type holders struct {
	readers            atlassian.Readers
	reporter, assignee bool
}

// acl returns the readers of an issue.
func (a *access) acl(ctx context.Context, i issue) (assay.ACL, error) {
	key := i.Fields.Project.Key
	if key == "" {
		return assay.ACL{}, a.s.client.Malformed("the project of issue %s is not stated", i.Key)
	}
	browse, err := a.browse.Get(key, func() (holders, error) { return a.browseProjects(ctx, key) })
	if err != nil {
		return assay.ACL{}, err
	}
	conditions := []atlassian.Readers{browse.of(i)}
	if i.Fields.Security != nil {
		level := i.Fields.Security.ID
		members, err := a.levels.Get(key+"\n"+level, func() (holders, error) { return a.securityLevel(ctx, key, level) })
		if err != nil {
			return assay.ACL{}, err
		}
		conditions = append(conditions, members.of(i))
	}
	return atlassian.ACL(ctx, a.members, conditions...)
}

// of returns the readers for an issue.
func (h holders) of(i issue) atlassian.Readers {
	r := h.readers
	r.Users = maps.Clone(r.Users)
	for _, named := range []struct {
		holds bool
		user  *user
	}{{h.reporter, i.Fields.Reporter}, {h.assignee, i.Fields.Assignee}} {
		if named.holds && named.user != nil {
			r.AddUser(named.user.AccountID, named.user.EmailAddress)
		}
	}
	return r
}

// browseProjects returns the holders of the permission to browse a project.
func (a *access) browseProjects(ctx context.Context, key string) (holders, error) {
	var scheme struct {
		Permissions *[]struct {
			Holder     holder
			Permission string
		}
	}
	if err := a.s.client.Get(ctx, "/rest/api/3/project/"+url.PathEscape(key)+"/permissionscheme", url.Values{"expand": {"all"}}, &scheme); err != nil {
		return holders{}, err
	}
	if scheme.Permissions == nil {
		return holders{}, a.s.client.Malformed("the permissions of project %s are not stated", key)
	}
	var all holders
	for _, p := range *scheme.Permissions {
		if p.Permission != "BROWSE_PROJECTS" {
			continue
		}
		if err := a.add(ctx, &all, key, p.Holder); err != nil {
			return holders{}, err
		}
	}
	return all, nil
}

// securityLevel returns the members of a security level.
func (a *access) securityLevel(ctx context.Context, key, level string) (holders, error) {
	var scheme struct{ ID int64 }
	if err := a.s.client.Get(ctx, "/rest/api/3/project/"+url.PathEscape(key)+"/issuesecuritylevelscheme", nil, &scheme); err != nil {
		return holders{}, err
	}
	type member struct {
		IssueSecurityLevelID int64
		Holder               holder
	}
	path := "/rest/api/3/issuesecurityschemes/" + strconv.FormatInt(scheme.ID, 10) + "/members"
	members, err := list[member](ctx, a, path, url.Values{"issueSecurityLevelId": {level}, "expand": {"all"}})
	if err != nil {
		return holders{}, err
	}
	var all holders
	for _, m := range members {
		if strconv.FormatInt(m.IssueSecurityLevelID, 10) != level {
			continue
		}
		if err := a.add(ctx, &all, key, m.Holder); err != nil {
			return holders{}, err
		}
	}
	return all, nil
}

// add adds a holder. Holders that no principal can name, such as custom fields, let nobody read.
//
// Source: "Permission schemes", holder objects: an application role without a parameter are all
// users who are logged in, and "anyone" also those who are not.
func (a *access) add(ctx context.Context, to *holders, key string, h holder) error {
	switch h.Type {
	case "anyone":
		to.readers.Everyone = true
	case "applicationRole":
		if h.Parameter == "" {
			to.readers.Everyone = true
		}
	case "group":
		to.readers.AddGroup(h.Value)
	case "user":
		id, email := cmp.Or(h.Value, h.Parameter), ""
		if h.User != nil {
			id, email = h.User.AccountID, h.User.EmailAddress
		}
		to.readers.AddUser(id, email)
	case "projectRole":
		return a.addRole(ctx, &to.readers, key, cmp.Or(h.Value, h.Parameter))
	case "projectLead":
		p, err := a.projects.Get(key, func() (project, error) { return a.project(ctx, key) })
		if err != nil {
			return err
		}
		to.readers.AddUser(p.Lead.AccountID, p.Lead.EmailAddress)
	case "reporter":
		to.reporter = true
	case "assignee":
		to.assignee = true
	}
	return nil
}

type project struct{ Lead user }

func (a *access) project(ctx context.Context, key string) (project, error) {
	var p project
	err := a.s.client.Get(ctx, "/rest/api/3/project/"+url.PathEscape(key), url.Values{"expand": {"lead"}}, &p)
	return p, err
}

// addRole adds the actors of a role in a project.
func (a *access) addRole(ctx context.Context, to *atlassian.Readers, key, id string) error {
	actors, err := a.roles.Get(key+"\n"+id, func() (atlassian.Readers, error) {
		var role struct {
			Actors []struct {
				ActorUser  *struct{ AccountID string }
				ActorGroup *struct{ GroupID string }
			}
		}
		var r atlassian.Readers
		err := a.s.client.Get(ctx, "/rest/api/3/project/"+url.PathEscape(key)+"/role/"+url.PathEscape(id), nil, &role)
		for _, actor := range role.Actors {
			if actor.ActorUser != nil {
				r.AddUser(actor.ActorUser.AccountID, "")
			}
			if actor.ActorGroup != nil {
				r.AddGroup(actor.ActorGroup.GroupID)
			}
		}
		return r, err
	})
	for user := range actors.Users {
		to.AddUser(user, "")
	}
	for group := range actors.Groups {
		to.AddGroup(group)
	}
	return err
}

// members returns the members of a group.
func (a *access) members(ctx context.Context, group string) (map[string]string, error) {
	return a.groups.Get(group, func() (map[string]string, error) {
		users, err := list[user](ctx, a, "/rest/api/3/group/member", url.Values{"groupId": {group}})
		var in atlassian.Readers
		for _, u := range users {
			in.AddUser(u.AccountID, u.EmailAddress)
		}
		return in.Users, err
	})
}

// list reads a whole list of the form that starts at an offset.
func list[T any](ctx context.Context, a *access, path string, query url.Values) ([]T, error) {
	var all []T
	pager := a.s.client.Pager()
	for {
		query.Set("startAt", strconv.Itoa(len(all)))
		query.Set("maxResults", "50")
		var page struct {
			Values *[]T
			IsLast bool
		}
		if err := a.s.client.Get(ctx, path, query, &page); err != nil {
			return nil, err
		}
		if page.Values == nil {
			return nil, a.s.client.Malformed("a list without members")
		}
		all = append(all, *page.Values...)
		if page.IsLast || len(*page.Values) == 0 {
			return all, nil
		}
		if err := pager.Next(strconv.Itoa(len(all)), len(*page.Values)); err != nil {
			return nil, err
		}
	}
}
