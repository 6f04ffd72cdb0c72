package assay

// A FilterOp is what a Filter does.
type FilterOp string

// The operators of a filter. The names are those of its JSON form.
const (
	OpEquals              FilterOp = "equals"
	OpNotEquals           FilterOp = "notEquals"
	OpGreaterThan         FilterOp = "greaterThan"
	OpGreaterThanOrEquals FilterOp = "greaterThanOrEquals"
	OpLessThan            FilterOp = "lessThan"
	OpLessThanOrEquals    FilterOp = "lessThanOrEquals"
	OpIn                  FilterOp = "in"
	OpNotIn               FilterOp = "notIn"
	OpStartsWith          FilterOp = "startsWith"
	OpStringContains      FilterOp = "stringContains"
	OpListContains        FilterOp = "listContains"
	OpAndAll              FilterOp = "andAll"
	OpOrAll               FilterOp = "orAll"
	OpNot                 FilterOp = "not"
)

// A Filter keeps the documents whose metadata it matches. The zero Filter keeps
// everything.
type Filter struct {
	Op      FilterOp
	Key     string   // of comparisons
	Value   Value    // of comparisons; for in and notIn a list
	Filters []Filter // of andAll, orAll (two or more or any number) and not (exactly one)
}
