package indextest

import (
	"slices"
	"time"

	"github.com/assay-rag/assay"
)

func day(s string) assay.Value {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		panic(err)
	}
	return assay.TimeValue(t)
}

// filterMetadata are documents with every kind of value, mixed kinds under one
// key, and missing keys.
var filterMetadata = []assay.Metadata{
	nil,
	{"team": assay.StringValue("legal"), "year": assay.NumberValue(2022), "draft": assay.BooleanValue(true), "modified": day("2024-01-31"), "tags": assay.ListValue("old", "draft")},
	{"team": assay.StringValue("legal affairs"), "year": assay.NumberValue(2023.5), "draft": assay.BooleanValue(false), "modified": day("2024-02-01")},
	{"team": assay.StringValue("Legal"), "year": assay.StringValue("2022"), "tags": assay.ListValue()},
	{"team": assay.ListValue("legal", "hr"), "year": assay.NumberValue(-1), "tags": assay.StringValue("old")},
	{"year": assay.NumberValue(2022), "modified": day("1901-12-31")},
	{"team": assay.StringValue(""), "tags": assay.ListValue("new", "older")},
}

// filters has every operator, alone and combined.
var filters = func() []assay.Filter {
	var list []assay.Filter
	add := func(op assay.FilterOp, key string, values ...assay.Value) {
		for _, v := range values {
			list = append(list, assay.Filter{Op: op, Key: key, Value: v})
		}
	}
	for _, op := range []assay.FilterOp{assay.OpEquals, assay.OpNotEquals} {
		add(op, "team", assay.StringValue("legal"), assay.StringValue("none"), assay.ListValue("legal", "hr"))
		add(op, "year", assay.NumberValue(2022), assay.StringValue("2022"))
		add(op, "draft", assay.BooleanValue(true))
		add(op, "modified", day("2024-01-31"))
	}
	for _, op := range []assay.FilterOp{assay.OpGreaterThan, assay.OpGreaterThanOrEquals, assay.OpLessThan, assay.OpLessThanOrEquals} {
		add(op, "year", assay.NumberValue(2022), assay.NumberValue(0))
		add(op, "modified", day("2024-01-31"))
	}
	for _, op := range []assay.FilterOp{assay.OpIn, assay.OpNotIn} {
		add(op, "team", assay.ListValue("hr", "Legal", ""), assay.ListValue())
		add(op, "tags", assay.ListValue("old"))
	}
	add(assay.OpStartsWith, "team", assay.StringValue("legal"), assay.StringValue(""))
	add(assay.OpStringContains, "team", assay.StringValue("gal"))
	add(assay.OpStringContains, "tags", assay.StringValue("old"))
	add(assay.OpListContains, "tags", assay.StringValue("old"))
	add(assay.OpListContains, "team", assay.StringValue("hr"))
	for i, f := range slices.Clone(list) {
		other := list[(i*7+3)%len(list)]
		list = append(list,
			assay.Filter{Op: assay.OpNot, Filters: []assay.Filter{f}},
			assay.Filter{Op: assay.OpAndAll, Filters: []assay.Filter{f, other}},
			assay.Filter{Op: assay.OpOrAll, Filters: []assay.Filter{f, {Op: assay.OpNot, Filters: []assay.Filter{other}}}})
	}
	return append(list, assay.Filter{})
}()
