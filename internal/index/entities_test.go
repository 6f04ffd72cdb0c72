package index

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

// writeMentions returns the two sections of mentions for the given rows.
func writeMentions(t testing.TB, rows [][]mention) (section, starts []byte) {
	t.Helper()
	var file bytes.Buffer
	w := mentionWriter{frame: newFrameWriter(&file, segmentFile)}
	w.frame.section()
	for _, row := range rows {
		w.add(slices.Clone(row))
	}
	if err := w.frame.finish(); err != nil {
		t.Fatal(err)
	}
	sections, err := unframe(file.Bytes(), segmentFile, 1)
	if err != nil {
		t.Fatal(err)
	}
	return sections[0], w.starts
}

// randomMentions returns rows that name up to 20 of the given number of entities.
func randomMentions(random *rand.Rand, rows, entities int) [][]mention {
	list := make([][]mention, rows)
	for i := range list {
		for _, e := range random.Perm(entities)[:random.IntN(min(entities, 20)+1)] {
			list[i] = append(list[i], mention{uint32(e), random.IntN(3) == 0})
		}
	}
	return list
}

func TestMentions(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	for _, rows := range []int{0, 1, 15, 16, 17, 100} {
		list := randomMentions(random, rows, 1000)
		section, starts := writeMentions(t, list)
		m, err := openMentions(section, starts, rows, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for row, want := range list {
			slices.SortFunc(want, func(a, b mention) int { return int(a.entity) - int(b.entity) })
			got, err := m.of(uint32(row), nil)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(mention{})); diff != "" || err != nil {
				t.Errorf("row %d of %d: %v, -want +got\n%s", row, rows, err, diff)
			}
		}
		if _, err := m.of(uint32(rows), nil); !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("row %d of %d: error %v, want ErrDamaged", rows, rows, err)
		}
	}
}

func FuzzMentions(f *testing.F) {
	random := rand.New(rand.NewPCG(2, 2))
	for _, rows := range []int{0, 1, 17, 40} {
		section, starts := writeMentions(f, randomMentions(random, rows, 30))
		f.Add(section, starts, uint8(rows), uint32(3), byte(1))
	}
	f.Fuzz(func(t *testing.T, section, starts []byte, rows uint8, at uint32, flip byte) {
		if len(section) > 0 {
			section = slices.Clone(section)
			section[int(at)%len(section)] ^= flip
		}
		m, err := openMentions(section, starts, int(rows), 30)
		for row := range uint32(rows) {
			if err != nil {
				break
			}
			var list []mention
			list, err = m.of(row, nil)
			for i, n := range list {
				if n.entity >= 30 || i > 0 && n.entity <= list[i-1].entity {
					t.Errorf("row %d names %v", row, list)
				}
			}
		}
		if err != nil && !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("error %v is not ErrDamaged", err)
		}
	})
}

// TestMergeForgedMentions checks that merging a segment whose mentions name entities without
// postings does not panic. The merged segment may be damaged or have any content.
func TestMergeForgedMentions(t *testing.T) {
	t.Parallel()
	v := wholeView(buildSegment(t, upTo(9)...))
	random := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		forged := *v.segment
		forged.mentions.bytes = slices.Clone(v.segment.mentions.bytes)
		for range 3 {
			forged.mentions.bytes[random.IntN(len(forged.mentions.bytes))] ^= byte(1 + random.IntN(255))
		}
		m, err := merge(t.Context(), []*view{wholeView(&forged)}, new(fileSink))
		if err == nil {
			_, err = contents(m.view)
		}
		if err != nil && !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("error %v is not ErrDamaged", err)
		}
	}
}
