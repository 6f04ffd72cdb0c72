package chunk

import (
	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/parse"
)

// A packer joins the units of a section into leaves.
type packer struct {
	text    string
	target  int // tokens
	hard    int
	overlap int
}

// A span becomes a chunk.
type span struct {
	start, end int
	tokens     int
	kind       assay.ChunkKind
}

// pack joins units, which are in order, into spans of about the target size.
func (p *packer) pack(units []unit) []span {
	total := 0
	for _, u := range units {
		total += u.tokens
	}
	if total <= p.target+p.target/2 {
		if len(units) == 0 {
			return nil
		}
		return []span{p.join(units)}
	}
	var spans []span
	lead := unit{} // the sentences that the group repeats, if any
	from, tokens := 0, 0
	for i, u := range units {
		if i == from || tokens+u.tokens <= p.target {
			tokens += u.tokens
			continue
		}
		if i == len(units)-1 && u.tokens*4 <= p.target && tokens+u.tokens <= p.target+p.target/2 {
			tokens += u.tokens // no tiny last chunk
			continue
		}
		cut := p.cut(units, from, i)
		spans = append(spans, p.joinLead(lead, units[from:cut]))
		lead = p.lead(units[cut-1], units[cut:i+1])
		from, tokens = cut, lead.tokens
		for _, v := range units[cut : i+1] {
			tokens += v.tokens
		}
	}
	return append(spans, p.joinLead(lead, units[from:]))
}

// cut returns the end of the group units[from:i], given that units[i] does not fit into it. If the
// units that belong with units[i] fit together with it, the group ends before them.
func (p *packer) cut(units []unit, from, i int) int {
	cut, tokens := i, units[i].tokens
	for cut-1 > from && units[cut-1].glued && tokens+units[cut-1].tokens <= p.hard {
		cut--
		tokens += units[cut].tokens
	}
	return cut
}

// lead returns the sentences at the end of before that a group starting with next repeats, within
// the overlap and only between prose.
func (p *packer) lead(before unit, next []unit) unit {
	if p.overlap == 0 || before.kind != parse.Paragraph || !next[0].prose() {
		return unit{}
	}
	room := p.hard
	for _, u := range next {
		room -= u.tokens
	}
	room = min(room, p.overlap)
	sentences := sentence.Spans(p.text[before.start:before.end])
	lead := unit{}
	for i := len(sentences) - 1; i >= 0; i-- {
		start := before.start + sentences[i].Start
		tokens := Tokens(p.text[start:before.end])
		if tokens > room || start == before.start && i == 0 && len(sentences) > 1 {
			break
		}
		lead = unit{start: start, end: before.end, tokens: tokens, kind: before.kind}
	}
	return lead
}

func (p *packer) joinLead(lead unit, units []unit) span {
	s := p.join(units)
	if lead.tokens > 0 {
		s.start = lead.start
		s.tokens += lead.tokens
	}
	return s
}

// join makes one span of units.
func (p *packer) join(units []unit) span {
	s := span{start: units[0].start, end: units[len(units)-1].end, kind: assay.ChunkProse}
	code, rows := true, true
	for _, u := range units {
		s.tokens += u.tokens
		code = code && u.kind == parse.Code
		rows = rows && (u.kind == parse.TableRow || u.kind == parse.TableHead)
	}
	switch {
	case code:
		s.kind = assay.ChunkCode
	case rows:
		s.kind = assay.ChunkTable
	}
	return s
}
