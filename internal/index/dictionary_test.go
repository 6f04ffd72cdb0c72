package index

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/google/go-cmp/cmp"
)

// randomTerms returns distinct terms in order. Many of them share a prefix.
func randomTerms(random *rand.Rand, n int) []string {
	seen := map[string]bool{}
	starts := []string{"", "a", "over", "überfall", "prefixes\x00", "\xff\xff", strings.Repeat("long ", 40)}
	for len(seen) < n {
		seen[starts[random.IntN(len(starts))]+fmt.Sprintf("%x", random.IntN(4*n))] = true
		if random.IntN(50) == 0 {
			seen[strings.Repeat("x", random.IntN(1<<16))] = true
		}
	}
	var terms []string
	for term := range seen {
		terms = append(terms, term)
	}
	slices.Sort(terms)
	return terms
}

// writeDictionary writes a dictionary in which term i has i%5+1 postings in i%7+1 bytes of value i.
func writeDictionary(terms []string) (dictionary, section []byte) {
	var w dictionaryWriter
	for i, term := range terms {
		w.add(term, i%5+1, i%7+1)
		section = append(section, slices.Repeat([]byte{byte(i)}, i%7+1)...)
	}
	return w.bytes(), section
}

func TestDictionary(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 2, 15, 16, 17, 31, 32, 33, 2000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			terms := randomTerms(random, n)
			b, section := writeDictionary(terms)
			d, err := openDictionary(b, section, 10)
			if err != nil {
				t.Fatal(err)
			}
			it := d.terms()
			for i, term := range terms {
				want := postings{count: i%5 + 1, bytes: slices.Repeat([]byte{byte(i)}, i%7+1), chunks: 10}
				got, err := d.lookup(term)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got, cmp.AllowUnexported(postings{})); diff != "" {
					t.Fatalf("lookup(%q) (-want +got):\n%s", term, diff)
				}
				if !it.next() || it.term() != term || !cmp.Equal(it.postings(), want, cmp.AllowUnexported(postings{})) {
					t.Fatalf("term %d is %q with %v, want %q with %v", i, it.term(), it.postings(), term, want)
				}
				if at, err := d.at(uint32(i)); err != nil || at.term() != term || !cmp.Equal(at.postings(), want, cmp.AllowUnexported(postings{})) {
					t.Fatalf("at(%d) is not %q with %v: %v", i, term, want, err)
				}
				for _, other := range []string{term + "\x00", term + "z", "z" + term, term[:len(term)/2]} {
					if _, found := slices.BinarySearch(terms, other); found {
						continue
					}
					if p, err := d.lookup(other); err != nil || p.count != 0 {
						t.Fatalf("lookup(%q) = %v, %v, want none", other, p, err)
					}
				}
			}
			if it.next() || it.err() != nil {
				t.Errorf("another term %q after the last, error %v", it.term(), it.err())
			}
			if _, err := d.at(uint32(n)); !errors.Is(err, assay.ErrDamaged) {
				t.Errorf("at(%d): error %v, want ErrDamaged", n, err)
			}
		})
	}
}

// FuzzDictionary reads arbitrary bytes as a dictionary.
func FuzzDictionary(f *testing.F) {
	random := rand.New(rand.NewPCG(2, 2))
	for _, n := range []int{0, 1, 17, 100} {
		terms := randomTerms(random, n)
		b, section := writeDictionary(terms)
		term := "a"
		if n > 0 {
			term = terms[n/2]
		}
		f.Add(b, section, term, uint32(10), byte(1))
	}
	f.Fuzz(func(t *testing.T, b, section []byte, term string, at uint32, flip byte) {
		if len(b) > 0 {
			b = slices.Clone(b)
			b[int(at)%len(b)] ^= flip
		}
		d, err := openDictionary(b, section, 10)
		if err == nil {
			_, err = d.lookup(term)
		}
		if err == nil {
			_, err = d.at(at)
		}
		if err != nil && !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("error %v is not ErrDamaged", err)
		}
		terms := 0
		it := d.terms()
		for it.next() {
			if terms++; terms > len(b) {
				t.Fatalf("more terms than %d bytes can hold", len(b))
			}
			if p := it.postings(); len(p.bytes) > len(section) || p.count > 10 {
				t.Fatalf("postings %d in %d bytes of %d", p.count, len(p.bytes), len(section))
			}
		}
		if it.err() != nil && !errors.Is(it.err(), assay.ErrDamaged) {
			t.Errorf("error %v is not ErrDamaged", it.err())
		}
	})
}
