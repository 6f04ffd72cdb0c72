package retrieve

import (
	"fmt"
	"math"

	"github.com/assay-rag/assay"
)

// CoverageNote returns the note for results that were found while some of the searched passages had
// no vector. It returns "" if all had one or if vectors were not searched.
func CoverageNote(v assay.IndexVersion) string {
	switch {
	case v.Model == "" || v.Coverage >= 1:
		return ""
	case v.Coverage <= 0:
		return "no passage had a vector yet"
	}
	percent := math.Floor(100 * v.Coverage)
	if percent < 1 {
		return "less than 1% of the passages had vectors yet; the rest was searched by text alone"
	}
	return fmt.Sprintf("%.0f%% of the passages had vectors yet; the rest was searched by text alone", percent)
}
