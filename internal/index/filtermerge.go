package index

import "bytes"

// A filterMerge merges the columns of all its sources in one parallel walk.
type filterMerge struct {
	sources []filterSource
	out     *filterEncoder
	members int // of the last merged memberKind column

	// The value being merged.
	value   []byte
	runs    []chunkRun
	holders []*mergedColumn // the columns that have it
}

func mergeFilters(sources []filterSource, out *filterEncoder) error {
	m := filterMerge{sources: sources, out: out}
	next := make([]int, len(sources)) // next column of each source
	for {
		parts, err := m.firstColumns(next)
		if err != nil {
			return err
		}
		if len(parts) == 0 {
			return out.finish()
		}
		if err := m.merge(parts); err != nil {
			return err
		}
	}
}

// firstColumns returns the next columns with the lowest ID and advances their sources.
func (m *filterMerge) firstColumns(next []int) ([]*mergedColumn, error) {
	var parts []*mergedColumn
	for i := range m.sources {
		s := &m.sources[i]
		if next[i] == s.filters.columns() {
			continue
		}
		c, err := s.filters.columnAt(next[i])
		if err != nil {
			return nil, err
		}
		if len(parts) > 0 {
			if order := c.id.compare(parts[0].column.id); order > 0 {
				continue
			} else if order < 0 {
				parts = parts[:0]
			}
		}
		parts = append(parts, &mergedColumn{source: s, number: i, column: c})
	}
	for _, p := range parts {
		next[p.number]++
	}
	return parts, nil
}

// merge merges columns that have the same ID.
func (m *filterMerge) merge(parts []*mergedColumn) error {
	id := parts[0].column.id
	m.out.begin(id)
	if id.kind != listKind {
		m.members = 0
		for i := range m.sources {
			m.sources[i].newMember = nil
		}
	}
	for _, p := range parts {
		if err := p.start(m.members); err != nil {
			return err
		}
	}
	for {
		first := firstValue(parts)
		if first == nil {
			break
		}
		m.value = append(m.value[:0], first.value...)
		if err := m.mergeValue(parts); err != nil {
			return err
		}
	}
	if id.kind == memberKind {
		m.members = m.out.count
	}
	return m.out.end()
}

// firstValue returns the part with the smallest current value, or nil if all have ended.
func firstValue(parts []*mergedColumn) *mergedColumn {
	var first *mergedColumn
	for _, p := range parts {
		if !p.at.ended() && (first == nil || bytes.Compare(p.value, first.value) < 0) {
			first = p
		}
	}
	return first
}

// mergeValue writes m.value with its chunks from all parts and advances the parts that have it.
func (m *filterMerge) mergeValue(parts []*mergedColumn) error {
	m.runs = m.runs[:0]
	m.holders = m.holders[:0]
	for _, p := range parts {
		if p.at.ended() || !bytes.Equal(p.value, m.value) {
			continue
		}
		m.holders = append(m.holders, p)
		if err := m.addRuns(p); err != nil {
			return err
		}
	}
	number := dropped
	if len(m.runs) > 0 {
		number = uint32(m.out.count)
		if err := m.out.add(m.value, m.runs); err != nil {
			return err
		}
	}
	for _, p := range m.holders {
		if m.out.id.kind == memberKind {
			p.source.newMember = append(p.source.newMember, number)
		}
		p.at.next()
		if err := p.settle(m.members); err != nil {
			return err
		}
	}
	return nil
}

// addRuns adds the chunks that have the value in one part.
func (m *filterMerge) addRuns(p *mergedColumn) error {
	ascending := true
	err := p.source.scratch.walk(p.at.set, func(start, end uint32) {
		for _, c := range p.source.newChunk[start:end] {
			if c == dropped {
				continue
			}
			if n := len(m.runs); n > 0 && c < m.runs[n-1].end {
				ascending = false
			}
			m.runs = appendRun(m.runs, c, c+1)
		}
	})
	if err == nil && !ascending {
		err = damaged("values of key " + m.out.id.key)
	}
	return err
}

// A mergedColumn is one source's part of a column, with a cursor at one of its values.
type mergedColumn struct {
	source *filterSource
	number int // of the source
	column column
	at     valueCursor
	value  []byte // current value in the encoding of the merged column
}

// start moves to the first value. members is the number of members of the merged lists.
func (p *mergedColumn) start(members int) error {
	p.at = p.column.at(0)
	return p.settle(members)
}

// settle sets value to the current value of the cursor. Lists with a member that no chunk has any
// more are skipped, because no chunk has those lists either.
func (p *mergedColumn) settle(members int) error {
	for ; !p.at.ended(); p.at.next() {
		if p.column.id.kind != listKind {
			p.value = p.at.value
			return nil
		}
		kept, ok := p.renumber(members)
		if !ok {
			return damaged("lists of key " + p.column.id.key)
		}
		if kept {
			return nil
		}
	}
	return p.at.err()
}

// renumber sets value to the list at the cursor with renumbered members. kept is false if one of
// its members is gone. ok is false if the value is not a valid list.
func (p *mergedColumn) renumber(members int) (kept, ok bool) {
	had, has := memberBytes(len(p.source.newMember)), memberBytes(members)
	if len(p.at.value)%had != 0 {
		return false, false
	}
	p.value = p.value[:0]
	for list := p.at.value; len(list) > 0; list = list[had:] {
		n := memberNumber(list[:had])
		if n >= uint64(len(p.source.newMember)) {
			return false, false
		}
		if p.source.newMember[n] == dropped {
			return false, true
		}
		p.value = appendMember(p.value, p.source.newMember[n], has)
	}
	return true, true
}
