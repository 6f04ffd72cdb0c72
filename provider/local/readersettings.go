package local

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"github.com/assay-rag/assay"
)

// readerFile describes a reader.
const readerFile = "reader.json"

// leastReaderTokens is the lowest token limit of a reader. A quarter of it is the least room for a
// text beside a question.
const leastReaderTokens = 32

// readerSettings are the settings in reader.json.
type readerSettings struct {
	maxTokens            int
	layers               int // of the encoder's, from the lowest on
	answerable, relevant calibration
	entailmentScale      float64
}

// A calibrationJSON is a calibration in reader.json.
type calibrationJSON struct {
	Scale *float64 `json:"scale"`
	Bias  *float64 `json:"bias"`
}

// mostCalibration is the largest accepted scale and bias of a calibration, far above any fitted
// one.
const mostCalibration = 1e3

// read returns the calibration. Both values are required.
func (j calibrationJSON) read(name string) (calibration, error) {
	if j.Scale == nil || j.Bias == nil {
		return calibration{}, fmt.Errorf("%s: %s lacks its scale or bias: %w", readerFile, name, assay.ErrDamaged)
	}
	c := calibration{*j.Scale, *j.Bias}
	if c.scale <= 0 || c.scale > mostCalibration || math.Abs(c.bias) > mostCalibration {
		return c, fmt.Errorf("%s: %s has the scale %g and the bias %g: %w", readerFile, name, c.scale, c.bias, assay.ErrDamaged)
	}
	return c, nil
}

// readReaderSettings reads reader.json.
func readReaderSettings(fsys fs.FS, e *Encoder) (readerSettings, error) {
	var j struct {
		Encoder    string          `json:"encoder"`
		MaxTokens  int             `json:"max_tokens"`
		Layers     int             `json:"layers"` // 0: as many as the encoder
		Answerable calibrationJSON `json:"answerable"`
		Relevance  calibrationJSON `json:"relevance"`
		Entailment calibrationJSON `json:"entailment"`
	}
	var s readerSettings
	err := readJSON(fsys, readerFile, &j)
	if err != nil {
		return s, err
	}
	if !madeFrom(j.Encoder, e.Model()) {
		return s, fmt.Errorf("%s: the reader belongs to encoder %q, not %s: %w", readerFile, j.Encoder, e.Model(), assay.ErrInvalid)
	}
	if s.maxTokens = j.MaxTokens; s.maxTokens < leastReaderTokens || s.maxTokens > e.bert.Positions {
		return s, fmt.Errorf("%s: max_tokens is %d, want %d to %d: %w", readerFile, s.maxTokens, leastReaderTokens, e.bert.Positions, assay.ErrDamaged)
	}
	if s.layers = cmp.Or(j.Layers, e.bert.Layers); s.layers < 1 || s.layers > e.bert.Layers {
		return s, fmt.Errorf("%s: layers is %d, but the encoder has %d: %w", readerFile, s.layers, e.bert.Layers, assay.ErrDamaged)
	}
	if s.answerable, err = j.Answerable.read("answerable"); err != nil {
		return s, err
	}
	if s.relevant, err = j.Relevance.read("relevance"); err != nil {
		return s, err
	}
	j.Entailment.Bias = new(float64) // a softmax has no bias
	entailment, err := j.Entailment.read("entailment")
	s.entailmentScale = entailment.scale
	return s, err
}

// madeFrom reports whether name is the encoder's model name, either whole or up to its checksum or
// its dimensions, as in gte-small@8131c6f8/384.
func madeFrom(name, model string) bool {
	rest, found := strings.CutPrefix(model, name)
	return found && name != "" && (rest == "" || rest[0] == '@' || rest[0] == '/')
}
