// Package graph finds the passages that a question needs together, without a model:
// by a walk over what passages name. Passages are linked by the entities that they
// name, the more the rarer those are, and most to the passage that stands under an
// entity's name as its title. [Walk] starts from the first hits of a search and
// from what the question names, and gives each passage its share of the walk's
// mass: high for what several of them lead to, such as the article about somebody
// whom the best hit names but the question does not.
//
// A [Walker] walks over an index. What links passages is found by package entity
// when they are indexed; the walk sees only what the search may find.
package graph
