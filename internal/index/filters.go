package index

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/assay-rag/assay"
)

// filters selects the chunks of a segment that a query may score. It works on the segment's bytes
// and decodes only the columns that a query needs. The returned sets are made for all chunks and
// belong to the caller.
type filters struct {
	bytes     []byte
	directory []byte // offset of each column's head
	chunks    uint32
}

// openFilters reads the output of a filterEncoder.
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

// columns returns the number of columns.
func (f filters) columns() int { return len(f.directory) / 8 }

// head returns the offset of a column's head.
func (f filters) head(i int) uint64 { return binary.LittleEndian.Uint64(f.directory[8*i:]) }

// columnAt returns the column with the given number.
func (f filters) columnAt(i int) (column, error) { return decodeColumn(f.bytes, f.head(i), f.chunks) }

// column returns the column with the given ID, or an empty column if there is none.
func (f filters) column(id columnID) (column, error) {
	i := sort.Search(f.columns(), func(i int) bool { return f.compareID(i, id) >= 0 })
	if i == f.columns() || f.compareID(i, id) != 0 {
		return column{id: id, chunks: f.chunks}, nil
	}
	return f.columnAt(i)
}

// compareID compares the ID of column i with id.
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

// keep returns exactly the chunks of the documents for which filter.Match is true. For the zero
// Filter it returns nil, which means all chunks. filter must have passed Check.
func (f filters) keep(filter assay.Filter) (bitset, error) {
	if filter.Op == "" {
		return nil, nil
	}
	return f.matching(filter)
}

// matching is like keep but never returns nil.
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

// negated returns the filter that the given one negates. ok is false if the filter is not a
// negation.
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

// matchingAll combines lower and upper bounds on the values of one key into a single range.
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

// A valueRange is the range of values low to high-1 of a ranged column.
type valueRange struct {
	column    column
	low, high int
}

// valueRange returns the values that satisfy an order or prefix comparison. ok is false for other
// operators.
func (f filters) valueRange(filter assay.Filter) (r valueRange, ok bool, err error) {
	bound := string(appendValue(nil, filter.Value))
	before := func(v []byte) bool { return string(v) < bound }
	upTo := func(v []byte) bool { return string(v) <= bound }
	var low, high func(value []byte) bool // true for values before the range, and before its end
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

// onlyRange is like valueRange, but ok is also false if strings that are dates could satisfy the
// comparison.
func (f filters) onlyRange(filter assay.Filter) (r valueRange, ok bool, err error) {
	if filter.Value.Kind == assay.KindTime {
		texts, err := f.column(columnID{metadataColumns, filter.Key, stringKind})
		if err != nil || texts.count > 0 {
			return valueRange{}, false, err
		}
	}
	return f.valueRange(filter)
}

// addDates adds the chunks with a string that is a date and satisfies a comparison with a time. It
// scans all strings of the key.
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

// intersect adds a range to a conjunction of ranges, with at most one range for each column.
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

// addEqual adds the chunks that have exactly the value v for a key.
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

// addHaving adds the chunks that have, for a key, a string that is in list or a list with a member
// that is in list.
func (f filters) addHaving(u *chunkUnion, key string, list []string) error {
	if err := f.addValues(u, columnID{metadataColumns, key, stringKind}, list...); err != nil {
		return err
	}
	return f.addValues(u, columnID{metadataColumns, key, memberKind}, list...)
}

// addContaining adds the chunks that have, for a key, a string that contains part or a list with
// such a member. It scans all strings and members of the key.
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

// addValues adds the chunks that have one of the given values in a column.
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

// inCollections returns the chunks of the named collections. It returns nil, which means all
// chunks, if there are no names or if the collections have all chunks.
func (f filters) inCollections(names []string) (bitset, error) {
	if len(names) == 0 {
		return nil, nil
	}
	u := newUnion(f.chunks)
	err := f.addValues(u, columnID{class: collectionColumns, kind: stringKind}, names...)
	return u.unlessAll(), err
}

// allowed returns the chunks that access may see, or nil if it may see all chunks.
func (f filters) allowed(access assay.Access) (bitset, error) {
	u := newUnion(f.chunks)
	if access.IsZero() {
		return u.set(), nil
	}
	if err := f.addValues(u, columnID{class: aclColumns, kind: booleanKind}, "\x01"); err != nil {
		return nil, err
	}
	if err := f.addValues(u, columnID{class: aclColumns, kind: stringKind}, access.Names()...); err != nil {
		return nil, err
	}
	collected, err := f.inCollections(access.Collections())
	if err != nil || collected == nil {
		return u.unlessAll(), err
	}
	collected.and(u.set())
	return collected, nil
}

// kinds returns the kinds of value that the seen chunks (nil: all) have for a metadata key. The set
// is empty if no seen chunk has the key.
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

// languages returns the sorted languages that the seen chunks (nil: all) were analysed as.
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

// meets reports whether s, which is not empty, contains one of the seen chunks.
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
