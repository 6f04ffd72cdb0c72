package local

import "testing"

// TestTiles checks that tiles cover all rows once, that none is too large for a scratch, and that
// the last ones are small if there are many.
func TestTiles(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 16} {
		for n := range 3000 {
			at := 0
			for _, tile := range tiles(n, workers) {
				if tile.from != at || tile.to <= tile.from || tile.to-tile.from > tileRows {
					t.Fatalf("%d rows, %d workers: tile %v at %d", n, workers, tile, at)
				}
				at = tile.to
			}
			if at != n {
				t.Fatalf("%d rows, %d workers: tiles up to %d", n, workers, at)
			}
		}
	}
	if got := tiles(128, 2); len(got) != 2 {
		t.Errorf("128 rows for 2 workers are in %d tiles, want 2", len(got))
	}
	if all := tiles(1024, 2); all[len(all)-1].to-all[len(all)-1].from > leastRows {
		t.Errorf("the last of the tiles %v is too large", all)
	}
}
