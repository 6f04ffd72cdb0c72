package assay_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

func TestRestrictTo(t *testing.T) {
	tests := []struct {
		names []string
		want  []string // nil: ErrInvalid
	}{
		{[]string{"user:ann"}, []string{"user:ann"}},
		{[]string{"user:ann", "group:b", "user:ann", "*"}, []string{"*", "group:b", "user:ann"}},
		{[]string{"group:a:b"}, []string{"group:a:b"}},
		{[]string{}, []string{}},
		{[]string{"ann"}, nil},
		{[]string{"user:"}, nil},
		{[]string{"group:"}, nil},
		{[]string{"role:admin"}, nil},
		{[]string{"*:ann"}, nil},
		{[]string{""}, nil},
		{[]string{"user:ann", "**"}, nil},
	}
	for _, tt := range tests {
		acl, err := assay.RestrictTo(tt.names...)
		if tt.want == nil {
			if !errors.Is(err, assay.ErrInvalid) || acl.Restricted {
				t.Errorf("RestrictTo(%q) = %+v, %v; want ErrInvalid", tt.names, acl, err)
			}
			continue
		}
		if err != nil || !acl.Restricted {
			t.Errorf("RestrictTo(%q) = %+v, %v", tt.names, acl, err)
		}
		if diff := cmp.Diff(tt.want, acl.Allow); diff != "" {
			t.Errorf("RestrictTo(%q) (-want +got):\n%s", tt.names, diff)
		}
	}
}

func TestAllows(t *testing.T) {
	restricted := func(names ...string) assay.ACL {
		acl, err := assay.RestrictTo(names...)
		if err != nil {
			t.Fatal(err)
		}
		return acl
	}
	ann := assay.Principal{User: "ann", Groups: []string{"legal", ""}}
	tests := []struct {
		name      string
		principal assay.Principal
		acl       assay.ACL
		want      bool
	}{
		{"nobody, open", assay.Principal{}, assay.ACL{}, false},
		{"nobody, everyone", assay.Principal{}, restricted("*"), false},
		{"groups without a user", assay.Principal{Groups: []string{"legal"}}, restricted("group:legal"), false},
		{"open", ann, assay.ACL{}, true},
		{"open, though names are listed", ann, assay.ACL{Allow: []string{"user:bob"}}, true},
		{"everyone", ann, restricted("*"), true},
		{"by name", ann, restricted("user:ann"), true},
		{"by group", ann, restricted("group:legal", "user:bob"), true},
		{"another", ann, restricted("user:bob", "group:board"), false},
		{"a group named like the user", ann, restricted("group:ann"), false},
		{"a user named like the group", ann, restricted("user:legal"), false},
		{"case counts", ann, restricted("user:Ann"), false},
		{"no name", ann, restricted(), false},
		{"an ACL that was not made by RestrictTo", ann, assay.ACL{Restricted: true, Allow: []string{"user:", "group:"}}, false},
		{"local", assay.Local(), restricted("user:local"), true},
		{"narrowed to its collection", assay.Principal{User: "ann", Collections: []string{"d", "c"}}, restricted("user:ann"), true},
		{"narrowed, and not by name", assay.Principal{User: "ann", Collections: []string{"c"}}, restricted("user:bob"), false},
		{"narrowed to another collection", assay.Principal{User: "ann", Collections: []string{"d"}}, assay.ACL{}, false},
		{"narrowed to none", assay.Principal{User: "ann", Collections: []string{}}, assay.ACL{}, false},
	}
	for _, tt := range tests {
		if got := tt.principal.Access().Allows("c", tt.acl); got != tt.want {
			t.Errorf("%s: Allows = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestAccessKey(t *testing.T) {
	a := assay.Principal{User: "ann", Groups: []string{"b", "a", "b"}}.Access()
	b := assay.Principal{User: "ann", Groups: []string{"a", "b", ""}}.Access()
	if a.Key() != b.Key() {
		t.Errorf("keys %q and %q of the same access", a.Key(), b.Key())
	}
	if other := (assay.Principal{User: "ann", Groups: []string{"a"}}).Access(); other.Key() == a.Key() {
		t.Errorf("key %q of two accesses", a.Key())
	}
	one := assay.Principal{User: "ann", Groups: []string{"a\ngroup:b"}}.Access()
	two := assay.Principal{User: "ann", Groups: []string{"a", "b"}}.Access()
	if one.Key() == two.Key() {
		t.Errorf("key %q of a group with a line break in its name and of two groups", one.Key())
	}
	for want, access := range map[string]assay.Access{
		`[]`:                                   {},
		`["*","group:a","group:b","user:ann"]`: a,
	} {
		if got, err := json.Marshal(access); err != nil || string(got) != want {
			t.Errorf("JSON %s, %v; want %s", got, err, want)
		}
	}
	if !(assay.Access{}).IsZero() || a.IsZero() {
		t.Error("IsZero does not tell nobody's access")
	}
}

func TestAccessNames(t *testing.T) {
	access := assay.Principal{User: "ann", Groups: []string{"legal\nx", "legal", ""}}.Access()
	want := []string{"*", "group:legal", "group:legal\nx", "user:ann"}
	if diff := cmp.Diff(want, access.Names()); diff != "" {
		t.Errorf("Names (-want +got):\n%s", diff)
	}
	access.Names()[0] = "user:bob"
	if diff := cmp.Diff(want, access.Names()); diff != "" {
		t.Errorf("Names after changing what it returned (-want +got):\n%s", diff)
	}
}
