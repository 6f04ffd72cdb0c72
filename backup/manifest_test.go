package backup

import (
	"bytes"
	"testing"
)

// FuzzManifest reads manifests. One that is accepted is written the same, and names only files of a
// data directory.
func FuzzManifest(f *testing.F) {
	for _, m := range []Manifest{
		{Program: program, Format: format},
		{Program: program, Format: format, Tenants: []Tenant{{Name: "a", Identity: "X"}}, Files: []File{{Path: "tenants/a/content.db"}, {Path: "tenants/a/runs.db"}}},
		{Program: program, Format: format, System: true, Encrypted: true, Files: []File{{Path: "system.db.age", Size: 1}}},
		{Program: program, Format: format, System: true, Files: []File{{Path: "../system.db"}}},
	} {
		_, data, err := m.sealed()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseManifest(data)
		if err != nil {
			return
		}
		if _, again, err := m.sealed(); err != nil || !bytes.Equal(again, data) {
			t.Errorf("%q became %q, %v", data, again, err)
		}
		for _, file := range m.Files {
			if bytes.Contains([]byte(file.Path), []byte("..")) || file.Path == "" || file.Path[0] == '/' {
				t.Errorf("the path %q", file.Path)
			}
		}
	})
}
