package atlassian

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/assay-rag/assay/source/internal/rest"
)

// readers returns a condition: users, and groups with the prefix "g-".
func readers(names ...string) Readers {
	var r Readers
	for _, n := range names {
		if len(n) > 2 && n[:2] == "g-" {
			r.AddGroup(n)
		} else {
			r.AddUser(n, "")
		}
	}
	return r
}

func TestACL(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	members := func(_ context.Context, group string) (map[string]string, error) {
		switch group {
		case "g-one":
			return map[string]string{"ann": "user:ann@example.com", "ben": "user:ben"}, nil
		case "g-two":
			return map[string]string{"ben": "user:ben", "cleo": "user:cleo"}, nil
		case "g-down":
			return nil, down
		}
		return nil, &rest.Error{Status: http.StatusForbidden}
	}
	everyone := Readers{Everyone: true}
	for what, test := range map[string]struct {
		conditions []Readers
		want       []string
		err        error
	}{
		"no condition":          {nil, []string{"*"}, nil},
		"everyone":              {[]Readers{everyone, everyone}, []string{"*"}, nil},
		"one":                   {[]Readers{readers("ann", "g-down")}, []string{"group:g-down", "user:ann"}, nil},
		"everyone and one":      {[]Readers{everyone, readers("g-one")}, []string{"group:g-one"}, nil},
		"same group":            {[]Readers{readers("g-one", "zoe"), readers("g-one", "yan")}, []string{"group:g-one"}, nil},
		"group and group":       {[]Readers{readers("g-one"), readers("g-two")}, []string{"user:ben"}, nil},
		"group and user":        {[]Readers{readers("g-one"), readers("ann", "zoe")}, []string{"user:ann@example.com"}, nil},
		"user and group":        {[]Readers{readers("ann", "zoe"), readers("g-one")}, []string{"user:ann@example.com"}, nil},
		"three":                 {[]Readers{readers("g-one"), readers("g-two", "ann"), readers("ann")}, []string{"user:ann@example.com"}, nil},
		"nobody":                {[]Readers{readers("g-one"), {Unknown: true}}, nil, nil},
		"unknown alone":         {[]Readers{{Unknown: true}}, nil, nil},
		"members not readable":  {[]Readers{readers("g-secret"), readers("ann")}, nil, nil},
		"members not available": {[]Readers{readers("g-down"), readers("ann")}, nil, down},
	} {
		acl, err := ACL(t.Context(), members, test.conditions...)
		if !errors.Is(err, test.err) {
			t.Errorf("%s: %v, want %v", what, err, test.err)
		}
		if err == nil && (!acl.Restricted || !slices.Equal(acl.Allow, test.want)) {
			t.Errorf("%s: %v, want %v", what, acl, test.want)
		}
	}
}
