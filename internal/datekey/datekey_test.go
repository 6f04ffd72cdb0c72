package datekey

import "testing"

func TestStandard(t *testing.T) {
	for key, want := range map[string]string{
		"created_at": "created", "Created-At": "created", "date": "created", "dcterms.created": "created", "article:published_time": "created",
		"modified": "modified", "lastModified": "modified", "updated_at": "modified", "team": "", "": "", "dates": "",
	} {
		got, ok := Standard(key)
		if got != want || ok != (want != "") {
			t.Errorf("Standard(%q) = %q, %v, want %q", key, got, ok, want)
		}
	}
}
