package index

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/assay-rag/assay"
)

// filters answers which chunks of a segment a query may score, from the segment's
// bytes, of which it decodes what a question needs. The sets it returns are made for
// all chunks and the caller's.
type filters struct {
	bytes     []byte
	directory []byte // of each column where its head begins
	chunks    uint32
}

// openFilters reads what a filterEncoder writes.
func openFilters(b []byte, chunks uint32) (filters, error) {
	if len(b) < 8 {
		return filters{}, damaged("filters")
	}
	body, tail := b[:len(b)-8], b[len(b)-8:]
	count := uint64(u32(tail, 0))
	if u32(tail, 1) != chunks || 8*count > uint64(len(body)) {
		return filters{}, damaged("filters")
	}
	split := uint64(len(body)) - 8*count
	return filters{bytes: body[:split], directory: body[split:], chunks: chunks}, nil
}

// columns returns how many columns there are.
func (f filters) columns() int { return len(f.directory) / 8 }

// head returns where the head of a column begins.
func (f filters) head(i int) uint64 { return binary.LittleEndian.Uint64(f.directory[8*i:]) }

// columnAt returns a column by its number.
func (f filters) columnAt(i int) (column, error) { return decodeColumn(f.bytes, f.head(i), f.chunks) }

// column returns the column of an ID; the zero column where there is none.
func (f filters) column(id columnID) (column, error) {
	i := sort.Search(f.columns(), func(i int) bool { return f.compareID(i, id) >= 0 })
	if i == f.columns() || f.compareID(i, id) != 0 {
		return column{id: id, chunks: f.chunks}, nil
	}
	return f.columnAt(i)
}

// compareID compares the ID of a column with another.
func (f filters) compareID(i int, id columnID) int {
	d := decoder{rest: f.bytes[min(f.head(i), uint64(len(f.bytes))):]}
	class, key, kind := decodeID(&d)
	if class != id.class {
		return int(class) - int(id.class)
	}
	if n := strings.Compare(string(key), id.key); n != 0 {
		return n
	}
	return int(kind) - int(id.kind)
}

// keep returns exactly the chunks of the documents that filter.Match holds for; nil,
// which is all chunks, for the zero Filter. filter has passed Check.
func (f filters) keep(filter assay.Filter) (bitset, error) {
	if filter.Op == "" {
		return nil, nil
	}
	return f.matching(filter)
}

// matching is keep, but never nil.
func (f filters) matching(filter assay.Filter) (bitset, error) {
	if without, ok := negated(filter); ok {
		set, err := f.matching(without)
		if err != nil {
			return nil, err
		}
		set.complement(int(f.chunks))
		return set, nil
	}
	switch filter.Op {
	case assay.OpAndAll:
		return f.matchingAll(filter.Filters)
	case assay.OpOrAll:
		return f.matchingAny(filter.Filters)
	}
	r, ok, err := f.valueRange(filter)
	if err != nil {
		return nil, err
	}
	if ok {
		set, err := r.set()
		if err != nil || filter.Value.Kind != assay.KindTime {
			return set, err
		}
		u := newUnion(f.chunks)
		err = f.addDates(u, filter)
		set.or(u.set())
		return set, err
	}
	u := newUnion(f.chunks)
	switch filter.Op {
	case "":
		u.words.fill(int(f.chunks))
	case assay.OpEquals:
		err = f.addEqual(u, filter.Key, filter.Value)
	case assay.OpIn:
		err = f.addHaving(u, filter.Key, filter.Value.List)
	case assay.OpListContains:
		err = f.addHaving(u, filter.Key, []string{filter.Value.String})
	case assay.OpStringContains:
		err = f.addContaining(u, filter.Key, []byte(filter.Value.String))
	default:
		err = fmt.Errorf("filter operator %q does not exist: %w", filter.Op, assay.ErrInvalid)
	}
	if err != nil {
		return nil, err
	}
	return u.set(), nil
}

// negated returns the filter that keeps what the given one does not, if that says what
// not to keep.
func negated(filter assay.Filter) (without assay.Filter, ok bool) {
	switch filter.Op {
	case assay.OpNot:
		return filter.Filters[0], true
	case assay.OpNotEquals:
		filter.Op = assay.OpEquals
		return filter, true
	case assay.OpNotIn:
		filter.Op = assay.OpIn
		return filter, true
	}
	return assay.Filter{}, false
}

func (f filters) matchingAny(parts []assay.Filter) (bitset, error) {
	any := newBitset(int(f.chunks))
	for _, filter := range parts {
		set, err := f.matching(filter)
		if err != nil {
			return nil, err
		}
		any.or(set)
	}
	return any, nil
}

// matchingAll combines what bounds the values of one key from below and from above to
// one range of it.
func (f filters) matchingAll(parts []assay.Filter) (bitset, error) {
	var all bitset // nil: all chunks
	and := func(set bitset, err error) error {
		if err == nil && all != nil {
			all.and(set)
		} else {
			all = set
		}
		return err
	}
	var without []assay.Filter
	var ranges []valueRange
	for _, filter := range parts {
		if n, ok := negated(filter); ok {
			without = append(without, n)
		} else if r, ok, err := f.onlyRange(filter); err != nil {
			return nil, err
		} else if ok {
			ranges = intersect(ranges, r)
		} else if err := and(f.matching(filter)); err != nil {
			return nil, err
		}
	}
	for _, r := range ranges {
		if err := and(r.set()); err != nil {
			return nil, err
		}
	}
	for _, filter := range without {
		set, err := f.matching(filter)
		if err != nil {
			return nil, err
		}
		if all == nil {
			set.complement(int(f.chunks))
			all = set
		} else {
			all.andNot(set)
		}
	}
	return all, nil
}

// A valueRange is the values low to high-1 of a column that is ranged.
type valueRange struct {
	column    column
	low, high int
}

// valueRange returns the values for which a comparison holds that asks for an order or
// a prefix; ok is false for others.
func (f filters) valueRange(filter assay.Filter) (r valueRange, ok bool, err error) {
	bound := string(appendValue(nil, filter.Value))
	before := func(v []byte) bool { return string(v) < bound }
	upTo := func(v []byte) bool { return string(v) <= bound }
	var low, high func(value []byte) bool // hold for what comes before the range, and before its end
	switch filter.Op {
	case assay.OpGreaterThan:
		low = upTo
	case assay.OpGreaterThanOrEquals:
		low = before
	case assay.OpLessThan:
		high = before
	case assay.OpLessThanOrEquals:
		high = upTo
	case assay.OpStartsWith:
		low = before
		high = func(v []byte) bool { return string(v) < bound || strings.HasPrefix(string(v), bound) }
	default:
		return valueRange{}, false, nil
	}
	c, err := f.column(columnID{metadataColumns, filter.Key, columnKindOf(filter.Value.Kind)})
	if err != nil {
		return valueRange{}, false, err
	}
	r = valueRange{column: c, high: c.count}
	if low != nil {
		if r.low, err = c.seek(0, low); err != nil {
			return valueRange{}, false, err
		}
	}
	if high != nil {
		if r.high, err = c.seek(0, high); err != nil {
			return valueRange{}, false, err
		}
	}
	return r, true, nil
}

// onlyRange is valueRange for a comparison that holds for no value but those of the range: ok
// is false where strings may be dates.
func (f filters) onlyRange(filter assay.Filter) (r valueRange, ok bool, err error) {
	if filter.Value.Kind == assay.KindTime {
		texts, err := f.column(columnID{metadataColumns, filter.Key, stringKind})
		if err != nil || texts.count > 0 {
			return valueRange{}, false, err
		}
	}
	return f.valueRange(filter)
}

// addDates adds the chunks with a string that is a date for which a comparison with a time
// holds. It looks through all strings that the key has.
func (f filters) addDates(u *chunkUnion, filter assay.Filter) error {
	c, err := f.column(columnID{metadataColumns, filter.Key, stringKind})
	if err != nil || c.count == 0 {
		return err
	}
	at := c.at(0)
	for ; !at.ended() && at.err() == nil; at.next() {
		if filter.Holds(assay.StringValue(string(at.value)), true) {
			if err := u.add(at.set); err != nil {
				return err
			}
		}
	}
	return at.err()
}

// intersect adds a range to those that all have to hold.
func intersect(ranges []valueRange, r valueRange) []valueRange {
	for i := range ranges {
		if o := &ranges[i]; o.column.id == r.column.id {
			o.low, o.high = max(o.low, r.low), min(o.high, r.high)
			return ranges
		}
	}
	return append(ranges, r)
}

// set returns the chunks with a value in the range.
func (r valueRange) set() (bitset, error) {
	u := newDifference(r.column.chunks)
	if err := r.column.addRange(u, r.low, r.high); err != nil {
		return nil, err
	}
	return u.set(), nil
}

// addEqual adds the chunks that have exactly this value for a key.
func (f filters) addEqual(u *chunkUnion, key string, v assay.Value) error {
	value := appendValue(nil, v)
	if v.Kind == assay.KindList {
		members, err := f.column(columnID{metadataColumns, key, memberKind})
		if err != nil {
			return err
		}
		for _, member := range v.List {
			at, ok, err := members.find(0, member)
			if err != nil || !ok {
				return err
			}
			value = appendMember(value, uint32(at.index), memberBytes(members.count))
		}
	}
	if v.Kind == assay.KindTime {
		if err := f.addDates(u, assay.Filter{Op: assay.OpEquals, Key: key, Value: v}); err != nil {
			return err
		}
	} else if t, ok := assay.ParseDate(v.String); ok && v.Kind == assay.KindString {
		if err := f.addValues(u, columnID{metadataColumns, key, timeKind}, string(appendValue(nil, assay.TimeValue(t)))); err != nil {
			return err
		}
	}
	return f.addValues(u, columnID{metadataColumns, key, columnKindOf(v.Kind)}, string(value))
}

// addHaving adds the chunks with a string under a key that is in list, or a list with
// such a member.
func (f filters) addHaving(u *chunkUnion, key string, list []string) error {
	if err := f.addValues(u, columnID{metadataColumns, key, stringKind}, list...); err != nil {
		return err
	}
	return f.addValues(u, columnID{metadataColumns, key, memberKind}, list...)
}

// addContaining adds the chunks with a string under a key that contains part, or a
// list with such a member. It looks through all strings and members that the key has.
func (f filters) addContaining(u *chunkUnion, key string, part []byte) error {
	for _, kind := range []columnKind{stringKind, memberKind} {
		c, err := f.column(columnID{metadataColumns, key, kind})
		switch {
		case err != nil:
			return err
		case c.count == 0:
		case len(part) == 0:
			err = u.add(c.all)
		default:
			err = c.addContaining(u, part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addValues adds the chunks that have one of the values of a column.
func (f filters) addValues(u *chunkUnion, id columnID, values ...string) error {
	c, err := f.column(id)
	if err != nil || c.count == 0 {
		return err
	}
	if !slices.IsSorted(values) {
		values = slices.Sorted(slices.Values(values))
	}
	from := 0
	for _, value := range values {
		at, ok, err := c.find(from, value)
		if err != nil {
			return err
		}
		if ok {
			if err := u.add(at.set); err != nil {
				return err
			}
		}
		from = at.index
	}
	return nil
}

// inCollections returns the chunks of the collections; nil, which is all chunks, for
// no names, and where that is all.
func (f filters) inCollections(names []string) (bitset, error) {
	if len(names) == 0 {
		return nil, nil
	}
	u := newUnion(f.chunks)
	err := f.addValues(u, columnID{class: collectionColumns, kind: stringKind}, names...)
	return u.unlessAll(), err
}

// allowed returns the chunks that access may see; nil where that is all.
func (f filters) allowed(access assay.Access) (bitset, error) {
	u := newUnion(f.chunks)
	if access.IsZero() {
		return u.set(), nil
	}
	if err := f.addValues(u, columnID{class: aclColumns, kind: booleanKind}, "\x01"); err != nil {
		return nil, err
	}
	err := f.addValues(u, columnID{class: aclColumns, kind: stringKind}, access.Names()...)
	return u.unlessAll(), err
}

// kinds returns the kinds of value that the seen chunks (nil: all) have for a
// metadata key, none where no chunk has the key.
func (f filters) kinds(key string, seen bitset) (kindSet, error) {
	kinds := kindSet(0)
	for i, kind := range valueKinds {
		c, err := f.column(columnID{metadataColumns, key, columnKindOf(kind)})
		if err != nil {
			return 0, err
		}
		if c.count == 0 {
			continue
		}
		has, err := f.meets(c.all, seen)
		if err != nil {
			return 0, err
		}
		if has {
			kinds |= 1 << i
		}
	}
	return kinds, nil
}

// languages returns what languages the seen chunks (nil: all) were analysed as, sorted.
func (f filters) languages(seen bitset) ([]string, error) {
	c, err := f.column(columnID{class: languageColumns, kind: stringKind})
	if err != nil {
		return nil, err
	}
	var languages []string
	at := c.at(0)
	for ; !at.ended(); at.next() {
		has, err := f.meets(at.set, seen)
		if err != nil {
			return nil, err
		}
		if has {
			languages = append(languages, string(at.value))
		}
	}
	return languages, at.err()
}

// meets reports whether a stored set, which is not empty, has one of the seen chunks.
func (f filters) meets(s chunkSet, seen bitset) (bool, error) {
	if seen == nil {
		return true, nil
	}
	u := newUnion(f.chunks)
	if err := u.add(s); err != nil {
		return false, err
	}
	for i, word := range u.words {
		if word&seen[i] != 0 {
			return true, nil
		}
	}
	return false, nil
}
