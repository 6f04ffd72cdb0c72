package rerank

import "github.com/assay-rag/assay"

// Account returns, for each hit of found, the contributions to its score by feature name.
func (l *Local) Account(found assay.Results) []map[string]float64 {
	weights := l.weights(found)
	accounts := make([]map[string]float64, len(found.Hits))
	for i, f := range Features(found) {
		accounts[i] = map[string]float64{}
		for j, x := range f {
			accounts[i][FeatureNames[j]] = weights[j] * x
		}
	}
	return accounts
}
