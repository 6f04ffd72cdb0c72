// Package graph finds the passages that a question needs together, without a model, by a walk over
// the entities that passages name. Passages are linked by shared entities. A link is stronger the
// rarer the entity is, and strongest to the passage that has the entity's name as its title. [Walk]
// starts from the first hits of a search and from the entities that the question names, and gives
// each passage its share of the walk's mass. The share is high for a passage that several starts
// lead to, such as the article about a person whom the best hit names but the question does not.
//
// A [Walker] walks over an index. Package entity finds the entities when passages are indexed. The
// walk sees only passages that the search may find.
package graph
